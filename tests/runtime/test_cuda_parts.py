"""Dry run of the parts of benchmarks/gpu_device.py that need no torch, without a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from benchmarks import gpu_device
from benchmarks.gpu_stored import Stored
from tests.runtime import cuda_library
from tests.support.models import parsed

TEXT = "(float16[4,64] x, float16[64,64] w) => (float16[4,64] y) { a = MatMul (x, w) y = Relu (a) }"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with inputs and the wanted result, as gpu_suite writes it."""
    made = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(0)
    inputs = {"x": rng.standard_normal((4, 64)).astype(np.float16),
              "w": rng.standard_normal((64, 64)).astype(np.float16)}  # fmt: skip
    product = inputs["x"].astype(np.float64) @ inputs["w"].astype(np.float64)
    case = Stored("programs", "gemm-f16-0", [(inputs, [np.maximum(product, 0)])], 2e-3)
    case.write(made)
    with mgx_mlir.compile(parsed(TEXT), "gpu", arch="sm_89") as program:
        mgx_mlir.save(program, made / "programs" / "gemm-f16-0.mxr")
    return made


def rows(folder: Path, part: str, *more: str) -> list[dict[str, object]]:
    """Return the rows of a part that runs over the stand-in."""
    text = "import sys; from benchmarks.gpu_parts import main; sys.exit(main(sys.argv[1:]))"
    root = str(Path(gpu_device.__file__).parents[1])
    return cuda_library.ran(cuda_library.built(), text, part, str(folder), *more, PYTHONPATH=root)


def test_programs_are_right(folder: Path) -> None:
    [row] = rows(folder, "programs", "60")
    assert row["case"] == "programs/gemm-f16-0"
    assert row["wrong"] == ""


def test_memory_threads_and_streams_are_right(folder: Path) -> None:
    found = [row for row in rows(folder, "memory") if "skipped" not in row]
    assert len(found) == 12
    assert [row for row in found if row["wrong"]] == []


def test_a_fault_is_an_error_of_each_later_call(folder: Path) -> None:
    found = rows(folder, "faults")
    assert len(found) == 3
    assert all("CUDA_ERROR_STAND_IN' (700)" in str(row["said"]) for row in found)
