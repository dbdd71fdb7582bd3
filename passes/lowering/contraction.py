"""Parts of contractions: pads, collapsed dims, sums of multiplied elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import ArithScalars, Number, TypedScalar, constant, signless
from mgx_mlir.passes.lowering.views import reshape_tensor


def pad_tensor(
    e: LoweringContext,
    x: ir.Value,
    low: Sequence[Extent],
    high: Sequence[Extent],
    dims: Sequence[int],
    number: Number,
) -> ir.Value:
    """tensor.pad with a constant of the tensor's own element type."""
    kind = ir.RankedTensorType(x.type)
    result = ir.RankedTensorType.get(list(dims), kind.element_type)
    value = constant(number, dtypes.from_mlir(kind.element_type)).value
    pad = tensor.PadOp(
        result,
        x,
        e.dynamic_values(low),
        e.dynamic_values(high),
        e.static_dims(low),
        e.static_dims(high),
    )
    block = pad.regions[0].blocks.append(*[ir.IndexType.get()] * kind.rank)
    with ir.InsertionPoint(block):
        tensor.YieldOp(value)
    return pad.result


def collapsed(e: LoweringContext, value: ir.Value, dims: Sequence[Extent]) -> ir.Value:
    """Return the elements of a tensor in other dims."""
    kind = ir.RankedTensorType(value.type)
    source = dtypes.from_mlir(kind.element_type)
    return reshape_tensor(e, value, TensorType(source, tuple(e.static_dims(dims))), dims)


def split_axis(e: LoweringContext, value: ir.Value, own: Sequence[Extent], axis: int) -> ir.Value:
    """Return a tensor of extents `own`, in which two dims from `axis` on were one."""
    kind = ir.RankedTensorType(value.type)
    result = ir.RankedTensorType.get(e.static_dims(own), kind.element_type)
    groups = _pair(axis, kind.rank)
    dynamic = e.dynamic_values(own)
    return tensor.ExpandShapeOp(result, value, groups, dynamic, e.static_dims(own)).result


def joined_axes(value: ir.Value, dims: Sequence[int], axis: int) -> ir.Value:
    """Return a tensor of type dims `dims`, in which two dims from `axis` on become one."""
    kind = ir.RankedTensorType(value.type)
    result = ir.RankedTensorType.get(list(dims), kind.element_type)
    return tensor.CollapseShapeOp(result, value, _pair(axis, len(dims))).result


def _pair(axis: int, rank: int) -> list[list[int]]:
    """Return the reassociation of `rank` dims that has two dims for `axis`."""
    behind = [[i + 1] for i in range(axis + 1, rank)]
    return [*([i] for i in range(axis)), [axis, axis + 1], *behind]


def multiply_accumulate(
    e: LoweringContext,
    a: ir.Value,
    b: ir.Value,
    init: ir.Value,
    maps: Sequence[ir.AffineMap],
    iterators: Sequence[str],
    element: DType,
    acc: DType,
    read: Callable[[TypedScalar], TypedScalar] = lambda v: v,
) -> ir.Value:
    """Build a generic of `out += a * b`, the product in the accumulator's type.

    read: how elements of `a` are read.
    """
    scalars = ArithScalars(acc, acc)

    def body(x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
        elements = read(TypedScalar(x, element)), TypedScalar(y, element)
        wide = [_widened(scalars, v, acc) for v in elements]
        product = scalars.mul(*wide)
        return scalars.add(TypedScalar(total, acc), product).value

    return e.generic([a, b], [init], maps, iterators, body)[0]


def _widened(b: ArithScalars, x: TypedScalar, acc: DType) -> TypedScalar:
    if x.dtype is acc:
        return x
    if x.dtype.is_float:
        return TypedScalar(arith.ExtFOp(signless(acc), x.value).result, acc)
    return b.cast(x, acc)
