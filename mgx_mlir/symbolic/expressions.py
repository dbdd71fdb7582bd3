"""Integer expressions over unknown sizes, each in one normal form.

An expression is a polynomial with integer coefficients over atoms: sizes, and non-polynomial terms
(a floor division, max(p, 0), the truth of p >= 0 or p == 0, an opaque function). A `Space`
(symbolic/space.py) uniques atoms and expressions, so that equal normal forms are one object. A
constant is a Python int, never an `Expr`.

sympy can do this too, but is slower: 200 rounds of a minimum, a division, a product and a
comparison take it 4.0 s and this package 0.07 s; its import takes 0.6 s. MLIR's AffineExpr has no
products of sizes and no minimum.

Two assumptions: integers of 32 and 64 bits do not overflow, because sizes are far smaller, and no
divisor is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Union

if TYPE_CHECKING:
    from mgx_mlir.symbolic.space import Space

Kind = Literal["size", "floordiv", "pos", "ge", "eq", "function"]
Int = Union[int, "Expr"]  # a string: `|` needs it in quotes

SAMPLES = 14
BIG = 1 << 62  # coefficients beyond it may overflow 64 bits
_LARGEST = 1 << 256  # limit of trial values, because repeated squares grow fast
_LONGEST = 300  # characters of text; atoms share parts, so that texts could double each time


class Atom:
    """Atom of polynomials; `number` is its creation order in a space.

    `arguments` by kind: floordiv(p, q), pos(p) = max(p, 0), ge(p) = 1 if p >= 0 else 0, eq(p) = 1
    if p == 0 else 0, function(name, ..), size(name). `low` and `high` bound it (None: no bound).
    `samples` are its values for each trial assignment of the sizes (None: undefined).
    """

    __slots__ = ("_text", "arguments", "high", "kind", "low", "number", "samples")

    def __init__(
        self,
        kind: Kind,
        arguments: tuple[Hashable, ...],
        number: int,
        bounds: tuple[int | None, int | None],
        samples: list[int | None],
    ) -> None:
        self.kind, self.arguments, self.number = kind, arguments, number
        self.low, self.high = bounds
        self.samples = samples
        self._text = ""

    @property
    def is_truth(self) -> bool:
        """Return whether its value is 0 or 1."""
        return self.kind in ("ge", "eq")

    def __str__(self) -> str:
        """Return its text, cut if it is long: only for messages."""
        self._text = self._text or _cut(self._written())
        return self._text

    def _written(self) -> str:
        if self.kind == "size":
            name = self.arguments[0]
            return name if isinstance(name, str) else f"?{name}"
        a = [str(x) for x in self.arguments]
        if self.kind == "floordiv":
            return f"(({a[0]}) floordiv ({a[1]}))"
        if self.kind in ("ge", "eq"):
            return f"[{a[0]} {'>=' if self.kind == 'ge' else '=='} 0]"
        if self.kind == "pos":
            return f"max({a[0]}, 0)"
        return f"{a[0]}({', '.join(a[1:])})"


Monomial = tuple[Atom, ...]  # in reverse creation order; () for the constant
Terms = Mapping[Monomial, int]


class Expr:
    """A polynomial that is not constant. In one space equal forms are one object."""

    __slots__ = ("_bounds", "_samples", "space", "terms")

    def __init__(self, space: Space, terms: Terms) -> None:
        self.space, self.terms = space, terms
        self._bounds: tuple[int | None, int | None] | None = None
        self._samples: list[int | None] | None = None

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: Int) -> Int:
        out = dict(self.terms)
        for m, c in terms_of(other).items():
            out[m] = out.get(m, 0) + c
        return self.space.polynomial(out)

    __radd__ = __add__

    def __neg__(self) -> Expr:
        found = self.space.polynomial({m: -c for m, c in self.terms.items()})
        assert isinstance(found, Expr)
        return found

    def __sub__(self, other: Int) -> Int:
        return self + (-other)

    def __rsub__(self, other: int) -> Int:
        return -self + other

    def __mul__(self, other: Int) -> Int:
        if isinstance(other, int):
            return self.space.polynomial({m: c * other for m, c in self.terms.items()})
        out: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                both = _times(m, n)
                out[both] = out.get(both, 0) + c * d
        return self.space.polynomial(out)

    __rmul__ = __mul__

    def __floordiv__(self, other: Int) -> Int:
        return self.space.floordiv(self, other)

    def __mod__(self, other: Int) -> Int:
        return self - other * (self // other)

    # ---- properties --------------------------------------------------------------------------

    @property
    def low(self) -> int | None:
        """Lower bound, from the bounds of its atoms."""
        return self._interval()[0]

    @property
    def high(self) -> int | None:
        """Upper bound, from the bounds of its atoms."""
        return self._interval()[1]

    def _interval(self) -> tuple[int | None, int | None]:
        if self._bounds is None:
            low: int | None = 0
            high: int | None = 0
            for m, c in self.terms.items():
                a, b = _monomial_bounds(m)
                if c < 0:
                    a, b = b, a
                low = None if low is None or a is None else low + c * a
                high = None if high is None or b is None else high + c * b
            self._bounds = low, high
        return self._bounds

    @property
    def samples(self) -> list[int | None]:
        """Values for the trial assignments of the sizes."""
        if self._samples is None:
            found = (self.at(lambda a, i=i: a.samples[i]) for i in range(SAMPLES))
            self._samples = [None if v is None or abs(v) > _LARGEST else v for v in found]
        return self._samples

    def at(self, value: Callable[[Atom], int | None]) -> int | None:
        """Return its value for atom values from `value`; None if an atom has none."""
        total = 0
        for m, c in self.terms.items():
            for atom in m:
                v = value(atom)
                if v is None:
                    return None
                c *= v
            total += c
        return total

    @property
    def leading(self) -> Monomial:
        """Return the first monomial in the order used by divisions."""
        return max(self.terms, key=order)

    @property
    def constant(self) -> int:
        """The term without atoms."""
        return self.terms.get((), 0)

    def atoms(self) -> Iterator[Atom]:
        """Yield the atoms of each monomial, with repetitions."""
        for m in self.terms:
            yield from m

    def only(self) -> tuple[Atom, int] | None:
        """Return (a, k) if it is a + k for an atom a."""
        rest = [m for m in self.terms if m]
        if len(rest) == 1 and len(rest[0]) == 1 and self.terms[rest[0]] == 1:
            return rest[0][0], self.constant
        return None

    def multiple(self) -> tuple[Atom, int] | None:
        """Return (a, k) if it is k * a for an atom a and a positive k."""
        if len(self.terms) != 1:
            return None
        ((m, k),) = self.terms.items()
        return (m[0], k) if len(m) == 1 and k > 0 else None

    def replaced(self, atom: Atom, value: Int) -> Int:
        """Return it with `value` for an atom, except inside of other atoms' arguments."""
        if all(atom not in m for m in self.terms):
            return self
        out: Int = self.space.polynomial({m: c for m, c in self.terms.items() if atom not in m})
        for m, c in self.terms.items():
            times = m.count(atom)
            if times:
                part: Int = self.space.polynomial({tuple(a for a in m if a is not atom): c})
                for _ in range(times):
                    part = part * value
                out = out + part
        return out

    def __str__(self) -> str:
        parts: list[str] = []
        for m in sorted(self.terms, key=order, reverse=True):
            c, names = self.terms[m], "*".join(map(str, reversed(m)))
            text = names if names and abs(c) == 1 else f"{abs(c)}{'*' + names if names else ''}"
            parts.append(("- " if c < 0 else "+ ") + text)
        return _cut(" ".join(parts).removeprefix("+ "))

    __repr__ = __str__


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} .."


def order(m: Monomial) -> tuple[int, list[int]]:
    """Return a key that sorts monomials: by degree, then by the age of their atoms."""
    return len(m), [a.number for a in m]


def _times(m: Monomial, n: Monomial) -> Monomial:
    if not m or not n:
        return m or n
    found = sorted((*m, *n), key=lambda a: -a.number)
    return tuple(
        a for i, a in enumerate(found) if not (a.is_truth and i and found[i - 1] is a)
    )  # 0 and 1 equal their squares


def _monomial_bounds(m: Monomial) -> tuple[int | None, int | None]:
    low = 1
    high: int | None = 1
    for a in m:
        if low >= 0 and a.low is not None and a.low >= 0:
            high = 0 if 0 in (high, a.high) else None if None in (high, a.high) else (
                (high or 0) * (a.high or 0)
            )  # fmt: skip
            low = low * a.low
            continue
        if high is None or a.low is None or a.high is None:
            return None, None
        ends = [x * y for x in (low, high) for y in (a.low, a.high)]
        low, high = min(ends), max(ends)
    return low, high


def size_of(e: Int) -> Atom | None:
    """Return the size if an expression is one, else None."""
    found = e.only() if isinstance(e, Expr) else None
    return found[0] if found is not None and not found[1] and found[0].kind == "size" else None


def terms_of(e: Int) -> Terms:
    """Return the terms of an expression or of a number."""
    if isinstance(e, Expr):
        return e.terms
    return {(): e} if e else {}


def sides(p: Expr) -> tuple[Int, Int]:
    """Return (l, r) with l - r = p, both with positive coefficients."""
    left = p.space.polynomial({m: c for m, c in p.terms.items() if c > 0})
    return left, left - p


def is_far(e: Int) -> bool:
    """Return whether a number exceeds any size, like the end of an unbounded slice."""
    return isinstance(e, int) and abs(e) >= BIG


def low_of(e: Int) -> int | None:
    """Return the lower bound of an expression or a number; None without one."""
    return e.low if isinstance(e, Expr) else e


def high_of(e: Int) -> int | None:
    """Return the upper bound of an expression or a number; None without one."""
    return e.high if isinstance(e, Expr) else e


def samples_of(e: Int) -> list[int | None]:
    """Return the values of an expression or a number for the trial assignments of the sizes."""
    return e.samples if isinstance(e, Expr) else [e] * SAMPLES


def value_at(e: Int, size: Callable[[Atom], int | None]) -> int | None:
    """Return the value for these sizes; None if a divisor is 0, or a part has no value."""
    known: dict[Atom, int | None] = {}

    def of(x: Hashable) -> int | None:
        return x.at(value) if isinstance(x, Expr) else x if isinstance(x, int) else None

    def value(a: Atom) -> int | None:
        if a not in known:
            known[a] = size(a) if a.kind == "size" else found(a)
        return known[a]

    def found(a: Atom) -> int | None:
        values = [of(x) for x in a.arguments]
        p = values[0]
        if p is None or a.kind == "function":
            return None
        if a.kind == "floordiv":
            return p // values[1] if values[1] else None
        return max(p, 0) if a.kind == "pos" else int(p >= 0 if a.kind == "ge" else p == 0)

    return of(e)


def without(m: Monomial, part: Monomial) -> Monomial | None:
    """Return m / part, or None if it does not divide."""
    left = list(m)
    for a in part:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def shared(m: Monomial, n: Monomial) -> Monomial:
    """Return the greatest common factor of two monomials."""
    left, out = list(n), list[Atom]()
    for a in m:
        if a in left:
            left.remove(a)
            out.append(a)
    return tuple(out)
