"""The kernel rule of convolutions on CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import KernelPlan, LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, epilogue_of
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX512_BF16, Isa, isa_of
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite, literal_of
from mgx_mlir.passes.lowering.cpu.matmul.instructions import PAIR, byte_unit
from mgx_mlir.passes.lowering.cpu.matmul.tiled_dot import TiledPlan
from mgx_mlir.passes.lowering.cpu.windows import convolution as loops
from mgx_mlir.passes.lowering.cpu.windows import grouped_convolution as grouped
from mgx_mlir.passes.lowering.cpu.windows import tiled_convolution as tiled
from mgx_mlir.passes.lowering.cpu.windows import winograd
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvPlan, ConvShape, Extents
from mgx_mlir.passes.lowering.expr import Extent, Opaque
from mgx_mlir.passes.lowering.ops.convolution import padded_input
from mgx_mlir.passes.lowering.ops.windows import WindowAxis
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

NARROW = (dtypes.HALF, dtypes.BF16)  # computed as f32
BYTES = (dtypes.INT8, dtypes.UINT8)
AnyConvolution = Convolution | QuantConvolution
TO_LAST = (0, 2, 3, 1)  # N, C, H, W -> N, H, W, C


def asks(op: AnyConvolution, *, planar: bool = False, in_bytes: bool = False) -> str | None:
    """Return why the rule does not take a convolution, None if it does.

    planar: the input is the one before its transpose to channels-last order. in_bytes: the
    convolution is channels-first, and would multiply 8-bit integers.
    """
    if in_bytes:
        return _bytes_refusal(op)
    if literal_of(op.weights) is None:
        return "its weights are computed"
    return refusal(op, planar=planar)


def _bytes_refusal(op: AnyConvolution) -> str | None:
    x, w, out = (_dims(v) for v in (op.input, op.weights, op.out))
    if len(x) not in (3, 4) or op.padding_mode != "default_" or any(p < 0 for p in op.padding):
        return "it is not an image, or its padding is computed or negative"
    if DYN in (*w, out[1]):
        return "its window or its channels are dynamic dims"
    if op.group != 1 and int(np.prod(w[1:])) > grouped.MAX_PRODUCTS:
        return "its groups do not fit the loops"
    return None if is_constant(op.weights) else "its weights are computed"


def refusal(op: AnyConvolution, *, planar: bool = False) -> str | None:
    """Return why no vector kernel computes a convolution, None if one does.

    The answer is the same for all CPUs, decided for the widest vectors. planar: the input is the
    one before its transpose to channels-last order.
    """
    x, w, out = (_dims(v) for v in (op.input, op.weights, op.out))
    dtype = TensorType.of(op.input).dtype
    if not op.channels_last or len(x) not in (3, 4):
        return "it is not a channels-last image"
    if DYN in (*w, out[-1]):  # the weights say how many channels the input has
        return "its window or its channels have dynamic dims"
    if isinstance(op, QuantConvolution):
        if dtype not in BYTES or TensorType.of(op.weights).dtype is not dtypes.INT8:
            return f"it multiplies {dtype} by {TensorType.of(op.weights).dtype}"
    elif dtype is not dtypes.FLOAT and dtype not in NARROW:
        return f"it computes {dtype}"
    if op.padding_mode != "default_":
        return f"its padding mode is {op.padding_mode}"
    if 0 in x or 0 in out or any(p < 0 for p in op.padding):
        return "it has no elements, or negative padding"
    shape = shape_of(op, AVX512_BF16, planar=planar)
    if op.group != 1:
        if grouped.plan(shape, op.group, AVX512_BF16) is None:
            return "its groups do not fit the loops"
    elif loops.plan(shape, AVX512_BF16) is None:
        return "its rows do not fit the loops"
    return None


def shape_of(op: AnyConvolution, isa: Isa, *, planar: bool = False) -> ConvShape:
    """Return the numbers of a channels-last convolution.

    One of a single axis is that of an image of height 1, and so is one of a single column.
    """
    x, w, out = (_dims(v) for v in (op.input, op.weights, op.out))
    rank = len(x) - 2
    padding = list(op.padding)
    column = is_column(op)

    def two(values: Sequence[int], one: int = 1) -> tuple[int, int]:
        first, second = values if rank == 2 else (one, *values)
        return (second, first) if column else (first, second)

    dtype = TensorType.of(op.input).dtype
    border = op.pad_value if isinstance(op, QuantConvolution) else 0
    return ConvShape(
        x[0], two(x[1:-1]), w[-2], w[-1], two(w[:-2]), two(op.stride), two(op.dilation),
        two(padding[:rank], 0), two(out[1:-1]), planar, two(padding[-rank:], 0),
        dtype in NARROW, _unit(op, isa, planar=planar), dtype is dtypes.INT8, border,
    )  # fmt: skip


def _unit(op: AnyConvolution, isa: Isa, *, planar: bool) -> int:
    """Return how many channels an instruction multiplies together, 0 where one at a time.

    Pairs need an even number of channels; the padding element of an odd one could be NaN.
    """
    dtype = TensorType.of(op.input).dtype
    if dtype in BYTES:
        return byte_unit(isa)
    pairs = dtype is dtypes.BF16 and isa.bf16_dot and op.group == 1
    even = planar or TensorType.of(op.weights).dims[-2] % PAIR == 0
    return PAIR if pairs and even else 0


def _dims(v: ir.Value) -> tuple[int, ...]:
    """Return the extents of a tensor; dynamic ones are DYN, also named ones."""
    return tuple(DYN if is_named(d) else d for d in TensorType.of(v).dims)


def is_column(op: AnyConvolution) -> bool:
    """Return whether a convolution's image and window are one column wide: the same as a row."""
    x, w = _dims(op.input), _dims(op.weights)
    rank = len(x) - 2
    return rank == 2 and x[2] == w[1] == 1 and not any(op.padding[1::2])


def _extents(e: LoweringContext, op: AnyConvolution, image: Sequence[Extent]) -> Extents:
    """Return the extents of a convolution of an image of these extents, [N, s.., C] or planar."""
    shape = shape_of(op, AVX512_BF16)
    rank = len(image) - 2
    own = list(image[1:-1]) if rank == 2 else [1, image[1]]
    if is_column(op):
        own.reverse()
    counts: list[Extent] = []
    for i, size in enumerate(own):
        padded = e.add(size, shape.low[i] + shape.high[i])
        axis = WindowAxis(padded, shape.kernel[i], shape.stride[i], shape.dilation[i])
        counts.append(axis.count(e))
    return Extents(image[0], (own[0], own[1]), (counts[0], counts[1]))


def plan(e: LoweringContext, body: ir.Block) -> KernelPlan:
    """Pad the input of a convolution without loops ahead of its region.

    A pad inside of the region would make it take 1.5 times as long.
    """
    anchor = _anchor(body)
    if isa_of(e.options.arch) is None or not isinstance(anchor, Convolution):
        return KernelPlan()
    if asks(anchor) is not None:
        return KernelPlan()
    transposed = _transposed_input(anchor)
    if transposed is not None:
        e.operation(transposed)  # lowered here, as it is outside of a kernel
    elif not isinstance(anchor.input.owner, ir.Block):
        return KernelPlan()
    kernel = e.extents(e.tensor(anchor.weights))[:-2]
    x = padded_input(e, anchor, e.tensor(anchor.input), kernel)
    return KernelPlan(padded_inputs={anchor.out: x})


def _anchor(body: ir.Block) -> AnyConvolution | None:
    return next((o for o in body.operations if isinstance(o, AnyConvolution)), None)


@dataclass(frozen=True)
class _Plan:
    """A convolution, its tiling, and the pointwise ops behind it."""

    conv: AnyConvolution
    source: ir.Value  # input, ahead of its transpose to channels-last order if it has one
    weights: ir.Value
    shape: ConvShape
    # tiling for one group in vectors or in tile registers, or for several
    tiles: ConvPlan | TiledPlan | grouped.GroupedPlan
    extents: Extents
    epilogue: Epilogue


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel of one channels-last convolution whose other ops are computed on its sums."""
    conv, isa = _anchor(site.body), site.isa
    if conv is None:
        return Refusal("it has no convolution")
    transposed = _transposed_input(conv)
    source = conv.input if transposed is None else transposed.operands[0]
    weights = literal_of(conv.weights)
    if weights is None:
        return Refusal("its weights are computed")
    if not isinstance(source.owner, ir.Block):
        return Refusal("its input is computed in the kernel")
    planar = transposed is not None
    reason = refusal(conv, planar=planar)
    if reason is not None:
        return Refusal(reason)
    shape = shape_of(conv, isa, planar=planar)
    tiles: ConvPlan | TiledPlan | grouped.GroupedPlan | None = None
    if conv.group == 1:
        tiles = loops.plan(shape, isa)
    if conv.group != 1:
        tiles = grouped.plan(shape, conv.group, isa)
    if tiles is None:
        return Refusal("its rows or groups do not fit the loops of this CPU")
    if conv.group == 1 and tiled.takes(shape, isa):
        tiles = tiled.plan(shape)
    stored = site.stored[0]
    in_blocks = isinstance(tiles, ConvPlan) and shape.inputs > tiles.block
    if in_blocks and stored is not dtypes.FLOAT:
        return Refusal(f"partial sums of a block of channels are kept in f32, not in {stored}")
    have = e.expr_extents(e.expr(source))
    extents = _extents(e, conv, [have[i] for i in TO_LAST] if planar else have)
    # stands for the sums, and has their extents
    sums = dtypes.INT32 if shape.is_bytes else dtypes.FLOAT
    own = [extents.batch, *_own_counts(conv, extents), shape.outputs]
    total = Opaque(TensorType.of(conv.out).with_dtype(sums), own)
    epilogue = epilogue_of(e, site, conv, total, [] if transposed is None else [transposed])
    if isinstance(epilogue, Refusal):
        return epilogue
    return _Plan(conv, source, weights, shape, tiles, extents, epilogue)


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loops over the tiles of the result."""
    conv, shape, tiles, isa, extents = plan.conv, plan.shape, plan.tiles, site.isa, plan.extents
    whole = [extents.batch, *extents.counts, shape.outputs]
    own = [extents.batch, *_own_counts(conv, extents), shape.outputs]
    epilogue = plan.epilogue
    if TensorType.of(conv.out).rank == 3:  # without the height
        epilogue = epilogue.through(lambda k, at: [at[0], *at[2:]])
    elif is_column(conv):
        epilogue = epilogue.through(lambda k, at: [at[0], at[2], at[1], at[3]])
    image, array = e.tensor(plan.source), literals.seen_of(plan.weights)
    weights = array.reshape((*shape.kernel, shape.inputs, shape.outputs))
    if isinstance(tiles, TiledPlan):
        runs = tiled.Runs.of(shape)
        depth = runs.count * runs.filled
        make = partial(
            tiles.layout.packing,
            (depth, shape.outputs),
            weights.dtype,
            lambda: runs.matrix(weights),
        )
        packed = e.parameter(e.repacked(array, ("runs", runs, tiles.layout.key), make))
        x = views.reshaped(e, image, [e.product(e.extents(image))])
        if shape.planar:
            last = tiled.channels_last(shape, extents, x)
            x = views.reshaped(e, last, [e.product(e.extents(image))])
        given = epilogue.through(lambda k, at: [*k.coordinates(at[0], whole[:-1]), at[1]])
        found = tiled.convolution(shape, tiles, isa, x, packed, given, extents)
        return [views.reshaped(e, v, own) for v in found]
    if not isinstance(tiles, ConvPlan):
        key, make = (tiles, shape.border), lambda: grouped.pack(weights, tiles, shape.border)
        packed = e.parameter(e.repacked(array, key, make))
        x = views.reshaped(e, image, [extents.batch, *extents.size, shape.inputs * conv.group])
        dtype = TensorType.of(conv.input).dtype
        found = grouped.convolution(shape, tiles, x, packed, epilogue, extents, dtype)
        return found if own == whole else [views.reshaped(e, v, own) for v in found]
    x = views.reshaped(e, image, [e.product(e.extents(image))])
    points = None
    if e.options.fast_math and not (shape.narrow or shape.unit):
        points = winograd.plan(shape, isa)
    if points is not None:
        key, make = ("winograd", points.width), lambda: winograd.packing(weights, points)
        packed = e.parameter(e.repacked(array, key, make))
        found = winograd.convolution(shape, points, isa, x, packed, epilogue, extents)
    else:
        layout = loops.panels_of(shape, tiles.width, isa)
        kind = weights.dtype if shape.unit else np.dtype(np.float32)
        depth = int(np.prod(shape.kernel)) * shape.filled
        # all facts that the weights' layout depends on
        key = ("convolution", shape.kernel, shape.planar, shape.unit, tiles.block, layout.key)

        def matrix() -> np.ndarray:
            return loops.matrix_of(weights.astype(kind, copy=False), shape, tiles.block)

        make = partial(layout.packing, (depth, shape.outputs), kind, matrix)
        packed = e.parameter(e.repacked(array, key, make))
        found = loops.convolution(shape, tiles, isa, x, packed, epilogue, extents)
    return found if own == whole else [views.reshaped(e, v, own) for v in found]


def _own_counts(conv: AnyConvolution, extents: Extents) -> list[Extent]:
    """Return the extents of the op's result axes."""
    if TensorType.of(conv.out).rank == 3:
        return [extents.counts[1]]
    return list(reversed(extents.counts)) if is_column(conv) else list(extents.counts)


def _transposed_input(conv: AnyConvolution) -> ir.Operation | None:
    """Return the op that transposes the input to channels-last order, if its result has no
    other use.
    """
    owner = conv.input.owner
    if not is_a(owner, Transpose):
        return None
    only = sum(1 for _ in conv.input.uses) == 1
    return owner if only and tuple(owner.opview.permutation) == TO_LAST else None


RULE = KernelRule("convolution", (), match, build, asks=asks)
