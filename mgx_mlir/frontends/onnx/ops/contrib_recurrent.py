"""DynamicQuantizeLSTM: matmuls of 8-bit codes, with inputs and states quantised dynamically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.dialects.migraphx.rnn import DIRECTIONS, direction_count
from mgx_mlir.frontends.extents import extents, reshaped
from mgx_mlir.frontends.helpers import convert, slice_, squeeze, transpose, unsqueeze, zeros
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.contrib_fused import NEEDED
from mgx_mlir.frontends.onnx.ops.contrib_quant import dynamic_quantize_matmul
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.shaping import reshape_known
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"
_FUNCTIONS = ("sigmoid", "tanh", "tanh")


@onnx_op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    peephole: Value | None = None,
    w_scale: Value = NEEDED,
    w_zero: Value = NEEDED,
    r_scale: Value = NEEDED,
    r_zero: Value = NEEDED,
    *,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Any, ...]:
    """Import DynamicQuantizeLSTM: one matmul of all inputs, then the steps, which quantise their
    states.
    """
    if sequence_lens is not None or peephole is not None:
        raise NotSupported("sequence_lens or P")
    functions = tuple(f.lower() for f in activations or ())
    if functions not in ((), _FUNCTIONS, _FUNCTIONS * 2) or clip or input_forget:
        raise NotSupported("other activations, clip or input_forget")
    if direction not in DIRECTIONS:
        raise ModelError(
            f"attribute 'direction' expected {', '.join(DIRECTIONS)}, got '{direction}'"
        )
    if any(len(b.dims(v)) != 3 for v in (x, w, r)):
        raise ModelError("X, W and R expected rank 3")
    size = b.dims(r)[1]
    if hidden_size not in (None, size):
        raise ModelError(f"attribute 'hidden_size' expected {size} as in R, got {hidden_size}")
    for state in (initial_h, initial_c):  # a dynamic batch has the size of the initial states
        if state is not None and b.dims(x)[1] == DYN and b.dims(state)[1] != DYN:
            x = reshape_known(b, x, [0, b.dims(state)[1], 0], False)
    width = b.dims(x)[2]
    flat = x if width == DYN else b.reshape(x, dims=[-1, width])  # one matmul instead of a batch
    ways = direction_count(direction)
    biases = [_bias(b, bias, number, size, x) for number in range(ways)]
    found = dynamic_quantize_matmul(
        b, node, flat, _side_by_side(b, w), _columns(b, w_scale, 4 * size),
        _columns(b, w_zero, 4 * size), b.concat(biases, axis=0),
    )  # fmt: skip
    if width != DYN:
        found = reshaped(b, found, [*extents(b, x)[:2], ways * 4 * size])
    states, cells = b.op(
        "lstm_steps", found, _whole(b, r, r_zero, x), None, None,
        initial_h, initial_c, None, _of_rows(b, r_scale, 4 * size),
        hidden_size=size, direction=direction,
        actv_func=list(_FUNCTIONS) * ways,
    )  # fmt: skip
    ht = b.op("rnn_last_hs_output", states, direction=direction)
    ct = b.op("rnn_last_cell_output", cells, direction=direction)
    return states, ht, ct


def _whole(b: Builder, codes: Value, zero: Value, x: Value) -> Value:
    """Return weights {directions, hidden, rows} minus zero points, as {directions, rows, hidden}.

    They have the type of `x`; zero points are per direction or per row.
    """
    kind = b.dtype(x)
    zero = unsqueeze(b, convert(b, zero, kind), [1] if len(b.dims(zero)) == 2 else [1, 2])
    return transpose(b, b.sub(convert(b, codes, kind), zero), (0, 2, 1))


def _side_by_side(b: Builder, w: Value) -> Value:
    """Return the weights {directions, inputs, columns} of all directions as {inputs, columns}."""
    ways, _, columns = b.dims(w)
    if ways == 1:
        return squeeze(b, w, [0])
    turned = transpose(b, w, (1, 0, 2))
    return b.reshape(turned, dims=[0, ways * columns])


def _columns(b: Builder, v: Value, columns: int) -> Value:
    """Return a value per direction, or per column, as a row: one number if all are known to be
    equal, else one per column of all directions.
    """
    known = b.const(v)
    if known is not None and known.size and (known == known.reshape(-1)[0]).all():
        return b.literal(known.reshape(-1)[0])
    return b.reshape(_of_rows(b, v, columns), dims=[-1])


def _of_rows(b: Builder, scale: Value, rows: int) -> Value:
    """Return scales per direction or per row as {directions, rows}."""
    dims = b.dims(scale)
    if len(dims) == 2:
        return scale
    return b.multibroadcast(unsqueeze(b, scale, [1]), (dims[0], rows))


def _part(b: Builder, v: Value, number: int) -> Value:
    """Return a direction's part of an operand; a scale for each column stays a row."""
    return squeeze(b, slice_(b, v, [0], [number], [number + 1]), [0])


def _bias(b: Builder, bias: Value | None, number: int, size: int, x: Value) -> Value:
    """Return the sum of a direction's two biases: of the matmuls with x and with h."""
    if bias is None:
        return zeros(b, (4 * size,), b.dtype(x))
    own = _part(b, bias, number)
    parts: Sequence[Value] = [slice_(b, own, [0], [at], [at + 4 * size]) for at in (0, 4 * size)]
    return b.add(*parts)
