"""Convolutions of few channels on GPUs: matmuls whose rows are gathered from the image.

A matrix instruction needs 16 contiguous elements in depth, which a window of few channels does not
have. So each element of a window is read by its index in the image, through the transposes and
pointwise ops of the kernel, with a select for the border. Neither a channels-last image nor a
padded one is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.passes.lowering import elements, index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf
from mgx_mlir.passes.lowering.gpu.matmul.mma import INTRINSICS
from mgx_mlir.passes.lowering.scalar import narrow

MAX_CHANNELS = 8
_DEPTH = 16  # least depth of a matrix instruction
# most growth of a row by rounding axes to powers of two, whose indices need no division
_GROWTH = 4 / 3


@dataclass(eq=False)
class WindowRows(Leaf):
    """Weights as rows of window elements, of a tensor [f, depth].

    `axes` are those of the window in the order of a row, outermost first: 0 is the channels, 1
    and on the spatial ones. `extents` are theirs in a row; beyond `real` ones weights are 0.
    """

    axes: Sequence[int]
    extents: Sequence[int]
    real: Sequence[int]


def refusal(conv: Convolution) -> str | None:
    """Return why a GPU's convolution of constant weights gathers no windows, None if it does."""
    x = TensorType.of(conv.input)
    if not x.dtype.is_float or x.dtype.size != 2:
        return f"it computes {x.dtype}, not floats of 16 bits"
    if DYN in x.dims[1:] or 0 in x.dims:
        return "its image has dynamic dims, or no elements"
    if not conv.channels_last or conv.group != 1 or conv.padding_mode != "default_":
        return "it is not dense and channels-last, or its padding is computed"
    few = x.rank >= 3 and 0 < x.dims[-1] <= MAX_CHANNELS
    return None if few else f"its channels are more than {MAX_CHANNELS}"


def window_rows(e: LoweringContext, arg: ir.Value, value: ir.Value) -> WindowRows | None:
    """Return a kernel's weights, its argument `arg`, by rows if it gathers its windows."""
    uses = list(arg.uses)
    if len(uses) != 1 or uses[0].operand_number != 1:
        return None
    conv = uses[0].owner
    constant_weights = not isinstance(value.owner, ir.Block) and (is_literal(value))
    if (
        not isinstance(conv.opview, Convolution)
        or not constant_weights
        or refusal(conv.opview) is not None
    ):
        return None
    t = TensorType.of(value)
    *window, channels, _ = t.dims
    # in the order of memory: a kernel that transposes the image reads channels one by one
    planar = not isinstance(conv.opview.input.owner, ir.Block)
    spatial = list(range(1, len(window) + 1))
    axes = [0, *spatial] if planar else [*spatial, 0]
    real = [[channels, *window][a] for a in axes]
    extents = _extents(real)
    kind = INTRINSICS.get(e.options.arch, {}).get(t.dtype)
    depth = max(_DEPTH, kind.depth if kind is not None else 0)
    array = literals.array_of(value)
    rows = e.repacked(
        array, ("windows", tuple(axes), depth), lambda: _rows(array, axes, extents, depth)
    )
    return WindowRows(TensorType(t.dtype, rows.shape), e.parameter(rows), axes, extents, real)


def _extents(real: Sequence[int]) -> list[int]:
    """Extents of a row's axes: powers of two from the innermost on, while that adds little."""
    extents = list(real)
    for i in reversed(range(1, len(extents))):
        wider = list(extents)
        wider[i] = 1 << (extents[i] - 1).bit_length()
        if prod(wider) <= _GROWTH * prod(real):
            extents = wider
    return extents


def _rows(array: np.ndarray, axes: Sequence[int], extents: Sequence[int], depth: int) -> np.ndarray:
    """Weights [window.., c, f] as [f, a multiple of depth], filled up with zeros."""
    spatial = array.ndim - 2
    order = [spatial if a == 0 else a - 1 for a in axes]
    turned = array.transpose(spatial + 1, *order)
    border = [(0, n - have) for n, have in zip(extents, turned.shape[1:], strict=True)]
    filled = np.pad(turned, [(0, 0), *border]).reshape(turned.shape[0], -1)
    return np.ascontiguousarray(np.pad(filled, [(0, 0), (0, -filled.shape[1] % depth)]))


def windows(
    e: LoweringContext, op: Convolution, image: Expr, rows: WindowRows, dims: Sequence[Extent]
) -> ir.Value:
    """Return the windows of a convolution's image as rows: [n, spatial.., depth].

    `dims` are those of the convolution's result.
    """
    dtype = rows.type.dtype
    depth = rows.type.dims[-1]

    def element(where: list[ir.Value]) -> ir.Value:
        place, inside = _place(e, op, image.type.dims, rows, where)
        value = narrow(elements.element(e, image, place), dtype).value
        if not inside:
            return value
        both = inside[0]
        for other in inside[1:]:
            both = arith.AndIOp(both, other).result
        return arith.SelectOp(both, value, index.zero_of(value.type)).result

    return index.from_positions(e, [*dims[:-1], depth], dtype, element)


def _place(
    e: LoweringContext,
    op: Convolution,
    image: Sequence[int],
    rows: WindowRows,
    where: Sequence[ir.Value],
) -> tuple[list[Extent], list[ir.Value]]:
    """Return the index of a row's element in the image, and the conditions that it is inside.

    Otherwise the index is that of any valid element."""
    inside: list[ir.Value] = []
    found: dict[int, Extent] = {}
    rest: Extent = where[-1]
    filled = rows.type.dims[-1] > prod(rows.extents)
    for i in reversed(range(len(rows.axes))):
        at, rest = rest, 0
        if i:
            at, rest = (
                e.rem(at, rows.extents[i]),
                e.div(at, rows.extents[i]),
            )
        if rows.extents[i] > rows.real[i] or (i == 0 and filled):
            here = index.in_range(e, e.index(at), rows.real[i])
            inside.append(here)
            at = index.select(e, here, at, 0)
        found[rows.axes[i]] = at
    place: list[Extent] = [where[0]]
    spatial = len(image) - 2
    padding = list(op.padding)[:spatial]
    ends = (list(op.padding) * 2)[spatial : 2 * spatial]
    for i in range(spatial):
        start = e.mul(where[1 + i], op.stride[i])
        at = e.add(start, e.mul(found[1 + i], op.dilation[i]))
        if padding[i] or ends[i]:
            at = e.sub(at, padding[i])
            here = index.in_range(e, e.index(at), image[1 + i])
            inside.append(here)
            at = index.select(e, here, at, 0)
        place.append(at)
    return [*place, found[0]], inside
