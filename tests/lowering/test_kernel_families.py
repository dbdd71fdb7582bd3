"""Every family of the CPU's kernels: cases between guard pages, code for other processors.

Of each family: fixed and dynamic dims, ones, tails, strides and sizes of zero, NaN and infinities,
in numpy in f64 and in onnxruntime; 1 to 8 workers. kernel_families/run.py says what is guarded.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import mgx_mlir
from mgx_mlir.compiler import environment
from mgx_mlir.programs.lowered import Lowered
from tests.lowering.kernel_families.boundaries import boundaries
from tests.lowering.kernel_families.cases import merged, own_names
from tests.lowering.kernel_families.draws import drawn
from tests.lowering.kernel_families.run import difference, ordered
from tests.lowering.programs import execute, lowered_model
from tests.runtime import guarded

AARCH64 = ("--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu",)
# the processor, flags, and what an ELF file of it has as its machine
ELSEWHERE = {
    "neoverse-n1": (AARCH64, 183),
    "a64fx": (AARCH64, 183),
    "generic": (("--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",), 62),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if guarded.compiler() is None:
        pytest.skip("guards cannot be built here")
    return guarded.build(tmp_path_factory.mktemp("guard"))


def check(library: Path, *options: str, timeout: int = 900) -> None:
    """Run cases in a guarded process."""
    module = "tests.lowering.kernel_families.run"
    command = ["/usr/bin/env", f"LD_PRELOAD={library}", sys.executable, "-m", module, *options]
    done = subprocess.run(
        command, cwd=guarded.ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("kind", ["fixed", "dynamic"])
def test_between_guard_pages(library: Path, kind: str) -> None:
    check(library, "1", "--kinds", kind, "--workers", "1,3,8")


def test_boundaries_between_guard_pages(library: Path) -> None:
    check(library, "--boundaries", "--kinds", "dynamic", "--workers", "1,3")


def rules_of(lowered: Lowered) -> Counter[str]:
    return Counter(choice.rule for choice in lowered.choices)


def test_rules_of_boundaries() -> None:
    """A rule that is switched off, or that declines a form that it took, changes the counts."""
    lowered = lowered_model(merged(boundaries(), is_dynamic=True))
    assert rules_of(lowered) == Counter(rule for case in boundaries() for rule in case.rules)


@pytest.mark.parametrize(("arch", "part", "left"), [("haswell", 0, 0), ("neoverse-v1", 1, 6)])
def test_boundaries_with_the_vectors_of_other_processors(arch: str, part: int, left: int) -> None:
    """The vectors of any processor run on every other one; left: kernels that IREE makes there."""
    cases = [case for case in boundaries() if {*case.rules} - {"linalg"}][part::2]
    model = merged(cases, is_dynamic=True)
    lowered = lowered_model(model, arch=arch)
    assert rules_of(lowered)["linalg"] == left
    given = ordered(cases, 0, part, special=True)
    exact = mgx_mlir.compile(model, "ref", ref_double=True)
    arrays = [given[name] for name in exact.input_names]
    wants = exact.run(given)
    results = execute(lowered, arrays, threads=1 + part)
    for (_, case, _), got, want in zip(own_names(cases), results, wants, strict=True):
        assert not difference(case, got, want), case


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 22))
def test_more_between_guard_pages(library: Path, seed: int) -> None:
    check(library, str(seed), "--workers", "1,2,3,4,5,6,7,8", timeout=3600)


def machine_of(code: bytes) -> int:
    """Return the machine that the ELF file in a compiled module is for."""
    at = code.index(b"\x7fELF")
    return int.from_bytes(code[at + 18 : at + 20], "little")


def compiles(
    monkeypatch: pytest.MonkeyPatch, processor: str, seed: int, *, is_dynamic: bool
) -> None:
    """Compile the cases of a seed for a processor that this machine may not have."""
    flags, machine = ELSEWHERE[processor]
    monkeypatch.setattr(environment, "backend_flags", lambda _: flags)
    model = merged(drawn(seed), is_dynamic=is_dynamic)
    made = mgx_mlir.compile(model, "cpu", arch=processor, cache=False)
    assert not made.executable.fallbacks
    assert machine_of(bytes(made.executable.vmfb)) == machine


@pytest.mark.parametrize(
    "processor", ["neoverse-n1", pytest.param("generic", marks=pytest.mark.slow)]
)
def test_compiles_elsewhere(monkeypatch: pytest.MonkeyPatch, processor: str) -> None:
    compiles(monkeypatch, processor, 1, is_dynamic=False)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ELSEWHERE)
@pytest.mark.parametrize("seed", [1, 10])
def test_compiles_elsewhere_with_dynamic_dims(
    monkeypatch: pytest.MonkeyPatch, processor: str, seed: int
) -> None:
    compiles(monkeypatch, processor, seed, is_dynamic=True)
