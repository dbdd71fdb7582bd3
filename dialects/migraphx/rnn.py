"""Recurrent networks: rnn, gru, lstm, and the ops that take their last or shifted states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import TensorType, can_hold, merge_dim, show_dims
from mgx_mlir.dialects.migraphx.activations import Activation, parse_activation
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, check_same_dtype
from mgx_mlir.dialects.migraphx.pointwise_base import FLOAT, check_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, floats

DIRECTIONS = ("forward", "reverse", "bidirectional")
Array = np.ndarray
Function = Callable[[Array], Array]


def direction_count(direction: str) -> int:
    """Return the number of directions that a recurrent op runs in."""
    return 2 if direction == "bidirectional" else 1


def activations(
    texts: Sequence[str], per_direction: int, directions: int
) -> list[list[Activation]]:
    """Return the functions of each direction; a list for one direction applies to both."""
    check(
        len(texts) in (per_direction, 2 * per_direction),
        lambda: (
            f"actv_func expected {per_direction} or {2 * per_direction} operators, got {len(texts)}"
        ),
    )
    parsed = [parse_activation(t) for t in texts]
    return [
        parsed[d * per_direction : (d + 1) * per_direction] or parsed[:per_direction]
        for d in range(directions)
    ]


def _callables(texts: Sequence[str], per_direction: int, directions: int) -> list[list[Function]]:
    return [[f.reference for f in row] for row in activations(texts, per_direction, directions)]


def expect_dims(t: TensorType | None, name: str, dims: Sequence[int]) -> None:
    if t is None:
        return
    fits = t.rank == len(dims) and all(
        merge_dim(have, want) is not None for have, want in zip(t.dims, dims, strict=True)
    )
    check(fits, lambda: f"{name} expected dims {show_dims(dims)}, got {show_dims(t.dims)}")


def infer_states(
    o: InferView, gates: int, functions: int, weights: TensorType | None
) -> TensorType:
    """Infer the type of all states {sequence, directions, batch, hidden}; check the rest.

    weights: None if the input is already multiplied by them.
    """
    check_dtype(o.input, FLOAT)
    given = (weights, o.recurrence, o.bias, o.initial_h)
    check_same_dtype([o.input, *(t for t in given if t is not None)])
    check_rank(o.input, 3, "input")
    check(o.hidden_size >= 1, lambda: f"hidden_size expected at least 1, got {o.hidden_size}")
    check(o.clip >= 0, lambda: f"clip expected 0 (none) or more, got {o.clip}")
    d, h = direction_count(o.direction), o.hidden_size
    sequence, batch, width = o.input.dims
    activations(o.actv_func, functions, d)
    if weights is None:
        expect_dims(o.input, "input", (sequence, batch, d * gates * h))
    expect_dims(weights, "weights", (d, gates * h, width))
    expect_dims(o.recurrence, "recurrence", (d, gates * h, h))
    expect_dims(o.bias, "bias", (d, 2 * gates * h))
    check_index_type(o.sequence_lens, "sequence_lens")
    expect_dims(o.sequence_lens, "sequence_lens", (batch,))
    expect_dims(o.initial_h, "initial_h", (d, batch, h))
    return o.input.with_dims((sequence, d, batch, h))


def infer_cells(o: InferView, states: TensorType) -> list[TensorType]:
    """Infer the types of hidden and cell states; check the operands that only lstm has."""
    _, d, batch, h = states.dims
    extra = [t for t in (o.initial_c, o.peephole) if t is not None]
    check_same_dtype([o.input, *extra])
    expect_dims(o.initial_c, "initial_c", (d, batch, h))
    expect_dims(o.peephole, "peephole", (d, 3 * h))
    return [states, states]


def _products(x: Array, w: Array | None, directions: int) -> list[Array]:
    """Return x w^T of each direction {sequence, batch, gates hidden}; w None: x is that already."""
    if w is None:
        return np.split(x, directions, axis=2)
    return [x @ own.T for own in w]


def _lengths(lens: Array | None, x: Array) -> Array:
    """Return the number of valid steps of each batch entry."""
    longest: int = x.shape[0]
    batch: int = x.shape[1]
    if lens is None:
        return np.full(batch, longest, np.int64)
    return np.clip(lens.astype(np.int64), 0, longest)


def _limited(clip: float) -> Function:
    return (lambda x: np.clip(x, -clip, clip)) if clip else (lambda x: x)


def _steps(direction: str, d: int, n: int) -> Iterator[int]:
    backward = direction == "reverse" or d == 1
    return iter(range(n - 1, -1, -1) if backward else range(n))


def _bias(bias: Array | None, d: int, gates: int, h: int, like: Array) -> tuple[Array, Array]:
    """Return the input's and the recurrence's bias of direction d."""
    if bias is None:
        zero = np.zeros(gates * h, like.dtype)
        return zero, zero
    return bias[d, : gates * h], bias[d, gates * h :]


def _initial(state: Array | None, d: int, like: Array, h: int) -> Array:
    return np.zeros((like.shape[1], h), like.dtype) if state is None else state[d]


def _in_8_bits(state: Array) -> tuple[Array, Array]:
    """Return integers for a state, and their step: 256 over the range of all rows, which includes
    0.

    NaN is ignored in the range, and becomes its least value.
    """
    low, high = float(np.nanmin(state, initial=0)), float(np.nanmax(state, initial=0))
    scale = np.asarray((high - low) / 255 if high > low else 1, state.dtype)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    codes = np.rint(state / scale)
    return np.minimum(np.where(codes >= -zero, codes, -zero), 255 - zero), scale


def _random(*dims: int, seed: int = 0) -> Array:
    return floats(*dims, seed=seed) * np.float32(0.5)


class RecurrentAttributes(Op):
    """Base of the recurrent ops and their steps: their common attributes."""

    hidden_size = attr.int_(1)
    actv_func = attr.strs(("tanh", "tanh"))
    direction = attr.enum(DIRECTIONS, "forward")
    clip = attr.float_(0.0)


class Recurrent(RecurrentAttributes):
    """Base of the recurrent ops: their operands up to `initial_h`, in ONNX's order."""

    input: Operand
    weights: Operand
    recurrence: Operand
    bias: Operand | None
    sequence_lens: Operand | None
    initial_h: Operand | None


class Rnn(Recurrent, name="rnn"):
    """h' = f(x W^T + h R^T + bias), step by step.

    `input` {sequence, batch, width}, `weights` W {directions, hidden, width}, `recurrence` R
    {directions, hidden, hidden}, optional `bias` {directions, 2 hidden}, `sequence_lens` {batch}
    (integers; steps beyond give 0), `initial_h` {directions, batch, hidden}; one float type.
    Result: all states {sequence, directions, batch, hidden}. `actv_func` names one pointwise
    operator for each direction, `clip` bounds their arguments where it is not 0. Errors: dims
    that do not fit, unknown activations. MIGraphX `rnn`; ONNX RNN.

    ```mlir
    %0 = "migraphx.rnn"(%x, %w, %r) {hidden_size = 4 : i64, actv_func = ["tanh"]}
           : (tensor<5x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
    ```
    """

    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return infer_states(o, 1, 1, o.weights)

    @staticmethod
    def reference(
        x: Array,
        w: Array | None,
        r: Array,
        bias: Array | None = None,
        sequence_lens: Array | None = None,
        initial_h: Array | None = None,
        *,
        hidden_size: int,
        actv_func: Sequence[str],
        direction: str,
        clip: float,
    ) -> Array:
        directions, h = direction_count(direction), hidden_size
        lens, limit = _lengths(sequence_lens, x), _limited(clip)
        products = _products(x, w, directions)
        out = np.zeros((x.shape[0], directions, x.shape[1], h), x.dtype)
        for d, (f,) in enumerate(_callables(actv_func, 1, directions)):
            wb, rb = _bias(bias, d, 1, h, x)
            state = _initial(initial_h, d, x, h)
            for t in _steps(direction, d, x.shape[0]):
                live = (t < lens)[:, None]
                found = f(limit(products[d][t] + state @ r[d].T + wb + rb))
                state = np.where(live, found, state)
                out[t, d] = np.where(live, found, 0)
        return out

    @staticmethod
    def examples() -> list[Example]:
        return _examples(1, ("tanh",), ("relu", "tanh"))


class Gru(Recurrent, name="gru"):
    """Gated recurrent units: update z, reset r, candidate g; h' = (1 - z) g + z h.

    Operands and result as `rnn`, with 3 hidden rows of W and R in the order z, r, g and 6 hidden
    biases. `actv_func` names f (of z, r) and g for each direction; `linear_before_reset` applies
    r after the candidate's product with R. MIGraphX `gru`; ONNX GRU.

    ```mlir
    %0 = "migraphx.gru"(%x, %w, %r) {hidden_size = 4 : i64}
           : (tensor<5x2x3xf32>, tensor<1x12x3xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
    ```
    """

    out: Result
    actv_func = attr.strs(("sigmoid", "tanh"))
    linear_before_reset = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return infer_states(o, 3, 2, o.weights)

    @staticmethod
    def reference(
        x: Array,
        w: Array | None,
        r: Array,
        bias: Array | None = None,
        sequence_lens: Array | None = None,
        initial_h: Array | None = None,
        *,
        hidden_size: int,
        actv_func: Sequence[str],
        direction: str,
        clip: float,
        linear_before_reset: int,
    ) -> Array:
        directions, h = direction_count(direction), hidden_size
        lens, limit = _lengths(sequence_lens, x), _limited(clip)
        products = _products(x, w, directions)
        out = np.zeros((x.shape[0], directions, x.shape[1], h), x.dtype)
        for d, (f, g) in enumerate(_callables(actv_func, 2, directions)):
            rz, rr, rg = r[d].reshape(3, h, h)
            wb, rb = _bias(bias, d, 3, h, x)
            (wbz, wbr, wbg), (rbz, rbr, rbg) = wb.reshape(3, h), rb.reshape(3, h)
            state = _initial(initial_h, d, x, h)
            for t in _steps(direction, d, x.shape[0]):
                live = (t < lens)[:, None]
                xz, xr, xg = np.split(products[d][t], 3, axis=1)
                z = f(limit(xz + state @ rz.T + wbz + rbz))
                reset = f(limit(xr + state @ rr.T + wbr + rbr))
                if linear_before_reset:
                    inner = reset * (state @ rg.T + rbg)
                else:
                    inner = (reset * state) @ rg.T + rbg
                found = (1 - z) * g(limit(xg + inner + wbg)) + z * state
                state = np.where(live, found, state)
                out[t, d] = np.where(live, found, 0)
        return out

    @staticmethod
    def examples() -> list[Example]:
        return [
            *_examples(3, ("sigmoid", "tanh"), ("sigmoid", "tanh", "sigmoid", "relu")),
            *_examples(3, ("sigmoid", "tanh"), ("sigmoid", "tanh"), linear_before_reset=1),
        ]


class Lstm(Recurrent, name="lstm"):
    """Long short-term memory: gates i, o, f, candidate g; c' = f c + i g, h' = o tanh(c').

    Operands as `rnn`, with 4 hidden rows of W and R in the order i, o, f, g and 8 hidden biases,
    then optional `initial_c` {directions, batch, hidden} and `peephole` {directions, 3 hidden} (i,
    o, f). `actv_func` names the functions of the gates, of g and of c' for each direction;
    `input_forget` makes f = 1 - i. Results: all hidden states and all cell states {sequence,
    directions, batch, hidden}. MIGraphX `lstm` (there one result, cells by another op); ONNX LSTM.

    ```mlir
    %h, %c = "migraphx.lstm"(%x, %w, %r) {hidden_size = 4 : i64}
           : (tensor<5x2x3xf32>, tensor<1x16x3xf32>, tensor<1x16x4xf32>)
           -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
    ```
    """

    initial_c: Operand | None
    peephole: Operand | None
    out: Result
    cells: Result
    actv_func = attr.strs(("sigmoid", "tanh", "tanh"))
    input_forget = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> list[TensorType]:
        return infer_cells(o, infer_states(o, 4, 3, o.weights))

    @staticmethod
    def reference(
        x: Array,
        w: Array | None,
        r: Array,
        bias: Array | None = None,
        sequence_lens: Array | None = None,
        initial_h: Array | None = None,
        initial_c: Array | None = None,
        peephole: Array | None = None,
        recurrence_scale: Array | None = None,
        *,
        hidden_size: int,
        actv_func: Sequence[str],
        direction: str,
        clip: float,
        input_forget: int,
    ) -> tuple[Array, Array]:
        directions, h = direction_count(direction), hidden_size
        lens, limit = _lengths(sequence_lens, x), _limited(clip)
        products = _products(x, w, directions)
        out = np.zeros((x.shape[0], directions, x.shape[1], h), x.dtype)
        cells = np.zeros_like(out)
        for d, (f, g, last) in enumerate(_callables(actv_func, 3, directions)):
            wb, rb = _bias(bias, d, 4, h, x)
            peeked = None if peephole is None else peephole[d].reshape(3, h)

            def gate(v: Array, part: int, c: Array, own: Array | None = peeked) -> Array:
                return limit(v if own is None else v + own[part] * c)

            state, cell = _initial(initial_h, d, x, h), _initial(initial_c, d, x, h)
            for t in _steps(direction, d, x.shape[0]):
                live = (t < lens)[:, None]
                if recurrence_scale is None:
                    product = state @ r[d].T
                else:
                    codes, step = _in_8_bits(state)
                    product = np.asarray(codes @ r[d].T * (step * recurrence_scale[d]), x.dtype)
                gates = products[d][t] + product + wb + rb
                i, o, forget, candidate = np.split(gates, 4, axis=1)
                i = f(gate(i, 0, cell))
                forget = 1 - i if input_forget else f(gate(forget, 2, cell))
                new_cell = forget * cell + i * g(limit(candidate))
                found = f(gate(o, 1, new_cell)) * last(new_cell)
                state, cell = np.where(live, found, state), np.where(live, new_cell, cell)
                out[t, d], cells[t, d] = np.where(live, found, 0), np.where(live, new_cell, 0)
        return out, cells

    @staticmethod
    def examples() -> list[Example]:
        six = ("sigmoid", "tanh", "tanh", "sigmoid", "relu", "tanh")
        found = _examples(4, ("sigmoid", "tanh", "tanh"), six)
        h = 4
        operands, attributes = found[0]
        cell, peephole = _random(1, 2, h, seed=5), _random(1, 3 * h, seed=6)
        full = (*operands, *[None] * (6 - len(operands)), cell, peephole)
        return [*found, (full, attributes), (full, {**attributes, "clip": 0.3})]


def _examples(
    gates: int, one: Sequence[str], two: Sequence[str], **attributes: object
) -> list[Example]:
    s, b, i, h = 5, 2, 3, 4
    found: list[Example] = []
    for direction in DIRECTIONS:
        d = direction_count(direction)
        x, w = _random(s, b, i), _random(d, gates * h, i, seed=1)
        r, bias = _random(d, gates * h, h, seed=2), _random(d, 2 * gates * h, seed=3)
        initial = _random(d, b, h, seed=4)
        shared: dict[str, object] = {
            "hidden_size": h,
            "direction": direction,
            "actv_func": list(two if d == 2 else one),
            **attributes,
        }
        lens = np.array([5, 3], np.int32)
        found += [
            example(x, w, r, **shared),
            example(x, w, r, bias, None, initial, **shared),
            example(x, w, r, bias, lens, initial, **shared),
        ]
    return found


# ---- states of a sequence ------------------------------------------------------------------------


def _check_states(t: TensorType) -> None:
    check_rank(t, 4, "states")


def _check_lengths(lens: TensorType, batch: int) -> None:
    check_index_type(lens, "sequence_lens")
    expect_dims(lens, "sequence_lens", (batch,))


def _backward(direction: str, d: int) -> bool:
    return direction == "reverse" or d == 1


class LastState(Op):
    """Base of the ops that take the state after the last step of each direction."""

    input: Operand
    out: Result
    direction = attr.enum(DIRECTIONS, "forward")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        _check_states(o.input)
        check(can_hold([o.input.dims[0]], [1]), "states expected at least one step, got none")
        return o.input.with_dims(o.input.dims[1:])

    @staticmethod
    def reference(x: Array, *, direction: str) -> Array:
        last = [0 if _backward(direction, d) else x.shape[0] - 1 for d in range(x.shape[1])]
        return np.stack([x[t, d] for d, t in enumerate(last)])

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(5, 1, 2, 3)),
            example(floats(5, 1, 2, 3), direction="reverse"),
            example(floats(5, 2, 2, 3), direction="bidirectional"),
        ]


class RnnLastHsOutput(LastState, name="rnn_last_hs_output"):
    """The last hidden state {directions, batch, hidden} of {sequence, directions, batch, hidden}.

    Any type. The last step of the reverse direction is the first of the sequence. MIGraphX
    `rnn_last_hs_output` (there the operand is the recurrent op itself, here `direction` says it).

    ```mlir
    %0 = "migraphx.rnn_last_hs_output"(%h) {direction = "forward"}
           : (tensor<5x1x2x4xf32>) -> tensor<1x2x4xf32>
    ```
    """


class RnnLastCellOutput(LastState, name="rnn_last_cell_output"):
    """The last cell state {directions, batch, hidden}, of lstm's second result.

    Any type. MIGraphX `rnn_last_cell_output` (there the operand is the lstm).

    ```mlir
    %0 = "migraphx.rnn_last_cell_output"(%c) {direction = "forward"}
           : (tensor<5x1x2x4xf32>) -> tensor<1x2x4xf32>
    ```
    """


class RnnVarSlLastOutput(Op, name="rnn_var_sl_last_output"):
    """The last state of each batch entry by its own length; 0 for a length of 0.

    `input` {sequence, directions, batch, hidden} of any type, `sequence_lens` {batch} integers.
    Backward directions end at step 0. MIGraphX `rnn_var_sl_last_output`.

    ```mlir
    %0 = "migraphx.rnn_var_sl_last_output"(%h, %lens) {direction = "forward"}
           : (tensor<5x1x2x4xf32>, tensor<2xi32>) -> tensor<1x2x4xf32>
    ```
    """

    input: Operand
    sequence_lens: Operand
    out: Result
    direction = attr.enum(DIRECTIONS, "forward")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        _check_states(o.input)
        _check_lengths(o.sequence_lens, o.input.dims[2])
        return o.input.with_dims(o.input.dims[1:])

    @staticmethod
    def reference(x: Array, sequence_lens: Array, *, direction: str) -> Array:
        lens = np.clip(sequence_lens.astype(np.int64), 0, x.shape[0])
        out = np.zeros(x.shape[1:], x.dtype)
        for d, n in np.ndindex(x.shape[1:3]):
            if lens[n]:
                out[d, n] = x[0 if _backward(direction, d) else lens[n] - 1, d, n]
        return out

    @staticmethod
    def examples() -> list[Example]:
        lens = np.array([3, 5, 0], np.int32)
        return [example(floats(5, direction_count(d), 3, 2), lens, direction=d) for d in DIRECTIONS]


class RnnVarSlShiftOutput(Op, name="rnn_var_sl_shift_output"):
    """States beyond each length as 0; those of backward directions moved to the front.

    `input` {sequence, directions, batch, hidden} of any type, `sequence_lens` {batch} integers.
    Undoes rnn_var_sl_shift_sequence for the results. MIGraphX `rnn_var_sl_shift_output`;
    `output_name` says whether these are hidden or cell states.

    ```mlir
    %0 = "migraphx.rnn_var_sl_shift_output"(%h, %lens) {direction = "reverse"}
           : (tensor<5x1x2x4xf32>, tensor<2xi32>) -> tensor<5x1x2x4xf32>
    ```
    """

    input: Operand
    sequence_lens: Operand
    out: Result
    output_name = attr.str_("hidden_states")
    direction = attr.enum(DIRECTIONS, "forward")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        _check_states(o.input)
        _check_lengths(o.sequence_lens, o.input.dims[2])
        return o.input

    @staticmethod
    def reference(x: Array, sequence_lens: Array, *, output_name: str, direction: str) -> Array:
        lens = np.clip(sequence_lens.astype(np.int64), 0, x.shape[0])
        out = np.zeros_like(x)
        for d, n in np.ndindex(x.shape[1:3]):
            start = x.shape[0] - lens[n] if _backward(direction, d) else 0
            out[: lens[n], d, n] = x[start : start + lens[n], d, n]
        return out

    @staticmethod
    def examples() -> list[Example]:
        return RnnVarSlLastOutput.examples()


class RnnVarSlShiftSequence(Op, name="rnn_var_sl_shift_sequence"):
    """Each sequence moved to the end of the steps, 0 before it.

    `input` {sequence, batch, width} of any type, `sequence_lens` {batch} integers. A backward pass
    then reads the last element first. MIGraphX `rnn_var_sl_shift_sequence`.

    ```mlir
    %0 = "migraphx.rnn_var_sl_shift_sequence"(%x, %lens)
           : (tensor<5x2x3xf32>, tensor<2xi32>) -> tensor<5x2x3xf32>
    ```
    """

    input: Operand
    sequence_lens: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.input, 3, "input")
        _check_lengths(o.sequence_lens, o.input.dims[1])
        return o.input

    @staticmethod
    def reference(x: Array, sequence_lens: Array) -> Array:
        lens = np.clip(sequence_lens.astype(np.int64), 0, x.shape[0])
        out = np.zeros_like(x)
        for n in range(x.shape[1]):
            out[x.shape[0] - lens[n] :, n] = x[: lens[n], n]
        return out

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(5, 3, 2), np.array([3, 5, 0], np.int32))]
