"""Values that the instruction cases share, and the short forms they are written in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from make_vectors import Case

RNG = np.random.default_rng(7)
CDNA, RDNA = ("gfx90a", "gfx942", "gfx950"), ("gfx1100", "gfx1201")
U32, I32, F32, F16 = np.uint32, np.int32, np.float32, np.float16
N = 16  # lanes that differ; the file's values repeat over the wave

INTS = RNG.integers(0, 2**32, (3, N), dtype=np.uint64).astype(U32)
INTS[0, :6] = [0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0xFFFF]
INTS[1, :6] = [0xFFFFFFFF, 0x80000000, 1, 0x80000000, 33, 0x10000]
INTS[2, :3] = [31, 0, 0xFF00FF00]
FLOATS = RNG.standard_normal((3, N)).astype(F32) * np.asarray([1, 100, 0.01], F32)[:, None]
FLOATS[0, :5] = [0.0, -0.0, np.inf, 1e-40, 2.5]
FLOATS[1, :5] = [-0.0, 1.0, 1.0, 3.0, -0.5]
HALVES = RNG.standard_normal((3, 2 * N)).astype(F16)
HALVES[0, :4] = [0.0, 65504.0, 6e-8, -2.5]
HALVES[1, :4] = [-0.0, 2.0, 0.5, 1.0]


def bits(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).view(U32)


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.uint64)


def signed(a: np.ndarray) -> np.ndarray:
    return a.view(I32).astype(np.int64)


def low32(a: np.ndarray) -> np.ndarray:
    return (a & 0xFFFFFFFF).astype(np.uint64).astype(U32)


def three(values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"v{k + 1}": bits(values[k]) for k in range(3)}


def on(
    archs: tuple[str, ...], text: str, inputs: dict, outputs: dict, ulp: int = 0
) -> Iterator[Case]:
    for arch in archs:
        # gfx90a spells its matrix instructions without the last underscore
        spelled = re.sub(r"^(v_mfma_\w+)_(\w+) ", r"\1\2 ", text) if arch == "gfx90a" else text
        yield Case(arch, spelled, inputs, outputs, ulp)
