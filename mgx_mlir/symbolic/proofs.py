"""Proofs that an expression is never negative; without a proof the answer is no.

First bounds of atoms are used, then trial values, which refute most false claims. The rest is
proved by cases: each max(p, 0) is p or 0, each truth 1 or 0, under its condition. In each case the
negated goal, the conditions and the facts of each atom are linear inequalities over the monomials.
Fourier-Motzkin elimination shows that they contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mgx_mlir.symbolic.expressions import (
    Atom,
    Expr,
    Int,
    Monomial,
    samples_of,
    terms_of,
    value_at,
)
from mgx_mlir.symbolic.space import Space

_DEPTH = 6  # most nested cases
_MOST_ROWS = 160  # most rows of an elimination
_MOST_ATOMS = 16
_MOST_FACTS = 12
_BUDGET = 400_000  # most additions of rows in the life of a prover, some seconds

Row = tuple[dict[int, int], int]  # sum of coefficient * unknown + constant >= 0


class Prover:
    """A space whose normal forms use proofs, and a cache of proofs."""

    def __init__(self) -> None:
        self.space = Space(self.is_nonnegative, self.broadcast_together)
        # expressions that are nonnegative in any run without an error
        self.facts: tuple[Expr, ...] = ()
        self.learning = True  # False in branches and loops, whose ops may not run
        self._known: dict[tuple[Expr, ...], bool] = {}
        self._left = _BUDGET
        self._busy = False

    def is_nonnegative(self, e: Int, given: tuple[Expr, ...] = ()) -> bool:
        """Return whether e >= 0 is proved wherever each of `given` is nonnegative."""
        if isinstance(e, int):
            return e >= 0
        if e.low is not None and e.low >= 0:
            return True
        if self._busy or (e.high is not None and e.high < 0):
            return False
        given = (*given, *self.facts)
        key = (e, *given)
        found = self._known.get(key)
        if found is None:
            found = False
            if not _refuted(e, given):
                self._busy = True  # no nested proofs for expressions that a proof makes
                try:
                    found = _Proof(self).holds(e, list(given), {}, _DEPTH)
                finally:
                    self._busy = False
            self._known[key] = found
        return found

    def learn(self, e: Int) -> None:
        """Assume that e is nonnegative, unless that is proved."""
        if not self.learning:
            return
        if isinstance(e, Expr) and len(self.facts) < _MOST_FACTS and not self.is_nonnegative(e):
            self.facts += (e,)
            self._known.clear()

    def broadcast_together(self, a: Int, b: Int) -> None:
        """Learn the consequences if two extents are equal in every run, or one of them is 1.

        A minimum equals one of its sides if the other side would not fit: in `x + table[:n]`, with
        n rows of x and 512 of the table, n is at most 512.
        """
        d = a - b
        if isinstance(d, int):
            return
        for atom in dict.fromkeys(d.atoms()):
            p = atom.arguments[0]
            if atom.kind != "pos" or not isinstance(p, Expr):
                continue
            beyond = p - 1
            if isinstance(beyond, Expr) and all(
                self._differ(x, y, beyond) for x, y in ((a, b), (a, 1), (b, 1))
            ):
                self.learn(-p)

    def _differ(self, a: Int, b: Int, given: Expr) -> bool:
        """Return whether a != b is proved wherever `given` >= 0."""
        d = a - b
        if isinstance(d, int):
            return d != 0
        return self.is_nonnegative(d - 1, (given,)) or self.is_nonnegative(-d - 1, (given,))

    def are_equal(self, a: Int, b: Int) -> bool:
        """Return whether a == b is proved."""
        if self._differ_in_a_trial(a, b):
            return False  # cheaper than a proof that neither is the smaller
        d = a - b
        if isinstance(d, int):
            return d == 0
        return self.is_nonnegative(d) and self.is_nonnegative(-d)

    def _differ_in_a_trial(self, a: Int, b: Int) -> bool:
        """Return whether trial values show a != b where all facts hold."""
        for i, (v, w) in enumerate(zip(samples_of(a), samples_of(b), strict=True)):
            if v == w or v is None or w is None:
                continue
            known = [f.samples[i] for f in self.facts]
            if all(f is not None and f >= 0 for f in known):
                return True
        return False

    def range_of(self, e: Int) -> tuple[int | None, int | None]:
        """Return bounds of an expression: its values at the sizes' ends, if they are proved."""
        if isinstance(e, int):
            return e, e
        low, high = e.low, e.high
        ends = [value_at(e, lambda a: a.low), value_at(e, lambda a: a.high)]
        values = [v for v in ends if v is not None]
        if values and low != min(values) and self.is_nonnegative(e - min(values)):
            low = min(values)
        if len(values) == 2 and high != max(values) and self.is_nonnegative(max(values) - e):
            high = max(values)
        return low, high

    def spend(self, steps: int) -> bool:
        """Return whether the budget allows `steps` more row additions."""
        self._left -= steps
        return self._left > 0


def _refuted(e: Expr, given: Sequence[Expr]) -> bool:
    """Return whether trial values show e < 0 where all of `given` hold."""
    for i, v in enumerate(e.samples):
        if v is None or v >= 0:
            continue
        facts = [samples_of(g)[i] for g in given]
        if all(f is not None and f >= 0 for f in facts):
            return True
    return False


class _Proof:
    """One proof."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self.zero: Int = 0

    def holds(self, goal: Int, facts: list[Expr], decided: dict[Atom, Int], depth: int) -> bool:
        if isinstance(goal, int) and goal >= 0:
            return True
        if self._follows(goal, facts, decided):
            return True
        atom = _next_case(goal, facts, decided) if depth else None
        if atom is None:
            return False
        for value, conditions in _cases(atom):
            chosen = {**decided, atom: value}
            told = [_settled(c, chosen) for c in [*facts, *conditions]]
            if any(isinstance(c, int) and c < 0 for c in told):
                continue  # this case cannot occur
            left = [c for c in told if isinstance(c, Expr)]
            if not self.holds(_settled(goal, chosen), left, chosen, depth - 1):
                return False
        return True

    def _follows(self, goal: Int, facts: Sequence[Expr], decided: dict[Atom, Int]) -> bool:
        """Return whether the facts of the goal and the atoms contradict goal <= -1."""
        numbers: dict[Monomial, int] = {}
        rows: list[Row] = []

        def row(e: Int) -> None:
            terms = terms_of(e)
            found = {numbers.setdefault(m, len(numbers)): c for m, c in terms.items() if m}
            rows.append((found, terms.get((), 0)))

        given: list[Int] = [-goal - 1, *facts]
        given += _products(goal, facts)
        atoms: dict[Atom, None] = {}
        at = 0
        while at < len(given):
            e = given[at]
            at += 1
            row(e)
            if not isinstance(e, Expr):
                continue
            for m in e.terms:
                for a in m:
                    if a not in atoms:
                        if len(atoms) >= _MOST_ATOMS:
                            break
                        atoms[a] = None
                        given += [_settled(f, decided) for f in _facts(a, self.prover)]
        seen: set[Monomial] = set()
        waiting = [m for m in numbers if len(m) > 1]
        while waiting and len(seen) < _MOST_ATOMS:
            m = waiting.pop()
            if m not in seen:
                seen.add(m)
                for e in _monomial_facts(m, self.prover.space):
                    row(e)
                waiting += [n for n in numbers if len(n) > 1 and n not in seen]
        return _contradict(rows, self.prover)


def _settled(e: Int, decided: dict[Atom, Int]) -> Int:
    """Return `e` with the decided values of its atoms."""
    while isinstance(e, Expr):
        atom = next((a for a in e.atoms() if a in decided), None)
        if atom is None:
            return e
        e = e.replaced(atom, decided[atom])
    return e


def _next_case(goal: Int, facts: Iterable[Expr], decided: dict[Atom, Int]) -> Atom | None:
    """Return an atom to split in two cases: one of the goal, else of the atoms' arguments."""
    seen: dict[Atom, None] = {}
    waiting: list[object] = [goal]
    while waiting and len(seen) < 2 * _MOST_ATOMS:
        e = waiting.pop(0)
        if not isinstance(e, Expr):
            continue
        for a in e.atoms():
            if a in seen:
                continue
            seen[a] = None
            if a.kind in ("pos", "ge", "eq") and a not in decided:
                return a
            if a.kind == "floordiv":
                waiting += [_settled(x, decided) for x in a.arguments if isinstance(x, Expr)]
        if not waiting:
            waiting += [f for f in facts if any(a not in seen for a in f.atoms())]
    return None


def _cases(a: Atom) -> list[tuple[Int, list[Int]]]:
    """Return the values of an atom, each with the expressions that are then nonnegative."""
    p = a.arguments[0]
    assert isinstance(p, Expr)
    if a.kind == "pos":
        return [(p, [p]), (0, [-p])]
    if a.kind == "ge":
        return [(1, [p]), (0, [-p - 1])]
    return [(1, [p, -p]), (0, [p - 1]), (0, [-p - 1])]


def _facts(a: Atom, prover: Prover) -> list[Int]:
    """Return the nonnegative expressions that follow from an atom's definition."""
    made = prover.space.polynomial({(a,): 1})
    out: list[Int] = []
    if a.low is not None:
        out.append(made - a.low)
    if a.high is not None:
        out.append(a.high - made)
    if a.kind == "pos":
        p = a.arguments[0]
        assert isinstance(p, Expr)
        out.append(made - p)
    if a.kind == "floordiv":
        p, q = a.arguments
        assert isinstance(p, int | Expr)
        assert isinstance(q, int | Expr)
        low = q if isinstance(q, int) else q.low
        if low is not None and low >= 0:  # divisors are never 0
            out += [p - q * made, q * made + q - 1 - p]
            if isinstance(q, Expr):
                out.append(q - 1)
    return out


def _monomial_facts(m: Monomial, space: Space) -> list[Int]:
    """Return m >= 0, and a's bounds times the rest, if all factors are nonnegative."""
    if any(a.low is None or a.low < 0 for a in m):
        return []
    whole = space.polynomial({m: 1})
    out: list[Int] = [whole]
    for i, a in enumerate(m):
        rest = space.polynomial({m[:i] + m[i + 1 :]: 1})
        if a.low:
            out.append(whole - rest * a.low)
        if a.high is not None:
            out.append(rest * a.high - whole)
    return out


def _products(goal: Int, facts: Sequence[Expr]) -> list[Int]:
    """Return facts times the nonnegative factors of their atoms in the goal."""
    if not isinstance(goal, Expr):
        return []
    out: list[Int] = []
    for m in goal.terms:
        for i, a in enumerate(m if len(m) > 1 else ()):
            rest = m[:i] + m[i + 1 :]
            if any(b.low is None or b.low < 0 for b in rest):
                continue
            factor = goal.space.polynomial({rest: 1})
            out += [f * factor for f in facts if (a,) in f.terms]
            if len(out) > _MOST_ATOMS:
                return out
    return out


Rows = dict[tuple[tuple[int, int], ...], Row]


def _contradict(rows: list[Row], prover: Prover) -> bool:
    """Return whether elimination shows that no integers make all rows >= 0."""
    current: Rows = {}

    def add(
        found: dict[int, int], constant: int, to: dict[tuple[tuple[int, int], ...], Row]
    ) -> bool:
        kept = {v: c for v, c in found.items() if c}
        if not kept:
            return constant < 0
        g = math.gcd(*kept.values())
        if g > 1:
            kept, constant = {v: c // g for v, c in kept.items()}, constant // g
        key = tuple(sorted(kept.items()))
        if key not in to or to[key][1] > constant:
            to[key] = (kept, constant)
        return False

    for found, constant in rows:
        if add(found, constant, current):
            return True
    while current:
        counts: dict[int, list[int]] = {}
        for found, _ in current.values():
            for v, c in found.items():
                counts.setdefault(v, [0, 0])[c > 0] += 1
        v = min(counts, key=lambda v: counts[v][0] * counts[v][1])
        ups = [r for r in current.values() if r[0].get(v, 0) > 0]
        downs = [r for r in current.values() if r[0].get(v, 0) < 0]
        left = {k: r for k, r in current.items() if v not in r[0]}
        if not prover.spend(len(ups) * len(downs) + 1):
            return False
        for up, p in ups:
            for down, q in downs:
                a, b = up[v], -down[v]
                both = {w: b * c for w, c in up.items()}
                for w, c in down.items():
                    both[w] = both.get(w, 0) + a * c
                if add(both, b * p + a * q, left):
                    return True
                if len(left) > _MOST_ROWS:
                    return False
        current = left
    return False
