"""Arithmetic on indices, of which some are numbers: these fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.ir import arith, ir

Index = int | ir.Value


class IndexBuilder:
    """Builds index arithmetic at the current insertion point.

    An index may be a number wherever one is taken. Numbers fold, and so does what changes nothing.
    """

    def index(self, n: Index) -> ir.Value:
        """Return an index as a value."""
        return arith.ConstantOp(ir.IndexType.get(), n).result if isinstance(n, int) else n

    def _fold(
        self, op: Callable[..., ir.OpView], a: Index, b: Index, fold: Callable[[int, int], int]
    ) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return fold(a, b)
        return op(self.index(a), self.index(b)).result

    def add(self, *terms: Index) -> Index:
        """Return the sum of indices."""
        number = sum(t for t in terms if isinstance(t, int))
        values = [t for t in terms if not isinstance(t, int)]
        if not values:
            return number
        total = values[0]
        for v in values[1:]:
            total = arith.AddIOp(total, v).result
        return arith.AddIOp(total, self.index(number)).result if number else total

    def sub(self, a: Index, b: Index) -> Index:
        """Return a - b."""
        return a if _is(b, 0) else self._fold(arith.SubIOp, a, b, lambda x, y: x - y)

    def mul(self, a: Index, b: Index) -> Index:
        """Return a * b."""
        if _is(a, 0) or _is(b, 0):
            return 0
        if _is(a, 1) or _is(b, 1):
            return b if _is(a, 1) else a
        if isinstance(a, int):
            a, b = b, a
        return self._fold(arith.MulIOp, a, b, lambda x, y: x * y)

    def product(self, extents: Sequence[Index]) -> Index:
        """Return the product of indices."""
        total: Index = 1
        for x in extents:
            total = self.mul(total, x)
        return total

    def div(self, a: Index, b: Index) -> Index:
        """Return a // b of non-negative indices; 0 for numbers of which b is 0."""
        return a if _is(b, 1) else self._fold(arith.DivUIOp, a, b, lambda x, y: x // y if y else 0)

    def rem(self, a: Index, b: Index) -> Index:
        """Return a % b of non-negative indices; 0 for numbers of which b is 0."""
        return 0 if _is(b, 1) else self._fold(arith.RemUIOp, a, b, lambda x, y: x % y if y else 0)

    def min(self, a: Index, b: Index) -> Index:
        """Return the smaller index, as signed numbers."""
        return self._fold(arith.MinSIOp, a, b, min)

    def max(self, a: Index, b: Index) -> Index:
        """Return the larger index, as signed numbers."""
        return self._fold(arith.MaxSIOp, a, b, max)

    def unraveled(self, number: Index, dims: Sequence[Index]) -> list[Index]:
        """Return the indices of element `number` of a tensor, in row-major order."""
        parts = list[Index]()
        for d in reversed(dims):
            safe = self.max(d, 1)
            parts.append(self.rem(number, safe))
            number = self.div(number, safe)
        return parts[::-1]


def _is(x: Index, n: int) -> bool:
    return isinstance(x, int) and x == n
