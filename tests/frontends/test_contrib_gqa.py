"""com.microsoft: GroupQueryAttention and SparseAttention, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check, expected, model, run

from mgx_mlir.core.errors import MgxError
from tests.support.draws import seeds


def heads(x: np.ndarray, count: int) -> np.ndarray:
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def draw(g: Draws) -> Case:
    """All entries have as many new rows; what is in the cache differs."""
    kv_heads, size = g.size(1, 2), 16
    count = kv_heads * g.size(1, 3)
    batch, form = g.size(1, 3), g.pick("prompt", "prompt with cache", "token", "more")
    rows = g.size(2, 5) if form != "token" else 1
    old = np.zeros(batch, int) if form.startswith("prompt") else g.ints(1, 5, batch)
    if form == "more":
        old[:] = old[0]  # onnxruntime takes several new rows for one entry, or for equal ones
        batch, old = 1, old[:1]
    total = int(old.max()) + rows
    a: dict[str, Any] = {"num_heads": count, "kv_num_heads": kv_heads}
    past: list[np.ndarray | None] = [None, None]
    if form != "prompt":
        longest = (
            g.pick(total, total + 3)
            if form == "prompt with cache"
            else g.pick(total - 1 if form == "token" else total - rows, total + 2)
        )
        past = [g.floats(batch, kv_heads, longest, size) for _ in range(2)]
        for p in past:  # rows that are not there yet; onnxruntime gives zeros for them
            for entry, length in zip(p, old, strict=True):
                entry[:, length:] = 0
    packed = g.coin()
    query, key, value = (g.floats(batch, rows, n * size) for n in (count, kv_heads, kv_heads))
    if packed:
        query, key, value = np.concatenate([query, key, value], 2), None, None
    cos = sin = None
    if g.coin():
        half = size // 2
        angles = g.floats(16, half)
        cos, sin = np.cos(angles), np.sin(angles)
        a |= {"do_rotary": 1, "rotary_interleaved": int(g.coin())}
    if g.coin(0.3):
        a["local_window_size"] = g.size(1, 4)
    if g.coin(0.3):
        a["softcap"] = 2.0
    if g.coin(0.3):
        a["scale"] = 0.3
    sink = None
    if g.coin(0.3):
        a["smooth_softmax"] = 1
    elif g.coin(0.3):
        sink = g.floats(count)
    bias = g.floats(g.pick(1, batch), g.pick(1, count), rows, total) if g.coin(0.3) else None
    lengths = (old + rows - 1).astype(np.int32)
    given = [query, key, value, *past, lengths, np.array(total, np.int32), cos, sin, None]
    given += [bias, sink]
    return Case("GroupQueryAttention", given, a, 3, constants=[6], tol=3e-5)


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_group_query_attention(seed: int) -> None:
    g = Draws(seed)
    check([draw(g) for _ in range(8)])


def test_forms_of_their_own() -> None:
    """Positions, queries that see all keys, and the scores as an output."""
    g, cases = Draws(90), []
    query, key, value = g.floats(2, 4, 64), g.floats(2, 4, 32), g.floats(2, 4, 32)
    a: dict[str, Any] = {"num_heads": 4, "kv_num_heads": 2}
    angles = g.floats(16, 8)
    caches = [np.cos(angles), np.sin(angles)]
    lengths, total = np.array([3, 3], np.int32), np.array(4, np.int32)
    places = np.array([[3, 1, 2, 9], [0, 1, 5, 2]], np.int64)
    given = [query, key, value, None, None, lengths, total, *caches, places]
    cases.append(Case("GroupQueryAttention", given, {**a, "do_rotary": 1}, 3, constants=[6]))
    past = [g.floats(2, 2, 6, 16) for _ in range(2)]
    for p in past:
        p[:, :, 3:] = 0
    token = [x[:, :1] for x in (query, key, value)]
    late = [*token, *past, lengths, total, *caches, places[:, :1]]
    cases.append(Case("GroupQueryAttention", late, {**a, "do_rotary": 1}, 3, constants=[6]))
    cases.append(Case("GroupQueryAttention", late, {**a, "do_rotary": 1}, 3))
    for output in (1, 2):
        form = {**a, "qk_output": output}
        cases.append(Case("GroupQueryAttention", given[:7], form, 4, constants=[6]))
        cases.append(Case("GroupQueryAttention", given[:7], form, 4))
        cases.append(Case("GroupQueryAttention", late[:7], {**form}, 4))
    cases.append(Case("GroupQueryAttention", given[:7], {**a, "causal": 0}, 3, constants=[6]))
    check(cases)


def gqa_of_normed(
    *given: Any,
    num_heads: int,
    kv_num_heads: int,
    qk_norm_epsilon: float,
    q_norm_epsilon: float | None = None,
    k_norm_epsilon: float | None = None,
) -> Any:
    query, key, *rest = given
    parts = []
    epsilons = (e or qk_norm_epsilon for e in (q_norm_epsilon, k_norm_epsilon))
    for x, n, w in ((query, num_heads, given[-2]), (key, kv_num_heads, given[-1])):
        h = x.reshape(*x.shape[:2], n, -1).astype(np.float64)
        h = h / np.sqrt((h * h).mean(-1, keepdims=True) + next(epsilons)) * w
        parts.append(h.reshape(x.shape).astype(np.float32))
    a = {"num_heads": num_heads, "kv_num_heads": kv_num_heads}
    return expected(Case("GroupQueryAttention", [*parts, *rest[:-2]], a, 3))


def test_normed_heads() -> None:
    """onnxruntime has them for GPUs only."""
    g = Draws(91)
    given = [g.floats(2, 4, 64), g.floats(2, 4, 32), g.floats(2, 4, 32), None, None]
    given += [np.array([3, 3], np.int32), np.array(4, np.int32), *[None] * 7]
    given += [g.floats(16), g.floats(16)]
    a = {"num_heads": 4, "kv_num_heads": 2, "qk_norm_epsilon": 1e-3}
    own = [{}, {"q_norm_epsilon": 0.5}, {"q_norm_epsilon": 0.5, "k_norm_epsilon": 0.25}]
    check(
        [
            Case("GroupQueryAttention", given, a | e, 3, constants=[6], want=gqa_of_normed)
            for e in own
        ]
    )


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_padded_chunks(seed: int) -> None:
    """The first `query_seqlens` new rows of an entry are valid; the others, and the rows of the
    cache after the valid ones, have any values."""
    g, drawn = Draws(94 + seed), []
    for _ in range(6):
        batch, rows, kv_heads, size = g.size(1, 3), g.size(1, 4), g.size(1, 2), 16
        count = 2 * kv_heads
        old = g.ints(0, 5, batch)
        valid = np.array([g.size(0 if o else 1, rows) for o in old], np.int32)
        longest = int(old.max()) + rows + g.size(0, 2)
        a: dict[str, Any] = {"num_heads": count, "kv_num_heads": kv_heads}
        past = [g.floats(batch, kv_heads, longest, size) for _ in range(2)]
        cos = sin = None
        if g.coin():
            angles = g.floats(longest, size // 2)
            cos, sin = np.cos(angles), np.sin(angles)
            a |= {"do_rotary": 1, "rotary_interleaved": int(g.coin())}
        if g.coin(0.3):
            a["local_window_size"] = g.size(1, 4)
        given = [g.floats(batch, rows, n * size) for n in (count, kv_heads, kv_heads)]
        given += [*past, (old + valid - 1).astype(np.int32), np.array(longest, np.int32)]
        given += [cos, sin, *[None] * 7, valid]
        drawn.append((Case("GroupQueryAttention", given, a, 3, constants=[6]), old, valid))
    data, feeds, _ = model([case for case, *_ in drawn])
    made = iter(run(data, feeds, "cpu"))
    for case, old, valid in drawn:
        out, *caches = (np.asarray(next(made)) for _ in range(3))
        want, *wanted = expected(case)
        for entry, count in enumerate(valid):
            np.testing.assert_allclose(
                out[entry, :count], want[entry, :count], rtol=1e-4, atol=1e-5
            )
            for got, right in zip(caches, wanted, strict=True):
                assert got.shape == right.shape
                end = int(old[entry] + count)
                np.testing.assert_allclose(got[entry, :, :end], right[entry, :, :end], rtol=1e-4)


def test_padded_chunks_that_do_not_fit() -> None:
    g = Draws(96)
    given = [g.floats(1, 2, 16), g.floats(1, 2, 16), g.floats(1, 2, 16), None, None]
    given += [np.array([1], np.int32), np.array(2, np.int32), *[None] * 9, np.array([1], np.int32)]
    a = {"num_heads": 2, "kv_num_heads": 2}
    case = Case("GroupQueryAttention", given, a, 3, want=lambda *_, **__: [])
    with pytest.raises(MgxError, match="expected past_key, past_value and causal"):
        check([case])


def test_total_length_at_run_time() -> None:
    """The cache that comes out is as long as the run says."""
    g, cases = Draws(92), []
    a = {"num_heads": 4, "kv_num_heads": 2}
    for longest in (5, 9):
        past = [g.floats(2, 2, longest, 8) for _ in range(2)]
        for p in past:
            p[:, :, 5:] = 0
        given = [g.floats(2, 1, 32), g.floats(2, 1, 16), g.floats(2, 1, 16), *past]
        given += [np.array([5, 5], np.int32), np.array(6, np.int32)]
        cases.append(Case("GroupQueryAttention", given, a, 3))
    check(cases)
    check(cases, free={3, 4})


def sparse(
    query, key, value, past_key, past_value, starts, columns, total, totals, cos=None, sin=None,
    *, num_heads, kv_num_heads, sparse_block_size, scale=None, do_rotary=0, rotary_interleaved=0,
):  # fmt: skip
    """onnxruntime wants the caches to be the same memory, which Python cannot give it."""
    q, k, v = heads(query, num_heads), heads(key, kv_num_heads), heads(value, kv_num_heads)
    rows, old = query.shape[1], int(total[0]) - query.shape[1]
    if do_rotary:
        c, s = cos[old : old + rows], sin[old : old + rows]
        half = c.shape[1]

        def turn(x):
            if rotary_interleaved:
                first, second = x[..., 0::2], x[..., 1::2]
            else:
                first, second = x[..., :half], x[..., half:]
            pair = first * c - second * s, first * s + second * c
            if rotary_interleaved:
                return np.stack(pair, -1).reshape(x.shape)
            return np.concatenate(pair, -1)

        q, k = turn(q), turn(k)
    keys, values = past_key.copy(), past_value.copy()
    keys[:, :, old : old + rows], values[:, :, old : old + rows] = k, v
    times = num_heads // kv_num_heads
    k, v = np.repeat(keys, times, 1).astype(np.float64), np.repeat(values, times, 1)
    scores = q @ k.transpose(0, 1, 3, 2) * (scale or q.shape[-1] ** -0.5)
    for h in range(num_heads):
        layout = h % len(starts)
        for i in range(rows):
            row = (old + i) // sparse_block_size
            blocks = columns[layout, starts[layout, row] : starts[layout, row + 1]]
            hidden = ~np.isin(np.arange(k.shape[2]) // sparse_block_size, blocks)
            hidden |= np.arange(k.shape[2]) > old + i
            scores[:, h, i, hidden] = -np.inf
    e = np.exp(scores - scores.max(-1, keepdims=True))
    out = e / e.sum(-1, keepdims=True) @ v
    return out.transpose(0, 2, 1, 3).reshape(query.shape), keys, values


def test_sparse_attention() -> None:
    g, cases = Draws(93), []
    for _ in range(4):
        kv_heads, size, block = g.size(1, 2), 8, 16
        layouts = g.pick(1, 2)
        count = kv_heads * 2
        batch, form = g.size(1, 2), g.pick("prompt", "token")
        rows = g.size(18, 40) if form == "prompt" else 1
        old = 0 if form == "prompt" else g.size(17, 44)
        blocks = 3
        mask = np.tril(g.np.random((layouts, blocks, blocks)) < 0.6)
        mask |= np.eye(blocks, dtype=bool)
        starts, columns = [], []
        for layout in mask:
            starts.append([0, *np.cumsum(layout.sum(1))])
            columns.append(list(np.nonzero(layout)[1]))
        width = max(len(c) for c in columns)
        columns = [c + [-1] * (width - len(c)) for c in columns]
        past = [g.floats(batch, kv_heads, blocks * block, size) for _ in range(2)]
        for p in past:
            p[:, :, old:] = 0
        a: dict[str, Any] = {"num_heads": count, "kv_num_heads": kv_heads}
        a |= {"sparse_block_size": block}
        if g.coin():
            a["scale"] = 0.2
        given = [g.floats(batch, rows, n * size) for n in (count, kv_heads, kv_heads)]
        given += [*past, np.array(starts, np.int32), np.array(columns, np.int32)]
        total = old + rows
        given += [np.array([total], np.int32), np.full(batch, total, np.int32)]
        if g.coin():
            angles = g.floats(64, size // 2)
            given += [np.cos(angles), np.sin(angles)]
            a |= {"do_rotary": 1, "rotary_interleaved": int(g.coin())}
        cases.append(Case("SparseAttention", given, a, 3, want=sparse))
    check(cases)
