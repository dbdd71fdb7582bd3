"""Recurrent cells that are one operator in TensorFlow, and BlockLSTM, a sequence of them."""

from __future__ import annotations

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import elements, extents, zeros_of
from mgx_mlir.frontends.helpers import number, slice_, squeeze, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.shaping import split_evenly, split_static
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

_LSTM = ("i", "cs", "f", "o", "ci", "co", "h")


def _gates(b: Builder, x: Value, h: Value, w: Value, bias: Value, count: int) -> list[Value]:
    both = b.add(b.dot(b.concat([x, h], axis=1), w), bias)
    size = b.dims(both)[1]
    if size == DYN:
        return list(split_evenly(b, both, 1, count))
    if size % count:
        raise ModelError(f"weights expected {count} gates, got {size} columns")
    return list(split_static(b, both, 1, [size // count] * count))


def _lstm(
    b: Builder,
    x: Value,
    cs_prev: Value,
    h_prev: Value,
    w: Value,
    peepholes: tuple[Value, Value, Value] | None,
    bias: Value,
    forget_bias: float,
    clip: float,
    order: str,
) -> tuple[Value, ...]:
    """Return one LSTM step; `order` is the order of the gates in the weights."""
    parts = dict(zip(order, _gates(b, x, h_prev, w, bias, 4), strict=True))
    i, f, o = parts["i"], parts["f"], parts["o"]
    if forget_bias:
        f = b.add(f, forget_bias)
    if peepholes is not None:
        i, f = b.add(i, b.mul(cs_prev, peepholes[0])), b.add(f, b.mul(cs_prev, peepholes[1]))
    i, f, ci = b.sigmoid(i), b.sigmoid(f), b.tanh(parts["c"])
    cs = b.add(b.mul(ci, i), b.mul(cs_prev, f))
    if clip > 0:
        cs = b.clip(cs, number(b, -clip, cs), number(b, clip, cs))
    if peepholes is not None:
        o = b.add(o, b.mul(cs, peepholes[2]))
    o, co = b.sigmoid(o), b.tanh(cs)
    return i, cs, f, o, ci, co, b.mul(co, o)


@tf_op("LSTMBlockCell", outputs=_LSTM)
def lstm_block_cell(
    b: Builder,
    node: Node,
    x: Value,
    cs_prev: Value,
    h_prev: Value,
    w: Value,
    wci: Value,
    wcf: Value,
    wco: Value,
    bias: Value,
    *,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
) -> Outputs:
    """Import LSTMBlockCell: one step of an LSTM."""
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _lstm(b, x, cs_prev, h_prev, w, peepholes, bias, forget_bias, cell_clip, "icfo")


def _run(
    b: Builder,
    steps: Value,
    x: Value,
    cs: Value,
    h: Value,
    w: Value,
    peepholes: tuple[Value, Value, Value] | None,
    bias: Value,
    forget_bias: float,
    clip: float,
    order: str,
) -> tuple[Value, ...]:
    """Run a step for each element of axis 0; results after `steps` of them are 0."""
    count = b.dims(x)[0]
    [limit] = elements(b, steps)
    if count == DYN or not isinstance(limit, int):
        raise NotSupported("a number of steps that is known at run time only")
    limits.parts(count, "steps")
    rows: list[tuple[Value, ...]] = []
    for t in range(count):
        if t < limit:
            step = squeeze(b, slice_(b, x, [0], [t], [t + 1]), [0])
            rows.append(_lstm(b, step, cs, h, w, peepholes, bias, forget_bias, clip, order))
            cs, h = rows[-1][1], rows[-1][6]
        else:
            zero = zeros_of(b, extents(b, h), b.dtype(h))
            rows.append((zero,) * 7)
    if not rows:
        raise NotSupported("no steps")
    return tuple(
        b.concat([unsqueeze(b, v, [0]) for v in column], axis=0)
        for column in zip(*rows, strict=True)
    )


@tf_op("BlockLSTM", outputs=_LSTM)
def block_lstm(
    b: Builder,
    node: Node,
    steps: Value,
    x: Value,
    cs: Value,
    h: Value,
    w: Value,
    wci: Value,
    wcf: Value,
    wco: Value,
    bias: Value,
    *,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
) -> Outputs:
    """Import BlockLSTM: an LSTM over time, with a forget bias."""
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _run(b, steps, x, cs, h, w, peepholes, bias, forget_bias, cell_clip, "icfo")


@tf_op("BlockLSTMV2", outputs=_LSTM)
def block_lstm_v2(
    b: Builder,
    node: Node,
    steps: Value,
    x: Value,
    cs: Value,
    h: Value,
    w: Value,
    wci: Value,
    wcf: Value,
    wco: Value,
    bias: Value,
    *,
    cell_clip: float = 0.0,
    use_peephole: bool = False,
) -> Outputs:
    """Import BlockLSTMV2: BlockLSTM with the gates in another order."""
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _run(b, steps, x, cs, h, w, peepholes, bias, 0.0, cell_clip, "ifco")


@tf_op("GRUBlockCell", outputs=("r", "u", "c", "h"))
def gru_block_cell(
    b: Builder,
    node: Node,
    x: Value,
    h: Value,
    w_ru: Value,
    w_c: Value,
    b_ru: Value,
    b_c: Value,
) -> Outputs:
    """Import GRUBlockCell: one step of a GRU."""
    r, u = (b.sigmoid(g) for g in _gates(b, x, h, w_ru, b_ru, 2))
    [c] = _gates(b, x, b.mul(h, r), w_c, b_c, 1)
    c = b.tanh(c)
    kept = b.mul(u, h)
    return r, u, c, b.add(b.sub(c, b.mul(u, c)), kept)
