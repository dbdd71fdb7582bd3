"""rewrite_rnn: recurrent networks as one loop, or one kernel, over time for each direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op, attributes_of, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.control import Loop
from mgx_mlir.dialects.migraphx.movement import Concat
from mgx_mlir.dialects.migraphx.recurrent_steps import GruSteps, LstmSteps, RnnSteps
from mgx_mlir.dialects.migraphx.rnn import (
    Gru,
    Lstm,
    Rnn,
    RnnLastCellOutput,
    RnnLastHsOutput,
    RnnVarSlLastOutput,
    RnnVarSlShiftOutput,
    RnnVarSlShiftSequence,
    activations,
    direction_count,
)
from mgx_mlir.dialects.migraphx.views import Unsqueeze
from mgx_mlir.passes.analysis.state_codes import state_product
from mgx_mlir.passes.lowering import select
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_no_use,
    no_match,
    pattern,
)

STEPS = (RnnSteps, GruSteps, LstmSteps)
# One step: function from the inputs' share of the gates and the states to the next states.
Step = Callable[[ir.Value, Sequence[ir.Value]], list[ir.Value]]


def _spread(rw: Rewriter, v: ir.Value, like: ir.Value) -> ir.Value:
    """Build `v` broadcast to the dims of `like`; dynamic dims are equal or 1."""
    t = TensorType.of(like)
    if t.is_static:
        return rw.op("multibroadcast", [v], out_lens=list(t.dims))
    return rw.op("multibroadcast", [v, like])


def _extent(rw: Rewriter, x: ir.Value, axis: int) -> ir.Value:
    """Build an extent of `x` as a number of i64."""
    d = TensorType.of(x).dims[axis]
    if d != DYN:
        return rw.literal(np.int64(d))
    return rw.op("squeeze", rw.shape(x, axis, axis + 1), axes=[0])


def _places(rw: Rewriter, x: ir.Value, axis: int) -> ir.Value:
    """Build 0, 1, .. along an axis of `x`."""
    d = TensorType.of(x).dims[axis]
    if d != DYN:
        return rw.literal(np.arange(d, dtype=np.int64))
    one = rw.literal(np.int64(1))
    return rw.dynamic_range(rw.literal(np.int64(0)), _extent(rw, x, axis), one)


# ---- one kernel ----------------------------------------------------------------------------------


def _steps_refusal(op: Rnn | Gru | Lstm | RnnSteps | GruSteps | LstmSteps) -> str | None:
    """Return why no kernel runs all steps of a network, None if one does."""
    return select.refusal("cpu", "recurrent", op)


@pattern(Rnn, Gru, Lstm)
def input_products(op: Rnn | Gru | Lstm, rw: Rewriter) -> Replacement:
    """rnn(x, w, r, bias) -> rnn_steps(x w^T + bias, r), where one kernel runs all steps"""
    if not rw.options.vector:
        return no_match("the target has no kernel for all steps")
    gates, functions = {Rnn: (1, 1), Gru: (3, 2), Lstm: (4, 3)}[type(op)]
    net = _network(op, rw, gates, functions)
    if isinstance(net, NoMatch):
        return net
    reason = _steps_refusal(op)
    if reason is not None:
        return no_match("{}", reason)
    # R's bias of a candidate with a late reset is added by the kernel
    late = isinstance(op, Gru) and bool(op.linear_before_reset)
    more = [op.initial_c, op.peephole] if isinstance(op, Lstm) else []
    attributes = attributes_of(op.operation)
    made = rw.op(
        f"{mnemonic(op.operation)}_steps", net.all_inputs(biased=not late), op.recurrence,
        op.bias if late else None, op.sequence_lens, op.initial_h, *more, **attributes,
    )  # fmt: skip
    return list(made) if isinstance(op, Lstm) else made


# ---- the networks --------------------------------------------------------------------------------


@pattern(Rnn, RnnSteps)
def vanilla_rnn(op: Rnn | RnnSteps, rw: Rewriter) -> Replacement:
    """rnn(x, w, r) -> loop{f(x_t w^T + h r^T)}, x w^T of all steps ahead of it"""
    net = _network(op, rw, gates=1, functions=1)
    if isinstance(net, NoMatch):
        return net

    def direction(d: int) -> tuple[list[ir.Value], list[ir.Value]]:
        (f,) = net.functions[d]
        r = net.recurrence(d)

        def step(xt: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
            return [f.build(rw, net.limited(rw.op("add", rw.op("dot", states[0], r), xt)))]

        return net.loop(d, net.inputs(d), [net.state(op.initial_h, d)], step)

    return net.results(direction, 1)[0]


@pattern(Gru, GruSteps)
def gru(op: Gru | GruSteps, rw: Rewriter) -> Replacement:
    """gru(x, w, r) -> loop{(1 - z) g + z h}, x w^T of all steps ahead of it"""
    net = _network(op, rw, gates=3, functions=2)
    if isinstance(net, NoMatch):
        return net
    late, h = bool(op.linear_before_reset), net.hidden

    def direction(d: int) -> tuple[list[ir.Value], list[ir.Value]]:
        f, g = net.functions[d]
        r = net.recurrence(d)
        bias = net.bias(d, 5 * h, 6 * h) if late and op.bias is not None else None
        r_gates, r_candidate = (
            (r, r) if late else (net.part(r, 0, 2 * h), net.part(r, 2 * h, 3 * h))
        )

        def step(xt: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
            state = states[0]
            x_gates, x_candidate = net.part(xt, 0, 2 * h), net.part(xt, 2 * h, 3 * h)
            products = rw.op("dot", state, r_gates)
            gates = rw.op("add", net.part(products, 0, 2 * h), x_gates)
            gates = f.build(rw, net.limited(gates))
            z, reset = net.part(gates, 0, h), net.part(gates, h, 2 * h)
            if late:
                inner = net.part(products, 2 * h, 3 * h)
                if bias is not None:
                    inner = rw.op("add", inner, net.rows(bias, inner))
                inner = rw.op("mul", reset, inner)
            else:
                inner = rw.op("dot", rw.op("mul", reset, state), r_candidate)
            candidate = g.build(rw, net.limited(rw.op("add", inner, x_candidate)))
            kept = rw.op("mul", z, state)
            return [rw.op("add", rw.op("mul", rw.sub(1, z), candidate), kept)]

        # R's bias of the candidate is added before the reset, or only after it
        inputs = net.inputs(d, without=(2 * h, 3 * h) if late else None)
        return net.loop(d, inputs, [net.state(op.initial_h, d)], step)

    return net.results(direction, 1)[0]


@pattern(Lstm, LstmSteps)
def lstm(op: Lstm | LstmSteps, rw: Rewriter) -> Replacement:
    """lstm(x, w, r) -> loop{c = f c + i g, h = o tanh(c)}, x w^T of all steps ahead of it"""
    net = _network(op, rw, gates=4, functions=3)
    if isinstance(net, NoMatch):
        return net
    h = net.hidden

    def direction(d: int) -> tuple[list[ir.Value], list[ir.Value]]:
        f, g, last = net.functions[d]
        r = net.recurrence(d)
        given = op.recurrence_scale if isinstance(op, LstmSteps) else None
        scale = None if given is None else net.of_direction(given, d)
        peepholes: list[Any] = [None] * 3
        if op.peephole is not None:
            own = net.of_direction(op.peephole, d)
            peepholes = [net.part(own, i * h, (i + 1) * h) for i in range(3)]

        def peeked(x: ir.Value, p: ir.Value | None, cell: ir.Value) -> ir.Value:
            if p is None:
                return x
            return rw.op("add", x, rw.op("mul", net.rows(p, cell), cell))

        def step(xt: ir.Value, states: Sequence[ir.Value]) -> list[ir.Value]:
            state, cell = states
            gates = rw.op("add", state_product(rw, state, r, scale), xt)
            i, o, forget, candidate = (net.part(gates, k * h, (k + 1) * h) for k in range(4))
            i = f.build(rw, net.limited(peeked(i, peepholes[0], cell)))
            if op.input_forget:
                forget = rw.sub(1, i)
            else:
                forget = f.build(rw, net.limited(peeked(forget, peepholes[2], cell)))
            candidate = g.build(rw, net.limited(candidate))
            cell = rw.op("add", rw.op("mul", forget, cell), rw.op("mul", i, candidate))
            o = f.build(rw, net.limited(peeked(o, peepholes[1], cell)))
            return [rw.op("mul", o, last.build(rw, cell)), cell]

        start = [net.state(op.initial_h, d), net.state(op.initial_c, d)]
        wanted = 1 if has_no_use(op.cells) else 2
        return net.loop(d, net.inputs(d), start, step, outputs=wanted)

    # unused cells are not kept
    return net.results(direction, 2)


def _network(op: Op, rw: Rewriter, gates: int, functions: int) -> _Network | NoMatch:
    t = TensorType.of(op.input)
    steps, batch, _ = t.dims
    d = direction_count(op.direction)
    want = (steps, d, batch, op.hidden_size)
    if any(TensorType.of(r).dims != want for r in op.results):
        return no_match("its result states other dims than its operands: {}", want)
    for name in ("weights", "recurrence", "bias", "peephole"):
        v = getattr(op, name, None)
        if v is not None and not TensorType.of(v).is_static:
            return no_match("weights have dynamic dims: {}", TensorType.of(v))
    if isinstance(op, STEPS) and rw.options.vector and _steps_refusal(op) is None:
        return no_match("one kernel runs all steps")
    return _Network(op, rw, gates, activations(op.actv_func, functions, d))


class _Network:
    """Shared form of the three networks: projections, states, the loop."""

    def __init__(self, op: Op, rw: Rewriter, gates: int, functions: list[Any]) -> None:
        self.op, self.rw, self.gates, self.functions = op, rw, gates, functions
        self.type = TensorType.of(op.input)
        self.steps, self.batch = self.type.dims[:2]
        # width of the input from the weights; static, while the input's may be dynamic
        self.width = 0
        if not isinstance(op, STEPS):
            self.width = TensorType.of(op.weights).dims[2]
        self.hidden = op.hidden_size
        self.directions = direction_count(op.direction)
        self._mask: ir.Value | None = None

    def backward(self, d: int) -> bool:
        return self.op.direction == "reverse" or d == 1

    # ---- values ------------------------------------------------------------------------------

    def of_direction(self, v: ir.Value, d: int) -> ir.Value:
        """Drop the first axis of `v`, the directions."""
        if self.directions > 1:
            v = self.rw.op("slice", v, axes=[0], starts=[d], ends=[d + 1])
        return self.rw.op("squeeze", v, axes=[0])

    def part(self, v: ir.Value, start: int, end: int) -> ir.Value:
        """Cut columns out of the last axis."""
        t = TensorType.of(v)
        if (start, end) == (0, t.dims[-1]):
            return v
        return self.rw.op("slice", v, axes=[t.rank - 1], starts=[start], ends=[end])

    def rows(self, v: ir.Value, like: ir.Value) -> ir.Value:
        """Build a vector in each row of {batch, hidden}, or a column in each column."""
        return _spread(self.rw, v, like)

    def limited(self, x: ir.Value) -> ir.Value:
        clip = self.op.clip
        return self.rw.clip(x, -clip, clip) if clip else x

    def recurrence(self, d: int) -> ir.Value:
        """Build R of one direction as {hidden, gates hidden}."""
        return self.rw.op("transpose", self.of_direction(self.op.recurrence, d), permutation=[1, 0])

    def bias(self, d: int, start: int, end: int) -> ir.Value:
        return self.part(self.of_direction(self.op.bias, d), start, end)

    def inputs(self, d: int, without: tuple[int, int] | None = None) -> ir.Value:
        """Build x W^T and the biases of all steps {steps, batch, gates hidden}: one dot.

        `without`: the columns to which R's bias is not added.
        """
        columns = self.gates * self.hidden
        if isinstance(self.op, STEPS):
            found = self.part(self.op.input, d * columns, (d + 1) * columns)
            return self.biased(found, self.bias_of(d, without))
        found = self.projected(self.of_direction(self.op.weights, d))
        return self.by_steps(self.biased(found, self.bias_of(d, without)), columns)

    def all_inputs(self, *, biased: bool) -> ir.Value:
        """Build x W^T of all directions {steps, batch, directions gates hidden}: one dot."""
        rw, columns = self.rw, self.directions * self.gates * self.hidden
        found = self.projected(rw.op("reshape", self.op.weights, dims=[columns, self.width]))
        bias = None
        if biased and self.op.bias is not None:
            parts = [self.bias_of(d, None) for d in range(self.directions)]
            given = [p for p in parts if p is not None]
            bias = given[0] if len(given) == 1 else rw.op("concat", given, axis=0)
        return self.by_steps(self.biased(found, bias), columns)

    def projected(self, w: ir.Value) -> ir.Value:
        """Build x w^T of all steps, {steps batch, rows of w}."""
        rw, w = self.rw, self.rw.op("transpose", w, permutation=[1, 0])
        count = DYN if DYN in (self.steps, self.batch) else self.steps * self.batch
        flat = rw.op("reshape", self.op.input, dims=[-1 if count == DYN else count, self.width])
        return rw.op("dot", flat, w)

    def by_steps(self, found: ir.Value, columns: int) -> ir.Value:
        """Reshape rows of all steps to {steps, batch, columns}."""
        rw, dims = self.rw, [self.steps, self.batch, columns]
        if DYN in dims:  # not -1, which would accept any number of rows
            shape = rw.op("concat", [rw.shape(self.op.input, 0, 2), rw.ints([columns])], axis=0)
            return rw.op("reshape", found, shape, results=[self.type.with_dims(dims)])
        return rw.op("reshape", found, dims=dims)

    def bias_of(self, d: int, without: tuple[int, int] | None) -> ir.Value | None:
        """Build the sum of both biases of one direction, None where there are none."""
        rw, columns = self.rw, self.gates * self.hidden
        if self.op.bias is None:
            return None
        bias = self.bias(d, columns, 2 * columns)
        if without is not None:
            parts = [self.part(bias, 0, without[0])]
            zero = np.zeros(without[1] - without[0], self.type.dtype.np)
            bias = rw.op("concat", [*parts, rw.literal(zero)], axis=0)
        return rw.op("add", self.bias(d, 0, columns), bias)

    def biased(self, found: ir.Value, bias: ir.Value | None) -> ir.Value:
        """Build rows with a bias added to each."""
        return found if bias is None else self.rw.op("add", found, self.rows(bias, found))

    def state(self, initial: ir.Value | None, d: int) -> ir.Value:
        """Build the first state {batch, hidden}: zeros where none is given."""
        if initial is not None:
            return self.of_direction(initial, d)
        rw = self.rw
        zero = rw.literal(np.zeros((1, 1), self.type.dtype.np))
        if self.batch != DYN:
            return rw.op("multibroadcast", [zero], out_lens=[self.batch, self.hidden])
        shape = rw.op("concat", [rw.shape(self.op.input, 1, 2), rw.ints([self.hidden])], axis=0)
        return rw.op("broadcast_with_dims", zero, shape)

    def mask(self) -> ir.Value | None:
        """Return 1 where a step counts {steps, batch, 1}, else 0; None where all do."""
        if self.op.sequence_lens is None or self._mask is not None:
            return self._mask
        rw = self.rw
        step = _places(rw, self.op.input, 0)
        lens = self.op.sequence_lens
        if TensorType.of(lens).dtype is not dtypes.INT64:
            lens = rw.op("convert", lens, target_type=dtypes.INT64)
        step, lens = rw.unsqueeze(step, axes=[1]), rw.unsqueeze(lens, axes=[0])
        # numbers, as IREE cannot pack a bool operand of a dot's epilogue
        live = rw.op("convert", rw.less(step, lens), target_type=self.type.dtype)
        self._mask = rw.unsqueeze(live, axes=[2])
        return self._mask

    # ---- the loop ----------------------------------------------------------------------------

    def loop(
        self,
        d: int,
        inputs: ir.Value,
        start: Sequence[ir.Value],
        step: Step,
        outputs: int = 1,
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        """Return one direction: its last states, and the first `outputs` states of all steps."""
        rw, backward, mask = self.rw, int(self.backward(d)), self.mask()
        state = self.type.with_dims((self.batch, self.hidden))
        every = self.type.with_dims((self.steps, self.batch, self.hidden))
        known = self.steps != DYN
        count = _extent(rw, self.op.input, 0)
        made = OPS["loop"](
            count,
            rw.literal(np.bool_(True)),
            list(start),
            results=[*[state] * len(start), *[every] * outputs],
            max_iterations=self.steps if known else 1,
            padded=known,
            scan_output_directions=[backward] * outputs,
        ).operation
        kinds = [TensorType(dtypes.INT64, ()), TensorType(dtypes.BOOL, ()), *[state] * len(start)]
        block = made.regions[0].blocks.append(*[k.mlir() for k in kinds], arg_locs=None)
        number, going, *states = block.arguments
        with ir.InsertionPoint(block):
            row = rw.op("scan_slice", inputs, number, axis=0, direction=backward)
            after = step(rw.op("squeeze", row, axes=[0]), states)
            shown = after
            if mask is not None:
                row = rw.op("scan_slice", mask, number, axis=0, direction=backward)
                row = self.rows(rw.op("squeeze", row, axes=[0]), after[0])
                live = rw.op("convert", row, target_type=dtypes.BOOL)
                shown = [rw.op("where", live, v, self.rows(self.zero(), v)) for v in after]
                after = [rw.op("where", live, v, old) for v, old in zip(after, states, strict=True)]
            OPS["yield"]([going, *after, *shown[:outputs]])
        found: list[ir.Value] = list(made.results)
        return found[: len(start)], found[len(start) :]

    def zero(self) -> ir.Value:
        return self.rw.literal(np.zeros((1, 1), self.type.dtype.np))

    def results(
        self, direction: Callable[[int], tuple[list[ir.Value], list[ir.Value]]], count: int
    ) -> list[ir.Value]:
        """Build the results of the op from those of its directions."""
        columns = [direction(d)[1] for d in range(self.directions)]
        out: list[ir.Value] = []
        for parts in zip(*columns, strict=True):
            parts = [self.rw.op("unsqueeze", p, axes=[1]) for p in parts]
            out.append(parts[0] if len(parts) == 1 else self.rw.op("concat", parts, axis=1))
        return [*out, *[out[0]] * (count - len(out))]


# ---- states of a sequence ------------------------------------------------------------------------


@pattern(RnnLastHsOutput, RnnLastCellOutput)
def last_output(op: RnnLastHsOutput | RnnLastCellOutput, rw: Rewriter) -> Replacement:
    """rnn_last_hs_output(states) -> the loop's last state, or the slices of the last steps"""
    t = TensorType.of(op.input)
    if TensorType.of(op.out).dims != t.dims[1:]:
        return no_match("its result states other dims than its operand")
    parts: list[ir.Value] = []
    for d in range(t.dims[1]):
        backward = op.direction == "reverse" or d == 1
        found = _last_of_loop(op.input, d, backward)
        if found is not None:
            parts.append(rw.op("unsqueeze", found, axes=[0]))
            continue
        if t.dims[0] == DYN and not backward:
            parts.append(_last_step(rw, op.input, d))
            continue
        at = 0 if backward else t.dims[0] - 1
        part = rw.op("slice", op.input, axes=[0, 1], starts=[at, d], ends=[at + 1, d + 1])
        parts.append(rw.op("squeeze", part, axes=[0]))
    return parts[0] if len(parts) == 1 else rw.op("concat", parts, axis=0)


def _last_step(rw: Rewriter, states: ir.Value, d: int) -> ir.Value:
    """Take the last of a dynamic number of steps."""
    own = rw.op("slice", states, axes=[1], starts=[d], ends=[d + 1])
    first = rw.literal(np.zeros(1, np.int64))
    return rw.op("squeeze", rw.op("scan_slice", own, first, axis=0, direction=1), axes=[0])


def _last_of_loop(states: ir.Value, d: int, backward: bool) -> ir.Value | None:
    """Return the carried result of the loop whose scan output direction `d` of `states` is."""
    joined = defined_by(states, Concat)
    if joined is not None and joined.axis == 1:
        operands = list(joined.operation.operands)
        if any(TensorType.of(v).dims[1] != 1 for v in operands):
            return None
        states = operands[d]
    elif d:
        return None
    inserted = defined_by(states, Unsqueeze)
    if inserted is None or list(inserted.axes) != [1]:
        return None
    value = inserted.operation.operands[0]
    loop = defined_by(value, Loop)
    if loop is None or TensorType.of(value).dims[0] == 0:
        return None
    body = loop.operation.regions[0].blocks[0]
    yields = list(body.operations[len(body.operations) - 1].operation.operands)
    carried = len(yields) - 1 - len(list(loop.scan_output_directions))
    results: list[ir.Value] = list(loop.operation.results)
    k = results.index(value)
    if k < carried or yields[0] != body.arguments[1]:
        return None
    if bool(loop.scan_output_directions[k - carried]) != backward:
        return None
    for j in range(carried):
        if yields[1 + j] == yields[1 + k]:
            return loop.operation.results[j]
    return None


@pattern(RnnVarSlLastOutput)
def var_sl_last_output(op: RnnVarSlLastOutput, rw: Rewriter) -> Replacement:
    """rnn_var_sl_last_output(states, lens) -> gathernd(states, lens - 1), 0 for no steps"""
    t = TensorType.of(op.input)
    if not t.dims[0]:
        return no_match("no steps")
    if TensorType.of(op.out).dims != t.dims[1:]:
        return no_match("its result states other dims than its operand")
    lens = op.sequence_lens
    if TensorType.of(lens).dtype is not dtypes.INT64:
        lens = rw.op("convert", lens, target_type=dtypes.INT64)
    lens = rw.max(rw.min(lens, _extent(rw, op.input, 0)), 0)
    last = rw.max(rw.sub(lens, 1), 0)
    parts: list[ir.Value] = []
    for d in range(t.dims[1]):
        own = rw.op("slice", op.input, axes=[1], starts=[d], ends=[d + 1])
        own = rw.op("squeeze", own, axes=[1])
        if op.direction == "reverse" or d == 1:
            part = rw.op("slice", own, axes=[0], starts=[0], ends=[1])
            part = rw.op("squeeze", part, axes=[0])
        else:
            entries = _places(rw, op.input, 2)
            where = rw.op(
                "concat", [rw.unsqueeze(last, axes=[1]), rw.unsqueeze(entries, axes=[1])], axis=1
            )
            part = rw.op("gathernd", own, where)
        live = rw.unsqueeze(rw.convert(rw.greater(lens, 0), target_type=dtypes.BOOL), axes=[1])
        zero = rw.literal(np.zeros((1, 1), t.dtype.np))
        part = rw.op("where", _spread(rw, live, part), part, _spread(rw, zero, part))
        parts.append(rw.op("unsqueeze", part, axes=[0]))
    return parts[0] if len(parts) == 1 else rw.op("concat", parts, axis=0)


@pattern(RnnVarSlShiftOutput)
def var_sl_shift_output(op: RnnVarSlShiftOutput, rw: Rewriter) -> Replacement:
    """rnn_var_sl_shift_output(states, lens) -> gathernd(states, t + steps - lens), 0 behind"""
    t = TensorType.of(op.input)
    steps, directions, batch, _ = t.dims
    if DYN in t.dims[:3]:
        return no_match("run-time steps or batch: {}", t)
    lens = _lengths(rw, op.sequence_lens, steps)
    step = np.repeat(np.arange(steps, dtype=np.int64)[:, None], batch, 1)
    parts: list[ir.Value] = []
    for d in range(directions):
        own = rw.op("slice", op.input, axes=[1], starts=[d], ends=[d + 1])
        own = rw.op("squeeze", own, axes=[1])
        if op.direction == "reverse" or d == 1:
            own = _gathered(rw, own, rw.add(rw.literal(step), rw.sub(steps, lens)))
        parts.append(rw.op("unsqueeze", _where_less(rw, step, lens, own, 1), axes=[1]))
    return parts[0] if len(parts) == 1 else rw.op("concat", parts, axis=1)


@pattern(RnnVarSlShiftSequence)
def var_sl_shift_sequence(op: RnnVarSlShiftSequence, rw: Rewriter) -> Replacement:
    """rnn_var_sl_shift_sequence(x, lens) -> gathernd(x, t - steps + lens), 0 ahead"""
    t = TensorType.of(op.input)
    steps, batch, _ = t.dims
    if DYN in t.dims[:2]:
        return no_match("run-time steps or batch: {}", t)
    lens = _lengths(rw, op.sequence_lens, steps)
    step = np.repeat(np.arange(steps, dtype=np.int64)[:, None], batch, 1)
    start = rw.sub(steps, lens)
    moved = _gathered(rw, op.input, rw.sub(rw.literal(step), start))
    # step >= start: steps - 1 - step < lens
    return _where_less(rw, steps - 1 - step, lens, moved, 1)


def _lengths(rw: Rewriter, lens: ir.Value, steps: int) -> ir.Value:
    """Clamp the lengths, as i64, to [0, steps]."""
    if TensorType.of(lens).dtype is not dtypes.INT64:
        lens = rw.op("convert", lens, target_type=dtypes.INT64)
    return rw.min(rw.max(lens, 0), steps)


def _gathered(rw: Rewriter, x: ir.Value, step: ir.Value) -> ir.Value:
    """Gather x {steps, batch, width} at `step` {steps, batch}, clamped."""
    steps, batch = TensorType.of(step).dims
    entries = rw.multibroadcast(rw.literal(np.arange(batch, dtype=np.int64)), (steps, batch))
    step = rw.min(rw.max(step, 0), max(steps - 1, 0))
    where = rw.op("concat", [rw.unsqueeze(step, axes=[2]), rw.unsqueeze(entries, axes=[2])], axis=2)
    return rw.op("gathernd", x, where)


def _where_less(
    rw: Rewriter, low: np.ndarray | int, lens: ir.Value, x: ir.Value, new_axes: int
) -> ir.Value:
    """Build x where low < lens {batch}, else 0; x has `new_axes` axes behind the batch's."""
    shape = low if isinstance(low, int) else rw.literal(np.asarray(low))
    live = rw.convert(rw.less(shape, lens), target_type=dtypes.BOOL)
    rank = TensorType.of(live).rank
    live = rw.unsqueeze(live, axes=list(range(rank, rank + new_axes)))
    t = TensorType.of(x)
    zero = rw.literal(np.zeros((1,) * t.rank, t.dtype.np))
    live, zero = rw.broadcast(live, zero, x)[:2]
    return rw.op("where", live, x, zero)


@dataclass(frozen=True)
class RewriteRnn(PatternPass):
    """Replace recurrent networks by loops, not by unrolled cells.

    x W^T does not depend on the state, so one dot computes it for all steps before the loop, with
    the biases. The loop has a dot of the state with R, and pointwise ops. Variable lengths become a
    mask. On CPUs with vector kernels the whole loop is one kernel (rnn_steps, gru_steps,
    lstm_steps).
    """

    name: ClassVar[str] = "rewrite_rnn"
    vector: bool = option(False, "use a vector kernel for all steps where possible")
    patterns: ClassVar[tuple[Pattern, ...]] = (
        input_products,
        vanilla_rnn,
        gru,
        lstm,
        last_output,
        var_sl_last_output,
        var_sl_shift_output,
        var_sl_shift_sequence,
    )
