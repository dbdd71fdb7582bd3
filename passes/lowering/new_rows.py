"""The new rows of a cache as concat_past_present has them: their layout, and angles to turn by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, narrow, widen

T = TypeVar("T")


@dataclass(frozen=True)
class NewRows:
    """Rows x [batch, heads, rows, size], or [batch, rows, heads, size] if `rows_first`.

    angles: cosines and sines [batch, 1, rows, size] that turn them before they are written.
    first: head of x that is written as the first, where x has others beside them.
    """

    x: ir.Value
    rows_first: bool
    angles: tuple[ir.Value, ir.Value] | None
    first: int = 0

    def place(self, batch: T, head: T, row: T, *column: T) -> list[T]:
        """Return coordinates of `x`."""
        inner = [row, head] if self.rows_first else [head, row]
        return [batch, *inner, *column]

    def extents(self, e: LoweringContext) -> list[Extent]:
        """Return the extents batch, heads, rows, size."""
        batch, first, second, size = e.extents(self.x)
        return [batch, second, first, size] if self.rows_first else [batch, first, second, size]

    def computed(self, e: LoweringContext) -> NewRows:
        """Return the rows turned, as a tensor of the same layout."""
        if self.angles is None:
            return self
        cos, sin = self.angles
        dtype = dtypes.from_mlir(ir.RankedTensorType(self.x.type).element_type)
        own, size = e.extents(self.x), self.extents(e)[3]
        half, b = e.div(size, 2), ArithScalars(dtype, dtype)

        def read(source: ir.Value, where: Sequence[ir.Value | int]) -> TypedScalar:
            at = [e.index(i) for i in where]
            return widen(TypedScalar(index.read(source, at), dtype))

        def body(where: list[ir.Value]) -> ir.Value:
            batch, head, row, column = where
            if self.rows_first:
                head, row = row, head
            is_high = index.compare(e, index.SGE, column, half)
            partner = index.select(e, is_high, e.sub(column, half), e.add(column, half))
            x = read(self.x, where)
            other = read(self.x, [*where[:3], e.index(partner)])
            angle = [batch, 0, row, column]
            cross = b.mul(other, read(sin, angle))
            signed = b.select(TypedScalar(is_high, dtypes.BOOL), cross, b.neg(cross))
            return narrow(b.add(b.mul(x, read(cos, angle)), signed), dtype).value

        return replace(self, x=index.from_positions(e, own, dtype, body), angles=None)
