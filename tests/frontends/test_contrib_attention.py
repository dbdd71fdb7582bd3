"""com.microsoft: Attention, MultiHeadAttention and rotary embeddings, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check, expected

from tests.support.draws import seeds


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def visible_keys(g: Draws, batch: int, rows: int, keys: int) -> np.ndarray | None:
    """A mask of one of the forms; every row sees a key."""
    ends = g.ints(1, keys + 1, batch)
    starts = (ends * g.np.random(batch) * 0.9).astype(np.int32)
    flat = (g.np.random((batch, keys)) < 0.6).astype(np.int32)
    flat[:, 0] = 1
    full = (g.np.random((batch, rows, keys)) < 0.6).astype(np.int32)
    full[:, :, 0] = 1
    return g.pick(None, ends, np.concatenate([ends, starts]), flat, full)


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_attention(seed: int) -> None:
    g, cases = Draws(seed), []
    for _ in range(8):
        batch, rows, heads, size = g.size(1, 3), g.size(1, 5), g.size(1, 3), g.size(1, 5)
        hidden, old = heads * size, g.pick(None, 0, 3)
        a: dict[str, Any] = {"num_heads": heads, "unidirectional": int(g.coin())}
        values = hidden
        if old is None and g.coin(0.3):
            values = heads * g.size(1, 4)
            a["qkv_hidden_sizes"] = [hidden, hidden, values]
        if g.coin(0.3):
            a["scale"] = 0.3
        if g.coin(0.3):
            a["mask_filter_value"] = -50.0
        x, w = g.floats(batch, rows, 6), g.floats(6, 2 * hidden + values)
        keys = rows + (old or 0)
        mask = visible_keys(g, batch, rows, keys)
        past = None if old is None else g.floats(2, batch, heads, old, size)
        bias = None
        if old is None and g.coin():
            bias = g.floats(g.pick(1, batch), g.pick(1, heads), rows, keys)
        given = [x, w, g.floats(2 * hidden + values), mask, past, bias]
        # the ends may mask all keys of a causal row: results differ then
        a["unidirectional"] &= int(mask is None or mask.ndim > 1 or mask.size == batch)
        outputs = 2 if old is not None else 1
        cases.append(Case("Attention", given, a, outputs, tol=3e-5))
    check(cases)


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_multi_head_attention(seed: int) -> None:
    g, cases = Draws(40 + seed), []
    for _ in range(8):
        batch, rows, heads, size = g.size(1, 3), g.size(1, 5), g.size(1, 3), g.size(1, 5)
        hidden, form = heads * size, g.pick("self", "cross", "cache", "past")
        a: dict[str, Any] = {"num_heads": heads}
        if g.coin(0.3):
            a["scale"] = 0.3
        wide = heads * g.size(1, 4) if form != "past" else hidden
        if form == "cache":
            wide = hidden
        fresh = rows if form in ("self", "past") else g.size(1, 6)
        old = 3 if form == "past" else 0
        query = g.floats(batch, rows, hidden)
        key, value = g.floats(batch, fresh, hidden), g.floats(batch, fresh, wide)
        if form == "cache":
            key, value = (g.floats(batch, heads, fresh, size) for _ in range(2))
        bias = g.floats(2 * hidden + wide) if g.coin() else None
        a["unidirectional"] = int(g.coin())
        keys = fresh + old
        mask = (g.np.random((batch, keys)) < 0.6).astype(np.int32)
        mask[:, 0] = 1
        full = (g.np.random((batch, rows, keys)) < 0.6).astype(np.int32)
        full[:, :, 0] = 1
        mask = g.pick(None, mask, full)
        added = g.pick(None, g.floats(g.pick(1, batch), g.pick(1, heads), rows, keys))
        past = [g.floats(batch, heads, old, size) for _ in range(2)] if old else []
        given = [query, key, value, bias, mask, added, *past]
        outputs: Any = 3 if old else 1
        if g.coin():
            outputs = (0, 1, 2, 3) if old else (0, 3)
        cases.append(Case("MultiHeadAttention", given, a, outputs, tol=3e-5, kinds={3: np.float32}))
    check(cases)


def mha(query, key=None, value=None, bias=None, mask=None, *, num_heads):
    """Packed forms, which onnxruntime has for GPUs only."""
    if query.ndim == 5:
        q, k, v = (np.moveaxis(query, 3, 0)[i].transpose(0, 2, 1, 3) for i in range(3))
    else:
        q = query.reshape(*query.shape[:2], num_heads, -1).transpose(0, 2, 1, 3)
        k, v = (np.moveaxis(key, 3, 0)[i].transpose(0, 2, 1, 3) for i in range(2))
    size = q.shape[-1]
    if bias is not None:
        q, k, v = (
            t + p.reshape(num_heads, 1, size)
            for t, p in zip((q, k, v), np.split(bias, 3), strict=True)
        )
    scores = q.astype(np.float64) @ k.transpose(0, 1, 3, 2) / np.sqrt(size)
    if mask is not None:
        scores = np.where(np.arange(k.shape[2]) < mask[:, None, None, None], scores, -10000)
    out = softmax(scores) @ v
    return out.transpose(0, 2, 1, 3).reshape(out.shape[0], out.shape[2], -1)


def test_packed_multi_head_attention() -> None:
    g, cases = Draws(5), []
    for _ in range(3):
        batch, rows, heads, size = g.size(1, 3), g.size(2, 5), g.size(1, 3), g.size(1, 5)
        a = {"num_heads": heads}
        bias = g.pick(None, g.floats(3 * heads * size))
        packed = [g.floats(batch, rows, heads, 3, size), None, None, bias]
        cases.append(Case("MultiHeadAttention", packed, a, want=mha))
        query, pairs = g.floats(batch, 2, heads * size), g.floats(batch, rows, heads, 2, size)
        ends = g.ints(1, rows + 1, batch)
        given = [query, pairs, None, bias, ends]
        cases.append(Case("MultiHeadAttention", given, a, want=mha))
    check(cases)


def test_shared_buffers() -> None:
    """The past lies in the first rows of a longer buffer, whose other rows nobody sees."""
    g, cases = Draws(6), []
    for _ in range(4):
        batch, rows, heads, size, longest = g.size(1, 2), g.size(1, 3), 2, 4, 8
        hidden, old = heads * size, g.size(0, 4)
        x, w, bias = g.floats(batch, rows, 6), g.floats(6, 3 * hidden), g.floats(3 * hidden)
        past = g.floats(2, batch, heads, longest, size)
        a = {"num_heads": heads, "unidirectional": int(g.coin())}
        short = Case("Attention", [x, w, bias, None, past[:, :, :, :old]], a, 2)

        def want(*_: Any, short=short, past=past, **__: Any) -> Any:
            out, present = expected(short)
            whole = past.copy()
            whole[:, :, :, : present.shape[3]] = present
            return out, whole

        shared = {**a, "past_present_share_buffer": 1}
        given = [x, w, bias, None, past, None, np.array([old], np.int32)]
        cases.append(Case("Attention", given, shared, 2, want=want))
        query, key, value = (g.floats(batch, rows, hidden) for _ in range(3))
        before = [p[:, :, :old] for p in past]
        short = Case("MultiHeadAttention", [query, key, value, *[None] * 3, *before], a, 3)

        def want_parts(*_: Any, short=short, past=past, **__: Any) -> Any:
            out, *present = expected(short)
            whole = past.copy()
            for p, new in zip(whole, present, strict=True):
                p[:, :, : new.shape[2]] = new
            return out, *whole

        given = [query, key, value, *[None] * 3, *past, np.array([old], np.int32)]
        cases.append(Case("MultiHeadAttention", given, a, 3, want=want_parts))
    check(cases)


def test_half_precision() -> None:
    """Against the same numbers in f32, for onnxruntime has it in f32 only."""
    g, cases = Draws(7), []
    for unidirectional in (0, 1):
        x, bias = g.floats(2, 5, 16, dtype=np.float16), g.floats(48, dtype=np.float16)
        past = [g.floats(2, 2, 3, 8, dtype=np.float16) for _ in range(2)]
        given = [x, x, x, bias, None, None, *past]
        a = {"num_heads": 2, "unidirectional": unidirectional}
        single = [None if v is None else v.astype(np.float32) for v in given]
        want = expected(Case("MultiHeadAttention", single, a, 3))
        want = [w.astype(np.float16) for w in want]
        case = Case("MultiHeadAttention", given, a, 3, want=lambda *_, want=want, **__: want)
        cases.append(case)
    check(cases)


def test_dynamic_lengths() -> None:
    g, cases = Draws(9), []
    x, y = g.floats(2, 5, 16), g.floats(2, 7, 16)
    mask = np.ones((2, 7), np.int32)
    mask[1, 4:] = 0
    cases.append(Case("MultiHeadAttention", [x, y, y, None, mask], {"num_heads": 2}))
    past = [g.floats(2, 2, 3, 8) for _ in range(2)]
    a = {"num_heads": 2, "unidirectional": 1}
    cases.append(Case("MultiHeadAttention", [x, y, y], a))
    cases.append(Case("MultiHeadAttention", [y, x, x], a))
    cases.append(Case("MultiHeadAttention", [x, x, x, None, None, None, *past], a, 3))
    w = g.floats(16, 48)
    cases.append(Case("Attention", [x, w, g.floats(48)], a, constants=[1, 2]))
    given = [x, w, g.floats(48), np.array([5, 3], np.int32)]
    cases.append(Case("Attention", given, {"num_heads": 2}, constants=[1, 2]))
    check(cases, free={0, 1, 3, 4, 6, 7})


# ---- rotary embeddings ---------------------------------------------------------------------------


def caches(g: Draws, rows: int, half: int) -> list[np.ndarray]:
    angles = g.floats(rows, half)
    return [np.cos(angles), np.sin(angles)]


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_rotary(seed: int) -> None:
    g, cases = Draws(60 + seed), []
    for _ in range(8):
        batch, length, heads, half = g.size(1, 3), g.size(1, 5), g.size(1, 3), g.size(1, 4)
        size, partial = 2 * half, g.coin(0.3)
        a: dict[str, Any] = {"interleaved": int(g.coin())}
        turned = half
        if partial:
            size = 2 * half + 2 * g.size(1, 2)
            a |= {"num_heads": heads, "rotary_embedding_dim": 2 * half}
        x = g.floats(batch, length, heads * size)
        if g.coin(0.4):
            x = g.floats(batch, heads, length, size)
        places = g.pick(
            g.ints(0, 4, 1, dtype=np.int64), g.ints(0, 9, batch, length, dtype=np.int64)
        )
        cases.append(Case("RotaryEmbedding", [x, places, *caches(g, 9, turned)], a))
        t, h = g.size(0, half), 0
        h = g.size(0, half - t)
        w = half - t - h
        layout = g.size(0, 1)
        if layout == 1 and max(h, w) * 3 > half:
            layout = 0
        streams = g.ints(0, 9, 3, batch, length, dtype=np.int64)
        b = {**a, "num_heads": heads, "mrope_section": [t, h, w], "mrope_layout": layout}
        cases.append(Case("MRotaryEmbedding", [x, streams, *caches(g, 9, turned)], b))
    check(cases)


def test_gemma_rotary() -> None:
    g = Draws(8)
    angles = g.floats(2, 3, 4)
    given = [g.floats(2, 5, 3, 4, dtype=np.float16) for _ in range(4)]

    def want(e, q, q_rot, k, k_rot):
        c, s = np.cos(e)[:, None], np.sin(e)[:, None]
        return tuple((x * c + y * s).astype(np.float16) for x, y in ((q, q_rot), (k, k_rot)))

    check([Case("GemmaRotaryEmbedding", [angles, *given], outputs=2, want=want)])
