"""Symbolic extents of a lowered function: expressions over the inputs' dims and computed values.

Two extents with one expression are always equal. Expressions are derived from values of the module
that is being built, and can be rebuilt as values at other insertion points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from mgx_mlir.symbolic.expressions import Atom, Expr, Int, low_of, sides, terms_of
from mgx_mlir.symbolic.space import Space

_MOST_CASES = 2  # most atoms for a case split in a proof of a sign: those of a minimum of three
_MOST_TERMS = 8  # terms of an expression whose sign is proved by cases
_MOST_SHOWN = 50  # most atoms in a printed expression
_COMPUTED = "a size that is computed"
_SIGNS = {"ge": arith.CmpIPredicate.sge, "eq": arith.CmpIPredicate.eq}


@dataclass(frozen=True)
class InputDim:
    """A dim of an input, by its number and axis."""

    number: int
    axis: int


@dataclass(frozen=True)
class TensorDim:
    """A dim of a tensor that is computed at run time."""

    tensor: ir.Value
    axis: int


@dataclass(frozen=True)
class Integer:
    """An integer that is computed at run time."""

    value: ir.Value


class Symbols:
    """The symbols of one function: dims of inputs, dims of tensors, and integers of its module."""

    def __init__(self) -> None:
        self.space = Space(_is_never_negative)

    def input(self, number: int, axis: int) -> Int:
        """Return a dim of an input."""
        return self.space.size(InputDim(number, axis))

    def size(self, value: ir.Value, axis: int) -> Int:
        """Return a dim of a computed tensor."""
        return self.space.size(TensorDim(value, axis))

    def integer(self, value: ir.Value) -> Int:
        """Return a computed integer of any sign."""
        return self.space.function(Integer(value), ())

    def divided(self, a: Int, b: Int) -> Int:
        """Return the quotient rounded towards 0, as arith.divsi has it; no divisor is 0."""
        space = self.space
        if isinstance(a, int) and isinstance(b, int) and b:
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        exact = space.exact(a, b)
        if exact is not None:
            return exact
        if space.nonnegative(a) and space.nonnegative(b):
            return space.floordiv(a, b)
        return space.function("div", (a, b))

    def larger(self, a: Int, b: Int) -> Int:
        """Return the larger of two; the result is known to be non-negative if an operand is."""
        return self.space.maximum(*((b, a) if self.space.nonnegative(a) else (a, b)))

    def truth(self, predicate: int, a: Int, b: Int) -> Int:
        """Return 1 where a signed comparison (a predicate of arith.cmpi, 0 to 5) holds, else 0."""
        space = self.space
        if predicate < 2:
            equal = space.equal(a, b)
            return 1 - equal if predicate else equal
        low, high = (a, b) if predicate < 4 else (b, a)
        return space.not_less(high, low + 1 if predicate in (2, 4) else low)

    def arithmetic(self, name: str, a: Int, b: Int) -> Int | None:
        """Return the result of an op of arith on two integers; None for other ops."""
        match name.removeprefix("arith."):
            case "addi":
                return a + b
            case "subi":
                return a - b
            case "muli":
                return a * b
            case "divsi" | "divui":
                return self.divided(a, b)
            case "floordivsi":
                return self.space.floordiv(a, b)
            case "remsi" | "remui":
                return a - b * self.divided(a, b)
            case "maxsi":
                return self.larger(a, b)
            case "minsi":
                return a + b - self.larger(a, b)
            case _:
                return None


def product(extents: Iterable[Int]) -> Int:
    """Return the product of extents, 1 of none."""
    total: Int = 1
    for d in extents:
        total = total * d
    return total


def where(e: Expr, test: Atom) -> tuple[Int, Int]:
    """Return an expression where an atom that is a truth is 1, and where it is 0."""
    then, condition = e.replaced(test, 1), test.arguments[0]
    if test.kind == "eq" and isinstance(condition, Expr):
        then = e.space.solved(then, condition)
    return then, e.replaced(test, 0)


def parts(e: Int) -> Iterator[Atom]:
    """Return the atoms that an expression depends on, at any depth, each once."""
    seen: dict[Atom, None] = {}
    waiting = [e]
    while waiting:
        found = waiting.pop()
        for atom in found.atoms() if isinstance(found, Expr) else ():
            if atom not in seen:
                seen[atom] = None
                waiting += [x for x in atom.arguments if isinstance(x, Expr)]
    return iter(seen)


def inputs_of(e: Int) -> list[tuple[int, int]]:
    """Return the dims of inputs, (argument, axis), that an expression depends on."""
    names = (a.arguments[0] for a in parts(e))
    return [(n.number, n.axis) for n in names if isinstance(n, InputDim)]


def values_of(e: Int) -> list[ir.Value]:
    """Return the computed values that an expression depends on."""
    names = (a.arguments[0] for a in parts(e))
    return [n.tensor if isinstance(n, TensorDim) else n.value
            for n in names if isinstance(n, TensorDim | Integer)]  # fmt: skip


class Values:
    """Makes expressions into index values at the current insertion point; each atom once there.

    arguments: the inputs of the function.
    """

    def __init__(self, b: IndexBuilder, arguments: Sequence[ir.Value]) -> None:
        self._b, self._arguments = b, arguments
        self._made: dict[Atom, ir.Value] = {}

    def of(self, e: Int) -> ir.Value:
        """Return an expression as a value."""
        b = self._b
        total: int | ir.Value = terms_of(e).get((), 0)
        for term, n in terms_of(e).items():
            if not term:
                continue
            part: int | ir.Value = n
            for atom in term:
                if atom not in self._made:
                    self._made[atom] = self._atom(atom)
                part = b.mul(part, self._made[atom])
            total = b.add(total, part)
        return b.index(total)

    def _atom(self, atom: Atom) -> ir.Value:
        b, kind, name = self._b, atom.kind, atom.arguments[0]
        if isinstance(name, InputDim | TensorDim):
            at_input = isinstance(name, InputDim)
            source = self._arguments[name.number] if at_input else name.tensor
            return tensor.DimOp(source, b.index(name.axis)).result
        if isinstance(name, Integer):
            index = ir.IndexType.get()
            if name.value.type == index:
                return name.value
            return arith.IndexCastOp(index, name.value).result
        given = [self.of(x) for x in atom.arguments if isinstance(x, int | Expr)]
        if kind == "floordiv":
            p, q = (x for x in atom.arguments if isinstance(x, int | Expr))
            is_plain = all(_is_never_negative(x) for x in (p, q))
            return (arith.DivSIOp if is_plain else arith.FloorDivSIOp)(*given).result
        if kind == "pos":
            return arith.MaxSIOp(given[0], b.index(0)).result
        if kind in _SIGNS:
            held = arith.CmpIOp(_SIGNS[kind], given[0], b.index(0)).result
            return arith.SelectOp(held, b.index(1), b.index(0)).result
        return arith.DivSIOp(*given).result if name == "div" else given[0]


def _is_never_negative(e: Int, cases: int = _MOST_CASES) -> bool:
    """Prove that an expression is never negative: by bounds, then with max(p, 0) as p and as 0.

    The proof is shorter than those of `name_dynamic_dims`, as each extent of a function needs one.
    """
    low = low_of(e)
    if low is not None and low >= 0:
        return True
    if not cases or isinstance(e, int) or len(e.terms) > _MOST_TERMS:
        return False
    atom = next((a for a in e.atoms() if a.kind == "pos" or a.is_truth), None)
    if atom is None:
        return False
    p, both = atom.arguments[0], where(e, atom)
    if atom.kind == "pos" and isinstance(p, Expr):
        both = e.replaced(atom, p), both[1]
    return all(_is_never_negative(x, cases - 1) for x in both)


def show(e: Int, names: Sequence[str]) -> str:
    """Return an expression as text, `names` being those of the inputs."""
    return _Text(names).of(e)


class _Text:
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._weights: dict[Atom, int] = {}

    def of(self, e: Int) -> str:
        if isinstance(e, int):
            return str(e)
        test = next((a for a in e.atoms() if a.is_truth), None)
        if test is not None and self._weight(e) <= _MOST_SHOWN:
            then, other = map(self.of, where(e, test))
            return f"({then} if {self._condition(test)}, else {other})"
        parts: list[str] = []
        for term, n in e.terms.items():
            factors = [self._atom(a) for a in reversed(term)]
            if not factors or abs(n) != 1:
                factors.insert(0, str(abs(n)))
            parts.append(f"{'-' if n < 0 else '+'} {' * '.join(factors)}")
        return " ".join(sorted(parts, key=lambda p: p[0])).removeprefix("+ ")

    def _weight(self, e: Int) -> int:
        """Return the number of atoms in the text of an expression, with repetitions."""
        total = 0
        for atom in e.atoms() if isinstance(e, Expr) else ():
            if atom not in self._weights:
                inner = (x for x in atom.arguments if isinstance(x, Expr))
                self._weights[atom] = 1 + sum(map(self._weight, inner))
            total += self._weights[atom]
        return total

    def _condition(self, test: Atom) -> str:
        p = test.arguments[0]
        assert isinstance(p, Expr)
        left, right = sides(p)
        return f"{self.of(left)} {'=' if test.kind == 'eq' else '>='} {self.of(right)}"

    def _atom(self, atom: Atom) -> str:
        kind, name = atom.kind, atom.arguments[0]
        if isinstance(name, InputDim):
            return f"dim {name.axis} of {self._names[name.number]}"
        given = [x for x in atom.arguments if isinstance(x, int | Expr)]
        if not given or sum(map(self._weight, given)) >= _MOST_SHOWN:
            return _COMPUTED
        texts = [self.of(x) for x in given]
        if kind == "pos":
            return f"max({texts[0]}, 0)"
        if kind == "floordiv" or name == "div":
            return f"(({texts[0]}) // ({texts[1]}))"
        return _COMPUTED
