"""Facts about dynamic dims and shape arithmetic: expressions in the sizes of the inputs.

Each dynamic dim of an argument is a symbol. Dims of values, and elements of small tensors, are
expressions in the symbols. A statement (equal extents, a constant number, a bound) counts only if
it is proved for all sizes. A dim that cannot be derived from an op becomes a new symbol.

Ops are assumed to run on valid dims: if an op needs two extents to be equal, they are. The lowering
checks at run time what is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dynamic_dims import UndecidedError
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import InferView, Op, Pointwise, attributes_of, mnemonic, op_class
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.programs.element_rules import MOST_ELEMENTS, MOST_FLOATS, ElementRules, array_of
from mgx_mlir.symbolic.expressions import Expr, Int
from mgx_mlir.symbolic.extent_rules import RULES, Operands
from mgx_mlir.symbolic.extents import Rows, Runs
from mgx_mlir.symbolic.proofs import Prover

Dims = tuple[Int, ...]


class Known:
    """A value's dims, and its elements if they are few and known."""

    __slots__ = ("dims", "elements")

    def __init__(self, dims: Sequence[Int], elements: np.ndarray | None = None) -> None:
        self.dims, self.elements = tuple(dims), elements


class DimProbe:
    """Symbolic dims of a function's values while it is built. `active` once a dim is dynamic."""

    def __init__(self) -> None:
        self.active = False
        self.prover = Prover()
        self.seen: dict[ir.Value, Known] = {}
        self._elements = ElementRules(self.prover.space)
        self._own = 0

    # ---- what is stated ----------------------------------------------------------------------

    def argument(
        self,
        value: ir.Value,
        symbols: Sequence[str | None],
        ranges: Sequence[tuple[int, int | None]] | None = None,
    ) -> None:
        """Set the symbol of each dim of an argument (None: a new one), and its minimum and
        maximum.
        """
        t = TensorType.of(value)
        if not t.is_static:
            self.active = True
        dims: list[Int] = []
        for i, (d, symbol) in enumerate(zip(t.dims, symbols, strict=True)):
            low, high = ranges[i] if ranges else (0, None)
            dims.append(d if d != DYN else self._size(symbol, low, high))
        self.seen[value] = Known(dims)

    def extents(self, value: ir.Value, dims: Sequence[Int]) -> None:
        """Set the dims of an argument to numbers or expressions."""
        self.seen[value] = Known(dims)

    def state_dims(self, v: ir.Value, source: ir.Value, first: ir.Value | None = None) -> None:
        """State that `v` has the dims of `source` for every size, after the leading dims of
        `first`.
        """
        self.known(v)  # facts about other results of an op take precedence over stated dims
        lead = () if first is None else self.known(first).dims[:1]
        self.seen[v] = Known((*lead, *self.known(source).dims))

    def forget(self, size: int) -> None:
        """Drop facts recorded since there were `size` values, some of which are erased now."""
        while len(self.seen) > size:
            self.seen.popitem()

    # ---- what is asked -----------------------------------------------------------------------

    def dims(self, a: ir.Value) -> Dims:
        """Return the dims of a value: numbers, or expressions in the sizes."""
        return self.known(a).dims

    def elements(self, a: ir.Value) -> list[Int] | None:
        """Return the numbers or expressions of a small integer tensor; None if unknown."""
        found = self.known(a).elements
        return None if found is None else list(found.reshape(-1))

    def are_equal(self, a: Int, b: Int) -> bool:
        """Return whether two numbers or expressions are equal for every size."""
        return self.prover.are_equal(a, b)

    def same(self, a: ir.Value, i: int, b: ir.Value, j: int) -> bool:
        """Return whether dim `i` of `a` equals dim `j` of `b` for every size of the symbols."""
        da, db = TensorType.of(a).dims[i], TensorType.of(b).dims[j]
        if DYN not in (da, db):
            return da == db
        return self.are_equal(self.known(a).dims[i], self.known(b).dims[j])

    def static(self, a: ir.Value, i: int) -> int | None:
        """Return the extent of a dim that depends on no size, else None."""
        d = TensorType.of(a).dims[i]
        found = d if d != DYN else self.known(a).dims[i]
        return found if isinstance(found, int) else None

    def constant(self, a: ir.Value) -> np.ndarray | None:
        """Return the elements of a small integer tensor that depend on no symbol, else None."""
        return _numbers(self.known(a), TensorType.of(a))

    # ---- following ops -----------------------------------------------------------------------

    def known(self, value: ir.Value) -> Known:
        """Return the facts about a value, deriving them on the first request."""
        stack = [value]  # iterative: a long chain would exceed the recursion limit
        while stack:
            v = stack[-1]
            owner = v.owner
            if v in self.seen:
                stack.pop()
            elif isinstance(owner, ir.Block):
                self.argument(v, [None] * TensorType.of(v).rank)
            else:
                stated = [TensorType.of(r) for r in owner.results]
                follows = any(_says_little(t) for t in stated)
                needed = [*owner.operands, *_yielded(owner)] if follows else []
                missing = [x for x in needed if x not in self.seen]
                stack += missing
                if not missing:
                    self._observe(owner, stated, follows)
        return self.seen[value]

    def _size(self, symbol: str | None, low: int = 0, high: int | None = None) -> Int:
        self._own += symbol is None
        return self.prover.space.size(self._own if symbol is None else symbol, low, high)

    def _observe(self, op: ir.Operation, stated: Sequence[TensorType], follows: bool) -> None:
        """Derive facts about an op's results from those about its operands."""
        self.prover.learning = not _may_be_left_out(op)
        rows: Rows = [t.dims for t in stated]
        arrays: list[np.ndarray | None] = [None] * len(stated)
        cls = op_class(op)
        if is_literal(op):
            arrays = [self._elements.literal(op, stated[0])]
        elif follows and _yielded(op):
            rows, arrays = self._chosen(op)
            rows = [self._merged(t.dims, row) for t, row in zip(stated, rows, strict=True)]
        elif follows and cls is not None and not len(op.regions):
            operands = [self.seen[v] for v in op.operands]
            attributes = attributes_of(op)
            told = self._rows(op, cls, attributes, operands, rows)
            rows = [self._merged(t.dims, row) for t, row in zip(stated, told, strict=True)]
            if cls.mnemonic == "dimensions_of":
                found = operands[0].dims
                arrays = [array_of(found[attributes["start"] : attributes["end"] or len(found)])]
            else:
                arrays = self._elements.results(
                    op, attributes, [k.elements for k in operands], rows
                )
        else:
            rows = [self._merged(t.dims, t.dims) for t in stated]
        self.prover.learning = True
        for r, dims, a in zip(op.results, rows, arrays, strict=True):
            self.seen[r] = Known(dims, a)

    def _chosen(self, op: ir.Operation) -> tuple[Any, list[np.ndarray | None]]:
        """Return the facts about an `if`'s results: those of one branch if the condition is known,
        else of both.
        """
        space, condition = self.prover.space, self.seen[op.operands[0]].elements
        given = None if condition is None else space.truth(condition.reshape(-1)[0])

        def either(a: Int, b: Int) -> Int | None:
            if self.are_equal(a, b):
                return a
            return None if given is None else space.select(given, a, b)

        yielded = [self.seen[v] for v in _yielded(op)]
        pairs = list(zip(yielded[: len(op.results)], yielded[len(op.results) :], strict=True))
        rows = [[either(a, b) for a, b in zip(x.dims, y.dims, strict=True)] for x, y in pairs]
        arrays: list[np.ndarray | None] = []
        for (x, y), r in zip(pairs, op.results, strict=True):
            a, b = x.elements, y.elements
            known, is_float = None, TensorType.of(r).dtype.is_float
            if a is not None and b is not None and a.shape == b.shape and not is_float:
                found = [either(v, w) for v, w in zip(a.flat, b.flat, strict=True)]
                known = None if None in found else array_of(found, a.shape)
            arrays.append(known)
        return rows, arrays

    def _merged(self, stated: Sequence[int], found: Sequence[Int | None]) -> Dims:
        """Combine dims of the type with derived ones; a dim that neither has becomes a new
        symbol.
        """
        return tuple(
            s if s != DYN else self._size(None) if d is None or d == DYN else d
            for s, d in zip(stated, found, strict=True)
        )

    def _rows(
        self,
        op: ir.Operation,
        cls: type[Op],
        attributes: dict[str, Any],
        operands: Sequence[Known],
        stated: Rows,
    ) -> Sequence[Sequence[Int | None]]:
        """Return the dims of each result: derived from the op, else the stated ones."""
        if all(DYN not in r for r in stated):
            return stated
        if issubclass(cls, Pointwise) and all(k.dims == operands[0].dims for k in operands):
            return [operands[0].dims] * len(stated)
        groups: list[list[Known]] = []
        types: list[list[TensorType]] = []
        at = 0
        for values in cls.split_operands(op):
            groups.append(list(operands[at : at + len(values)]))
            types.append([TensorType.of(v) for v in values])
            at += len(values)
        rule = RULES.get(cls.mnemonic)
        found = rule(_operands(self.prover, cls, groups, types, attributes)) if rule else None
        if found is not None:
            rows = [found] * len(stated)
        else:
            rows = self._inferred(cls, attributes, groups, types)
        if rows is None or [len(r) for r in rows] != [len(r) for r in stated]:
            return stated
        return rows

    def _inferred(
        self,
        cls: type[Op],
        attributes: dict[str, Any],
        groups: Sequence[Sequence[Known]],
        types: Sequence[Sequence[TensorType]],
    ) -> Rows | None:
        """Return the result dims of the op's own inference on dims that are expressions."""
        runs = Runs(self.prover)

        def infer(dims_of: Callable[[Dims], Sequence[Any]]) -> Rows:
            o = InferView(regions=(), results=None, operands={}, **attributes)
            constants: dict[str, np.ndarray | None] = {}
            for group, held, stated in zip(cls.OPERANDS, groups, types, strict=True):
                given = [t.with_dims(dims_of(k.dims)) for k, t in zip(held, stated, strict=True)]
                constants[group.name] = _numbers(held[0], stated[0]) if held else None
                single = given[0] if given else None
                setattr(o, group.name, given if group.arity == "variadic" else single)
            o.const = constants.get
            found = cls.infer(o)
            if found is None:
                raise UndecidedError
            return [t.dims for t in ([found] if isinstance(found, TensorType) else found)]

        try:
            return runs.rows(lambda: infer(runs.extents))
        except (UndecidedError, TypeError, ValueError, ArithmeticError):
            pass  # the stated dims stay if inference does not accept expressions
        try:
            return infer(lambda dims: [d if isinstance(d, int) else DYN for d in dims])
        except (UndecidedError, MgxError):
            return None


def _says_little(t: TensorType) -> bool:
    """Return whether operands may add facts (dims or elements) to this result type."""
    return not t.is_static or t.elements <= (MOST_FLOATS if t.dtype.is_float else MOST_ELEMENTS)


def _may_be_left_out(op: ir.Operation) -> bool:
    """Return whether an op may not run: it is in a branch or in a loop's body."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        if mnemonic(parent.operation) in ("if", "loop"):
            return True
        parent = parent.operation.parent
    return False


def _yielded(op: ir.Operation) -> list[ir.Value]:
    """Return the values that an `if`'s branches yield, in order; none for other ops."""
    if mnemonic(op) != "if":
        return []
    blocks = [r.blocks[0] for r in op.regions if len(r.blocks)]
    ends = [list(b.operations)[-1].operation for b in blocks if len(b.operations)]
    found = [list(e.operands) for e in ends if mnemonic(e) == "yield"]
    whole = len(found) == 2 and all(len(f) == len(op.results) for f in found)
    return [*found[0], *found[1]] if whole else []


def _numbers(k: Known, t: TensorType) -> np.ndarray | None:
    """Return the elements if they are all numbers, else None."""
    if k.elements is None or any(isinstance(v, Expr) for v in k.elements.flat):
        return None
    return k.elements.astype(t.dtype.np)


def _operands(
    prover: Prover,
    cls: type[Op],
    groups: Sequence[Sequence[Known]],
    types: Sequence[Sequence[TensorType]],
    attributes: dict[str, Any],
) -> Operands:
    dims: dict[str, Dims] = {}
    elements: dict[str, np.ndarray | None] = {}
    for group, held, stated in zip(cls.OPERANDS, groups, types, strict=True):
        for i, (k, t) in enumerate(zip(held, stated, strict=True)):
            name = f"{group.name}{i}" if group.arity == "variadic" else group.name
            dims[name], elements[name] = k.dims, None if t.dtype.is_float else k.elements
    return Operands(prover.space, dims, elements, attributes)
