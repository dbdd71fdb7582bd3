"""com.microsoft: linear attention, with a state matrix that each token decays and updates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import BOOL, FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    convert,
    extent_as,
    less_equal,
    reshape,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.activation import softplus_of
from mgx_mlir.frontends.onnx.ops.control import counted_loop
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"
_RULES = {"linear": (False, False), "gated": (True, False), "delta": (False, True),
          "gated_delta": (True, True)}  # fmt: skip
_EPSILON = 1e-6  # least sum of squares in the normalisation of a head


@dataclass
class Tokens:
    """Values of each token in f32, tokens first: {tokens, batch, heads, ..}.

    `decay` is a logarithm, per head {.., 1} or per key element; `rate` is {.., 1}. `counts`
    {tokens, batch, 1, 1, 1}: whether the token exists.
    """

    query: Value
    key: Value
    value: Value
    decay: Value | None
    rate: Value | None
    counts: Value | None = None


def _attended(
    b: Builder, node: Node, t: Tokens, state: Value, count: Value, scale: float
) -> tuple[Value, Value]:
    """Return each token's output, {tokens, batch, heads, value size}, and the final state.

    state {batch, heads, key size, value size}.
    """

    def of(v: Value, number: Value) -> Value:
        return squeeze(b, b.gather(v, reshape(b, number, [1]), axis=0), [0])

    def token(number: Value, old: Value) -> tuple[Value, Value]:
        key, value = of(t.key, number), of(t.value, number)
        new = old
        if t.decay is not None:
            new = b.mul(new, unsqueeze(b, b.exp(of(t.decay, number)), [3]))
        row = unsqueeze(b, value, [2])
        if t.rate is not None:
            row = b.sub(row, b.dot(unsqueeze(b, key, [2]), new))
            row = b.mul(row, unsqueeze(b, of(t.rate, number), [3]))
        new = b.add(new, b.dot(unsqueeze(b, key, [3]), row))
        out = squeeze(b, b.dot(unsqueeze(b, of(t.query, number), [2]), new), [2])
        if t.counts is not None:
            new = b.where(of(t.counts, number), new, old)
        return b.mul(out, scale), new

    def inside(arguments: Sequence[ir.Value]) -> list[Any]:
        number, going, old = arguments
        out, new = token(number, old)
        return [going, new, out]

    flags = (TensorType(INT64, ()), TensorType(BOOL, ()))
    found = counted_loop(b, node, count, b.literal(np.bool_(True)), [state], inside, flags)
    assert found is not None
    return found[1], found[0]


def _shared(b: Builder, x: Value, heads: int, axis: int) -> Value:
    """Repeat heads to `heads` heads: each is repeated in a row."""
    have = b.dims(x)[axis]
    if have == heads:
        return x
    if have < 1 or heads % have:
        raise ModelError(f"{have} heads cannot be repeated to {heads}")
    index = b.literal(np.arange(heads, dtype=np.int64) // (heads // have))
    return b.gather(x, index, axis=axis)


def _rule(name: str, decay: Value | None, beta: Value | None) -> tuple[bool, bool]:
    if name not in _RULES:
        raise ModelError(f"attribute 'update_rule' expected {', '.join(_RULES)}, got {name}")
    decays, retrieves = _RULES[name]
    if (decays and decay is None) or (retrieves and beta is None):
        raise ModelError(f"expected decay and beta exactly if update_rule {name} reads them")
    return decays, retrieves


@onnx_op("LinearAttention", domain=MS)
def linear_attention(
    b: Builder,
    node: Node,
    query: Value,
    key: Value,
    value: Value,
    past_state: Value | None = None,
    decay: Value | None = None,
    beta: Value | None = None,
    *,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    state_window: int = 0,
    update_rule: str = "gated_delta",
) -> Outputs:
    """Import LinearAttention: heads {batch, tokens, heads x size}; each key head has a state
    matrix.
    """
    if state_window:
        raise NotSupported("a state_window")
    decays, retrieves = _rule(update_rule, decay, beta)
    dtype, batch = b.dtype(query), b.dims(query)[0]
    if batch == DYN or min(q_num_heads, kv_num_heads) < 1:
        raise NotSupported("a dynamic batch")
    heads = max(q_num_heads, kv_num_heads)

    def tokens(x: Value, count: int) -> Value:
        width = b.dims(x)[2]
        if width == DYN or width % count:
            raise ModelError(f"{width} columns do not divide into {count} heads")
        x = b.reshape(convert(b, x, FLOAT), dims=[0, 0, count, width // count])
        return _shared(b, transpose(b, x, [1, 0, 2, 3]), heads, 2)

    rate = None
    if retrieves and beta is not None:
        rate = tokens(beta, b.dims(beta)[2])
    t = Tokens(
        tokens(query, q_num_heads), tokens(key, kv_num_heads), tokens(value, kv_num_heads),
        None if decay is None or not decays else tokens(decay, kv_num_heads), rate,
    )  # fmt: skip
    size, width = b.dims(t.key)[3], b.dims(t.value)[3]
    state = zeros(b, (batch, heads, size, width), FLOAT)
    if past_state is not None:
        state = _shared(b, convert(b, past_state, FLOAT), heads, 1)
    count = extent_as(b, t.query, 0, INT64)
    out, state = _attended(b, node, t, state, count, scale or size**-0.5)
    out = b.reshape(transpose(b, out, [1, 0, 2, 3]), dims=[batch, -1, heads * width])
    if heads > kv_num_heads:
        first = np.arange(kv_num_heads, dtype=np.int64) * (heads // kv_num_heads)
        state = b.gather(state, b.literal(first), axis=1)
    kind = dtype if past_state is None else b.dtype(past_state)
    return convert(b, out, dtype), convert(b, state, kind)


def _normed(b: Builder, x: Value) -> Value:
    square = b.reduce_sum(b.mul(x, x), axes=[len(b.dims(x)) - 1])
    return b.mul(x, b.rsqrt(b.add(square, _EPSILON)))


def _gate(
    b: Builder, decay: Value, a_log: Value | None, bias: Value | None, kind: str, bound: float
) -> Value:
    """Return the logarithm of the decay, {tokens.., heads, 1 or key size}."""
    if kind == "none":
        return decay
    if a_log is None or bias is None:
        raise ModelError(f"expected a_log and dt_bias with gate_activation {kind}")
    heads = b.dims(a_log)[0]
    speed = b.exp(b.reshape(a_log, dims=[heads, 1]))
    x = b.add(decay, b.reshape(bias, dims=[heads, -1]))
    if kind in ("softplus", "qwen"):
        return b.mul(b.neg(speed), softplus_of(b, x))
    if kind in ("sigmoid", "kda"):
        return b.mul(b.sigmoid(b.mul(speed, x)), bound)
    raise ModelError(f"attribute 'gate_activation' expected none, softplus or sigmoid, got {kind}")


@onnx_op("GatedDeltaNet", domain=MS)
def gated_delta_net(
    b: Builder,
    node: Node,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    cu_seqlens: Value | None = None,
    decay: Value | None = None,
    beta: Value | None = None,
    initial_state: Value | None = None,
    a_log: Value | None = None,
    dt_bias: Value | None = None,
    capture_count: Value | None = None,
    state_update_active: Value | None = None,
    *,
    beta_activation: str = "none",
    chunk_size: int = 64,
    gate_activation: str = "none",
    gate_lower_bound: float = -5.0,
    qk_l2_norm: int = 0,
    scale: float = 0.0,
    state_update_capacity: int = 0,
    update_rule: str = "gated_delta",
) -> Outputs:
    """Import GatedDeltaNet: {tokens, heads, size}, of equal sequences, or with bounds `cu_seqlens`.

    The state is {batch, heads, value size, key size}.
    """
    if state_update_capacity or capture_count is not None:
        raise NotSupported("attribute state_update_capacity or input capture_count")
    if beta_activation not in ("none", "sigmoid"):
        raise ModelError(
            f"attribute 'beta_activation' expected none or sigmoid, got {beta_activation}"
        )
    decays, retrieves = _rule(update_rule, decay, beta)
    dtype, rank = b.dtype(query), len(b.dims(query))
    if key is None or value is None:
        query, key, value = _unpacked(b, query, initial_state)
        rank = 3
    batch = _batch(b, rank, query, cu_seqlens, initial_state)
    heads, width = b.dims(value)[-2:]
    size = b.dims(query)[-1]
    if DYN in (batch, heads, width, size):
        raise NotSupported("a dynamic batch, dynamic heads")
    ragged = None if cu_seqlens is None else _Ragged(b, convert(b, cu_seqlens, INT64), query, batch)

    def tokens(x: Value, columns: int) -> Value:
        """{tokens, batch, heads, columns} in f32."""
        own = [b.dims(x)[-2], b.dims(x)[-1]] if len(b.dims(x)) == rank else [b.dims(x)[-1], 1]
        x = b.reshape(convert(b, x, FLOAT), dims=[-1, *own])
        if ragged is not None:
            x = ragged.spread(x)
        else:
            x = transpose(b, b.reshape(x, dims=[batch, -1, *own]), [1, 0, 2, 3])
        return _shared(b, x, heads, 2)

    parts = [tokens(x, size) for x in (query, key)]
    if qk_l2_norm:
        parts = [_normed(b, x) for x in parts]
    slow = rate = None
    if decays and decay is not None:
        slow = _gate(b, tokens(decay, 1), a_log, dt_bias, gate_activation, gate_lower_bound)
    if retrieves and beta is not None:
        rate = tokens(beta, 1)
        rate = b.sigmoid(rate) if beta_activation == "sigmoid" else rate
    q, k = parts
    counts = None if ragged is None else ragged.counts
    t = Tokens(q, k, tokens(value, width), slow, rate, counts)
    state = zeros(b, (batch, heads, size, width), FLOAT)
    if initial_state is not None:
        state = transpose(b, initial_state, [0, 1, 3, 2])
    count = extent_as(b, t.query, 0, INT64)
    out, state = _attended(b, node, t, state, count, scale or size**-0.5)
    if ragged is not None:
        out = ragged.packed(out)
    else:
        out = b.reshape(transpose(b, out, [1, 0, 2, 3]), dims=[-1, heads, width])
    if rank == 4:
        out = b.reshape(out, dims=[batch, -1, heads, width])
    return convert(b, out, dtype), transpose(b, state, [0, 1, 3, 2]), None


def _batch(b: Builder, rank: int, query: Value, bounds: Value | None, state: Value | None) -> int:
    if bounds is not None:
        if rank == 4:
            raise ModelError("expected a query of rank 3 with cu_seqlens")
        held = b.dims(bounds)[0]
        return DYN if held == DYN else held - 1
    if rank == 4:
        return b.dims(query)[0]
    if state is None:
        raise ModelError("expected initial_state, or cu_seqlens, with a query of rank 3")
    return b.dims(state)[0]


def _unpacked(b: Builder, query: Value, state: Value | None) -> tuple[Value, Value, Value]:
    """Split columns into query, key and value; the state has the number of heads."""
    if state is None or len(b.dims(query)) != 2:
        raise ModelError("expected key and value, or initial_state and a query of rank 2")
    _, heads, width, size = b.dims(state)
    columns = b.dims(query)[1]
    if DYN in (heads, width, size, columns):
        raise NotSupported("dynamic heads")
    own, left = divmod(columns - heads * width, 2 * size)
    if own < 1 or left:
        raise ModelError(f"{columns} columns do not fit a state of dims {list(b.dims(state))}")
    ends = (0, own * size, 2 * own * size, columns)
    parts = [slice_(b, query, [1], [ends[i]], [ends[i + 1]]) for i in range(3)]
    dims = ((own, size), (own, size), (heads, width))
    q, k, v = (b.reshape(x, dims=[0, *d]) for x, d in zip(parts, dims, strict=True))
    return q, k, v


class _Ragged:
    """Ragged sequences, concatenated, and as a batch padded to the total number of tokens."""

    def __init__(self, b: Builder, bounds: Value, tokens: Value, batch: int) -> None:
        self.b, self.batch = b, batch
        place = arange(b, batch + 1)
        entry = arange(b, batch)

        def bound(shift: int) -> Value:
            mask = b.equal(unsqueeze(b, place, [0]), unsqueeze(b, b.add(entry, shift), [1]))
            held = b.where(mask, unsqueeze(b, bounds, [0]), 0)
            return squeeze(b, b.reduce_sum(held, axes=[1]), [1])

        start, stop = bound(0), bound(1)
        self.token = axis_range(b, tokens, 0)
        passed = less_equal(b, unsqueeze(b, stop, [0]), unsqueeze(b, self.token, [1]))
        self.mine = squeeze(b, b.reduce_sum(convert(b, passed, INT64), axes=[1]), [1])
        local = unsqueeze(b, self.token, [1])
        self.index = b.add(local, unsqueeze(b, start, [0]))  # {tokens, batch}
        inside = compare(b, "less", self.index, unsqueeze(b, stop, [0]))
        self.counts = unsqueeze(b, inside, [2, 3, 4])
        self.row = b.sub(self.token, b.gather(start, self.mine, axis=0))

    def spread(self, x: Value) -> Value:
        """Return {tokens, ..} as {tokens, batch, ..}: rows beyond a sequence's end are
        arbitrary.
        """
        return self.b.gather(x, self.index, axis=0)

    def packed(self, x: Value) -> Value:
        """Return {tokens, batch, heads, size} as {tokens, heads, size}."""
        b = self.b
        flat = b.reshape(x, dims=[-1, *b.dims(x)[2:]])
        return b.gather(flat, b.add(b.mul(self.row, self.batch), self.mine), axis=0)
