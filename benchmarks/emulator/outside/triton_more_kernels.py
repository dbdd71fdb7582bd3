"""More kernels in Triton's language: gradients of attention, groups of products, packed weights,
scans by a function, norms, losses, tables.
"""
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, out, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / columns + 1e-6)
    tl.store(out + row * columns + at, v * scale * tl.load(weight + at, inside), inside)


@triton.jit
def cross_entropy(x, label, loss, slope, columns, B: tl.constexpr):
    """The loss of each row, and its gradient."""
    row = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, other=-float("inf"))
    top = tl.max(v, 0)
    e = tl.exp(v - top)
    total = tl.sum(e, 0)
    mine = tl.load(label + row)
    tl.store(loss + row, tl.log(total) + top - tl.load(x + row * columns + mine))
    tl.store(slope + row * columns + at, e / total - tl.where(at == mine, 1.0, 0.0), inside)


@triton.jit
def rotary(x, cosine, sine, out, D: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, D // 2)
    a, b = tl.load(x + row * D + at), tl.load(x + row * D + D // 2 + at)
    c, s = tl.load(cosine + row * (D // 2) + at), tl.load(sine + row * (D // 2) + at)
    tl.store(out + row * D + at, a * c - b * s)
    tl.store(out + row * D + D // 2 + at, b * c + a * s)


@triton.jit
def after(a, x, b, y):
    """One step behind the other: v -> b (a v + x) + y."""
    return a * b, b * x + y


@triton.jit
def recurrence(a, x, out, B: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, B)
    _, y = tl.associative_scan((tl.load(a + at), tl.load(x + at)), 0, after, reverse=REVERSE)
    tl.store(out + at, y)


@triton.jit
def best(x, out, columns: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    v = tl.load(x + row * columns + tl.arange(0, columns))
    tl.store(out + row * K + tl.arange(0, K), tl.topk(v, K))


@triton.jit
def bins(x, out, B: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, B)), BINS))


@triton.jit
def packed_weights(x, w, scale, out, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """x [M, k] by codes of 4 bits, two in a byte along k, with a scale for each column."""
    rows, cols = tl.arange(0, M), tl.program_id(0) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + tl.arange(0, K)
        byte = tl.load(w + (at[:, None] // 2) * n + cols[None, :])
        code = (byte >> ((at[:, None] % 2) * 4).to(tl.uint8)) & 15
        values = tl.load(x + rows[:, None] * k + at[None, :])
        acc = tl.dot(values, (code.to(tl.float32) - 8).to(values.dtype), acc)
    acc = acc * tl.load(scale + cols)[None, :]
    tl.store(out + rows[:, None] * n + cols[None, :], acc)


@triton.jit
def grouped(x, w, out, starts, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Rows starts[g] to starts[g + 1] of x by the g-th of several matrices."""
    group = tl.program_id(0)
    first, last = tl.load(starts + group), tl.load(starts + group + 1)
    cols = tl.program_id(1) * N + tl.arange(0, N)
    for start in range(first, last, M):
        rows = start + tl.arange(0, M)
        acc = tl.zeros((M, N), tl.float32)
        for inner in range(0, k, K):
            at = inner + tl.arange(0, K)
            a = tl.load(x + rows[:, None] * k + at[None, :], rows[:, None] < last, other=0)
            b = tl.load(w + group * k * n + at[:, None] * n + cols[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(out + rows[:, None] * n + cols[None, :], acc, rows[:, None] < last)


@triton.jit
def attention_slopes(
    q, k, v, top, slope, delta, dq, dk, dv, length, scale, D: tl.constexpr, N: tl.constexpr
):
    """Gradients of attention: of a block of keys and values in registers, of queries by atomics."""
    cols, d = tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, D)
    keys = tl.load(k + cols[:, None] * D + d[None, :])
    values = tl.load(v + cols[:, None] * D + d[None, :])
    of_keys, of_values = tl.zeros((N, D), tl.float32), tl.zeros((N, D), tl.float32)
    for start in range(0, length, N):
        rows = start + tl.arange(0, N)
        x = tl.load(q + rows[:, None] * D + d[None, :])
        by = tl.load(slope + rows[:, None] * D + d[None, :])
        p = tl.exp(tl.dot(x, tl.trans(keys)) * scale - tl.load(top + rows)[:, None])
        of_values = tl.dot(tl.trans(p.to(by.dtype)), by, of_values)
        s = p * (tl.dot(by, tl.trans(values)) - tl.load(delta + rows)[:, None]) * scale
        of_keys = tl.dot(tl.trans(s.to(x.dtype)), x, of_keys)
        tl.atomic_add(dq + rows[:, None] * D + d[None, :], tl.dot(s.to(keys.dtype), keys))
    tl.store(dk + cols[:, None] * D + d[None, :], of_keys)
    tl.store(dv + cols[:, None] * D + d[None, :], of_values)


@triton.jit
def normalized_exchange(x, table, out, B: tl.constexpr):
    """Each value once more by an exchange with a table, and what the table held, in a checksum."""
    at = tl.arange(0, B)
    old = tl.atomic_xchg(table + at, tl.load(x + at))
    seen = tl.atomic_cas(table + at, tl.load(x + at), old)
    tl.store(out + at, seen * 2 + old)


@triton.jit
def wide_functions(x, out, B: tl.constexpr):
    """f64 in steps: roots, quotients, rounding."""
    v = tl.load(x + tl.arange(0, B))
    y = tl.sqrt(tl.abs(v)) / (v * v + 0.5) + tl.floor(v) - tl.ceil(v * 0.5) + tl.exp(-tl.abs(v))
    tl.store(out + tl.arange(0, B), y)


@triton.jit
def bits(x, out, B: tl.constexpr):
    v = tl.load(x + tl.arange(0, B))
    u = v.to(tl.uint32, bitcast=True)
    turned = (u << 7) | (u >> 25)
    y = (turned ^ (u * 0x9E3779B1)) + (u.to(tl.uint64) * 0x85EBCA77 >> 32).to(tl.uint32)
    tl.store(out + tl.arange(0, B), y.to(tl.int32, bitcast=True))
