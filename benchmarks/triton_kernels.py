"""Kernels in Triton's language that `triton_bounds` compiles: products, rows, attention.

Weights lie by row ([columns, depth]), as ours do. All sizes that bound a loop are constants, so
that the trips of each loop are known.
"""
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false
# pyright: reportMissingImports=false, reportUntypedFunctionDecorator=false, reportCallIssue=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(
    a,
    b,
    bias,
    residual,
    out,
    m,
    n,
    k: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    EVEN: tl.constexpr,
    BIAS: tl.constexpr,
    GELU: tl.constexpr,
    RESIDUAL: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    a += (rows % m)[:, None] * k + inner[None, :]
    b += (columns % n)[None, :] * k + inner[:, None]
    if BIAS:
        added = tl.load(bias + columns % n).to(tl.float32)
    total = tl.zeros((M, N), tl.float32)
    for i in range(0, tl.cdiv(k, K)):
        if EVEN:
            x = tl.load(a)
            y = tl.load(b)
        else:
            x = tl.load(a, inner[None, :] < k - i * K, 0.0)
            y = tl.load(b, inner[:, None] < k - i * K, 0.0)
        total = tl.dot(x, y, total)
        a += K
        b += K
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    at = rows[:, None] * n + columns[None, :]
    if BIAS:
        total += added[None, :]
    if GELU:
        total *= 0.5 * (1 + tl.erf(total * 0.7071067811865476))
    if RESIDUAL:
        total += tl.load(residual + at, inside).to(tl.float32)
    tl.store(out + at, total.to(out.dtype.element_ty), inside)


@triton.jit
def row(x, w, out, n, k: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    columns = tl.program_id(0) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((N, K), tl.float32)
    w += columns[:, None] * k + inner[None, :]
    for i in range(0, k, K):
        v = tl.load(x + i + inner)[None, :].to(tl.float32)
        total += tl.load(w + i).to(tl.float32) * v
    tl.store(out + columns, tl.sum(total, 1).to(out.dtype.element_ty))


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    scale,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    TURNS: tl.constexpr,
    D: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    # TURNS blocks of keys without a mask, then, of causal ones, those of the diagonal
    head = tl.program_id(1)
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + head * QUERIES * D + rows[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    k += head * KEYS * D
    v += head * KEYS * D
    for i in range(0, TURNS):
        columns = i * N + tl.arange(0, N)
        scores = tl.dot(x, tl.load(k + columns[None, :] * D + d[:, None])) * scale
        values = tl.load(v + columns[:, None] * D + d[None, :])
        newer = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - newer[:, None])
        keep = tl.exp2(top - newer)
        total = total * keep + tl.sum(p, 1)
        acc = tl.dot(p.to(values.dtype), values, acc * keep[:, None])
        top = newer
    if CAUSAL:
        for i in range(0, tl.cdiv(M, N)):
            columns = tl.program_id(0) * M + i * N + tl.arange(0, N)
            scores = tl.dot(x, tl.load(k + columns[None, :] * D + d[:, None])) * scale
            scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
            values = tl.load(v + columns[:, None] * D + d[None, :])
            newer = tl.maximum(top, tl.max(scores, 1))
            p = tl.exp2(scores - newer[:, None])
            keep = tl.exp2(top - newer)
            total = total * keep + tl.sum(p, 1)
            acc = tl.dot(p.to(values.dtype), values, acc * keep[:, None])
            top = newer
    at = out + head * QUERIES * D + rows[:, None] * D + d[None, :]
    tl.store(at, (acc / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def decode(
    q,
    k,
    v,
    part,
    tops,
    sums,
    scale,
    KEYS: tl.constexpr,
    PARTS: tl.constexpr,
    D: tl.constexpr,
    N: tl.constexpr,
):
    # one query of a head over a part of its keys
    head = tl.program_id(0)
    at = head * PARTS + tl.program_id(1)
    d = tl.arange(0, D)
    x = tl.load(q + head * D + d).to(tl.float32)
    top = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), tl.float32)
    start = head * KEYS + tl.program_id(1) * (KEYS // PARTS)
    for i in range(0, KEYS // PARTS, N):
        rows = (start + i + tl.arange(0, N))[:, None] * D + d[None, :]
        scores = tl.sum(tl.load(k + rows).to(tl.float32) * x[None, :], 1) * scale
        newer = tl.maximum(top, tl.max(scores, 0))
        p = tl.exp2(scores - newer)
        keep = tl.exp2(top - newer)
        total = total * keep + tl.sum(p, 0)
        acc = acc * keep + tl.sum(p[:, None] * tl.load(v + rows).to(tl.float32), 0)
        top = newer
    tl.store(part + at * D + d, acc)
    tl.store(tops + at, top)
    tl.store(sums + at, total)


@triton.jit
def joined(part, tops, sums, out, PARTS: tl.constexpr, D: tl.constexpr):
    # the parts of a head's keys
    head = tl.program_id(0)
    p = head * PARTS + tl.arange(0, PARTS)
    d = tl.arange(0, D)
    each = tl.load(tops + p)
    share = tl.exp2(each - tl.max(each, 0))
    total = tl.sum(share * tl.load(sums + p), 0)
    acc = tl.sum(share[:, None] * tl.load(part + p[:, None] * D + d[None, :]), 0)
    tl.store(out + head * D + d, (acc / total).to(out.dtype.element_ty))
