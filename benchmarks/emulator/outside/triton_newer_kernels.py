"""Kernels in Triton's language, third part: products in parts, decoding from pages, gradients of
norms, dropout, windows, running moments, bags of rows, halves that atomics add.
"""
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product_in_parts(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Each program of the third axis multiplies its share of the depth, and adds it."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    step = K * tl.num_programs(2)
    for start in range(tl.program_id(2) * K, k, step):
        inner = start + tl.arange(0, K)
        left = (rows[:, None] < m) & (inner[None, :] < k)
        right = (inner[:, None] < k) & (columns[None, :] < n)
        x = tl.load(a + rows[:, None] * k + inner[None, :], left, 0.0)
        y = tl.load(b + inner[:, None] * n + columns[None, :], right, 0.0)
        total = tl.dot(x, y, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.atomic_add(out + rows[:, None] * n + columns[None, :], total, inside)


@triton.jit
def decode_parts(
    q, keys, values, pages, part, top, total, length, scale,
    D: tl.constexpr, PAGE: tl.constexpr, PAGES: tl.constexpr,
):  # fmt: skip
    """One query against the pages of one part of its cache."""
    piece = tl.program_id(0)
    d, inside_page = tl.arange(0, D), tl.arange(0, PAGE)
    x = tl.load(q + d).to(tl.float32)
    best, mass = -float("inf"), 0.0
    acc = tl.zeros((D,), tl.float32)
    for n in range(0, PAGES):
        number = piece * PAGES + n
        rows = tl.load(pages + number) * PAGE + inside_page
        k = tl.load(keys + rows[:, None] * D + d[None, :]).to(tl.float32)
        s = tl.sum(k * x[None, :], 1) * scale
        s = tl.where(number * PAGE + inside_page < length, s, -float("inf"))
        newer = tl.maximum(best, tl.max(s, 0))
        p = tl.where(newer == -float("inf"), 0.0, tl.exp(s - newer))
        old = tl.where(best == -float("inf"), 0.0, tl.exp(best - newer))
        v = tl.load(values + rows[:, None] * D + d[None, :]).to(tl.float32)
        acc = acc * old + tl.sum(p[:, None] * v, 0)
        mass = mass * old + tl.sum(p, 0)
        best = newer
    tl.store(part + piece * D + d, acc)
    tl.store(top + piece, best)
    tl.store(total + piece, mass)


@triton.jit
def decode_joined(part, top, total, out, D: tl.constexpr, PARTS: tl.constexpr):
    """The parts' results as one."""
    n, d = tl.arange(0, PARTS), tl.arange(0, D)
    t = tl.load(top + n)
    weight = tl.exp(t - tl.max(t, 0))
    mass = tl.sum(weight * tl.load(total + n), 0)
    acc = tl.load(part + n[:, None] * D + d[None, :])
    tl.store(out + d, tl.sum(weight[:, None] * acc, 0) / mass)


@triton.jit
def layernorm_slopes(x, weight, by, dx, dweight, dbias, columns, B: tl.constexpr):
    """The gradients of a layer norm: of its rows, and summed over them of weight and bias."""
    row = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, 0.0)
    g = tl.load(by + row * columns + at, inside, 0.0)
    mean = tl.sum(v, 0) / columns
    c = tl.where(inside, v - mean, 0.0)
    r = tl.rsqrt(tl.sum(c * c, 0) / columns + 1e-5)
    unit = c * r
    gw = g * tl.load(weight + at, inside, 0.0)
    own = gw - tl.sum(gw, 0) / columns - unit * (tl.sum(gw * unit, 0) / columns)
    tl.store(dx + row * columns + at, own * r, inside)
    tl.atomic_add(dweight + at, g * unit, inside)
    tl.atomic_add(dbias + at, g, inside)


@triton.jit
def dropout(x, out, keep, seed, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + at, at < n)
    tl.store(out + at, tl.where(tl.rand(seed, at) < keep, v / keep, 0.0), at < n)


@triton.jit
def scaled_codes(
    a, sa, b, sb, out, n, k,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Codes of 8 bits, a scale for each row of a block of K, and one for each column's."""
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    blocks = k // K
    total = tl.zeros((M, N), tl.float32)
    for block in range(0, blocks):
        inner = block * K + tl.arange(0, K)
        x = tl.load(a + rows[:, None] * k + inner[None, :])
        y = tl.load(b + inner[:, None] * n + columns[None, :])
        left = tl.load(sa + rows * blocks + block)
        right = tl.load(sb + block * n + columns)
        own = tl.dot(x, y, out_dtype=WIDE).to(tl.float32)
        total += own * left[:, None] * right[None, :]
    tl.store(out + rows[:, None] * n + columns[None, :], total)


@triton.jit
def windows(
    x, w, out, height, width, channels, filters,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, S: tl.constexpr,
):  # fmt: skip
    """A 3x3 convolution of an NHWC image with a border of one, as a product."""
    pixels = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    wide, high = (width + S - 1) // S, (height + S - 1) // S
    oy, ox = pixels // wide, pixels % wide
    total = tl.zeros((M, N), tl.float32)
    for tap in range(0, 9):
        y, z = oy * S + tap // 3 - 1, ox * S + tap % 3 - 1
        real = (y >= 0) & (y < height) & (z >= 0) & (z < width) & (oy < high)
        for start in range(0, channels, K):
            c = start + tl.arange(0, K)
            place = (y[:, None] * width + z[:, None]) * channels + c[None, :]
            v = tl.load(x + place, real[:, None] & (c[None, :] < channels), 0.0)
            taps = (tap * channels + c[:, None]) * filters + columns[None, :]
            u = tl.load(w + taps, (c[:, None] < channels) & (columns[None, :] < filters), 0.0)
            total = tl.dot(v, u, total)
    inside = (pixels[:, None] < wide * high) & (columns[None, :] < filters)
    tl.store(out + pixels[:, None] * filters + columns[None, :], total, inside)


@triton.jit
def causal_window(x, w, bias, out, length, channels, T: tl.constexpr, B: tl.constexpr):
    """A depthwise convolution over what came before, and SiLU."""
    t = tl.program_id(0)
    c = tl.program_id(1) * B + tl.arange(0, B)
    inside = c < channels
    v = tl.load(bias + c, inside, 0.0)
    for n in tl.static_range(T):
        before = t - (T - 1) + n
        row = tl.load(x + before * channels + c, inside & (before >= 0), 0.0)
        v += row * tl.load(w + n * channels + c, inside, 0.0)
    tl.store(out + t * channels + c, v * tl.sigmoid(v), inside)


@triton.jit
def joined_moments(n, mean, square, m, other, more):
    """Moments of two sets as those of both."""
    both = n + m
    share = tl.where(both == 0, 0.0, m / both)
    d = other - mean
    return both, mean + d * share, square + more + d * d * n * share


@triton.jit
def moments(x, mean, variance, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, 0.0)
    n, m, s = tl.reduce((tl.where(inside, 1.0, 0.0), v, v * 0), 0, joined_moments)
    tl.store(mean + row, m)
    tl.store(variance + row, s / n)


@triton.jit
def bags(table, index, weight, starts, out, columns, B: tl.constexpr):
    """Weighted sums of a table's rows, as many for each bag as it has."""
    bag = tl.program_id(0)
    at = tl.arange(0, B)
    inside = at < columns
    acc = tl.zeros((B,), tl.float32)
    for n in range(tl.load(starts + bag), tl.load(starts + bag + 1)):
        row = tl.load(index + n)
        acc += tl.load(weight + n) * tl.load(table + row * columns + at, inside, 0.0).to(tl.float32)
    tl.store(out + bag * columns + at, acc, inside)


@triton.jit
def added_halves(x, out, n, B: tl.constexpr, BINS: tl.constexpr):
    """16-bit floats, added by atomics to where their number says."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + at % BINS, tl.load(x + at, at < n, 0.0), at < n)


@triton.jit
def running(x, sums, products, tops, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr):
    """Along the columns and against the rows of a tile."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    at = rows[:, None] * N + columns[None, :]
    v = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(v, 1, reverse=REVERSE))
    tl.store(products + at, tl.cumprod(v, 0, reverse=REVERSE))
    tl.store(tops + at, tl.associative_scan(v, 1, larger, reverse=REVERSE))


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def reordered(x, out, B: tl.constexpr):
    """Pairs taken apart, turned, and joined again the other way."""
    v = tl.load(x + tl.arange(0, B))
    even, odd = tl.split(v.reshape(B // 2, 2))
    square = tl.flip(even).reshape(8, B // 16).trans().reshape(B // 2)
    tl.store(out + tl.arange(0, B), tl.interleave(odd, square))
