"""Run HIP kernels, compiled by clang without AMD's headers, on the emulator and compare with numpy.

usage: python -m benchmarks.emulator.outside.clang_runs [--clang PATH] [--arch gfx942 ...] [-k TEXT]

Needs clang and lld 17 or newer (Debian's clang-19 and lld-19); each kernel is compiled with -O0 and
-O2. A run is right, wrong, or refused with the instruction's name.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.emulator.outside.code_objects import Hip, HipError

HERE = Path(__file__).resolve().parent
RNG = np.random.default_rng(23)
I32, U32, F32 = np.int32, np.uint32, np.float32


@dataclass
class Run:
    """A launch of one kernel: arguments, and the arguments that must be so afterwards."""

    kernel: str
    arguments: list[np.ndarray | int]
    want: dict[int, np.ndarray]
    groups: int = 1
    threads: int = 128
    tol: float = 0.0
    sort: bool = False


def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


def numbers() -> Iterator[Run]:
    x, y = (RNG.standard_normal(1000).astype(F32) for _ in range(2))
    yield Run("add", [x, y, x * 0, 1000], {2: x + y}, 8)
    edges = np.asarray(
        [0, 1, 3e38, 1e-45, 1e-40, 1.1754944e-38, 1e20, np.inf, np.nan, -7, 2.0**127], F32
    )
    n, d = (a.ravel() for a in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        yield Run("divide", [n, d, n * 0, n.size], {2: n / d}, 1)
        n, d = (
            a.ravel()
            for a in np.meshgrid(
                *[np.asarray([0, 1, 1e308, 5e-324, 1e-310, np.inf, np.nan, -7, 2.0**1023, 3e-300])]
                * 2
            )
        )
        yield Run("divide_doubles", [n, d, n * 0, n.size], {2: n / d}, 1)
    a = RNG.integers(-(2**62), 2**62, 256)
    b = RNG.integers(1, 2**31, 256)
    quotient = np.abs(a) // b * np.sign(a)
    rest = a - quotient * b
    unsigned = (a.view(np.uint64) // b.view(np.uint64)).view(np.int64)
    yield Run("divide_integers", [a, b, a * 0, 256], {2: quotient + rest * 3 + unsigned}, 2)
    v = np.abs(RNG.standard_normal(128)) * 100
    want = np.sqrt(v) + np.floor(v * 3) - (v * v + 1) + np.trunc(v * 1000) + np.trunc(v)
    yield Run("doubles", [v, v * 0], {1: want}, tol=1e-12)


def pointers() -> Iterator[Run]:
    t = np.arange(128)
    x = RNG.integers(0, 1000, 128).astype(I32)
    own = np.asarray([1, 2, 3, 4])
    start = np.zeros(256, I32)
    kept = np.where(
        t % 3 == 1,
        np.where((t + 1) % 4 == t % 4, own[t % 4] + 7, own[(t + 1) % 4]),
        own[(t + 1) % 4],
    )
    value = np.where(t % 3 == 0, x[127 - t] * 3 + 7, np.where(t % 3 == 1, own[t % 4] + 7, 7))
    after = np.concatenate([value + kept, np.where(t % 3 == 2, 7, 0)]).astype(I32)
    yield Run("generic_pointers", [x, start], {1: after})
    called = np.choose(x % 3, [2 * t, t * t, -t]) + np.where(x & 1, 40, 20)
    yield Run("function_pointers", [x, x * 0], {1: called.astype(I32)})
    yield Run("recursion", [x * 0], {0: np.asarray([ackermann(2, k % 4) for k in range(128)], I32)})
    small = RNG.integers(0, 32, 32).astype(I32)
    sums = []
    for lane in range(128):
        held = np.zeros(32, np.int64)
        for k in range(32):
            held[(k * 7 + lane) & 31] = k * lane + small[k]
        total = 0
        for k in range(32):
            total = (total * 3 + int(held[(small[k] + k) & 31])) & 0xFFFFFFFF
        sums.append(total)
    yield Run("scratch", [small, x * 0], {1: np.asarray(sums, U32).view(I32)})


def together() -> Iterator[Run]:
    lanes = 512
    chain = 0
    for _ in range(lanes):
        chain = (chain * 3 + 1) & 0xFFFFFFFF
    yield Run(
        "atomics",
        [np.zeros(2, U32), np.zeros(lanes, U32), np.zeros(1, np.uint64), np.zeros(1, F32)],
        {
            0: np.asarray([lanes, chain], U32), 1: np.arange(lanes, dtype=U32),
            2: np.asarray([(lanes - 1) << 33], np.uint64), 3: np.asarray([lanes / 2], F32),
        },
        4, sort=True,
    )  # fmt: skip
    x = RNG.integers(0, 1000, 128).astype(I32)
    yield Run(
        "local_atomics",
        [x, x * 0],
        {1: (np.bincount(x & 7, minlength=8)[x & 7] * 1000 + 1).astype(I32)},
    )
    yield Run("waves_wait", [np.zeros(1, I32)], {0: np.asarray([41], I32)}, threads=256)
    yield Run(
        "groups_wait", [np.zeros(1, I32), np.zeros(1, I32), 20], {1: np.asarray([17], I32)}, 20, 64
    )
    yield Run("sizes", [np.zeros(4, I32)], {0: np.asarray([128, 384, 128, 384], I32)}, 3)
    yield Run("clocks", [np.zeros(128, np.uint64)], {0: np.ones(128, np.uint64)})


def words() -> Iterator[Run]:
    x = RNG.integers(0, 2**32, 128, dtype=np.uint64).astype(U32)
    out = []
    for t, v in enumerate(int(e) for e in x):
        w = v << 32 | int(x[(t + 1) & 127])
        clz, ctz = 32 - (v | 1).bit_length(), ((v | 0x100) & -(v | 0x100)).bit_length() - 1
        r = v.bit_count() + clz * 3 + ctz * 5 + int(f"{v:032b}"[::-1], 2)
        r += w.bit_count() + (64 - (w | 1).bit_length()) * 7 + (w >> (v & 63) & 0xFFFFFFFF)
        r += (w * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 32
        s = v & 31
        out.append((r & 0xFFFFFFFF) ^ ((v << s | v >> (32 - s)) & 0xFFFFFFFF if s else v))
    yield Run("bits", [x, x * 0], {1: np.asarray(out, U32)})
    y = RNG.integers(0, 1000, 128).astype(I32)
    t = np.arange(128)
    moved = np.where(t % 16 > 0, y[np.maximum(t, 1) - 1], 0)
    yield Run(
        "shuffles", [y, y * 0], {1: y[(t & ~31) + 31 - (t & 31)] + moved * 3 + y[t & ~63] * 5}
    )


def every_run() -> Iterator[Run]:
    for family in (numbers, pointers, together, words):
        yield from family()


def compiled(clang: str, arch: str, level: str) -> bytes:
    """The code object of all kernels. Error: clang's message."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "kernels.o"
        command = [
            clang,
            "-x",
            "hip",
            f"--offload-arch={arch}",
            "--cuda-device-only",
            "-nogpulib",
            "-nogpuinc",
        ]
        command += [
            level,
            "-std=c++17",
            "-w",
            "--no-gpu-bundle-output",
            str(HERE / "clang_kernels.hip"),
            "-o",
            str(out),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
        return out.read_bytes()


def execute(hip: Hip, run: Run, function: object) -> None:
    held: dict[int, int] = {}
    segment = b""
    for k, value in enumerate(run.arguments):
        if isinstance(value, np.ndarray):
            held[k] = hip.put(value)
            segment += bytes(-len(segment) % 8) + struct.pack("<Q", held[k])
        else:
            segment += struct.pack("<i", value)
    try:
        hip.launch(function, (run.groups, 1, 1), (run.threads, 1, 1), segment)  # type: ignore[arg-type]
        for k, want in run.want.items():
            array = run.arguments[k]
            assert isinstance(array, np.ndarray)
            got = hip.get(held[k], array)
            np.testing.assert_allclose(
                np.sort(got) if run.sort else got,
                np.sort(want) if run.sort else want,
                rtol=run.tol,
                atol=0,
            )
    finally:
        hip.free(*held.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang", default="clang")
    parser.add_argument("--arch", nargs="*", default=["gfx90a", "gfx942", "gfx1100", "gfx1201"])
    parser.add_argument("-k", default="", help="kernels whose name has this text")
    given = parser.parse_args()
    hip = Hip()
    bad = 0
    for arch in given.arch:
        for level in ("-O0", "-O2"):
            counts = {"right": 0, "wrong": 0, "refused": 0}
            try:
                module = hip.load(compiled(given.clang, arch, level))
            except HipError as e:
                print(f"{arch} {level}: refused: {e}")
                continue
            for run in every_run():
                if given.k not in run.kernel:
                    continue
                verdict, text = "right", ""
                try:
                    execute(hip, run, hip.function(module, run.kernel))
                except HipError as e:
                    verdict, text = "refused", str(e)
                except AssertionError as e:
                    verdict, text = "wrong", str(e)
                counts[verdict] += 1
                if verdict != "right":
                    print(f"{arch} {level} {run.kernel}: {verdict}: {text[:500]}")
            bad += counts["wrong"]
            print(arch, level, ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
            hip.unload(module)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
