"""Kernels in Triton's language that `triton_runs` compiles for AMD and compares with numpy.

Each family is a kernel of its own kind: products, reductions, scans, sorts, atomics, gathers,
casts.
"""
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def divide(x, y, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    tl.store(out + at, tl.div_rn(tl.load(x + at, inside), tl.load(y + at, inside)), inside)


@triton.jit
def functions(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, at < n)
    w = tl.exp(v) + tl.sqrt(tl.abs(v)) + tl.sin(v) * tl.cos(v) + tl.log(1 + tl.abs(v)) + tl.erf(v)
    tl.store(out + at, w, at < n)


@triton.jit
def softmax(x, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), at < columns)


@triton.jit
def layernorm(x, weight, bias, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, other=0.0)
    centred = tl.where(inside, v - tl.sum(v, 0) / columns, 0.0)
    y = centred * tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    y = y * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, y, inside)


@triton.jit
def matmul(
    a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WIDE: tl.constexpr
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), WIDE)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        x = tl.load(
            a + rows[:, None] * k + inner[None, :], (rows[:, None] < m) & (inner[None, :] < k), 0.0
        )
        y = tl.load(
            b + inner[:, None] * n + columns[None, :],
            (inner[:, None] < k) & (columns[None, :] < n),
            0.0,
        )
        total = tl.dot(x, y, total, out_dtype=WIDE)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out + rows[:, None] * n + columns[None, :], total, inside)


@triton.jit
def scaled(
    a,
    sa,
    b,
    sb,
    out,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    KA: tl.constexpr = K // 2 if A == "e2m1" else K
    KB: tl.constexpr = K // 2 if B == "e2m1" else K
    blocks = tl.arange(0, K // 32)
    x = tl.load(a + rows[:, None] * KA + tl.arange(0, KA)[None, :])
    y = tl.load(b + tl.arange(0, KB)[:, None] * N + columns[None, :])
    xs = tl.load(sa + rows[:, None] * (K // 32) + blocks[None, :])
    ys = tl.load(sb + columns[:, None] * (K // 32) + blocks[None, :])
    total = tl.dot_scaled(x, xs, A, y, ys, B)
    tl.store(out + rows[:, None] * N + columns[None, :], total)


@triton.jit
def attention(q, k, v, out, length, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, length, N):
        cols = start + tl.arange(0, N)
        keys = tl.load(k + cols[None, :] * D + d[:, None])
        s = tl.dot(x, keys) * scale
        s = tl.where(rows[:, None] >= cols[None, :], s, -float("inf"))
        newer = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - newer[:, None])
        old = tl.exp(top - newer)
        values = tl.load(v + cols[:, None] * D + d[None, :])
        acc = tl.dot(p.to(values.dtype), values, acc * old[:, None])
        total = total * old + tl.sum(p, 1)
        top = newer
    tl.store(out + rows[:, None] * D + d[None, :], acc / total[:, None])


@triton.jit
def scan(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def sort(x, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def argmax(x, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, 0))


@triton.jit
def histogram(x, out, B: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    counts = tl.histogram(tl.load(x + at), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def tickets(counter, out, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + tl.program_id(0) * B + at, tl.atomic_add(counter + at * 0, 1))


@triton.jit
def extremes(x, lowest, highest, ors, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at)
    tl.atomic_min(lowest + at % 4, v)
    tl.atomic_max(highest + at % 4, v)
    tl.atomic_or(ors + at % 4, v)


@triton.jit
def locked(lock, total, x, B: tl.constexpr):
    s = tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + s)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def all_meet(counter, out, groups):
    tl.atomic_add(counter, 1)
    while tl.atomic_add(counter, 0) < groups:
        pass
    tl.store(out + tl.program_id(0), tl.atomic_add(counter, 0))


@triton.jit
def split_sum(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, other=0.0), 0))


@triton.jit
def gather(x, index, out, columns, B: tl.constexpr):
    row = tl.load(index + tl.program_id(0))
    at = tl.arange(0, B)
    v = tl.load(x + row * columns + at, at < columns)
    tl.store(out + tl.program_id(0) * columns + at, v, at < columns)


@triton.jit
def philox(out, seed, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.randint(seed, at))


@triton.jit
def cast(x, out, B: tl.constexpr, TO: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at).to(TO))


@triton.jit
def integers(x, y, out, B: tl.constexpr):
    at = tl.arange(0, B)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(
        out + at,
        a // b
        + a % b
        + (a >> 3) * (b & 7)
        + tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(tl.int32),
    )


@triton.jit
def transpose(x, out, m, n, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    v = tl.load(x + rows[:, None] * n + columns[None, :], inside)
    tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(v), tl.trans(inside))
