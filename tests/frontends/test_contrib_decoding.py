"""com.microsoft: attention of one token and of packed batches, parts of recurrent models."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check, expected

from tests.support.draws import seeds


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_one_token(seed: int) -> None:
    g, cases = Draws(seed), []
    for _ in range(5):
        batch, heads, size, old = g.size(1, 3), g.size(1, 3), g.size(1, 5), g.size(1, 4)
        hidden = heads * size
        query, key, value = (g.floats(batch, 1, hidden) for _ in range(3))
        past = [g.floats(batch, heads, old, size) for _ in range(2)]
        mask = (g.np.random((batch, old + 1)) < 0.6).astype(np.int32)
        mask[:, 0] = 1
        mask = mask if g.coin() else None
        bias = g.floats(3 * hidden) if g.coin() else None
        added = g.floats(1, heads, 1, old + 1) if g.coin(0.3) else None
        a: dict[str, Any] = {"num_heads": heads, **g.pick({}, {"scale": 0.3})}
        # operands of MultiHeadAttention for the same results
        plain = [query, key, value, bias, mask, added, *past]
        want = expected(Case("MultiHeadAttention", plain, a, 3))
        given = [query, key, value, mask, added, *past, None, None, None, bias]

        def small(*_: Any, want: Any = want, **__: Any) -> Any:
            return want

        name = "DecoderMaskedMultiHeadAttention"
        cases.append(Case(name, given, a, 3, want=small, tol=3e-5))
        longer = [g.floats(batch, heads, old + 3, size) for _ in range(2)]
        for p, q in zip(longer, past, strict=True):
            p[:, :, :old] = q

        def shared(*_: Any, want: Any = want, longer: Any = longer, **__: Any) -> Any:
            out, *present = want
            whole = [p.copy() for p in longer]
            for p, new in zip(whole, present, strict=True):
                p[:, :, : new.shape[2]] = new
            return out, *whole

        if mask is None and added is None:
            length = np.array([old], np.int32)
            given = [query, key, value, None, None, *longer, length, None, None, bias]
            share = {**a, "past_present_share_buffer": 1}
            cases.append(Case(name, given, share, 3, want=shared, tol=3e-5))
            # onnxruntime itself agrees
            for got, w in zip(expected(Case(name, given, share, 3)), shared(), strict=True):
                rows = slice(None) if got.ndim == 3 else np.s_[:, :, : old + 1]
                np.testing.assert_allclose(got[rows], w[rows], rtol=1e-4, atol=1e-5)
        crossed = [query, *past, None, None]
        cases.append(Case(name, crossed, a, 1, tol=3e-5))
    check(cases)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def offsets(lengths: list[int], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of tokens, then of padding; and the ends of the sequences."""
    places = np.arange(len(lengths) * longest).reshape(len(lengths), longest)
    real = np.concatenate([row[:n] for row, n in zip(places, lengths, strict=True)])
    rest = np.concatenate([row[n:] for row, n in zip(places, lengths, strict=True)])
    order = np.concatenate([real, rest]).reshape(places.shape)
    return order.astype(np.int32), np.cumsum([0, *lengths]).astype(np.int32)


def packed(q, k, v, ends, heads, scale=None, bias=None):
    out = np.zeros((len(q), v.shape[1]))
    for s, (i, j) in enumerate(itertools.pairwise(ends)):
        parts = [t[i:j].reshape(j - i, heads, -1).swapaxes(0, 1).astype(float) for t in (q, k, v)]
        scores = parts[0] @ parts[1].swapaxes(1, 2) * (scale or parts[0].shape[2] ** -0.5)
        if bias is not None:
            scores = scores + bias[s % len(bias), :, : j - i, : j - i]
        out[i:j] = (softmax(scores) @ parts[2]).swapaxes(0, 1).reshape(j - i, -1)
    return out


def test_packed() -> None:
    """onnxruntime has them for GPUs only."""
    g, cases = Draws(3), []
    for _ in range(3):
        lengths, longest, heads, size = [2, 4, 1], 4, 2, 3
        order, ends = offsets(lengths, longest)
        count, hidden = sum(lengths), heads * size
        bias = g.floats(g.pick(1, 3), heads, longest, longest) if g.coin() else None
        a = {"num_heads": heads}
        x, w, wb = g.floats(count, 5), g.floats(5, 3 * hidden), g.floats(3 * hidden)

        def attention(x, w, wb, order, ends, bias=None, num_heads=0):
            return packed(*np.split(x @ w + wb, 3, 1), ends, num_heads, bias=bias)

        given = [x, w, wb, order, ends, bias]
        cases.append(Case("PackedAttention", given, a, want=attention))
        qkv = g.floats(count, heads, 3, size)

        def of_one(qkv, key, value, wb, order, ends, bias=None, num_heads=0):
            parts = [qkv[:, :, i].reshape(len(qkv), -1) for i in range(3)]
            parts = [p + b for p, b in zip(parts, np.split(wb, 3), strict=True)]
            return packed(*parts, ends, num_heads, bias=bias)

        given = [qkv, None, None, wb, order, ends, bias]
        cases.append(Case("PackedMultiHeadAttention", given, a, want=of_one))

        def of_three(q, k, v, wb, order, ends, bias=None, num_heads=0, scale=None):
            return packed(q, k, v, ends, num_heads, scale, bias)

        given = [*(g.floats(count, hidden) for _ in range(3)), None, order, ends, bias]
        case = Case("PackedMultiHeadAttention", given, {**a, "scale": 0.4}, want=of_three)
        cases.append(case)

        def restored(x, order):
            out = np.zeros((order.size, x.shape[1]))
            out[order.reshape(-1)[: len(x)]] = x
            return out.reshape(*order.shape, -1)

        cases.append(Case("RestorePadding", [x, order], want=restored))
    check(cases)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_parts_of_recurrent_models(dtype: Any) -> None:
    g, cases = Draws(4), []
    for _ in range(4):
        batch, length, count = g.size(1, 2), g.size(1, 6), g.size(1, 4)
        a, other = (g.floats(batch, length, count, dtype=dtype) for _ in range(2))
        given = [a, g.floats(count), -g.positive(count), other]
        cases.append(Case("LinearAttentionGate", given, outputs=2))
        cases.append(Case("LinearAttentionGate", given[:3]))
    check(cases)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_beams(target: str) -> None:
    """Each beam takes the old rows of the cache from the beams that it comes from."""
    g, cases = Draws(95), []
    for batch, beams, heads, old in ((2, 3, 2, 4), (1, 2, 1, 1), (3, 1, 2, 5)):
        rows, longest, size = batch * beams, 7, 8
        new = [g.floats(rows, 1, heads * size) for _ in range(3)]
        past = [g.floats(rows, heads, longest, size) for _ in range(2)]
        for p in past:
            p[:, :, old:] = 0
        from_ = g.ints(0, beams, batch, beams, longest)
        length, width = np.array([old], np.int32), np.array([beams], np.int32)
        given = [*new, None, None, *past, length, width, from_]
        a = {"num_heads": heads, "past_present_share_buffer": 1}
        cases.append(Case("DecoderMaskedMultiHeadAttention", given, a, 3, tol=3e-5))
        given = [*new, None, None, None, *past, length, from_]
        cases.append(Case("MultiHeadAttention", given, {"num_heads": heads}, 3, tol=3e-5))
    check(cases, target=target)
