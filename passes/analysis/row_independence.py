"""Proof that a program computes each row of a batch from that row alone, for any batch size.

A row is an index of one dynamic dim of the inputs, the batch. Each value gets a state. `Rows`: one
axis is along the batch, and a row depends only on the inputs' same row. `FREE`: it depends on no
row and not on their count. `COUNT`: shape arithmetic, which may depend on the count, and may only
be used as dims. A row may depend on its own index, which rows appended after it do not change. An
op without a rule, or whose rule fails, ends the proof. Row-independent programs may run on padded
batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import Op, Pointwise, attributes_of, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, ConvolutionBackwards
from mgx_mlir.dialects.migraphx.normalize import SoftmaxBase
from mgx_mlir.dialects.migraphx.reduce import ArgExtreme, Reduction
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.programs.signature import Signature
from mgx_mlir.symbolic.expressions import Expr, Int

FREE, COUNT = "free", "count"
_BATCH = "the batch"


class Mixed(Exception):
    """The proof fails; the message says why, with the op's location."""


@dataclass(frozen=True)
class Rows:
    """A value with one axis along the batch; its extent is the count of rows times `each`."""

    axis: int
    each: Int


State = Rows | str


@dataclass(frozen=True)
class RowProof:
    """The batch axis of each input and result: (axis, elements per row), None without one."""

    inputs: tuple[tuple[int, int] | None, ...]
    results: tuple[tuple[int, int] | None, ...]


def prove(program: ProgramIR, batch: Sequence[tuple[int, int]]) -> RowProof:
    """Prove that the rows of a program are independent. batch: (input, dim) of the dynamic dims.

    Errors: Mixed.
    """
    with program.ctx, program.store.active():
        return _Proof(program, batch).proof()


class _Proof:
    def __init__(self, program: ProgramIR, batch: Sequence[tuple[int, int]]) -> None:
        main = program.main()
        self._block = entry_block(main)
        self.probe = DimProbe()
        self.probe.active = True
        self._states: dict[ir.Value, State] = {}
        self.numbers: set[ir.Value] = set()  # values whose elements in a row are the row's index
        self.led: set[ir.Value] = set()  # index tuples whose first component is the row's index
        arguments = list(self._block.arguments)
        for i, (a, port) in enumerate(zip(arguments, Signature.of(main).inputs, strict=True)):
            ranges = [(r.min, r.max) for r in port.ranges]
            own = {d for j, d in batch if j == i}
            # one name for the dims of the batch, whatever their own are
            symbols = [_BATCH if d in own else r.symbol for d, r in enumerate(port.ranges)]
            self.probe.argument(a, symbols, ranges)
            if own:
                self.count = self.probe.dims(a)[min(own)]
        self._known_sizes = {
            atom for a in arguments for e in self.probe.dims(a) for atom in _sizes(e)
        }
        for a in arguments:
            self._states[a] = self._by_dims(a)

    def proof(self) -> RowProof:
        """Follow all ops. Errors: Mixed."""
        for view in self._block.operations:
            op = view.operation
            if op.name == "func.return":
                results = [self._place(v) for v in op.operands]
                inputs = [self._place(v) for v in self._block.arguments]
                return RowProof(tuple(inputs), tuple(results))
            try:
                self._follow(op)
            except Mixed as e:
                at = op.location
                node = f"{at.name_str}: " if isinstance(at, ir.NameLoc) else ""
                raise Mixed(f"{node}{mnemonic(op)}: {e}") from None
        raise Mixed("the program does not return")

    def _place(self, v: ir.Value) -> tuple[int, int] | None:
        state = self._states[v]
        if state == COUNT:
            raise Mixed("a result holds the number of rows")
        if not isinstance(state, Rows):
            return None
        if not isinstance(state.each, int):
            raise Mixed("the length of a row in a result is dynamic")
        return state.axis, state.each

    # ---- one op ------------------------------------------------------------------------------

    def _follow(self, op: ir.Operation) -> None:
        cls = op_class(op)
        if is_literal(op):
            self._states[op.results[0]] = FREE
            return
        if cls is None or len(op.regions) or not cls.is_pure():
            raise Mixed("may depend on more than its operands' rows")
        states = [self._states[v] for v in op.operands]
        if cls.mnemonic == "dimensions_of" or COUNT in states:
            if self._is_arithmetic(op, states):
                return
        elif all(s == FREE for s in states):
            for r in op.results:
                self._states[r] = FREE
            return
        rule = _rule_of(cls)
        if rule is None:
            raise Mixed("there is no rule for its rows")
        groups = cls.split_operands(op)
        operands = {g.name: list(held) for g, held in zip(cls.OPERANDS, groups, strict=True)}
        found = [self._by_dims(r) for r in op.results]
        for r, state in zip(op.results, found, strict=True):
            rule(_Case(self, op, cls, operands, r, state))
            self._states[r] = state
            if rule in _KEEPING and op.operands[0] in self.numbers:
                self.numbers.add(r)

    def _is_arithmetic(self, op: ir.Operation, states: Sequence[State]) -> bool:
        """Handle results whose elements are expressions of sizes; return whether they are."""
        if op_class(op) is None or any(self.probe.elements(r) is None for r in op.results):
            return False
        for r in op.results:
            elements = self.probe.elements(r) or ()
            held = any(self.has_count(e) for e in elements)
            told = all(self._is_told(e) for e in elements)
            if not told:
                return False
            self._states[r] = COUNT if held else FREE
        return True

    # ---- dims --------------------------------------------------------------------------------

    def has_count(self, e: Int) -> bool:
        """Return whether an expression depends on the number of rows."""
        return bool(_sizes(e) & _sizes(self.count))

    def _is_told(self, e: Int) -> bool:
        return _sizes(e) <= self._known_sizes

    def state(self, v: ir.Value) -> State:
        """Return what is known of an operand."""
        return self._states[v]

    def _by_dims(self, v: ir.Value) -> State:
        """Return the state that the dims of a value imply. Errors: Mixed where they imply none."""
        dims = self.probe.dims(v)
        if not all(map(self._is_told, dims)):
            raise Mixed("the sizes of its result are not known from those of the inputs")
        axes = [i for i, e in enumerate(dims) if self.has_count(e)]
        if not axes:
            return FREE
        if len(axes) > 1:
            raise Mixed("the number of rows is in several dims")
        e = dims[axes[0]]
        assert isinstance(e, Expr)
        each = e.space.exact(e, self.count)
        if each is None or self.has_count(each):
            raise Mixed(f"a dim of {e} is no multiple of the number of rows")
        return Rows(axes[0], each)


@dataclass(frozen=True)
class _Case:
    """One op and one of its results, for a rule. `found`: the state that the result's dims
    imply.
    """

    proof: _Proof
    op: ir.Operation
    cls: type[Op]
    operands: dict[str, list[ir.Value]]
    result: ir.Value
    found: State

    @property
    def attributes(self) -> dict[str, Any]:
        return attributes_of(self.op)

    def only(self, name: str) -> ir.Value:
        """Return the operand of a name, which must be there."""
        return self.operands[name][0]

    def state(self, v: ir.Value) -> State:
        return self.proof.state(v)

    def dims(self, v: ir.Value) -> tuple[Int, ...]:
        return self.proof.probe.dims(v)

    def same(self, a: Int, b: Int) -> bool:
        return self.proof.probe.are_equal(a, b)

    def need(self, condition: object, why: str) -> None:
        if not condition:
            raise Mixed(why)

    def rows(self) -> Rows:
        """Return the state of the result, which must have rows."""
        if not isinstance(self.found, Rows):
            raise Mixed("its result combines all rows")
        return self.found

    def others_free(self, *names: str) -> None:
        """Need operands other than these to depend on no row."""
        for name, values in self.operands.items():
            if name not in names:
                self.need(all(self.state(v) == FREE for v in values), f"'{name}' depends on rows")


def _pointwise(c: _Case) -> None:
    wanted = c.rows()
    for v in c.op.operands:
        if c.state(v) == FREE and not TensorType.of(v).rank:
            continue
        c.need(c.state(v) == wanted, "its operands have rows along different axes")


def _reshape(c: _Case) -> None:
    """Keep the batch's position in row-major order: the number of elements before it is
    unchanged.
    """
    source, wanted = c.op.operands[0], c.rows()
    for v in c.op.operands:
        c.need(v == source or c.state(v) in (FREE, COUNT), "its dims depend on values of rows")
    state = c.state(source)
    c.need(isinstance(state, Rows), "its dims have the number of rows, its elements do not")
    assert isinstance(state, Rows)
    before = _product(c.dims(source)[: state.axis])
    after = _product(c.dims(c.result)[: wanted.axis])
    c.need(c.same(before, after), "it joins rows with an outer dim")


def _same_place(c: _Case) -> None:
    c.need(c.state(c.op.operands[0]) == c.rows(), "it moves rows")


def _transpose(c: _Case) -> None:
    state = c.state(c.only("input"))
    assert isinstance(state, Rows)
    permutation = list(c.attributes["permutation"])
    c.need(permutation.index(state.axis) == c.rows().axis, "it moves rows")


def _broadcast(c: _Case) -> None:
    """Broadcast an input; other operands are only read for their dims."""
    source, wanted = c.op.operands[0], c.rows()
    rank = len(c.dims(c.result))
    first = c.attributes["axis"] if c.cls.mnemonic == "broadcast" else rank - len(c.dims(source))
    state, at = c.state(source), wanted.axis - first
    if isinstance(state, Rows):
        c.need(state == Rows(at, wanted.each), "it repeats rows")
        return
    c.need(state == FREE, "it repeats the number of rows")
    inside = 0 <= at < len(c.dims(source))
    c.need(not inside or c.dims(source)[at] == 1, "a dim without rows meets the batch")


def _dot(c: _Case) -> None:
    wanted, rank = c.rows(), len(c.dims(c.result))
    a, b = c.op.operands[:2]
    free_a, free_b = c.state(a) == FREE, c.state(b) == FREE
    if wanted.axis == rank - 2:
        c.need(c.state(a) == wanted and free_b, "it sums over rows")
    elif wanted.axis == rank - 1:
        c.need(c.state(b) == wanted and free_a, "it sums over rows")
    else:
        c.need(c.state(a) == wanted == c.state(b), "its operands have rows along different axes")
    _scales(c)


def _windows(c: _Case) -> None:
    """Convolutions and poolings: the first axis is the batch."""
    c.others_free("input", "scales")
    c.need(c.state(c.only("input")) == c.rows() and c.rows().axis == 0, "rows are not its batch")
    _scales(c)


def _scales(c: _Case) -> None:
    """Need scales, which have the dims of their operands, to have the same rows."""
    pairs = zip(c.op.operands, c.operands.get("scales", ()), strict=False)
    c.need(all(c.state(s) == c.state(v) for v, s in pairs), "a scale has other rows")


def _along(c: _Case) -> None:
    """Ops along `axis` or `axes`, of which the batch is none."""
    source = c.op.operands[0]
    c.others_free("input")
    c.need(not c.operands.get("axes_tensor") and not c.operands.get("input_axes"),
           "its axes come at run time")  # fmt: skip
    attributes, rank = c.attributes, len(c.dims(source))
    axes = attributes["axes"] if "axes" in attributes else [attributes["axis"]]
    every = list(axes) or (range(rank) if issubclass(c.cls, Reduction) else ())
    state = c.state(source)
    assert isinstance(state, Rows)
    c.need(state.axis not in [a % rank for a in every], "it works along the batch")
    c.need(state == c.rows(), "it moves rows")


def _topk(c: _Case) -> None:
    for v in c.operands["indices"]:
        c.need(c.state(v) == c.rows(), "its indices have other rows")
    c.need(all(c.state(v) == FREE for v in c.operands["count"]), "its count depends on rows")
    rank = len(c.dims(c.result))
    c.need(c.state(c.only("input")) == c.rows(), "it moves rows")
    c.need(c.attributes["axis"] % rank != c.rows().axis, "it works along the batch")


def _pad(c: _Case) -> None:
    source, pads = c.op.operands[0], list(c.attributes["pads"])
    axis, rank = c.rows().axis, len(c.dims(source))
    c.need(c.state(source) == c.rows() and pads[axis] == pads[axis + rank] == 0, "it adds rows")


def _concat(c: _Case) -> None:
    axis, rank = c.attributes["axis"], len(c.dims(c.result))
    c.need(axis % rank != c.rows().axis, "it works along the batch")
    c.need(all(c.state(v) == c.rows() for v in c.op.operands), "its operands have different rows")
    first = c.op.operands[0]
    if axis % rank == rank - 1 and first in c.proof.numbers and c.dims(first)[-1] == 1:
        c.proof.led.add(c.result)


def _range(c: _Case) -> None:
    """Need the numbers of all rows: 0, 1, .. up to their count."""
    start, limit, delta = map(c.proof.probe.elements, c.op.operands)
    c.need(start == [0] and delta == [1] and limit is not None, "its numbers are not those of rows")
    assert limit is not None
    c.need(c.same(limit[0], c.proof.count) and c.rows() == Rows(0, 1), "it has no number for a row")
    c.proof.numbers.add(c.result)


def _gathernd(c: _Case) -> None:
    """Read by index tuples whose first component is their own row."""
    data, indices = c.op.operands
    at = c.state(indices)
    c.need(indices in c.proof.led and not c.attributes["batch_dims"], "it reads rows by indices")
    c.need(isinstance(at, Rows) and at == c.rows(), "it moves rows")
    c.need(c.state(data) == Rows(0, 1) and c.rows().each == 1, "rows are not its first dim")


def _gather(c: _Case) -> None:
    data, indices, wanted = c.only("data"), c.only("indices"), c.rows()
    axis = c.attributes["axis"] % len(c.dims(data))
    state = c.state(data)
    if state == FREE:
        at = c.state(indices)
        c.need(at == Rows(wanted.axis - axis, wanted.each), "it moves rows")
        return
    assert isinstance(state, Rows)
    c.need(c.state(indices) == FREE, "it reads rows that its indices choose")
    c.need(state.axis != axis, "it works along the batch")
    step = len(c.dims(indices)) - 1 if state.axis > axis else 0
    c.need(Rows(state.axis + step, state.each) == wanted, "it moves rows")


def _resize(c: _Case) -> None:
    """Keep the batch: an axis of scale 1 is copied in every mode but a crop."""
    c.others_free("input")
    attributes, wanted = c.attributes, c.rows()
    c.need(c.state(c.only("input")) == wanted, "it moves rows")
    c.need(not c.operands["target"], "its sizes come at run time")
    c.need(attributes["coordinate_transformation_mode"] != "tf_crop_and_resize", "it crops")
    sizes, scales = attributes["sizes"], attributes["scales"]
    kept = sizes[wanted.axis] == 0 if sizes else scales[wanted.axis] == 1
    c.need(kept, "it works along the batch")


def _recurrent(c: _Case) -> None:
    """Recurrent ops and those of their states, whose operands have the batch at fixed axes."""
    axes, out = _PLACES[c.cls.mnemonic]
    each = c.rows().each
    c.need(c.rows() == Rows(out, each), "rows are not its batch")
    c.others_free(*axes)
    for name, axis in axes.items():
        states = [c.state(v) for v in c.operands[name]]
        c.need(all(s == Rows(axis, each) for s in states), f"'{name}' has other rows")


def _product(dims: Sequence[Int]) -> Int:
    total: Int = 1
    for e in dims:
        total = total * e
    return total


def _sizes(e: Int) -> frozenset[Any]:
    """Return the sizes that an expression is made of."""
    if not isinstance(e, Expr):
        return frozenset()
    found: set[Any] = set()
    for atom in e.atoms():
        if atom.kind == "size":
            found.add(atom)
        for x in atom.arguments:
            if isinstance(x, Expr):
                found |= _sizes(x)
    return frozenset(found)


# axes of the batch in operands, and in each result
_RNN = {"input": 1, "sequence_lens": 0, "initial_h": 1}
_PLACES: dict[str, tuple[dict[str, int], int]] = {
    "rnn": (_RNN, 2), "gru": (_RNN, 2), "lstm": ({**_RNN, "initial_c": 1}, 2),
    "rnn_last_hs_output": ({"input": 2}, 1), "rnn_last_cell_output": ({"input": 2}, 1),
    "rnn_var_sl_last_output": ({"input": 2, "sequence_lens": 0}, 1),
    "rnn_var_sl_shift_output": ({"input": 2, "sequence_lens": 0}, 2),
    "rnn_var_sl_shift_sequence": ({"input": 1, "sequence_lens": 0}, 1),
}  # fmt: skip
Rule = Callable[[_Case], None]
RULES: dict[str, Rule] = {
    **dict.fromkeys(_PLACES, _recurrent), "resize": _resize, "dynamic_range": _range,
    "gathernd": _gathernd,
    "broadcast": _broadcast, "multibroadcast": _broadcast, "broadcast_with_dims": _broadcast,
    "broadcast_for_dot": _broadcast, "transpose": _transpose, "dot": _dot, "quant_dot": _dot,
    "pooling": _windows, "quant_convolution": _windows, "slice": _along, "step": _along,
    "reverse": _along, "prefix_scan_sum": _along, "pad": _pad, "concat": _concat,
    "gather": _gather, "topk": _topk, "quantizelinear": _pointwise,
    "dequantizelinear": _pointwise,
}  # fmt: skip
_KINDS: tuple[tuple[type[Op], Rule], ...] = (
    (Pointwise, _pointwise), (NopView, _same_place), (ReshapeOp, _reshape), (Convolution, _windows),
    (ConvolutionBackwards, _windows),
    (SoftmaxBase, _along), (Reduction, _along), (ArgExtreme, _along),
)  # fmt: skip

# rules of ops that copy elements within a row
_KEEPING = (_reshape, _same_place, _transpose, _broadcast)


def has_rule(cls: type[Op]) -> bool:
    """Return whether rows may be proved through an op."""
    return _rule_of(cls) is not None


def _rule_of(cls: type[Op]) -> Rule | None:
    kinds = (rule for kind, rule in _KINDS if issubclass(cls, kind))
    return RULES.get(cls.mnemonic) or next(kinds, None)


__all__ = ["Mixed", "RowProof", "has_rule", "prove"]
