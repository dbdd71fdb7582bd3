"""Runs of the kernels in `triton_newer_kernels`, with what numpy computes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from benchmarks.emulator.outside.triton_base import BF16, F16, F32, I32, RNG, Run, floats


def products() -> Iterator[Run]:
    for kind, tol, parts, warps in ((F16, 2e-3, 4, 4), (BF16, 1e-2, 3, 8), (F32, 3e-3, 2, 1)):
        m, n, k = 40, 70, 200
        a, b = floats(m, k).astype(kind), floats(k, n).astype(kind)
        want = a.astype(np.float64) @ b.astype(np.float64)
        given = {"a": a, "b": b, "out": np.zeros((m, n), F32), "m": m, "n": n, "k": k}
        yield Run("product_in_parts", given, {"M": 32, "N": 32, "K": 32}, (2, 3, parts),
                  {"out": want}, tol, warps, label=np.dtype(kind).name)  # fmt: skip
    fp8 = ml_dtypes.float8_e4m3fn
    for kind, wide, archs in (
        (np.dtype(np.int8), "int32", None), (np.dtype(fp8), "float32", ("gfx950", "gfx1201")),
        (np.dtype(ml_dtypes.float8_e4m3fnuz), "float32", ("gfx942",)),
    ):  # fmt: skip
        m, n, k, K = 32, 64, 128, 64
        factor = 30 if kind == np.int8 else 1
        x, y = (
            np.rint(floats(*d) * factor) if factor > 1 else floats(*d) for d in ((m, k), (k, n))
        )
        x, y = x.astype(kind), y.astype(kind)
        sx = RNG.uniform(0.01, 1, (m, k // K)).astype(F32)
        sy = RNG.uniform(0.01, 1, (k // K, n)).astype(F32)
        wx = x.astype(np.float64) * np.repeat(sx.astype(np.float64), K, 1)
        want = wx @ (y.astype(np.float64) * np.repeat(sy.astype(np.float64), K, 0))
        given = {"a": x, "sa": sx, "b": y, "sb": sy, "out": np.zeros((m, n), F32), "n": n, "k": k}
        run = Run("scaled_codes", given, {"M": 32, "N": 32, "K": K, "WIDE": wide}, (1, 2),
                  {"out": want}, 2e-6 if factor > 1 else 1e-5, 4, label=kind.name)  # fmt: skip
        run.archs = archs or run.archs
        yield run


def convolutions() -> Iterator[Run]:
    for kind, tol, stride, warps in ((F16, 2e-3, 1, 4), (BF16, 1e-2, 2, 2), (F32, 3e-3, 2, 4)):
        h, w, c, f = 9, 7, 20, 24
        x, k = floats(h, w, c).astype(kind), floats(9, c, f).astype(kind)
        wide = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
        oh, ow = -(-h // stride), -(-w // stride)
        want = np.zeros((oh, ow, f))
        for tap in range(9):
            y, z = tap // 3, tap % 3
            rows = wide[y : y + h : stride, z : z + w : stride]
            want += rows @ k[tap].astype(np.float64)
        given = {"x": x, "w": k, "out": np.zeros((oh, ow, f), F32), "height": h, "width": w,
                 "channels": c, "filters": f}  # fmt: skip
        tile = {"M": 32, "N": 32, "K": 16, "S": stride}
        yield Run("windows", given, tile, (-(-oh * ow // 32), 1), {"out": want}, tol, warps,
                  label=np.dtype(kind).name)  # fmt: skip
    x, k, bias = floats(13, 100), floats(4, 100), floats(100)
    wide = np.concatenate([np.zeros((3, 100)), x.astype(np.float64)])
    v = sum(wide[n : n + 13] * k[n].astype(np.float64) for n in range(4)) + bias
    given = {"x": x, "w": k, "bias": bias, "out": x * 0, "length": 13, "channels": 100}
    yield Run("causal_window", given, {"T": 4, "B": 64}, (13, 2), {"out": v / (1 + np.exp(-v))},
              1e-6, 2)  # fmt: skip


def decoding() -> Iterator[Run]:
    D, page, count, per = 64, 16, 16, 4
    for kind, length, warps in ((F16, 16 * 16, 4), (BF16, 150, 1), (F32, 1, 2)):
        q = floats(D).astype(kind)
        keys, values = (floats(count * page, D).astype(kind) for _ in range(2))
        pages = RNG.permutation(count).astype(I32)
        order = (pages[:, None] * page + np.arange(page)).ravel()[:length]
        scale = 1 / D**0.5
        k, v = (a[order].astype(np.float64) for a in (keys, values))
        s = k @ q.astype(np.float64) * scale
        parts = count // per
        part, top, total = np.zeros((parts, D)), np.full(parts, -np.inf), np.zeros(parts)
        for n in range(parts):
            own = slice(n * per * page, min((n + 1) * per * page, length))
            if own.start < length:
                top[n] = s[own].max()
                e = np.exp(s[own] - top[n])
                part[n], total[n] = e @ v[own], e.sum()
        zeros = {
            "part": part.astype(F32) * 0,
            "top": np.zeros(parts, F32),
            "total": np.zeros(parts, F32),
        }
        given = {"q": q, "keys": keys, "values": values, "pages": pages, **zeros, "length": length,
                 "scale": scale}  # fmt: skip
        label = f"{np.dtype(kind).name} {length}"
        sizes = {"D": D, "PAGE": page, "PAGES": per}
        want = {"part": part, "total": total, "top": top}
        yield Run("decode_parts", given, sizes, (parts,), want, 1e-5, warps, label=label)
        given = {"part": part.astype(F32), "top": top.astype(F32), "total": total.astype(F32),
                 "out": np.zeros(D, F32)}  # fmt: skip
        e = np.exp(s - s.max())
        yield Run("decode_joined", given, {"D": D, "PARTS": parts}, (1,), {"out": e @ v / e.sum()},
                  1e-5, warps, label=label)  # fmt: skip


def norms() -> Iterator[Run]:
    for columns, warps in ((100, 1), (700, 4)):
        x, w, g = floats(6, columns) + 3, floats(columns), floats(6, columns)
        v = x.astype(np.float64)
        c = v - v.mean(1, keepdims=True)
        r = 1 / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5)
        unit, gw = c * r, g.astype(np.float64) * w
        dx = (gw - gw.mean(1, keepdims=True) - unit * (gw * unit).mean(1, keepdims=True)) * r
        want = {"dx": dx, "dweight": (g * unit).sum(0), "dbias": g.astype(np.float64).sum(0)}
        given = {"x": x, "weight": w, "by": g, "dx": x * 0, "dweight": w * 0, "dbias": w * 0,
                 "columns": columns}  # fmt: skip
        B = 1 << (columns - 1).bit_length()
        yield Run("layernorm_slopes", given, {"B": B}, (6,), want, 1e-5, warps, label=str(columns))
        given = {"x": x, "mean": np.zeros(6, F32), "variance": np.zeros(6, F32), "columns": columns}
        yield Run("moments", given, {"B": B}, (6,), {"mean": v.mean(1), "variance": v.var(1)}, 1e-5,
                  warps, label=str(columns))  # fmt: skip


def philox(seed: int, counter: np.ndarray) -> np.ndarray:
    """The first of Philox 4x32's four words, ten rounds, with 64 bits of key."""
    c = [counter.astype(np.uint64), *(counter.astype(np.uint64) * 0 for _ in range(3))]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> shift) ^ c[1] ^ k[0], b & low, (a >> shift) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c[0].astype(np.uint32)


def others() -> Iterator[Run]:
    x, seed, keep = floats(900), 1234567, 0.7
    word = philox(seed, np.arange(900)).view(I32).astype(np.int64)
    uniform = np.where(word < 0, -word - 1, word) * 4.6566127342e-10
    assert abs(uniform - keep).min() > 1e-6  # none that rounding decides
    want = np.where(uniform < keep, x.astype(np.float64) / keep, 0)
    given = {"x": x, "out": x * 0, "keep": keep, "seed": seed, "n": 900}
    for warps in (1, 4):
        yield Run("dropout", given, {"B": 256}, (4,), {"out": want}, 1e-6, warps)
    starts = np.asarray([0, 3, 3, 10, 24], I32)
    index, weight = RNG.integers(0, 30, 24).astype(I32), floats(24)
    for kind in (F32, BF16):
        table = floats(30, 50).astype(kind)
        rows = table[index].astype(np.float64) * weight[:, None]
        want = np.stack([rows[a:b].sum(0) for a, b in itertools.pairwise(starts)])
        given = {"table": table, "index": index, "weight": weight, "starts": starts,
                 "out": np.zeros((4, 50), F32), "columns": 50}  # fmt: skip
        yield Run("bags", given, {"B": 64}, (4,), {"out": want}, 1e-5, 1, label=np.dtype(kind).name)
    for kind in (F16, BF16):
        h = RNG.integers(-4, 5, 500).astype(kind)  # sums that are exact in any order
        want = np.bincount(np.arange(500) % 32, h.astype(np.float64), 32)
        given = {"x": h, "out": np.zeros(32, kind), "n": 500}
        yield Run("added_halves", given, {"B": 128, "BINS": 32}, (4,), {"out": want},
                  label=np.dtype(kind).name)  # fmt: skip
    for reverse in (False, True):
        v = RNG.uniform(0.8, 1.25, (32, 64)).astype(F32)
        step = -1 if reverse else 1
        wide = v.astype(np.float64)
        want = {"sums": np.cumsum(wide[:, ::step], 1)[:, ::step],
                "products": np.cumprod(wide[::step], 0)[::step],
                "tops": np.maximum.accumulate(wide[:, ::step], 1)[:, ::step]}  # fmt: skip
        given = {"x": v, "sums": v * 0, "products": v * 0, "tops": v * 0}
        for warps in (1, 4):
            yield Run("running", given, {"M": 32, "N": 64, "REVERSE": reverse}, (1,), want, 1e-5,
                      warps, label=str(reverse))  # fmt: skip
    for kind in (F32, np.uint8):
        n = RNG.integers(0, 200, 256).astype(kind)
        turned = n[::2][::-1].reshape(8, 16).T.ravel()
        want = np.stack([n[1::2], turned], 1).ravel()
        yield Run("reordered", {"x": n, "out": n * 0}, {"B": 256}, (1,), {"out": want},
                  label=np.dtype(kind).name)  # fmt: skip


def every_run() -> Iterator[Run]:
    for family in (products, convolutions, decoding, norms, others):
        yield from family()
