"""Checks of run-time sizes: what the lowering relies on is proved, or asserted ahead of its use.

An assertion stands on the host, outside of dispatches. What only the inputs' dims decide is
asserted before anything runs, each relation once. In a branch or a loop's body assertions stand
as early as what they compare is known, so that nothing runs with sizes that do not fit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager

from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.op import Op
from mgx_mlir.core.relations import Predicate, Relation, Size, heard
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.lowering.assertions import Places
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Compute, Expr, Extent, Leaf, Opaque, Splat, View
from mgx_mlir.passes.lowering.forms import (
    Atom,
    Atoms,
    Form,
    as_form,
    bounded,
    divided,
    product,
    selected,
    selection,
    show,
)
from mgx_mlir.passes.lowering.iree import dispatches
from mgx_mlir.programs.signature import Signature

# (predicate, left, right); of several one has to hold.
Condition = tuple[Predicate, Form, Form]

PREFIX = "mgx: "  # of the messages that the runtime reads
_MOST = 2000  # letters of what was expected
_PREDICATES = {"eq": 0, "ne": 1, "le": 3}  # of arith.cmpi
_WORDS = {"eq": "=", "ne": "!=", "le": "<="}
_REGIONS = ("flow.dispatch.region", "flow.dispatch.workgroups")
_UNSEEN = ("multibroadcast", "broadcast", "broadcast_with_dims", "broadcast_for_dot", "reshape",
           "reshape_lazy")  # fmt: skip


class Sizes:
    """The extents of a function that is being lowered, and the checks of them.

    main: the function as it was; entry: its lowered block; head: ahead of this op stands what is
    checked before anything runs.
    """

    def __init__(
        self, e: LoweringContext, main: ir.OpView, entry: ir.Block, head: ir.Operation
    ) -> None:
        self.e, self.entry, self.head = e, entry, head
        self.atoms = Atoms()
        self.asked: set[ir.Operation] = set()  # ops whose relations are checked
        self._memo: dict[tuple[ir.Value, int], Form] = {}
        self._proved: list[set[frozenset[Condition]]] = [set()]
        self._same: dict[str, Form] = {}
        self._places = Places()
        self._read: Sequence[int] = ()  # inputs whose values an assertion's message shows
        ports = Signature.of(main).inputs
        for i, (argument, port) in enumerate(zip(entry.arguments, ports, strict=True)):
            for axis, d in enumerate(ir.RankedTensorType(argument.type).shape):
                symbol = port.ranges[axis].symbol
                form = as_form(d) if d != DYN else self.atoms.get("input", i, axis)
                if d == DYN and symbol is not None:
                    form = self._same.setdefault(symbol, form)
                self._memo[argument, axis] = form

    # ---- forms -------------------------------------------------------------------------------

    def of(self, x: Extent | Form) -> Form:
        """Return the form of an extent."""
        if isinstance(x, Form):
            return x
        return as_form(x) if isinstance(x, int) else self._of_integer(x)

    def of_tensor(self, value: ir.Value) -> list[Form]:
        """Return the forms of a lowered tensor's extents."""
        return [self.of_dim(value, i) for i in range(ir.RankedTensorType(value.type).rank)]

    def of_expr(self, x: Expr) -> list[Form]:
        """Return the forms of an expression's extents."""
        if isinstance(x, Leaf):
            return self.of_tensor(x.value)
        if x.type.is_static:
            return [as_form(d) for d in x.type.dims]
        if isinstance(x, Splat | View | Opaque):
            return [self.of(d) for d in x.extents]
        assert isinstance(x, Compute)
        known = [self.of_expr(a) for a in x.args]
        return [
            as_form(d)
            if d != DYN
            else next((k[i] for k in known if not k[i].is_number), known[0][i])
            for i, d in enumerate(x.type.dims)
        ]

    def of_dim(self, value: ir.Value, axis: int) -> Form:
        """Return the form of a tensor's extent."""
        d = ir.RankedTensorType(value.type).shape[axis]
        if d != DYN:
            return as_form(d)
        key = (value, axis)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._of_result(value, axis)
        return found

    def _of_result(self, value: ir.Value, axis: int) -> Form:
        op = value.owner
        if isinstance(op, ir.Block):
            return self.atoms.get("size", value, axis)
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
        extent = dispatches.extent(op, value, axis)
        if extent is not None:
            return self.of(extent)
        return self.atoms.get("size", value, axis)

    def _pad(self, op: ir.Operation, axis: int) -> Form:
        _, low, high = _segments(op)
        total = as_form(0)
        at = 1
        for key, count in (("static_low", low), ("static_high", high)):
            numbers = list(ir.DenseI64ArrayAttr(op.attributes[key]))
            n = numbers[axis]
            total += n if n != DYN else self.of(op.operands[at + numbers[:axis].count(DYN)])
            at += count
        return total

    def _of_integer(self, value: ir.Value) -> Form:
        key = (value, -1)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._of_arithmetic(value)
        return found

    def _of_arithmetic(self, value: ir.Value) -> Form:
        op = value.owner
        if isinstance(op, ir.Block):
            return self.atoms.get("integer", value)
        op = op.operation
        name = op.name
        if name == "tensor.dim":
            axis = self.of(op.operands[1])
            if axis.is_number:
                return self.of_dim(op.operands[0], axis.number)
        if name == "arith.index_cast":
            return self.of(op.operands[0])
        if not isinstance(value.type, ir.IndexType) and str(value.type) != "i64":
            return self.atoms.get("integer", value)
        if name == "arith.constant":
            return as_form(ir.IntegerAttr(op.attributes["value"]).value)
        if name in ("arith.select", "arith.extui"):
            found = self._chosen(op)
            return self.atoms.get("integer", value) if found is None else found
        if name not in _ARITHMETIC:
            return self.atoms.get("integer", value)
        left, right = (self.of(v) for v in op.operands)
        return _ARITHMETIC[name](left, right)

    def _chosen(self, op: ir.Operation) -> Form | None:
        """Return the form of a choice, or of a comparison as a number."""
        test = op.operands[0].owner
        if not isinstance(test, ir.Block) and test.name == "arith.constant":
            true = bool(ir.IntegerAttr(test.operation.attributes["value"]).value)
            if op.name == "arith.extui":
                return as_form(int(true))
            return self.of(op.operands[1 if true else 2])
        if isinstance(test, ir.Block) or test.name != "arith.cmpi":
            return None
        predicate = ir.IntegerAttr(test.attributes["predicate"]).value
        if predicate > 5:  # unsigned ones
            return None
        left, right = (self.of(v) for v in test.operands)
        if op.name == "arith.extui":
            return selected(predicate, left, right, as_form(1), as_form(0))
        return selected(predicate, left, right, *(self.of(v) for v in list(op.operands)[1:]))

    # ---- relations ---------------------------------------------------------------------------

    def relations_of(self, op: ir.Operation, cls: type[Op]) -> None:
        """Check what an op's own inference takes for granted of its operands' extents."""
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
        """Return the type of an operand whose dynamic extents know what they stand for."""
        t = TensorType.of(v)
        if t.is_static or self.e.elements(v) is not None:
            return t
        forms = self.of_expr(self.e.expr(v))
        return t.with_dims(
            d if d != DYN else f.number if f.is_number else Size(DYN, f)
            for d, f in zip(t.dims, forms, strict=True)
        )

    def equal(self, a: Extent | Form, b: Extent | Form, *, one: bool = False) -> None:
        """Check that two extents are the same; `one`: or that the first one is 1."""
        first, second = self.of(a), self.of(b)
        if one:
            self.check((("eq", first, second), ("eq", first, as_form(1))))
        else:
            self.check((("eq", first, second),))

    def at_most(self, a: Extent | Form, b: Extent | Form) -> None:
        """Check that `a` is `b` or less."""
        self.check((("le", self.of(a), self.of(b)),))

    def joined(self, a: Extent, b: Extent) -> bool | None:
        """Check that two extents are the same, or one of them 1. Whether `a` (True) or `b` (False)
        is then what they broadcast to in all runs; None: whichever is not 1."""
        first, second, one = self.of(a), self.of(b), as_form(1)
        self.check((("eq", first, second), ("eq", first, one), ("eq", second, one)))
        if self.holds((("eq", first, second), ("eq", first, one))):
            return False
        return True if self.holds((("eq", first, second), ("eq", second, one))) else None

    def holds(self, alternatives: Sequence[Condition]) -> bool:
        """Return whether one of the conditions holds in every run that gets here."""
        left = _open(alternatives)
        return left is None or any(k <= set(left) for proved in self._proved for k in proved)

    def check(self, alternatives: Sequence[Condition], message: str = "") -> None:
        """Check that one of the conditions holds in this run; none of them: that it gets not here.

        `message` says in its place what was expected.
        """
        if alternatives and self.holds(alternatives):
            return
        left = _open(alternatives) or []
        self._proved[-1].add(frozenset(left))
        self._assert(left, f"expected {message or _expected(left)}")

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
        """In a branch or a loop: what is checked there is known there alone."""
        self._proved.append(set())
        try:
            yield
        finally:
            self._proved.pop()

    # ---- assertions --------------------------------------------------------------------------

    def _assert(self, conditions: Sequence[Condition], text: str) -> None:
        forms = [f for _, *pair in conditions for f in pair]
        early = bool(forms) and all(f.from_inputs for f in forms)
        location = ir.Location.current
        with self._place([v for f in forms for v in f.values()], early=early):
            made: dict[Atom, ir.Value] = {}
            each = [
                arith.CmpIOp(
                    _PREDICATES[predicate], self.value(a, made), self.value(b, made)
                ).result
                for predicate, a, b in conditions
            ]
            if not each:
                each = [arith.ConstantOp(ir.IntegerType.get_signless(1), 0).result]
            true = functools.reduce(lambda a, b: arith.OrIOp(a, b).result, each)
            dims = dict.fromkeys(a.args for f in forms for a in f.inputs())
            assert_(true, text, dims, location, self._read)

    def _place(self, values: Sequence[ir.Value], *, early: bool = False) -> ir.InsertionPoint:
        """Return where an assertion of `values` stands; early: those are the inputs' dims alone."""
        place = _on_host(ir.InsertionPoint.current)
        if place.block != self.entry:
            return self._places.first(place.block, values)
        return ir.InsertionPoint(self.head) if early else place

    def value(self, form: Form, made: dict[Atom, ir.Value] | None = None) -> ir.Value:
        """Return a form as an index value at the current insertion point.

        made: the atoms that were made there; a form may read one many times.
        """
        e = self.e
        made = {} if made is None else made
        total: Extent = form.number
        for term, n in form.terms.items():
            if not term:
                continue
            part: Extent = n
            for atom in term:
                if atom not in made:
                    made[atom] = self._value_of(atom, made)
                part = e.mul(part, made[atom])
            total = e.add(total, part)
        return e.index(total)

    def _value_of(self, atom: Atom, made: dict[Atom, ir.Value]) -> ir.Value:
        kind, args = atom.kind, atom.args
        if kind == "input":
            at: int = args[0]
            return tensor.DimOp(self.entry.arguments[at], self.e.index(args[1])).result
        if kind == "size":
            return tensor.DimOp(args[0], self.e.index(args[1])).result
        if kind == "integer":
            value = args[0]
            index = ir.IndexType.get()
            return value if value.type == index else arith.IndexCastOp(index, value).result
        if kind == "select":
            predicate, *forms = args
            left, right, then, other = (self.value(f, made) for f in forms)
            return arith.SelectOp(arith.CmpIOp(predicate, left, right).result, then, other).result
        make = {"div": arith.DivSIOp, "floor": arith.FloorDivSIOp, "rem": arith.RemSIOp,
                "max": arith.MaxSIOp, "min": arith.MinSIOp}[kind]  # fmt: skip
        return make(*(self.value(f, made) for f in args)).result


_AS_CONDITION: dict[int, Callable[[Form, Form], Condition]] = {
    0: lambda a, b: ("eq", a, b),
    1: lambda a, b: ("ne", a, b),
    2: lambda a, b: ("le", a + 1, b),
    3: lambda a, b: ("le", a, b),
    4: lambda a, b: ("le", b + 1, a),
    5: lambda a, b: ("le", b, a),
}
_ARITHMETIC: dict[str, Callable[[Form, Form], Form]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": lambda a, b: divided("div", a, b),
    "arith.divui": lambda a, b: divided("div", a, b),
    "arith.floordivsi": lambda a, b: divided("floor", a, b),
    "arith.remsi": lambda a, b: divided("rem", a, b),
    "arith.remui": lambda a, b: divided("rem", a, b),
    "arith.maxsi": lambda a, b: bounded("max", a, b),
    "arith.minsi": lambda a, b: bounded("min", a, b),
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
    if len(text) > _MOST:  # the compiler takes 65,535 bytes
        text = f"{text[:_MOST]}.."
    got = ",".join([*(f"{i}.{axis}" for i, axis in dims), *map(str, values)])
    message = f"{PREFIX}{text}|{got}|{name[:300]}|"
    ir.Operation.create(
        "cf.assert", operands=[condition], attributes={"msg": ir.StringAttr.get(message)}
    )


def has_relations(op: ir.Operation, cls: type[Op]) -> bool:
    """Return whether an op's inference may take something for granted that a run tells."""
    if cls.mnemonic in _UNSEEN or len(op.regions):
        return False
    return any(DYN in TensorType.of(v).dims for v in op.operands)


def _number_of(value: ir.Value) -> int:
    return ir.OpResult(value).result_number


def _segments(op: ir.Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))


def _on_host(place: ir.InsertionPoint) -> ir.InsertionPoint:
    """Return the insertion point, or the place ahead of the dispatch region that it lies in."""
    block, found = place.block, place
    while True:
        owner = block.owner.operation
        if owner.name == "func.func" or owner.name == "builtin.module":
            return found
        if owner.name in _REGIONS or owner.name.startswith("linalg."):
            found = ir.InsertionPoint(owner)
        block = owner.block


def _conditions(relation: Relation) -> list[Condition]:
    def form(x: int) -> Form:
        return x.form if isinstance(x, Size) else as_form(x)

    return [(c.predicate, form(c.left), form(c.right)) for c in relation]


def _known(c: Condition) -> bool | None:
    """Return whether a condition holds in all runs, or in none; None where that is open."""
    predicate, a, b = c
    rest = b - a
    if rest.is_number:
        n = rest.number
        return {"eq": n == 0, "ne": n != 0, "le": n >= 0}[predicate]
    if predicate == "le":
        if rest.is_never_negative:
            return True
        return False if (a - b - 1).is_never_negative else None
    apart = (rest - 1).is_never_negative or (a - b - 1).is_never_negative
    return (predicate == "ne") if apart else None


def _open(alternatives: Iterable[Condition]) -> list[Condition] | None:
    """Return what is left of alternatives that are open.

    None where one of them holds in all runs.
    """
    left: dict[Condition, None] = {}
    rest = list(alternatives)
    while rest:
        c = rest.pop(0)
        known = _known(c)
        if known:
            return None
        if known is None:
            parts = _by_selection(c)
            if parts is None:
                left[_normal(c)] = None
            rest = [*(parts or []), *rest]
    if any(p == "eq" and ("ne", a, b) in left for p, a, b in left):
        return None
    return [c for c in left if not _is_covered(c, left)]


def _by_selection(c: Condition) -> list[Condition] | None:
    """x = (l = r ? x : y) as l = r or x = y, and x = (l = r ? y : x) as l != r or x = y."""
    predicate, *pair = c
    for x, other in (pair, reversed(pair)):
        found = selection(other) if predicate == "eq" else None
        if found is not None and found[0] == 0:
            _, left, right, then, otherwise = found
            if then == x:
                return [("eq", left, right), ("eq", x, otherwise)]
            if otherwise == x:
                return [("ne", left, right), ("eq", x, then)]
    return None


def _is_covered(c: Condition, others: Iterable[Condition]) -> bool:
    """Return whether (l = r ? y : l) = r, which takes that l = r, stands beside l = r."""
    predicate, *pair = c
    for x, other in (pair, reversed(pair)):
        found = selection(other) if predicate == "eq" else None
        if found is not None and found[0] == 0:
            _, left, right, _, otherwise = found
            if otherwise == left and x == right:
                return _normal(("eq", left, right)) in others
    return False


def _normal(c: Condition) -> Condition:
    """Return one condition for both orders of what is compared, the same in every process."""
    predicate, a, b = c
    if predicate != "le" and a.order > b.order:
        a, b = b, a
    return predicate, a, b


def _expected(left: Sequence[Condition]) -> str:
    """Return the conditions as text.

    What is compared with a number last, the number on the right.
    """
    ordered = [(p, b, a) if a.is_number and p != "le" else (p, a, b) for p, a, b in left]
    ordered.sort(key=lambda c: c[2].is_number)
    return " or ".join(f"{_show(a)} {_WORDS[p]} {_show(b)}" for p, a, b in ordered)


class _Names:
    """What the runtime replaces by an input's name."""

    def __getitem__(self, i: int) -> str:
        return f"${i}$"


def _show(form: Form) -> str:
    return show(form, _Names())  # type: ignore[arg-type]
