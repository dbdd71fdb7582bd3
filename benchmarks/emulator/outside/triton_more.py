"""Runs of the kernels in `triton_more_kernels`, with what numpy computes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.emulator.outside.triton_base import ARCHS, BF16, F16, F32, I32, RNG, Run, floats


def norms() -> Iterator[Run]:
    for columns, warps in ((100, 1), (1000, 4)):
        x, w = floats(6, columns), floats(columns)
        v = x.astype(np.float64)
        want = v / np.sqrt((v * v).mean(1, keepdims=True) + 1e-6) * w
        B = 1 << (columns - 1).bit_length()
        given = {"x": x, "weight": w, "out": x * 0, "columns": columns}
        yield Run("rms_norm", given, {"B": B}, (6,), {"out": want}, 1e-5, warps, label=str(columns))
    x, label = floats(9, 301) * 4, RNG.integers(0, 301, 9).astype(I32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    share = e / e.sum(1, keepdims=True)
    loss = -np.log(share[np.arange(9), label])
    slope = share - np.eye(301)[label]
    given = {"x": x, "label": label, "loss": np.zeros(9, F32), "slope": x * 0, "columns": 301}
    yield Run("cross_entropy", given, {"B": 512}, (9,), {"loss": loss, "slope": slope}, 1e-5)
    x, angle = floats(5, 64), floats(5, 32)
    c, s = np.cos(angle), np.sin(angle)
    want = np.concatenate([x[:, :32] * c - x[:, 32:] * s, x[:, 32:] * c + x[:, :32] * s], 1)
    given = {"x": x, "cosine": c, "sine": s, "out": x * 0}
    yield Run("rotary", given, {"D": 64}, (5,), {"out": want}, 1e-6, 1)


def scans() -> Iterator[Run]:
    a, x = RNG.uniform(-1, 1, 256).astype(F32), floats(256)
    for reverse in (False, True):
        order = range(255, -1, -1) if reverse else range(256)
        want, y = np.zeros(256), 0.0
        for n in order:
            y = float(a[n]) * y + float(x[n])
            want[n] = y
        given = {"a": a, "x": x, "out": x * 0}
        for warps in (1, 4):
            constants = {"B": 256, "REVERSE": reverse}
            yield Run(
                "recurrence", given, constants, (1,), {"out": want}, 1e-5, warps, label=str(reverse)
            )
    x = floats(4, 256)
    want = -np.sort(-x, 1)[:, :8]
    given = {"x": x, "out": np.zeros((4, 8), F32)}
    yield Run("best", given, {"columns": 256, "K": 8}, (4,), {"out": want})
    h = RNG.integers(0, 64, 1024).astype(I32)
    want = np.bincount(h, minlength=64).astype(I32)
    given = {"x": h, "out": np.zeros(64, I32)}
    yield Run("bins", given, {"B": 1024, "BINS": 64}, (1,), {"out": want})


def products() -> Iterator[Run]:
    m, n, k = 16, 64, 128
    for kind, tol in ((F16, 2e-3), (BF16, 1e-2)):
        name = np.dtype(kind).name
        x, codes = floats(m, k).astype(kind), RNG.integers(0, 16, (k, n)).astype(np.uint8)
        scale = RNG.uniform(0.5, 2, n).astype(F32)
        want = x.astype(np.float64) @ (codes.astype(np.float64) - 8) * scale
        given = {
            "x": x,
            "w": codes[::2] | codes[1::2] << 4,
            "scale": scale,
            "out": np.zeros((m, n), F32),
            "n": n,
            "k": k,
        }
        tile = {"M": 16, "N": 32, "K": 64}
        yield Run("packed_weights", given, tile, (2,), {"out": want}, tol, label=name)
        starts = np.asarray([0, 5, 5, 40, 61], I32)
        x, w = floats(61, 64).astype(kind), floats(4, 64, 64).astype(kind)
        parts = [
            x[a:b].astype(np.float64) @ w[g].astype(np.float64)
            for g, (a, b) in enumerate(itertools.pairwise(starts))
        ]
        given = {"x": x, "w": w, "out": np.zeros((61, 64), F32), "starts": starts, "n": 64, "k": 64}
        tile = {"M": 16, "N": 32, "K": 32}
        yield Run("grouped", given, tile, (4, 2), {"out": np.concatenate(parts)}, tol, label=name)


def slopes() -> Iterator[Run]:
    for kind, tol, D, N, warps in (
        (F16, 5e-3, 32, 32, 4),
        (BF16, 4e-2, 64, 32, 4),
        (F32, 5e-3, 32, 16, 1),
    ):
        length, scale = 64, 1 / D**0.5
        q, k, v, by = (floats(length, D).astype(kind) for _ in range(4))
        wide = [a.astype(np.float64) for a in (q, k, v, by)]
        s = wide[0] @ wide[1].T * scale
        top = np.log(np.exp(s).sum(1))
        p = np.exp(s - top[:, None])
        delta = (wide[3] * (p @ wide[2])).sum(1)
        ds = p * (wide[3] @ wide[2].T - delta[:, None]) * scale
        want = {"dq": ds @ wide[1], "dk": ds.T @ wide[0], "dv": p.T @ wide[3]}
        given = {
            "q": q,
            "k": k,
            "v": v,
            "top": top.astype(F32),
            "slope": by,
            "delta": delta.astype(F32),
            **{name: np.zeros((length, D), F32) for name in want},
            "length": length,
            "scale": scale,
        }
        label = np.dtype(kind).name
        yield Run(
            "attention_slopes",
            given,
            {"D": D, "N": N},
            (length // N,),
            want,
            tol,
            warps,
            label=label,
        )


def others() -> Iterator[Run]:
    x, table = (RNG.integers(-99, 99, 128).astype(I32) for _ in range(2))
    given = {"x": x, "table": table, "out": x * 0}
    want = {"table": table, "out": x * 2 + table}
    yield Run("normalized_exchange", given, {"B": 128}, (1,), want)
    v = RNG.standard_normal(128) * 10.0 ** RNG.integers(-5, 5, 128)
    want = np.sqrt(abs(v)) / (v * v + 0.5) + np.floor(v) - np.ceil(v * 0.5) + np.exp(-abs(v))
    yield Run("wide_functions", {"x": v, "out": v * 0}, {"B": 128}, (1,), {"out": want}, 1e-14)
    u = RNG.integers(0, 2**32, 256, dtype=np.uint64)
    high = u * np.uint64(0x85EBCA77) >> np.uint64(32)
    mixed = (((u << np.uint64(7)) | (u >> np.uint64(25))) & np.uint64(0xFFFFFFFF)) ^ (
        u * np.uint64(0x9E3779B1) & np.uint64(0xFFFFFFFF)
    )
    want = (mixed + high).astype(np.uint32).view(I32)
    x = u.astype(np.uint32).view(I32)
    yield Run("bits", {"x": x, "out": x * 0}, {"B": 256}, (1,), {"out": want}, archs=ARCHS)


def every_run() -> Iterator[Run]:
    for family in (norms, scans, products, slopes, others):
        yield from family()
