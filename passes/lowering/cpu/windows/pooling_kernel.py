"""The kernel rule of poolings on CPUs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, epilogue_of
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.windows import pooling as loops
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import Extents
from mgx_mlir.passes.lowering.expr import Extent, Opaque
from mgx_mlir.passes.lowering.ops.pooling import counted_taps, window_counts
from mgx_mlir.passes.lowering.ops.windows import WindowAxis
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

BYTES = (dtypes.INT8, dtypes.UINT8)


def refusal(op: Pooling) -> str | None:
    """Return why no vector kernel computes a pooling, None if one does."""
    x, out = TensorType.of(op.input), TensorType.of(op.out)
    if x.dtype is not dtypes.FLOAT and not (x.dtype in BYTES and op.mode == "max"):
        return f"it computes {x.dtype}"
    if x.rank not in (3, 4):
        return f"its input has {x.rank} dims"
    if op.dyn_global:
        return "its window is as large as the input"
    if op.padding_mode != "default_" or any(p < 0 for p in op.padding):
        return "its padding is computed, or negative"
    if 0 in x.dims or 0 in out.dims:
        return "it has no elements"
    if not isinstance(op.input.owner, ir.Block):
        return "its input is computed in the kernel"
    return None


@dataclass(frozen=True)
class _Plan:
    """A pooling, its images, and the pointwise ops behind it."""

    op: Pooling
    windows: loops.Windows
    images: Extents
    line: loops.Line | None  # scratch for rows of planes, None for channels-last images
    own: Sequence[Extent]  # extents of the result, in the order of its dims
    epilogue: Epilogue


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel of one pooling whose other ops are computed on its results."""
    pools = [o for o in site.body.operations if isinstance(o, Pooling)]
    if len(pools) != 1:
        return Refusal(f"it has {len(pools)} poolings")
    (op,) = pools
    reason = refusal(op)
    if reason is not None:
        return Refusal(reason)
    windows = windows_of(op)
    extents = e.expr_extents(e.expr(op.input))
    one = len(extents) == 3
    last = op.channels_last
    spatial = extents[1:-1] if last else extents[2:]
    counts = window_counts(e, op, spatial)
    size, found = ([1, *spatial], [1, *counts]) if one else (spatial, counts)
    channels = extents[-1] if last else extents[1]
    images = Extents(extents[0], (size[0], size[1]), (found[0], found[1]), channels)
    line = None if last else loops.line_of(windows, images, site.isa)
    if not last and line is None:
        return Refusal("its planes have no rows that vectors read")
    # a stand-in for the windows' results, with their extents
    own = [extents[0], *counts, channels] if last else [extents[0], channels, *counts]
    total = Opaque(TensorType.of(op.out), own)
    epilogue = epilogue_of(e, site, op, total)
    if isinstance(epilogue, Refusal):
        return epilogue
    return _Plan(op, windows, images, line, own, epilogue)


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loops over the windows."""
    windows, images, line, epilogue = plan.windows, plan.images, plan.line, plan.epilogue
    isa, own, last = site.isa, plan.own, plan.op.channels_last
    x = e.tensor(plan.op.input)
    batch, channels, size, found = images.batch, images.channels, images.size, images.counts
    if len(own) == 3:  # without the height
        height = 1 if last else 2
        epilogue = epilogue.through(lambda k, at: [*at[:height], *at[height + 1 :]])
    if last:
        flat = views.reshaped(e, x, [batch, *size, channels])
        made = loops.channels_last(windows, images, isa, flat, epilogue)
        return [views.reshaped(e, v, own) for v in made]
    assert line is not None
    divisors = None
    if windows.mode == "average" and line.strip is None:
        width, count = size[1], found[1]
        assert isinstance(width, int)
        assert isinstance(count, int)
        row = WindowAxis(
            width, windows.lengths[1], windows.stride[1], windows.dilation[1], windows.low[1],
            windows.high[1],
        )  # fmt: skip
        columns = counted_taps(count, row, include=windows.include)
        divisors = e.constant(np.maximum(columns, 1).astype(np.float32))
    flat = views.reshaped(e, x, [e.mul(batch, channels), *size])
    made = loops.planes(windows, images, isa, flat, divisors, epilogue, line)
    return [views.reshaped(e, v, own) for v in made]


RULE = KernelRule("pooling", (), match, build, asks=refusal)


def windows_of(op: Pooling) -> loops.Windows:
    """Return the windows of a pooling; one of a single axis is that of an image of height 1."""
    rank = TensorType.of(op.input).rank - 2
    padding = list(op.padding)

    def two(values: Sequence[int], one: int) -> tuple[int, int]:
        first, second = values if rank == 2 else (one, *values)
        return first, second

    return loops.Windows(
        op.mode, two(op.lengths, 1), two(op.stride, 1), two(op.dilations, 1),
        two(padding[:rank], 0), two(padding[-rank:], 0),
        op.lp_order if op.mode == "lpnorm" else None, op.count_include_pad,
        TensorType.of(op.input).dtype,
    )  # fmt: skip
