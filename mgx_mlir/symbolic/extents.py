"""Symbolic execution of code that computes with extents, such as an op's `infer`.

The code gets an `Extent` for each symbolic extent. If it compares one and neither answer can be
proved, it runs once for each answer, and the results are combined by the condition. A run that
raises is ignored, because no program has those sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, SupportsIndex, TypeAlias, cast

from mgx_mlir.core.dynamic_dims import UndecidedError
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.symbolic.expressions import Atom, Expr, Int
from mgx_mlir.symbolic.proofs import Prover

_MOST_RUNS = 24

Number: TypeAlias = "Extent | SupportsIndex"
Rows = list[tuple[Int, ...]]  # dims of each result


class _Fork(Exception):
    def __init__(self, atom: Atom) -> None:
        self.atom = atom
        super().__init__()


class Extent:
    """An int-like expression. Its run decides its comparisons."""

    __slots__ = ("expr", "run")

    def __init__(self, expr: Expr, run: Runs) -> None:
        self.expr, self.run = expr, run

    def _new(self, e: Int) -> int | Extent:
        return e if isinstance(e, int) else Extent(e, self.run)

    def __add__(self, other: Number) -> int | Extent:
        return self._new(self.expr + plain(other))

    __radd__ = __add__

    def __sub__(self, other: Number) -> int | Extent:
        return self._new(self.expr - plain(other))

    def __rsub__(self, other: Number) -> int | Extent:
        return self._new(plain(other) - self.expr)

    def __mul__(self, other: Number) -> int | Extent:
        return self._new(self.expr * plain(other))

    __rmul__ = __mul__

    def __neg__(self) -> int | Extent:
        return self._new(-self.expr)

    def __floordiv__(self, other: Number) -> int | Extent:
        return self._new(self.run.divided(self.expr, plain(other)))

    def __rfloordiv__(self, other: Number) -> int | Extent:
        return self._new(self.run.divided(plain(other), self.expr))

    def __mod__(self, other: Number) -> int | Extent:
        q = plain(other)
        return self._new(self.expr - q * self.run.divided(self.expr, q))

    def __rmod__(self, other: Number) -> int | Extent:
        p = plain(other)
        return self._new(p - self.expr * self.run.divided(p, self.expr))

    def __eq__(self, other: object) -> bool:
        return self.run.holds("equal", self.expr, plain(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __ge__(self, other: Number) -> bool:
        return self.run.holds("not_less", self.expr, plain(other))

    def __lt__(self, other: Number) -> bool:
        return not self >= other

    def __le__(self, other: Number) -> bool:
        return self.run.holds("not_less", plain(other), self.expr)

    def __gt__(self, other: Number) -> bool:
        return not self <= other

    def __bool__(self) -> bool:
        return self != 0

    def _refuse(self, *_: object) -> NoReturn:
        raise UndecidedError

    # equal extents would need equal hashes; and an index must be a single number
    __hash__ = __index__ = __int__ = __float__ = __truediv__ = __rtruediv__ = __pow__ = _refuse

    def __str__(self) -> str:
        return str(self.expr)


def plain(v: object) -> Int:
    """Return the expression or number of an extent."""
    if isinstance(v, Extent):
        return v.expr
    if isinstance(v, int):
        return int(v)
    try:
        return cast(SupportsIndex, v).__index__()
    except (AttributeError, TypeError):
        raise UndecidedError from None


class Runs:
    """Runs of one piece of code."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self.answers: dict[Atom, bool] = {}
        self.given: tuple[Expr, ...] = ()
        self.left = _MOST_RUNS

    def extents(self, dims: Sequence[Int]) -> tuple[int | Extent, ...]:
        """Return dims as the code receives them."""
        return tuple(d if isinstance(d, int) else Extent(d, self) for d in dims)

    def rows(self, code: Callable[[], Rows]) -> Rows | None:
        """Run `code` for dims; None if every run is refused. May raise UndecidedError."""
        return self._rows(code, {}, ())

    def _rows(
        self, code: Callable[[], Rows], answers: dict[Atom, bool], given: tuple[Expr, ...]
    ) -> Rows | None:
        if not self.left:
            raise UndecidedError
        self.left -= 1
        self.answers, self.given = answers, given
        try:
            return [tuple(plain(d) for d in dims) for dims in code()]
        except MgxError:
            return None
        except _Fork as f:
            atom = f.atom
        found: list[Rows | None] = []
        for answer in (True, False):
            told = _told(atom, answer)
            found.append(self._rows(code, {**answers, atom: answer}, (*given, *told)))
        yes, no = found
        if yes is None or no is None:
            return yes or no
        return self._joined(self.prover.space.polynomial({(atom,): 1}), yes, no)

    def _joined(self, condition: Int, yes: Rows, no: Rows) -> Rows:
        if [len(r) for r in yes] != [len(r) for r in no]:
            raise UndecidedError  # the rank is unknown
        select = self.prover.space.select
        return [
            tuple(
                a if a is b else DYN if DYN in (a, b) else select(condition, a, b)
                for a, b in zip(x, y, strict=True)
            )
            for x, y in zip(yes, no, strict=True)
        ]

    # ---- queries of the code -----------------------------------------------------------------

    def divided(self, p: Int, q: Int) -> Int:
        """Return p // q; UndecidedError if q is 0."""
        if isinstance(q, int) and q == 0:
            raise UndecidedError
        return self.prover.space.floordiv(p, q)

    def holds(self, question: str, a: Int, b: Int) -> bool:
        """Decide a == b (`equal`) or a >= b (`not_less`), by proof or by this run's assumption."""
        space = self.prover.space
        truth = space.equal(a, b) if question == "equal" else space.not_less(a, b)
        if isinstance(truth, int):
            return bool(truth)
        found = truth.only() or cast(Expr, 1 - truth).only()
        if found is None:
            raise UndecidedError
        atom, negated = found[0], truth.only() is None
        if atom not in self.answers:
            proved = self._proved(atom)
            if proved is None:
                raise _Fork(atom)
            self.answers[atom] = proved
        return self.answers[atom] != negated

    def _proved(self, atom: Atom) -> bool | None:
        """Return the value of an atom that follows from the assumptions so far."""
        p = atom.arguments[0]
        if not self.given or not isinstance(p, Expr):
            return None

        def never_negative(e: Int) -> bool:
            return self.prover.is_nonnegative(e, self.given)

        if never_negative(-p - 1):
            return False
        if atom.kind == "ge":
            return True if never_negative(p) else None
        if never_negative(p - 1):
            return False
        return True if never_negative(p) and never_negative(-p) else None


def _told(atom: Atom, answer: bool) -> tuple[Expr, ...]:
    """Return the nonnegative expressions that follow from a truth's value."""
    p = atom.arguments[0]
    assert isinstance(p, Expr)
    if atom.kind == "ge":
        found = (p,) if answer else (-p - 1,)
    else:
        found = (p, -p) if answer else ()
    return tuple(e for e in found if isinstance(e, Expr))
