"""Checks of dynamic sizes: assumptions of the lowering are proved, or asserted before use.

Assertions are on the host, outside of dispatches. Relations of input dims are asserted once, before
anything runs. In branches and loop bodies assertions come as soon as their operands are known, so
that nothing runs with wrong sizes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager

from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.relations import Predicate, Relation, Size, heard
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.lowering.assertions import InsertionPoints
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Compute, Expr, Extent, Leaf, Opaque, Splat, View
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.symbols import (
    Symbols,
    Values,
    inputs_of,
    product,
    show,
    values_of,
    where,
)
from mgx_mlir.programs.signature import Signature
from mgx_mlir.symbolic.expressions import Expr as Symbol
from mgx_mlir.symbolic.expressions import Int, sides

# (predicate, left, right); one of several has to hold
Condition = tuple[Predicate, Int, Int]

PREFIX = "mgx: "  # start of the messages that the runtime reads
_MOST = 2000  # characters of an expectation
_PREDICATES = {"eq": 0, "ne": 1, "le": 3}  # predicates of arith.cmpi
_WORDS = {"eq": "=", "ne": "!=", "le": "<="}
_REGIONS = ("flow.dispatch.region", "flow.dispatch.workgroups")
_UNSEEN = ("multibroadcast", "broadcast", "broadcast_with_dims", "broadcast_for_dot", "reshape",
           "reshape_lazy")  # fmt: skip


class Sizes:
    """The extents of a function that is being lowered, and their checks.

    main: the original function; entry: its lowered block; head: the op before which the first
    checks are inserted.
    """

    def __init__(
        self, e: LoweringContext, main: ir.OpView, entry: ir.Block, head: ir.Operation
    ) -> None:
        self.e, self.entry, self.head = e, entry, head
        self.symbols = Symbols()
        self.asked: set[ir.Operation] = set()  # ops whose relations are checked
        self._memo: dict[tuple[ir.Value, int], Int] = {}
        self._proved: list[set[frozenset[Int]]] = [set()]
        self._same: dict[str, Int] = {}
        self._points = InsertionPoints()
        self._read: Sequence[int] = ()  # inputs whose values an assertion's message shows
        ports = Signature.of(main).inputs
        for i, (argument, port) in enumerate(zip(entry.arguments, ports, strict=True)):
            for axis, d in enumerate(ir.RankedTensorType(argument.type).shape):
                symbol = port.ranges[axis].symbol
                form = d if d != DYN else self.symbols.input(i, axis)
                if d == DYN and symbol is not None:
                    form = self._same.setdefault(symbol, form)
                self._memo[argument, axis] = form

    # ---- expressions -------------------------------------------------------------------------

    def of(self, x: Extent | Symbol) -> Int:
        """Return the expression of an extent."""
        return x if isinstance(x, int | Symbol) else self._of_integer(x)

    def of_tensor(self, value: ir.Value) -> list[Int]:
        """Return the expressions of a lowered tensor's extents."""
        return [self.of_dim(value, i) for i in range(ir.RankedTensorType(value.type).rank)]

    def of_expr(self, x: Expr) -> list[Int]:
        """Return the symbolic extents of a lazy tensor."""
        if isinstance(x, Leaf):
            return self.of_tensor(x.value)
        if x.type.is_static:
            return list(x.type.dims)
        if isinstance(x, Splat | View | Opaque):
            return [self.of(d) for d in x.extents]
        assert isinstance(x, Compute)
        known = [self.of_expr(a) for a in x.args]
        return [
            d if d != DYN else next((k[i] for k in known if not isinstance(k[i], int)), known[0][i])
            for i, d in enumerate(x.type.dims)
        ]

    def of_dim(self, value: ir.Value, axis: int) -> Int:
        """Return the expression of a tensor's extent."""
        d = ir.RankedTensorType(value.type).shape[axis]
        if d != DYN:
            return d
        key = (value, axis)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._of_result(value, axis)
        return found

    def _of_result(self, value: ir.Value, axis: int) -> Int:
        op = value.owner
        if isinstance(op, ir.Block):
            return self.symbols.size(value, axis)
        op = op.operation
        name = op.name
        at = list(ir.RankedTensorType(value.type).shape)[:axis].count(DYN)
        if name in ("tensor.empty", "flow.tensor.alloca"):
            return self.of(op.operands[at])
        if name == "hal.tensor.import":
            return self.of(op.operands[1 + at])
        if name == "tensor.cast":
            return self.of_dim(op.operands[0], axis)
        if name.startswith(("linalg.", "iree_linalg_ext.")):
            first = len(op.operands) - len(op.results)
            return self.of_dim(op.operands[first + _number_of(value)], axis)
        if name == "tensor.insert_slice":
            return self.of_dim(op.operands[1], axis)
        if name == "flow.tensor.tie_shape":
            return self.of(op.operands[1 + at])
        if name == "flow.tensor.reshape":
            return self.of(op.operands[1 + _segments(op)[1] + at])
        if name == "tensor.extract_slice":
            sizes = _segments(op)
            return self.of(op.operands[1 + sizes[1] + at])
        if name == "tensor.expand_shape":
            return self.of(op.operands[1 + at])
        if name == "tensor.collapse_shape":
            groups = ir.ArrayAttr(op.attributes["reassociation"])
            group = [ir.IntegerAttr(i).value for i in ir.ArrayAttr(groups[axis])]
            return product(self.of_dim(op.operands[0], i) for i in group)
        if name == "tensor.pad":
            return self.of_dim(op.operands[0], axis) + self._pad(op, axis)
        extent = iree_ops.dispatch_extent(op, value, axis)
        if extent is not None:
            return self.of(extent)
        return self.symbols.size(value, axis)

    def _pad(self, op: ir.Operation, axis: int) -> Int:
        _, low, high = _segments(op)
        total = 0
        at = 1
        for key, count in (("static_low", low), ("static_high", high)):
            numbers = list(ir.DenseI64ArrayAttr(op.attributes[key]))
            n = numbers[axis]
            total += n if n != DYN else self.of(op.operands[at + numbers[:axis].count(DYN)])
            at += count
        return total

    def _of_integer(self, value: ir.Value) -> Int:
        key = (value, -1)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._of_arithmetic(value)
        return found

    def _of_arithmetic(self, value: ir.Value) -> Int:
        op = value.owner
        if isinstance(op, ir.Block):
            return self.symbols.integer(value)
        op = op.operation
        name = op.name
        if name == "tensor.dim":
            axis = self.of(op.operands[1])
            if isinstance(axis, int):
                return self.of_dim(op.operands[0], axis)
        if name == "arith.index_cast":
            return self.of(op.operands[0])
        if not isinstance(value.type, ir.IndexType) and str(value.type) != "i64":
            return self.symbols.integer(value)
        if name == "arith.constant":
            return ir.IntegerAttr(op.attributes["value"]).value
        if name in ("arith.select", "arith.extui"):
            found = self._chosen(op)
            return self.symbols.integer(value) if found is None else found
        if len(op.operands) != 2:
            return self.symbols.integer(value)
        found = self.symbols.arithmetic(name, *(self.of(v) for v in op.operands))
        return self.symbols.integer(value) if found is None else found

    def _chosen(self, op: ir.Operation) -> Int | None:
        """Return a choice, or a comparison as a number, as an expression."""
        test = op.operands[0].owner
        if not isinstance(test, ir.Block) and test.name == "arith.constant":
            true = bool(ir.IntegerAttr(test.operation.attributes["value"]).value)
            if op.name == "arith.extui":
                return int(true)
            return self.of(op.operands[1 if true else 2])
        if isinstance(test, ir.Block) or test.name != "arith.cmpi":
            return None
        predicate = ir.IntegerAttr(test.attributes["predicate"]).value
        if predicate > 5:  # unsigned ones
            return None
        left, right = (self.of(v) for v in test.operands)
        if op.name == "arith.extui":
            return self.symbols.truth(predicate, left, right)
        then, other = (self.of(v) for v in list(op.operands)[1:])
        return self.symbols.space.select(self.symbols.truth(predicate, left, right), then, other)

    # ---- relations ---------------------------------------------------------------------------

    def relations_of(self, op: ir.Operation, cls: type[Op]) -> None:
        """Check the assumptions of an op's inference about its operands' extents."""
        if not has_relations(op, cls):
            return
        self.asked.add(op)
        groups = cls.split_operands(op)
        o = cls.view(groups, op.attributes)
        for group, values in zip(cls.OPERANDS, groups, strict=True):
            types = [self._sized(v) for v in values]
            one = types if group.arity == "variadic" else next(iter(types), None)
            setattr(o, group.name, one)
        with heard() as found:
            try:
                cls.infer(o)
            except MgxError as error:
                self._assert((), error.message)
                return
        for relation in found:
            if not any(x == DYN and not isinstance(x, Size) for c in relation for x in c.sides):
                self.check(_conditions(relation))

    def _sized(self, v: ir.Value) -> TensorType:
        """Return the type of an operand, with Sizes as dynamic extents."""
        t = TensorType.of(v)
        if t.is_static or self.e.elements(v) is not None:
            return t
        extents = self.of_expr(self.e.expr(v))
        return t.with_dims(
            d if d != DYN else x if isinstance(x, int) else Size(DYN, x)
            for d, x in zip(t.dims, extents, strict=True)
        )

    def equal(self, a: Extent | Symbol, b: Extent | Symbol, *, one: bool = False) -> None:
        """Check that two extents are equal; `one`: or that the first one is 1."""
        first, second = self.of(a), self.of(b)
        if one:
            self.check((("eq", first, second), ("eq", first, 1)))
        else:
            self.check((("eq", first, second),))

    def at_most(self, a: Extent | Symbol, b: Extent | Symbol) -> None:
        """Check that `a` is `b` or less."""
        self.check((("le", self.of(a), self.of(b)),))

    def joined(self, a: Extent, b: Extent) -> bool | None:
        """Check that two extents are equal, or one of them 1. Return True if the broadcast
        extent is always `a`, False if always `b`, None if it is whichever is not 1.
        """
        first, second, one = self.of(a), self.of(b), 1
        self.check((("eq", first, second), ("eq", first, one), ("eq", second, one)))
        if self.holds((("eq", first, second), ("eq", first, one))):
            return False
        return True if self.holds((("eq", first, second), ("eq", second, one))) else None

    def holds(self, alternatives: Sequence[Condition]) -> bool:
        """Return whether it is proved that one of the conditions always holds here."""
        left = self._undecided(alternatives)
        return left is None or any(k <= set(left) for proved in self._proved for k in proved)

    def check(self, alternatives: Sequence[Condition], message: str = "") -> None:
        """Check that one of the conditions holds; without conditions, fail if this point is
        reached.

        `message` replaces the text of the expectation.
        """
        if alternatives and self.holds(alternatives):
            return
        left = self._undecided(alternatives) or {}
        self._proved[-1].add(frozenset(left))
        conditions = list(left.values())
        self._assert(conditions, f"expected {message or _expected(conditions)}")

    def _truth(self, c: Condition) -> Int:
        """Return 1 where a condition always holds, 0 where it never does, else an expression."""
        return self.symbols.truth(_PREDICATES[c[0]], c[1], c[2])

    def _undecided(self, alternatives: Iterable[Condition]) -> dict[Int, Condition] | None:
        """Return the undecided alternatives, by their truths.

        None where one of them always holds.
        """
        left: dict[Int, Condition] = {}
        rest = list(alternatives)
        while rest:
            c = rest.pop(0)
            truth = self._truth(c)
            if truth == 1:
                return None
            if truth != 0:
                cases = _cases(c)
                rest = [*cases, *rest]
                if not cases:
                    left.setdefault(truth, c)
        if any(1 - truth in left for truth in left):
            return None
        return {t: c for t, c in left.items() if not self._is_covered(c, left)}

    def _is_covered(self, c: Condition, others: Mapping[Int, Condition]) -> bool:
        """Return whether this condition implies one of the others.

        (l = r ? x : l) = r needs l = r.
        """
        p = c[1] - c[2]
        if c[0] != "eq" or isinstance(p, int):
            return False
        for atom in p.atoms():
            test = atom.arguments[0]
            if atom.kind == "eq" and isinstance(test, Symbol):
                factor = self.symbols.space.exact(p.replaced(atom, 0), test)
                if (
                    isinstance(factor, int)
                    and factor
                    and self._truth(("eq", *sides(test))) in others
                ):
                    return True
        return False

    def truth(self, held: ir.Value, expected: str) -> None:
        """Check that an i1 value is true."""
        test = held.owner
        if not isinstance(test, ir.Block) and test.operation.name == "arith.cmpi":
            predicate = ir.IntegerAttr(test.operation.attributes["predicate"]).value
            left, right = (self.of(v) for v in test.operation.operands)
            if predicate in _AS_CONDITION:
                self.check((_AS_CONDITION[predicate](left, right),), expected)
                return
        if (
            not isinstance(test, ir.Block)
            and test.operation.name == "arith.constant"
            and ir.IntegerAttr(test.operation.attributes["value"]).value
        ):
            return
        location = ir.Location.current
        with self._place([held]):
            assert_(held, f"expected {expected}", [], location, self._read)

    @contextmanager
    def showing(self, inputs: Sequence[int]) -> Generator[None]:
        """Show the values of these inputs in the messages of what is checked meanwhile."""
        self._read = inputs
        try:
            yield
        finally:
            self._read = ()

    @contextmanager
    def inside(self) -> Generator[None]:
        """Enter a branch or a loop: facts checked there are valid only inside."""
        self._proved.append(set())
        try:
            yield
        finally:
            self._proved.pop()

    # ---- assertions --------------------------------------------------------------------------

    def _assert(self, conditions: Sequence[Condition], text: str) -> None:
        compared = [x for _, *pair in conditions for x in pair]
        read = [v for x in compared for v in values_of(x)]
        location = ir.Location.current
        with self._place(read, early=bool(compared) and not read):
            value = Values(self.e, self.entry.arguments).of
            each = [
                arith.CmpIOp(_PREDICATES[predicate], value(a), value(b)).result
                for predicate, a, b in conditions
            ]
            if not each:
                each = [arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result]
            true = functools.reduce(lambda a, b: arith.OrIOp(a, b).result, each)
            dims = dict.fromkeys(at for x in compared for at in inputs_of(x))
            assert_(true, text, dims, location, self._read)

    def _place(self, values: Sequence[ir.Value], *, early: bool = False) -> ir.InsertionPoint:
        """Return the insertion point of an assertion of `values`; early: they are input dims
        only.
        """
        point = _on_host(ir.InsertionPoint.current)
        if point.block != self.entry:
            return self._points.first(point.block, values)
        return ir.InsertionPoint(self.head) if early else point


_AS_CONDITION: dict[int, Callable[[Int, Int], Condition]] = {
    0: lambda a, b: ("eq", a, b),
    1: lambda a, b: ("ne", a, b),
    2: lambda a, b: ("le", a + 1, b),
    3: lambda a, b: ("le", a, b),
    4: lambda a, b: ("le", b + 1, a),
    5: lambda a, b: ("le", b, a),
}


def assert_(
    condition: ir.Value,
    text: str,
    dims: Iterable[tuple[int, int]],
    location: ir.Location,
    values: Iterable[int] = (),
) -> None:
    """End the run unless `condition` holds. The message shows `dims` of inputs, and `values`, those
    of whole inputs.
    """
    name = re.sub(r"[^\x20-\x7e]", "?", str(location))
    if len(text) > _MOST:  # IREE's limit is 65,535 bytes
        text = f"{text[:_MOST]}.."
    got = ",".join([*(f"{i}.{axis}" for i, axis in dims), *map(str, values)])
    message = f"{PREFIX}{text}|{got}|{name[:300]}|"
    iree_ops.build("cf.assert", [condition], attributes={"msg": ir.StringAttr.get(message)})


def has_relations(op: ir.Operation, cls: type[Op]) -> bool:
    """Return whether an op's inference may assume relations of dynamic extents."""
    if cls.mnemonic in _UNSEEN or len(op.regions):
        return False
    return any(DYN in TensorType.of(v).dims for v in op.operands)


def _number_of(value: ir.Value) -> int:
    return ir.OpResult(value).result_number


def _segments(op: ir.Operation) -> list[int]:
    return iree_ops.segments_of(op)


def _on_host(point: ir.InsertionPoint) -> ir.InsertionPoint:
    """Return the insertion point, moved before a dispatch region that contains it."""
    block, found = point.block, point
    while True:
        owner = block.owner.operation
        if owner.name == "func.func" or owner.name == "builtin.module":
            return found
        if owner.name in _REGIONS or owner.name.startswith("linalg."):
            found = ir.InsertionPoint(owner)
        block = owner.block


def _conditions(relation: Relation) -> list[Condition]:
    def expression(x: int) -> Int:
        return x.form if isinstance(x, Size) else x

    return [(c.predicate, expression(c.left), expression(c.right)) for c in relation]


def _expected(left: Sequence[Condition]) -> str:
    """Return the conditions as text; numbers come last, and on the right."""
    ordered = [(p, b, a) if isinstance(a, int) and p != "le" else (p, a, b) for p, a, b in left]
    ordered.sort(key=lambda c: isinstance(c[2], int))
    return " or ".join(f"{_show(a)} {_WORDS[p]} {_show(b)}" for p, a, b in ordered)


class _Names:
    """Return the placeholder that the runtime replaces by an input's name."""

    def __getitem__(self, i: int) -> str:
        return f"${i}$"


def _show(e: Int) -> str:
    return show(e, _Names())  # type: ignore[arg-type]


def _cases(c: Condition) -> list[Condition]:
    """x = (l = r ? x : y) -> l = r or x = y; and so for its other case. Empty for others."""
    p = c[1] - c[2]
    if c[0] != "eq" or isinstance(p, int):
        return []
    for atom in p.atoms():
        test = atom.arguments[0]
        if not atom.is_truth or not isinstance(test, Symbol):
            continue
        then, other = where(p, atom)
        if then != 0 and other != 0:
            continue
        left, right = sides(test)
        held: Condition = ("eq", left, right) if atom.kind == "eq" else ("le", right, left)
        if then != 0:
            held = ("ne", left, right) if atom.kind == "eq" else ("le", left + 1, right)
        rest = then if other == 0 else other
        if isinstance(rest, Symbol) and rest.terms[rest.leading] > 0:
            rest = -rest  # the older symbol on the left
        return [held, ("eq", rest, 0) if isinstance(rest, int) else ("eq", *sides(rest))]
    return []
