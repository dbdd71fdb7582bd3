"""A concatenation with pointwise ops around it as one loop: each element finds its part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import attributes_of, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.access_maps import Unreadable, reader
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.elements import element
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf
from mgx_mlir.passes.lowering.scalar import (
    Number,
    TypedScalar,
    computed,
    constant,
    narrow,
)


def result_of(body: ir.Block) -> ir.Value:
    """Return the first result of a kernel's body."""
    return list(body.operations)[-1].operation.operands[0]


def fits(body: ir.Block) -> bool:
    """Return whether every element of a kernel's one result can be read by itself."""
    try:
        reader(result_of(body), None, list(body.arguments))
    except Unreadable:
        return False
    return len(list(body.operations)[-1].operation.operands) == 1


def loop_of(
    e: LoweringContext, value: ir.Value, operands: Mapping[ir.Value, ir.Value | Expr]
) -> ir.Value:
    """Return a value of static dims as one loop over its elements, which reads the operands."""
    extents = list(TensorType.of(value).dims)
    return loop(e, value, LoopElements(e, operands), list(operands), extents)


def loop(
    e: LoweringContext,
    value: ir.Value,
    elements: LoopElements,
    leaves: Sequence[ir.Value],
    extents: Sequence[Extent],
) -> ir.Value:
    """Return a value as one loop over `extents`, which reads the leaves through `elements`."""
    dtype, read = TensorType.of(value).dtype, reader(value, None, leaves)

    def at(where: list[ir.Value]) -> ir.Value:
        return narrow(read(elements, where, 0), dtype).value

    return index.from_positions(e, list(extents), dtype, at)


class LoopElements:
    """Elements of a loop, one at a time, for the readers of passes/analysis/access_maps.py."""

    def __init__(self, e: LoweringContext, operands: Mapping[ir.Value, ir.Value | Expr]) -> None:
        self.e = e
        self.operands = {
            v: x if isinstance(x, Expr) else Leaf(TensorType.of(v), x) for v, x in operands.items()
        }
        self.add, self.mul, self.div, self.rem = e.add, e.mul, e.div, e.rem

    def constant(self, number: Number, dtype: DType, lanes: int) -> TypedScalar:
        return constant(number, computed(dtype))

    def leaf(self, value: ir.Value, at: Sequence[Extent], lanes: int, along: bool) -> TypedScalar:
        return element(self.e, self.operands[value], at)

    def pointwise(self, op: ir.OpView, args: Sequence[TypedScalar]) -> TypedScalar:
        out = TensorType.of(op.operation.results[0]).dtype
        first = TensorType.of(op.operation.operands[0]).dtype if args else out
        scalar: Any = getattr(op_class(op.operation), "scalar", None)
        return scalar(self.e.scalars(first, out), *args, **attributes_of(op.operation))

    def choose(
        self,
        at: Extent,
        starts: Sequence[int],
        extents: Sequence[int],
        part: Callable[[int, Extent], TypedScalar],
        dtype: DType,
        lanes: int,
    ) -> TypedScalar:
        """Return the part of a concatenation that an index is in.

        All are read, inside of their bounds.
        """
        if isinstance(at, int):
            i = next(i for i in reversed(range(len(starts))) if starts[i] <= at)
            return part(i, at - starts[i])
        found: TypedScalar | None = None
        for i, (start, extent) in enumerate(zip(starts, extents, strict=True)):
            here = index.clamp(self.e, self.e.sub(at, start), 0, extent - 1)
            value = part(i, here)
            if found is not None:
                inside = index.compare(self.e, index.SGE, at, start)
                chosen = arith.SelectOp(inside, value.value, found.value).result
                value = TypedScalar(chosen, value.dtype)
            found = value
        assert found is not None
        return found
