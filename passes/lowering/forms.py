"""What run-time extents stand for: polynomials of the inputs' dims and of what a run computes.

Two extents whose forms are equal are equal in every run. A form is made from the values of the
module that is being built, and can be made into a value again, at another place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Term = tuple["Atom", ...]  # a product, in the order of the atoms' numbers


@dataclass(eq=False)
class Atom:
    """What a form is made of; there is one object for equal ones.

    kind: `input` (argument, dim), `size` (tensor, dim), `integer` (a value), or an operation on
    forms: `div`, `floor`, `rem`, `max`, `min`, and `select` (predicate, left, right, then, else).
    """

    number: int
    kind: str
    args: tuple[Any, ...]
    table: Atoms

    @cached_property
    def from_inputs(self) -> bool:
        """Whether the dims of the inputs say it all."""
        if self.kind in ("size", "integer"):
            return False
        return all(f.from_inputs for f in self.args if isinstance(f, Form))

    @cached_property
    def weight(self) -> int:
        """How many atoms a text of it has: those that it is made of, however often each is met."""
        return 1 + sum(a.weight for f in self.args if isinstance(f, Form) for a in f.atoms)

    @cached_property
    def is_extent(self) -> bool:
        """Whether it cannot be negative."""
        kind, args = self.kind, self.args
        if kind in ("input", "size"):
            return True
        if kind == "max":
            return any(f.is_never_negative for f in args)
        if kind in ("min", "div", "floor"):
            return all(f.is_never_negative for f in args)
        if kind == "rem":
            return args[0].is_never_negative
        return kind == "select" and all(f.is_never_negative for f in args[3:])


@dataclass
class Atoms:
    """The atoms of a function."""

    known: dict[tuple[Any, ...], Atom] = field(default_factory=dict[tuple[Any, ...], Atom])

    def get(self, kind: str, *args: Any) -> Form:
        """Return the atom of a kind and its arguments as a form; the same one each time."""
        key = (kind, *args)
        if key not in self.known:
            self.known[key] = Atom(len(self.known), kind, args, self)
        return Form({(self.known[key],): 1})


class Form:
    """A polynomial: the factor of each product of atoms; the empty product is the number."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Term, int]) -> None:
        self.terms = {k: n for k, n in terms.items() if n}
        self._hash = hash(frozenset(self.terms.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    # ---- what is known -----------------------------------------------------------------------

    @property
    def is_number(self) -> bool:
        """Return whether no atom is in it."""
        return all(not k for k in self.terms)

    @property
    def number(self) -> int:
        """The part that no atom changes."""
        return self.terms.get((), 0)

    @property
    def order(self) -> list[tuple[tuple[int, ...], int]]:
        """A key to sort by: atoms count by when they were made, not by their addresses."""
        return sorted((tuple(a.number for a in term), n) for term, n in self.terms.items())

    @property
    def atoms(self) -> Iterator[Atom]:
        """Those of the polynomial, each once."""
        return iter(dict.fromkeys(a for term in self.terms for a in term))

    @property
    def from_inputs(self) -> bool:
        """Return whether all of its atoms can be computed from the inputs alone."""
        return all(a.from_inputs for a in self.atoms)

    @property
    def is_never_negative(self) -> bool:
        """Whether no run can make it negative: known, not a guess."""
        return all(n > 0 and all(a.is_extent for a in term) for term, n in self.terms.items())

    def parts(self) -> Iterator[Atom]:
        """Return the atoms that it depends on, at any depth, each once."""
        seen: dict[Atom, None] = {}
        waiting = [self]
        while waiting:
            for atom in waiting.pop().atoms:
                if atom not in seen:
                    seen[atom] = None
                    waiting += [f for f in atom.args if isinstance(f, Form)]
        return iter(seen)

    def values(self) -> Iterator[Any]:
        """Return the values that a run computes and that it depends on, at any depth."""
        return (a.args[0] for a in self.parts() if a.kind in ("size", "integer"))

    def inputs(self) -> Iterator[Atom]:
        """Return the dims of inputs that it depends on, at any depth."""
        return (a for a in self.parts() if a.kind == "input")

    # ---- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: Form | int) -> Form:
        out = dict(self.terms)
        for term, n in as_form(other).terms.items():
            out[term] = out.get(term, 0) + n
        return Form(out)

    def __sub__(self, other: Form | int) -> Form:
        return self + as_form(other) * -1

    def __mul__(self, other: Form | int) -> Form:
        out: dict[Term, int] = {}
        for a, n in self.terms.items():
            for b, m in as_form(other).terms.items():
                term = tuple(sorted((*a, *b), key=lambda x: x.number))
                out[term] = out.get(term, 0) + n * m
        return Form(out)

    def __floordiv__(self, other: Form | int) -> Form:
        return divided("div", self, as_form(other))

    def __mod__(self, other: Form | int) -> Form:
        return divided("rem", self, as_form(other))


def as_form(x: Form | int) -> Form:
    """Return a number as a form; a form stays."""
    return x if isinstance(x, Form) else Form({(): x})


def divided(kind: str, a: Form, b: Form) -> Form:
    """Return the quotient or the rest, rounded towards 0, as the machine does it.

    0 divides nothing.

    `floor` is the quotient rounded down.
    """
    if kind == "floor" and a.is_never_negative and b.is_never_negative:
        kind = "div"
    if b.is_number and b.number:
        n = b.number
        if n == 1 or all(m % n == 0 for m in a.terms.values()):
            return as_form(0) if kind == "rem" else Form({k: m // n for k, m in a.terms.items()})
        if a.is_number and kind == "floor":
            return as_form(a.number // n)
        if a.is_number:
            whole = abs(a.number) // abs(n) * (1 if (a.number < 0) == (n < 0) else -1)
            return as_form(whole if kind == "div" else a.number - whole * n)
    return apply(kind, a, b)


def bounded(kind: str, a: Form, b: Form) -> Form:
    """Return the larger or the smaller of two."""
    if a.is_number and b.is_number:
        return as_form((max if kind == "max" else min)(a.number, b.number))
    if a == b:
        return a
    low, high = (a, b) if (b - a).is_never_negative else (b, a)
    if (high - low).is_never_negative:
        return high if kind == "max" else low
    return apply(kind, a, b)


def selected(predicate: int, left: Form, right: Form, then: Form, other: Form) -> Form:
    """`then` where the comparison (a predicate of arith.cmpi) holds, else `other`."""
    asked = selection(left)
    if asked is not None and right == as_form(0) and asked[3:] == (as_form(1), as_form(0)):
        # a comparison as a number, compared with 0
        inner, a, b = asked[:3]
        if predicate == 1:
            return selected(inner, a, b, then, other)
        if predicate == 0:
            return selected(inner, a, b, other, then)
    test = (predicate, left, right)
    # the same question asked again has the same answer
    then, other = _answered(then, test, 3), _answered(other, test, 4)
    if then == other:
        return then
    if left.is_number and right.is_number and predicate in _COMPARE:
        return then if _COMPARE[predicate](left.number, right.number) else other
    return apply("select", predicate, left, right, then, other)


def selection(form: Form) -> tuple[Any, ...] | None:
    """Return what `selected` made a form of, else None."""
    atom = next(form.atoms, None)
    same = atom is not None and atom.kind == "select" and form.terms == {(atom,): 1}
    return atom.args if atom is not None and same else None


def _answered(form: Form, test: tuple[Any, ...], which: int) -> Form:
    found = selection(form)
    return found[which] if found is not None and found[:3] == test else form


_COMPARE: dict[int, Callable[[int, int], bool]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
}


def apply(kind: str, *args: Form | int) -> Form:
    """Return an operation on forms of which at least one is no number."""
    for f in args:
        if isinstance(f, Form):
            for atom in f.atoms:
                return atom.table.get(kind, *args)
    # of numbers alone, such as a division by 0: it is what it is in no run
    return Atoms().get(kind, *args)


def product(forms: Iterable[Form]) -> Form:
    """Return the product of forms, 1 of none."""
    total = as_form(1)
    for f in forms:
        total = total * f
    return total


def show(form: Form, names: Sequence[str]) -> str:
    """Return a form as text, `names` being those of the inputs."""
    parts: list[tuple[str, str]] = []
    for term, n in form.terms.items():
        factors = [_show_atom(a, names) for a in term]
        if not factors or abs(n) != 1:
            factors.insert(0, str(abs(n)))
        parts.append(("-" if n < 0 else "+", " * ".join(factors)))
    if not parts:
        return "0"
    text = " ".join(f"{sign} {body}" for sign, body in parts)
    return text.removeprefix("+ ")


def _show_atom(atom: Atom, names: Sequence[str]) -> str:
    if atom.weight > _MOST_SHOWN:
        return _COMPUTED
    if atom.kind == "input":
        return f"dim {atom.args[1]} of {names[atom.args[0]]}"
    if atom.kind in ("div", "floor", "rem"):
        sign = "%" if atom.kind == "rem" else "//"
        return f"(({show(atom.args[0], names)}) {sign} ({show(atom.args[1], names)}))"
    if atom.kind in ("max", "min"):
        return f"{atom.kind}({', '.join(show(f, names) for f in atom.args)})"
    if atom.kind == "select":
        predicate, *forms = atom.args
        left, right, then, other = (show(f, names) for f in forms)
        return f"({then} if {left} {_SIGNS[predicate]} {right}, else {other})"
    return _COMPUTED


_COMPUTED = "a size that is computed"
_MOST_SHOWN = 50  # atoms in a text that somebody reads
_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
