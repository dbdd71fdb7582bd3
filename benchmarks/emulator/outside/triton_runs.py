"""Run Triton's kernels, compiled for AMD without a GPU, on the emulator and compare with numpy.

usage: python -m benchmarks.emulator.outside.triton_runs [--arch gfx942 ...] [-k TEXT]

Needs `pip install triton` (MIT) and an emulator that is built. Each run is right, wrong, or refused
with the instruction's name.
"""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks.emulator.outside import triton_more, triton_newer
from benchmarks.emulator.outside.code_objects import Hip, HipError
from benchmarks.emulator.outside.triton_base import (
    ARCHS,
    BF16,
    F16,
    F32,
    I32,
    NAMES,
    RNG,
    Run,
    floats,
)


def simple() -> Iterator[Run]:
    x, y = floats(1000), floats(1000)
    for warps in (1, 4, 8):
        yield Run(
            "add",
            {"x": x, "y": y, "out": x * 0, "n": 1000},
            {"B": 256},
            (4,),
            {"out": x + y},
            warps=warps,
        )
    edges = np.asarray([3e38, 1e20, 1e-40, 1, -3e38, 0, np.inf, np.nan, 1e-30, 1.1754944e-38], F32)
    n, d = (a.ravel() for a in np.meshgrid(edges, edges[::-1] * F32(0.75)))
    with np.errstate(all="ignore"):
        yield Run(
            "divide",
            {"x": n, "y": d, "out": n * 0, "n": n.size},
            {"B": 128},
            (1,),
            {"out": n / d},
            label="edges",
        )
    v = x.astype(np.float64)
    from math import erf

    erfs = np.asarray([erf(e) for e in v])
    want = np.exp(v) + np.sqrt(np.abs(v)) + np.sin(v) * np.cos(v) + np.log(1 + np.abs(v)) + erfs
    yield Run("functions", {"x": x, "out": x * 0, "n": 1000}, {"B": 256}, (4,), {"out": want}, 1e-5)
    a, b = RNG.integers(1, 2**31 - 1, 512).astype(I32), RNG.integers(1, 5000, 512).astype(I32)
    high = (a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)).astype(I32)
    want = a // b + a % b + (a >> 3) * (b & 7) + high
    yield Run("integers", {"x": a, "y": b, "out": a * 0}, {"B": 512}, (1,), {"out": want})
    m = floats(70, 45)
    out = np.zeros((45, 70), F32)
    yield Run(
        "transpose",
        {"x": m, "out": out, "m": 70, "n": 45},
        {"M": 32, "N": 32},
        (3, 2),
        {"out": m.T},
    )
    index = RNG.integers(0, 70, 20).astype(I32)
    yield Run(
        "gather",
        {"x": m, "index": index, "out": np.zeros((20, 45), F32), "columns": 45},
        {"B": 64},
        (20,),
        {"out": m[index]},
    )


def rows() -> Iterator[Run]:
    for columns, warps in ((100, 1), (781, 4), (1024, 8)):
        x = floats(7, columns)
        B = 1 << (columns - 1).bit_length()
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        label = str(columns)
        yield Run(
            "softmax",
            {"x": x, "out": x * 0, "columns": columns},
            {"B": B},
            (7,),
            {"out": e / e.sum(1, keepdims=True)},
            1e-5,
            warps,
            label=label,
        )
        w, b = floats(columns), floats(columns)
        v = x.astype(np.float64)
        c = v - v.mean(1, keepdims=True)
        want = c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * w + b
        yield Run(
            "layernorm",
            {"x": x, "weight": w, "bias": b, "out": x * 0, "columns": columns},
            {"B": B},
            (7,),
            {"out": want},
            1e-4,
            warps,
            label=label,
        )
        yield Run(
            "argmax",
            {"x": x, "out": np.zeros(7, I32), "columns": columns},
            {"B": B},
            (7,),
            {"out": x.argmax(1).astype(I32)},
            0,
            warps,
            label=label,
        )
    x = floats(512)
    yield Run(
        "scan",
        {"x": x, "out": x * 0},
        {"B": 512},
        (1,),
        {"out": np.cumsum(x.astype(np.float64))},
        1e-4,
    )
    yield Run("sort", {"x": x, "out": x * 0}, {"B": 512}, (1,), {"out": np.sort(x)})
    k = RNG.integers(-99, 99, 256).astype(I32)
    yield Run("sort", {"x": k, "out": k * 0}, {"B": 256}, (1,), {"out": np.sort(k)}, label="i32")


def atomics() -> Iterator[Run]:
    h = RNG.integers(0, 16, 1024).astype(I32)
    want = np.bincount(h, minlength=16).astype(I32)
    yield Run(
        "histogram", {"x": h, "out": np.zeros(16, I32)}, {"B": 256, "BINS": 16}, (4,), {"out": want}
    )

    def each_once(found: dict[str, np.ndarray]) -> None:
        np.testing.assert_array_equal(np.sort(found["out"]), np.arange(512))

    yield Run(
        "tickets",
        {"counter": np.zeros(1, I32), "out": np.zeros(512, I32)},
        {"B": 128},
        (4,),
        {},
        check=each_once,
    )
    v = RNG.integers(-(2**30), 2**30, 512).astype(I32)
    parts = v.reshape(-1, 4)
    yield Run(
        "extremes",
        {
            "x": v, "lowest": np.full(4, 2**31 - 1, I32), "highest": np.full(4, -(2**31), I32),
            "ors": np.zeros(4, I32),
        },
        {"B": 128}, (4,),
        {"lowest": parts.min(0), "highest": parts.max(0), "ors": np.bitwise_or.reduce(parts, 0)},
    )  # fmt: skip
    x = floats(1024)
    total = np.asarray([x.astype(np.float64).sum()])
    yield Run(
        "split_sum",
        {"x": x, "out": np.zeros(1, F32), "n": 1024},
        {"B": 128},
        (8,),
        {"out": total},
        1e-4,
    )
    yield Run(
        "locked",
        {"lock": np.zeros(1, I32), "total": np.zeros(1, F32), "x": x},
        {"B": 128},
        (8,),
        {"total": total},
        1e-4,
    )
    yield Run(
        "all_meet",
        {"counter": np.zeros(1, I32), "out": np.zeros(40, I32), "groups": 40},
        {},
        (40,),
        {"out": np.full(40, 40, I32)},
    )


def products() -> Iterator[Run]:
    kinds: list[tuple[Any, Any, Any, float, tuple[str, ...]]] = [
        (F16, F32, "float32", 2e-3, ARCHS),
        (BF16, F32, "float32", 1e-2, ARCHS),
        (F32, F32, "float32", 3e-3, ARCHS),
        (np.int8, I32, "int32", 0, ARCHS),
        (np.float64, np.float64, "float64", 1e-12, ("gfx90a", "gfx942", "gfx950")),
        (ml_dtypes.float8_e4m3fn, F32, "float32", 1e-2, ("gfx950", "gfx1201")),
        (ml_dtypes.float8_e5m2, F32, "float32", 1e-2, ("gfx950", "gfx1201")),
        (ml_dtypes.float8_e4m3fnuz, F32, "float32", 1e-2, ("gfx942",)),
        (ml_dtypes.float8_e5m2fnuz, F32, "float32", 1e-2, ("gfx942",)),
    ]
    tiles = ((32, 32, 32, 4), (64, 32, 64, 4), (16, 16, 32, 1), (128, 64, 32, 8))
    for kind, wide, name, tol, archs in kinds:
        for M, N, K, warps in tiles:
            m, n, k = 70, 50, 96
            a, b = floats(m, k), floats(k, n)
            if kind == np.int8:
                a, b = np.rint(a * 30), np.rint(b * 30)
            a, b = a.astype(kind), b.astype(kind)
            want = a.astype(np.float64) @ b.astype(np.float64)
            grid = (-(-m // M), -(-n // N))
            arguments = {"a": a, "b": b, "out": np.zeros((m, n), wide), "m": m, "n": n, "k": k}
            label = f"{np.dtype(kind).name} {M}x{N}x{K}"
            yield Run(
                "matmul",
                arguments,
                {"M": M, "N": N, "K": K, "WIDE": name},
                grid,
                {"out": want},
                tol,
                warps,
                archs,
                label=label,
            )


def scaled_values(kind: str, rows_: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes of [rows, k] elements and their values."""
    if kind == "e2m1":
        table = np.asarray([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        codes = RNG.integers(0, 16, (rows_, k)).astype(np.uint8)
        values = table[codes & 7] * np.where(codes & 8, -1, 1)
        return codes[:, ::2] | codes[:, 1::2] << 4, values
    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[kind]
    values = floats(rows_, k).astype(dtype)
    return values, values.astype(np.float64)


def scaled() -> Iterator[Run]:
    M, N, K = 64, 64, 256
    for a, b in (
        ("e4m3", "e4m3"),
        ("e5m2", "e4m3"),
        ("e2m1", "e2m1"),
        ("e4m3", "e2m1"),
        ("e2m1", "e5m2"),
    ):
        for warps in (4, 8):
            x, xv = scaled_values(a, M, K)
            y, yv = scaled_values(b, N, K)
            xs, ys = (RNG.integers(124, 131, (r, K // 32)).astype(np.uint8) for r in (M, N))
            wide = [np.repeat(2.0 ** (s.astype(np.float64) - 127), 32, 1) for s in (xs, ys)]
            want = (xv * wide[0]) @ (yv * wide[1]).T
            arguments = {
                "a": x,
                "sa": xs,
                "b": np.ascontiguousarray(y.T),
                "sb": ys,
                "out": np.zeros((M, N), F32),
            }
            constants = {"M": M, "N": N, "K": K, "A": a, "B": b}
            yield Run(
                "scaled",
                arguments,
                constants,
                (1,),
                {"out": want},
                1e-4,
                warps,
                ("gfx950",),
                label=f"{a} {b}",
            )


def attentions() -> Iterator[Run]:
    for kind, tol in ((F16, 5e-3), (BF16, 3e-2), (F32, 5e-3)):
        for M, N, D, warps in ((64, 32, 64, 4), (32, 32, 32, 2), (128, 64, 64, 8)):
            length = 128
            q, k, v = (floats(length, D).astype(kind) for _ in range(3))
            s = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(D)
            s = np.where(np.tri(length, dtype=bool), s, -np.inf)
            p = np.exp(s - s.max(1, keepdims=True))
            want = p / p.sum(1, keepdims=True) @ v.astype(np.float64)
            arguments = {
                "q": q,
                "k": k,
                "v": v,
                "out": np.zeros((length, D), F32),
                "length": length,
                "scale": 1 / D**0.5,
            }
            label = f"{np.dtype(kind).name} {M}x{N}x{D}"
            yield Run(
                "attention",
                arguments,
                {"D": D, "M": M, "N": N},
                (length // M,),
                {"out": want},
                tol,
                warps,
                label=label,
            )


def casts() -> Iterator[Run]:
    x = np.concatenate(
        [floats(240) * 10, np.asarray([0, -0.0, 1e-7, 6e-5, 300, 448, 6e4, 1e-3] * 2, F32)]
    )
    for name, kind, archs in (
        ("float16", F16, ARCHS), ("bfloat16", BF16, ARCHS), ("int32", I32, ARCHS),
        ("int8", np.int8, ARCHS), ("float8e5", ml_dtypes.float8_e5m2, ARCHS),
        ("float8e4nv", ml_dtypes.float8_e4m3fn, ("gfx950", "gfx1201")),
    ):  # fmt: skip
        v = np.clip(x, -100, 100) if kind == np.int8 else x
        v = np.clip(x, -440, 440) if "8e4" in name else v
        yield Run(
            "cast",
            {"x": v, "out": np.zeros(256, kind)},
            {"B": 256, "TO": name},
            (1,),
            {"out": v.astype(kind)},
            archs=archs,
            label=name,
        )


def every_run() -> Iterator[Run]:
    own = (simple, rows, atomics, casts, products, attentions, scaled)
    families = (*own, triton_more.every_run, triton_newer.every_run)
    for family in families:
        yield from family()


def compile_for(run: Run, arch: str) -> Any:
    """Triton's code object for a run."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from benchmarks.emulator.outside import (
        triton_kernels,
        triton_more_kernels,
        triton_newer_kernels,
    )

    places = (triton_kernels, triton_more_kernels, triton_newer_kernels)
    kernel = next(k for p in places if (k := getattr(p, run.kernel, None)) is not None)
    signature, constants = {}, {}
    for name, value in run.arguments.items():
        if isinstance(value, np.ndarray):
            signature[name] = "*" + NAMES[value.dtype.name]
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i32"
    for name, value in run.constants.items():
        signature[name] = "constexpr"
        constants[name] = getattr(tl, value) if name in ("WIDE", "TO") else value
    source = ASTSource(kernel, signature, constants)
    lanes = 64 if arch.startswith("gfx9") else 32
    return triton.compile(source, GPUTarget("hip", arch, lanes), {"num_warps": run.warps})


def execute(hip: Hip, run: Run, arch: str) -> None:
    """Compile, launch and compare. Errors: HipError, AssertionError."""
    made = compile_for(run, arch)
    lanes = 64 if arch.startswith("gfx9") else 32
    module = hip.load(made.asm["hsaco"])
    held: dict[str, int] = {}
    try:
        segment = b""
        for name, value in run.arguments.items():
            if isinstance(value, np.ndarray):
                held[name] = hip.put(value)
                piece = struct.pack("<Q", held[name])
            else:
                piece = struct.pack("<f" if isinstance(value, float) else "<i", value)
            segment += bytes(-len(segment) % len(piece)) + piece
        segment += bytes(-len(segment) % 8 + 16)  # scratch that no kernel here uses
        grid = (*run.grid, 1, 1)[:3]
        threads = (run.warps * lanes, 1, 1)
        hip.launch(
            hip.function(module, made.metadata.name), grid, threads, segment, made.metadata.shared
        )
        found = {n: hip.get(p, run.arguments[n]) for n, p in held.items()}
    finally:
        hip.unload(module)
        hip.free(*held.values())
    for name, want in run.want.items():
        got = found[name].astype(np.float64)
        wanted = want.astype(np.float64)
        bound = run.tol * max(1e-30, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=bound, err_msg=name)
    if run.check is not None:
        run.check(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="*", default=list(ARCHS))
    parser.add_argument("-k", default="", help="runs whose name has this text")
    parser.add_argument("--newer", action="store_true", help="the third part's kernels alone")
    given = parser.parse_args()
    hip = Hip()
    bad = 0
    for arch in given.arch:
        counts = {"right": 0, "wrong": 0, "refused": 0}
        for run in triton_newer.every_run() if given.newer else every_run():
            if arch not in run.archs or given.k not in str(run):
                continue
            verdict, text = "right", ""
            try:
                execute(hip, run, arch)
            except HipError as e:
                verdict, text = "refused", str(e)
            except AssertionError as e:
                verdict, text = "wrong", str(e)
            except Exception as e:  # Triton does not compile it for this architecture
                print(f"{arch} {run}: not compiled: {' '.join(str(e).split())[-150:]}")
                continue
            counts[verdict] += 1
            if verdict != "right":
                print(f"{arch} {run}: {verdict}: {text[:600]}")
        bad += counts["wrong"]
        print(arch, ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
