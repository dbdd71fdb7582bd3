"""Factory of expressions: each exists once, in its normal form.

Forms are simplified by proved signs: max(p, 0) is p if p >= 0 is proved.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Sequence

from mgx_mlir.symbolic.expressions import (
    BIG,
    SAMPLES,
    Atom,
    Expr,
    Int,
    Kind,
    Monomial,
    Terms,
    high_of,
    is_far,
    low_of,
    order,
    samples_of,
    shared,
    terms_of,
    without,
)

MOST_TERMS = 48  # larger expressions become an opaque function


class Space:
    """Makes expressions, each once.

    `is_nonnegative(e)` is called for a sign that simplifies a form; True must mean that e is never
    negative. `broadcast(a, b)` is called for extents that are equal, or one of them 1.
    """

    def __init__(
        self,
        is_nonnegative: Callable[[Expr], bool] | None = None,
        broadcast: Callable[[Int, Int], None] | None = None,
    ) -> None:
        self._atoms: dict[tuple[Hashable, ...], Atom] = {}
        self._expressions: dict[frozenset[tuple[Monomial, int]], Expr] = {}
        self._broadcast = broadcast
        self._prove: Callable[[Expr], bool] = is_nonnegative or (
            lambda e: e.low is not None and e.low >= 0
        )

    def tell_broadcast(self, a: Int, b: Int) -> None:
        """Record that two extents are always equal, or one of them is 1."""
        if self._broadcast is not None:
            self._broadcast(a, b)

    # ---- construction ------------------------------------------------------------------------

    def polynomial(self, terms: Terms) -> Int:
        """Return the expression of these terms."""
        kept = {m: c for m, c in terms.items() if c}
        if not kept:
            return 0
        if len(kept) == 1 and () in kept:
            return kept[()]
        key = frozenset(kept.items())
        found = self._expressions.get(key)
        if found is None:
            found = self._expressions[key] = Expr(self, kept)
            if len(kept) > MOST_TERMS or any(abs(c) > BIG for c in kept.values()):
                opaque = self.function("polynomial", (found,))
                assert isinstance(opaque, Expr)
                found = self._expressions[key] = opaque
        return found

    def _atom(
        self,
        kind: Kind,
        arguments: tuple[Hashable, ...],
        bounds: tuple[int | None, int | None],
        sample: Callable[[int], int | None],
    ) -> Expr:
        key = (kind, *arguments)
        atom = self._atoms.get(key)
        if atom is None:
            number = len(self._atoms)
            samples = [sample(i) for i in range(SAMPLES)]
            atom = self._atoms[key] = Atom(kind, arguments, number, bounds, samples)
        found = self.polynomial({(atom,): 1})
        assert isinstance(found, Expr)
        return found

    def size(self, name: Hashable, low: int = 0, high: int | None = None) -> Int:
        """Return a size of this name, in [low, high]."""
        if low == high:
            return low
        return self._atom("size", (name,), (low, high), self._trials(low, high))

    def function(
        self,
        name: Hashable,
        arguments: Sequence[Hashable],
        low: int | None = None,
        high: int | None = None,
    ) -> Int:
        """Return an opaque function of `arguments` (numbers, expressions, names)."""
        return self._atom(
            "function", (name, *arguments), (low, high), self._trials(low or 0, high, fixed=False)
        )

    def _trials(
        self, low: int, high: int | None, fixed: bool = True
    ) -> Callable[[int], int | None]:
        """Return trial values: the minimum of all sizes together, the next, then different ones."""
        rng = random.Random(len(self._atoms) + 1)  # same values in every process

        def sample(i: int) -> int:
            own = (
                rng.randrange(1, 12), rng.randrange(30, 3000), rng.randrange(1 << 20, 1 << 22),
                rng.choice((0, 1, 2, 7, 8, 9, 64)),
            )[i % 4]  # fmt: skip
            v = i if i < 4 and fixed else low + i - 4 if i < 6 and fixed else own
            return max(v if high is None else min(v, high), low)

        return sample

    # ---- division ----------------------------------------------------------------------------

    def floordiv(self, p: Int, q: Int) -> Int:
        """Return p / q rounded down."""
        if isinstance(q, int):
            return self._by_number(p, q)
        if p == 0:
            return 0
        exact = self.exact(p, q)
        if exact is not None:
            return exact
        whole, rest, q = self._reduced(p, q)
        if isinstance(q, int):
            return whole + self._by_number(rest, q)
        if self.nonnegative(rest) and self.nonnegative(q - 1 - rest):
            return whole
        return whole + self._quotient(rest, q)

    def _quotient(self, p: Int, q: Int) -> Int:
        low: int | None = None
        high: int | None = None
        if self.nonnegative(p) and self.nonnegative(q):
            least, most = max(low_of(q) or 1, 1), high_of(q)
            low = (low_of(p) or 0) // most if most else 0
            top = high_of(p)
            high = None if top is None else top // least
        ps, qs = samples_of(p), samples_of(q)

        def sample(i: int) -> int | None:
            x, y = ps[i], qs[i]
            return None if x is None or not y else x // y

        return self._atom("floordiv", (p, q), (low, high), sample)

    def _by_number(self, p: Int, q: int) -> Int:
        if q == 0:
            return self.function("quotient by 0", (p,))
        if isinstance(p, int):
            return p // q
        if q < 0:
            return self._by_number(-p, -q)
        whole = {m: c // q for m, c in p.terms.items()}
        rest = self.polynomial({m: c % q for m, c in p.terms.items()})
        return self.polynomial(whole) + self._floor(rest, q)

    def _floor(self, r: Int, q: int) -> Int:
        """Return floor(r / q) if all coefficients of r lie in [0, q)."""
        if isinstance(r, int):
            return r // q
        g = math.gcd(q, *(c for m, c in r.terms.items() if m))
        if g > 1:
            shared = {m: c // g for m, c in r.terms.items()}
            return self._by_number(self.polynomial(shared), q // g)
        found = r.only()
        if found is not None and found[0].kind == "floordiv":
            p, inner = found[0].arguments
            if isinstance(inner, int):
                assert isinstance(p, Expr)
                return self._by_number(p + found[1] * inner, inner * q)
        values = {v // q for v in r.samples if v is not None}
        if len(values) == 1:
            (k,) = values
            if self.nonnegative(r - k * q) and self.nonnegative(k * q + q - 1 - r):
                return k
        return self._quotient(r, q)

    def _reduced(self, p: Int, q: Expr) -> tuple[Int, Int, Int]:
        """Return (w, r, s) with p / q = w + r / s: the divisible part is separated, common factors
        dropped.
        """
        whole: Int = 0
        if len(q.terms) == 1:
            (m, c), = q.terms.items()  # fmt: skip
            taken: dict[Monomial, int] = {}
            rest: dict[Monomial, int] = {}
            for n, d in terms_of(p).items():
                left = without(n, m)
                if left is None:
                    rest[n] = d
                    continue
                taken[left] = d // c
                rest[n] = d % c
            whole, p = self.polynomial(taken), self.polynomial(rest)
        monomials = [*terms_of(p), *q.terms]
        common = monomials[0] if monomials else ()
        for n in monomials[1:]:
            common = shared(common, n)
        numbers = math.gcd(*terms_of(p).values(), *q.terms.values()) or 1
        if common or numbers > 1:
            p, q2 = (
                self.polynomial({without(n, common) or (): c // numbers for n, c in t.items()})
                for t in (terms_of(p), q.terms)
            )
            return whole, p, q2
        return whole, p, q

    def exact(self, p: Int, q: Int) -> Int | None:
        """Return the quotient if q divides p as a polynomial, else None."""
        if q == 0:
            return None
        if isinstance(q, int):
            if any(c % q for c in terms_of(p).values()):
                return None
            return self.polynomial({m: c // q for m, c in terms_of(p).items()})
        lead = q.leading
        out: Int = 0
        rest = p
        for _ in range(32):
            if isinstance(rest, int):
                return out if rest == 0 else None
            m = rest.leading
            left = without(m, lead)
            if left is None or rest.terms[m] % q.terms[lead]:
                return None
            part = self.polynomial({left: rest.terms[m] // q.terms[lead]})
            smaller = rest - part * q
            if isinstance(smaller, Expr) and order(smaller.leading) >= order(m):
                return None  # truths equal their squares, so that the term did not vanish
            out, rest = out + part, smaller
        return None

    # ---- signs -------------------------------------------------------------------------------

    def nonnegative(self, e: Int) -> bool:
        """Return whether `e` is proved to be nonnegative."""
        return e >= 0 if isinstance(e, int) else self._prove(e)

    def pos(self, p: Int) -> Int:
        """max(p, 0)."""
        if isinstance(p, int):
            return max(p, 0)
        if self.nonnegative(p):
            return p
        if self.nonnegative(-p):
            return 0
        if p.terms[p.leading] < 0:
            return p + self.pos(-p)
        g = math.gcd(*p.terms.values())
        if g > 1:
            return self.pos(self.polynomial({m: c // g for m, c in p.terms.items()})) * g
        return self._atom(
            "pos", (p,), (max(p.low or 0, 0), None if p.high is None else max(p.high, 0)),
            lambda i: None if (v := p.samples[i]) is None else max(v, 0),
        )  # fmt: skip

    def minimum(self, a: Int, b: Int) -> Int:
        """min(a, b)."""
        if is_far(a) != is_far(b):
            return a if self._far_below(a, b) else b
        return a - self.pos(a - b)

    def maximum(self, a: Int, b: Int) -> Int:
        """max(a, b)."""
        if is_far(a) != is_far(b):
            return b if self._far_below(a, b) else a
        return b + self.pos(a - b)

    @staticmethod
    def _far_below(a: Int, b: Int) -> bool:
        """Return whether a < b because one of them is a number beyond every expression."""
        return a < 0 if isinstance(a, int) and is_far(a) else isinstance(b, int) and b > 0

    def not_less(self, a: Int, b: Int) -> Int:
        """1 where a >= b, else 0."""
        if is_far(a) != is_far(b):
            return int(not self._far_below(a, b))
        return self.at_least(a - b)

    def equal(self, a: Int, b: Int) -> Int:
        """1 where a == b, else 0."""
        return 0 if is_far(a) != is_far(b) else self.is_zero(a - b)

    def at_least(self, p: Int) -> Int:
        """1 where p >= 0, else 0."""
        if isinstance(p, int):
            return int(p >= 0)
        g = math.gcd(*(c for m, c in p.terms.items() if m))
        if g > 1:
            p = self.polynomial({m: c // g for m, c in p.terms.items()})
            assert isinstance(p, Expr)
        if self.nonnegative(p):
            return 1
        if self.nonnegative(-p - 1):
            return 0
        if p.terms[p.leading] < 0:
            return 1 - self.at_least(-p - 1)
        return self._atom(
            "ge", (p,), (0, 1), lambda i: None if (v := p.samples[i]) is None else int(v >= 0)
        )

    def is_zero(self, p: Int) -> Int:
        """1 where p == 0, else 0."""
        if isinstance(p, int):
            return int(p == 0)
        if (p.low, p.high) == (0, 1):
            return 1 - p
        g = math.gcd(*(c for m, c in p.terms.items() if m))
        if p.constant % g or self.nonnegative(p - 1) or self.nonnegative(-p - 1):
            return 0
        if self.nonnegative(p) and self.nonnegative(-p):
            return 1
        if p.terms[p.leading] < 0:
            p = -p
        shared = self.polynomial({m: c // g for m, c in p.terms.items()})
        assert isinstance(shared, Expr)
        return self._atom(
            "eq", (shared,), (0, 1),
            lambda i: None if (v := shared.samples[i]) is None else int(v == 0),
        )  # fmt: skip

    def truth(self, e: Int) -> Int:
        """1 where e is not 0, else 0."""
        return e if (low_of(e), high_of(e)) == (0, 1) else 1 - self.is_zero(e)

    def select(self, condition: Int, a: Int, b: Int) -> Int:
        """Return a if the condition, 0 or 1, holds, else b."""
        if isinstance(condition, int):
            return a if condition else b
        if a is b or a == b:
            return a
        found = condition.only()
        if found is None and (negated := (1 - condition)) and isinstance(negated, Expr):
            found = negated.only()
            if found is not None and found[1] == 0:
                return self.select(negated, b, a)
        d = a - b
        if found is None or found[1] or isinstance(d, int):
            return b + condition * d
        (atom, _), p = found, found[0].arguments[0]
        assert isinstance(p, Expr)
        if atom.kind == "ge":
            # [p >= 0] p is max(p, 0), and so is [p >= 0] (p + 1) of p + 1
            k, left = divmod(d.terms.get(p.leading, 0), p.terms[p.leading])
            if k and not left and d - p * k in (0, k):
                return b + k * self.pos(p + (0 if d is p * k else 1))
        elif atom.kind == "eq":
            if isinstance(b, Expr) and self.equal(b, 1) is condition and self.is_joined(b, a):
                return b
            d = self.solved(d, p)
        return b + condition * d

    def is_joined(self, joined: Int, d: Int) -> bool:
        """Return whether an extent is the broadcast of `d` with another: `a`, or `b` if `a` is 1.

        One of the two is `d`, or itself a broadcast of `d`. The extent is 1 only if `d` is 1, and
        broadcasting it with `d` again changes nothing.
        """
        if joined is d:
            return True
        if not isinstance(joined, Expr):
            return False
        for test in joined.atoms():
            p = test.arguments[0]
            if test.kind != "eq" or not isinstance(p, Expr):
                continue
            a, b = (joined.replaced(test, truth) for truth in (0, 1))
            if self.equal(a, 1) is self.polynomial({(test,): 1}):
                return self.is_joined(a, d) or self.is_joined(self.solved(b, p), d)
        return False

    @staticmethod
    def solved(e: Int, p: Expr) -> Int:
        """Return `e` where p is 0, by eliminating a size of p."""
        for m, c in p.terms.items():
            if len(m) == 1 and abs(c) == 1 and m[0].kind == "size":
                others = [n for n in p.terms if n != m]
                if all(m[0] not in n for n in others) and isinstance(e, Expr):
                    rest = p.space.polynomial({n: -c * p.terms[n] for n in others})
                    return e.replaced(m[0], rest)
        return e
