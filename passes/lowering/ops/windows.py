"""Windows along the spatial axes of an image: borders, counts and reads of convolutions, poolings.

An extent is an int or a value, so static and dynamic sizes share the code.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.contraction import pad_tensor
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.scalar import Number


@dataclass(frozen=True)
class WindowAxis:
    """One spatial axis of an image with its border, and the windows along it."""

    size: Extent  # elements of the image
    length: Extent  # taps of a window
    stride: int
    dilation: int
    low: Extent = 0  # border ahead of the image
    high: Extent = 0  # border behind the image

    @property
    def known(self) -> list[int]:
        """Return size, length and border where all are numbers, else nothing."""
        values = self.size, self.length, self.low, self.high
        numbers = [v for v in values if isinstance(v, int)]
        return numbers if len(numbers) == len(values) else []

    def span(self, e: LoweringContext) -> Extent:
        """Return the elements from the first tap of a window to its last."""
        return e.add(e.mul(e.sub(self.length, 1), self.dilation), 1)

    def count(self, e: LoweringContext, *, ceil: bool = False) -> Extent:
        """Return the number of windows that fit, at least 0.

        ceil: a last window may reach past the border, if it starts ahead of the border's end.
        """
        span = self.span(e)
        rest = e.sub(e.add(self.size, self.low, self.high), span)
        if isinstance(rest, int) and isinstance(self.size, int) and isinstance(self.low, int):
            count = (-(-rest // self.stride) if ceil else rest // self.stride) + 1
            if ceil and (count - 1) * self.stride >= self.size + self.low:
                count -= 1
            return max(count, 0)
        value, step = e.index(rest), e.index(self.stride)
        # rounded down, so that an image smaller than the window has none
        divide = arith.CeilDivSIOp if ceil else arith.FloorDivSIOp
        count = arith.AddIOp(divide(value, step).result, e.index(1)).result
        if ceil:
            start = arith.MulIOp(arith.SubIOp(count, e.index(1)).result, step).result
            limit = e.index(e.add(self.size, self.low))
            outside = arith.CmpIOp(arith.CmpIPredicate.sge, start, limit).result
            fewer = arith.SubIOp(count, e.index(1)).result
            count = arith.SelectOp(outside, fewer, count).result
        return arith.MaxSIOp(count, e.index(0)).result


def axes_of(
    e: LoweringContext,
    op: Convolution | QuantConvolution | Pooling,
    size: Sequence[Extent],
    lengths: Sequence[Extent],
) -> list[WindowAxis]:
    """Return the spatial axes of an op; `same` borders are computed, at run time if needed."""
    spatial = len(size)
    dilation = list(op.dilations if isinstance(op, Pooling) else op.dilation)
    axes = [
        WindowAxis(i, k, s, d)
        for i, k, s, d in zip(size, lengths, op.stride, dilation, strict=True)
    ]
    if op.padding_mode == "default_":
        padding = list(op.padding) * (2 if len(op.padding) == spatial else 1)
        ends = list(zip(padding[:spatial], padding[spatial:], strict=True))
    else:
        ends = [_same(e, a, lower=op.padding_mode == "same_lower") for a in axes]
    return [
        WindowAxis(a.size, a.length, a.stride, a.dilation, *own)
        for a, own in zip(axes, ends, strict=True)
    ]


def _same(e: LoweringContext, a: WindowAxis, *, lower: bool) -> tuple[Extent, Extent]:
    """Return the border with which the windows start at each stride; lower: more of it ahead."""
    i, k, s, d = a.size, a.length, a.stride, a.dilation
    if isinstance(i, int) and isinstance(k, int):
        total: Extent = max((-(-i // s) - 1) * s + (k - 1) * d + 1 - i, 0)
    else:
        count = e.div(e.add(i, s - 1), s)
        need = e.add(e.mul(e.sub(count, 1), s), a.span(e))
        total = arith.MaxSIOp(e.index(e.sub(need, i)), e.index(0)).result
    half = e.div(total, 2)
    rest = e.sub(total, half)
    return (rest, half) if lower else (half, rest)


def pad_spatial(
    e: LoweringContext,
    x: ir.Value,
    low: Sequence[Extent],
    high: Sequence[Extent],
    first: int,
    number: Number,
) -> ir.Value:
    """`x` with constant padding on the axes from `first` on."""
    if all(isinstance(p, int) and p == 0 for p in [*low, *high]):
        return x
    kind = ir.RankedTensorType(x.type)
    lows: list[Extent] = [0] * kind.rank
    highs: list[Extent] = [0] * kind.rank
    lows[first : first + len(low)] = low
    highs[first : first + len(high)] = high
    dims = [
        d + a + b if d != DYN and isinstance(a, int) and isinstance(b, int) else DYN
        for d, a, b in zip(kind.shape, lows, highs, strict=True)
    ]
    return pad_tensor(e, x, lows, highs, dims, number)


def trim_windows(
    e: LoweringContext,
    x: ir.Value,
    first: int,
    windows: Sequence[Extent],
    axes: Sequence[WindowAxis],
) -> ir.Value:
    """Return `x` cropped to the reach of an axis's only window.

    Loops of one iteration are folded, then only the window's loop indexes the axis. IREE would take
    that loop's extent from `x`, even if `x` is longer than the window.
    """
    sizes = e.extents(x)
    have = list(sizes)
    for i, (n, axis) in enumerate(zip(windows, axes, strict=True)):
        if isinstance(n, int) and n == 1:
            sizes[first + i] = axis.span(e)
    if sizes == have:
        return x
    return extract_slice(e, x, [0] * len(sizes), sizes, [1] * len(sizes))


def tap_indices(
    windows: Sequence[ir.AffineExpr], taps: Sequence[ir.AffineExpr], axes: Sequence[WindowAxis]
) -> list[ir.AffineExpr]:
    """Return the index of a window's tap in the image: window * stride + tap * dilation."""
    constant = ir.AffineConstantExpr.get
    return [
        w * constant(a.stride) + tap * constant(a.dilation)
        for w, tap, a in zip(windows, taps, axes, strict=True)
    ]
