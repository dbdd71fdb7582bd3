"""Our compiler's programs, run by IREE's hip driver on the emulator, against independent values."""

from __future__ import annotations

from pathlib import Path

import pytest

import mgx_mlir
from tests.emulator import oracle
from tests.emulator.models import CASES

ARCHS = ("gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201")
DTYPES = dict.fromkeys(CASES, ("f32", "f16")) | {
    "gemm": ("f32", "f16", "bf16", "i8"),
    "long_gemm": ("f16",),
}
# three kernels of each architecture in CI, the rest with `-m slow`
QUICK = {
    ("long_gemm", "f16"),
    ("gemm", "f16"),
    ("gemm", "i8"),
    ("attention", "f16"),
    ("layernorm", "f32"),
}


SEEDS = 3


def is_slow(name: str, dtype: str, arch: str, seed: int) -> bool:
    return seed > 0 or (arch != "gfx942" and (name, dtype) not in QUICK)


@pytest.mark.parametrize(
    ("name", "dtype", "arch", "seed"),
    [
        pytest.param(*case, marks=pytest.mark.slow if is_slow(*case) else ())
        for name in CASES
        for dtype in DTYPES[name]
        for arch in ARCHS
        for seed in range(SEEDS)
        for case in ((name, dtype, arch, seed),)
    ],
)
def test_program(name: str, dtype: str, arch: str, seed: int, library: Path) -> None:
    case = CASES[name](dtype, seed)
    compiled = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch=arch, emulate=True
    )
    assert oracle.worst(compiled.run(case.inputs), oracle.wanted(case)) <= oracle.LIMITS[dtype]
