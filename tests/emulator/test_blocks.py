"""One block of each model family, and two whole models, on emulated GPUs.

Most is slow: `pytest -m slow tests/emulator/test_blocks.py`, an architecture by `-k gfx942`; `-s`
prints the errors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mgx_mlir
from benchmarks.emulator.wholes import WHOLE
from tests.emulator import oracle
from tests.emulator.blocks import BLOCKS
from tests.emulator.models import Case
from tests.emulator.test_programs import ARCHS

SEEDS = 3
# in CI, with one seed: each family but the UNet, each architecture
QUICK = {
    ("resnet", "f16", "gfx1100"),
    ("bert", "f16", "gfx942"),
    ("gpt2", "f16", "gfx1201"),
    ("llama_prefill", "f16", "gfx950"),
    ("vit", "f32", "gfx90a"),
    ("whisper_encoder", "f16", "gfx90a"),
    ("whisper_decoder", "f16", "gfx1100"),
}
BF16 = ("bert", "gpt2", "llama_prefill", "llama_decode")


def errors_of(case: Case, arch: str, **options: bool) -> float:
    program = mgx_mlir.compile(
        case.model.SerializeToString(), target="gpu", arch=arch, emulate=True, **options
    )
    assert not program.executable.fallbacks
    return oracle.worst(program.run(case.inputs), oracle.wanted(case))


def is_slow(name: str, dtype: str, arch: str, seed: int) -> bool:
    return seed > 0 or (name, dtype, arch) not in QUICK


@pytest.mark.parametrize(
    ("name", "dtype", "arch", "seed"),
    [
        pytest.param(*case, marks=pytest.mark.slow if is_slow(*case) else ())
        for name in BLOCKS
        for dtype in ("f32", "f16", *(("bf16",) if name in BF16 else ()))
        for arch in ARCHS
        for seed in range(SEEDS)
        for case in ((name, dtype, arch, seed),)
    ],
)
def test_block(name: str, dtype: str, arch: str, seed: int, library: Path) -> None:
    found = errors_of(BLOCKS[name](dtype, seed), arch)
    print(f"\n{name} {dtype} {arch} {found:.1e}")
    assert found <= oracle.LIMITS[dtype]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("arch", ["gfx942"])
@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str, arch: str, seed: int, library: Path) -> None:
    found = errors_of(WHOLE[name]("f16", seed), arch)
    print(f"\n{name} f16 {arch} {found:.1e}")
    assert found <= oracle.LIMITS["f16"]


CHECKED = """
import sys
from tests.emulator import blocks, oracle
from tests.emulator.test_blocks import errors_of
name, arch = sys.argv[1:]
assert errors_of(blocks.BLOCKS[name]("f16", 4), arch) <= oracle.LIMITS["f16"]
"""


# the padded rows of a tile are what the LDS held: what is computed of them is dropped
PADDED = {"vit": "races,waits,hazards,bounds"}


@pytest.mark.slow
@pytest.mark.emulator
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("name", BLOCKS)
def test_checks_find_nothing(name: str, arch: str, library: Path) -> None:
    """Reads of what was not written, races, missing waits: each would fail its launch."""
    settings = {**os.environ, "MGX_EMULATOR_PATH": str(library)}
    settings["MGX_EMULATE_CHECK"] = PADDED.get(name, "all")
    settings.pop("IREE_HIP_DYLIB_PATH", None)
    command = [sys.executable, "-c", CHECKED, name, arch]
    done = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
