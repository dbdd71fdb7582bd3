"""com.microsoft: linear attention and gated delta networks, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check

from mgx_mlir.core.errors import MgxError

RULES = ("linear", "gated", "delta", "gated_delta")


def unit(x: np.ndarray, size: int) -> np.ndarray:
    """Heads of length 1: others let the recurrence grow without bound."""
    heads = x.reshape(*x.shape[:-1], -1, size)
    heads = heads / np.linalg.norm(heads.astype(np.float64), axis=-1, keepdims=True)
    return heads.reshape(x.shape).astype(x.dtype)


def attention(g: Draws, rule: str) -> Case:
    batch, length, size, width = g.size(1, 2), g.size(1, 5), g.pick(4, 8), g.pick(4, 6)
    kv = g.size(1, 2)
    heads = g.pick(1, kv, 2 * kv)
    a: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": kv, "update_rule": rule}
    if g.coin():
        a["scale"] = 0.3
    key = unit(g.floats(batch, length, kv * size), size)
    given = [g.floats(batch, length, heads * size), key, g.floats(batch, length, kv * width)]
    given.append(g.floats(batch, kv, size, width) if g.coin() else None)
    columns = kv * g.pick(1, size)
    given.append(-g.positive(batch, length, columns) if "gated" in rule else None)
    given.append(g.positive(batch, length, g.pick(1, kv)) / 2 if "delta" in rule else None)
    return Case("LinearAttention", given, a, 2, tol=3e-5)


@pytest.mark.parametrize("rule", RULES)
def test_linear_attention(rule: str) -> None:
    g = Draws(RULES.index(rule))
    check([attention(g, rule) for _ in range(5)])


def network(g: Draws, rule: str, dtype: Any) -> Case:
    size, width, own = g.pick(4, 8), g.pick(4, 6), g.size(1, 2)
    heads = own * g.size(1, 2)
    form = g.pick("uniform", "ragged", "rank 4", "packed")
    lengths = [g.size(1, 4)] * g.size(1, 2)
    if form == "ragged":
        lengths = [g.size(1, 4) for _ in range(g.size(1, 3))]
    batch, count = len(lengths), sum(lengths)
    lead = (batch, lengths[0]) if form == "rank 4" else (count,)
    a: dict[str, Any] = {"update_rule": rule, "qk_l2_norm": 1}
    query, key = (g.floats(*lead, own, size, dtype=dtype) for _ in range(2))
    value = g.floats(*lead, heads, width, dtype=dtype)
    bounds = np.cumsum([0, *lengths]).astype(np.int32) if form == "ragged" else None
    state = g.floats(batch, heads, width, size)
    if form in ("ragged", "rank 4") and g.coin():
        state = None
    parts = [query, key, value]
    if form == "packed":
        parts = [np.concatenate([p.reshape(count, -1) for p in parts], 1), None, None]
    decay = beta = a_log = bias = None
    if "gated" in rule:
        columns = g.pick((), (size,))
        decay = -g.positive(*lead, heads, *columns)
        gate = g.pick("none", "softplus", "sigmoid")
        if gate != "none":
            a |= {"gate_activation": gate, "gate_lower_bound": -2.0}
            a_log, bias = g.floats(heads), g.floats(heads)
            if columns and g.coin():
                bias = g.floats(heads, size)
    if "delta" in rule:
        beta = g.positive(*lead, heads) / 2
        if g.coin():
            a["beta_activation"] = "sigmoid"
    given = [*parts, bounds, decay, beta, state, a_log, bias]
    return Case("GatedDeltaNet", given, a, 2, tol=1e-4 if dtype == np.float32 else 4e-3)


@pytest.mark.parametrize("rule", RULES)
def test_gated_delta_net(rule: str) -> None:
    g = Draws(10 + RULES.index(rule))
    check([network(g, rule, np.float32) for _ in range(5)])


def test_gated_delta_net_of_halves() -> None:
    g = Draws(20)
    check([network(g, rule, np.float16) for rule in RULES])


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"state_update_capacity": 2}, "state_update_capacity"),
        ({"update_rule": "other"}, "'update_rule' expected linear"),
        ({"update_rule": "gated"}, "expected decay and beta"),
        ({"gate_activation": "softplus"}, "expected decay and beta"),
    ],
)
def test_what_does_not_fit(attributes: dict[str, Any], why: str) -> None:
    g = Draws(30)
    given = [g.floats(4, 1, 4), g.floats(4, 1, 4), g.floats(4, 1, 4), None, None, None]
    case = Case("GatedDeltaNet", [*given, g.floats(2, 1, 4, 4)], attributes, 2)
    case.want = lambda *_, **__: []
    with pytest.raises(MgxError, match=why):
        check([case])
