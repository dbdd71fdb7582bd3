"""Dynamic extents as ints that have an expression: their arithmetic is symbolic.

Code treats them as numbers other than 0 and 1. `==` compares expressions; an order comparison
raises UndecidedError unless it is proved.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, SupportsIndex, cast

from mgx_mlir.core.dynamic_dims import FIRST, NAMED, NamedDim, UndecidedError, named
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.symbolic.expressions import Expr, Int
from mgx_mlir.symbolic.extents import Extent, Rows, Runs
from mgx_mlir.symbolic.proofs import Prover

_numbers: Iterator[int] = itertools.count(FIRST)


class Naming:
    """Names of one program's dynamic extents."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self._found: dict[Expr, NamedExtent] = {}
        self._names: list[NamedExtent] = []

    def of(self, e: Int) -> int:
        """Return the extent for `e`: a number, or the name of all equal expressions."""
        if isinstance(e, int):
            return e
        found = self._found.get(e)
        if found is None:
            equal = self.prover.are_equal
            found = next((x for x in self._names if equal(x.expr, e)), None)
            if found is None:
                found = NamedExtent(next(_numbers), e, self)
                self._names.append(found)
                NAMED[int(found)] = found
            self._found[e] = found
        return found

    def expression(self, d: SupportsIndex) -> Int:
        """Return the expression of an extent."""
        if isinstance(d, NamedExtent):
            return d.expr
        known = named(d.__index__())
        return known.expr if isinstance(known, NamedExtent) else known

    def owns(self, d: int) -> bool:
        """Return whether an extent is a name of this program."""
        return isinstance(d, NamedExtent) and d.naming is self

    def forget(self) -> None:
        """Release the names, once no type uses one."""
        for found in self._found.values():
            NAMED.pop(int(found), None)


class NamedExtent(NamedDim):
    """A dynamic extent: its int value is its name."""

    expr: Expr
    naming: Naming

    def __new__(cls, number: int, expr: Expr, naming: Naming) -> NamedExtent:
        self = super().__new__(cls, number)
        self.expr, self.naming = expr, naming
        return self

    @property
    def is_extent(self) -> bool:  # type: ignore[override]
        """Return whether it is proved to be nonnegative."""
        return self.naming.prover.is_nonnegative(self.expr)

    def inferred(self, cls: Any, o: Any) -> list[TensorType] | None:
        """Run `infer` on expressions, for each answer to its comparisons."""
        runs = Runs(self.naming.prover)
        kinds: list[TensorType] = []

        def unnamed(value: Any) -> Any:
            if isinstance(value, NamedExtent):
                return Extent(value.expr, runs)
            if isinstance(value, TensorType):
                return value.with_dims(unnamed(d) for d in value.dims)
            if isinstance(value, list | tuple):
                found = [unnamed(v) for v in cast("Sequence[Any]", value)]
                return found if isinstance(value, list) else tuple(found)
            return value

        fields = cast("dict[str, Any]", vars(o))
        given = {k: unnamed(v) for k, v in fields.items()}

        def infer() -> Rows:
            found = cls.infer(type(o)(**given))
            if found is None:
                raise UndecidedError
            kinds[:] = [found] if isinstance(found, TensorType) else found
            return [t.dims for t in kinds]

        try:
            rows = runs.rows(infer)
        except (UndecidedError, TypeError, ValueError, ArithmeticError):
            return None
        if rows is None:
            return None
        name = self.naming.of
        return [t.with_dims(map(name, r)) for t, r in zip(kinds, rows, strict=True)]

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: int) -> int:
        return self.naming.of(self.expr + self.naming.expression(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> int:
        return self.naming.of(self.expr - self.naming.expression(other))

    def __rsub__(self, other: int) -> int:
        return self.naming.of(self.naming.expression(other) - self.expr)

    def __mul__(self, other: int) -> int:
        return self.naming.of(self.expr * self.naming.expression(other))

    __rmul__ = __mul__

    def __neg__(self) -> int:
        return self.naming.of(-self.expr)

    def __floordiv__(self, other: int) -> int:
        return self._quotient(self.expr, self.naming.expression(other))

    def __rfloordiv__(self, other: int) -> int:
        return self._quotient(self.naming.expression(other), self.expr)

    def _quotient(self, p: Int, q: Int) -> int:
        return self.naming.of(self._floordiv(p, q))

    def _floordiv(self, p: Int, q: Int) -> Int:
        if q == 0:
            raise ZeroDivisionError
        return self.naming.prover.space.floordiv(p, q)

    def _remainder(self, p: Int, q: Int) -> int:
        # the quotient gets no name, because finding an equal one takes proofs
        return self.naming.of(p - q * self._floordiv(p, q))

    def __mod__(self, other: int) -> int:
        return self._remainder(self.expr, self.naming.expression(other))

    def __rmod__(self, other: int) -> int:
        return self._remainder(self.naming.expression(other), self.expr)

    # ---- comparison --------------------------------------------------------------------------

    def _at_least(self, p: Int, q: Int) -> bool:
        truth = self.naming.prover.space.not_less(p, q)
        if isinstance(truth, int):
            return bool(truth)
        # a dynamic extent differs from 0 and 1, consistent with ==
        if isinstance(q, int) and q <= 2 and self.is_extent:
            return True
        if isinstance(p, int) and p <= 1 and self.is_extent:
            return False
        raise UndecidedError(f"whether {p} >= {q}")

    def __ge__(self, other: int) -> bool:
        return self._at_least(self.expr, self.naming.expression(other))

    def __lt__(self, other: int) -> bool:
        return not self >= other

    def __le__(self, other: int) -> bool:
        return self._at_least(self.naming.expression(other), self.expr)

    def __gt__(self, other: int) -> bool:
        return not self <= other

    __eq__, __ne__, __hash__ = int.__eq__, int.__ne__, int.__hash__

    def _refuse(self, *_: object) -> NoReturn:
        raise UndecidedError(f"a number for {self.expr}")

    __truediv__ = __rtruediv__ = __pow__ = __float__ = _refuse
    __and__ = __rand__ = __rshift__ = __lshift__ = __divmod__ = _refuse
    bit_length = _refuse

    def __str__(self) -> str:
        return str(self.expr)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)
