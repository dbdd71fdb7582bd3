"""Files that compile and read write are complete: other tools run them unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir as migraphx
from mgx_mlir.tools.opt import main as opt
from tests.driver.conftest import Driver
from tests.support.models import parsed

SHIFT = np.arange(60000, dtype=np.float32).reshape(3000, 20) / 1000


@pytest.fixture
def shifted(tmp_path: Path) -> Path:
    """A model with a weight that the IR does not hold."""
    path = tmp_path / "m.onnx"
    text = """(float[1] x) => (float[20] y)
        { sum = Add (x, a) y = ReduceMax <axes = [0], keepdims = 0> (sum) }"""
    onnx.save(parsed(text, {"a": SHIFT}), path)
    return path


def test_code_is_written_with_its_weights_and_the_line_that_runs_it(
    driver: Driver, shifted: Path, tmp_path: Path
) -> None:
    ran = driver("compile", shifted, "--cpu", "-o", tmp_path / "out dir.vmfb")
    assert ran.status == 0, ran.errors
    (line,) = ran.out.splitlines()
    assert line.startswith("iree-run-module ")
    assert (tmp_path / "out dir.irpa").exists()
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": tools},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    # printed with six digits
    numbers = done.stdout.rpartition("=")[2].split()
    np.testing.assert_allclose(np.array(numbers, np.float32), SHIFT.max(0), rtol=1e-5)


def test_every_tool_finds_the_weights_of_a_module(
    driver: Driver, shifted: Path, tmp_path: Path
) -> None:
    module, better = tmp_path / "m.mlir", tmp_path / "better.mlir"
    assert driver("read", shifted, "-o", module).status == 0
    assert opt.main([str(module), "--mgx-optimize-module", "-o", str(better)]) == 0
    for path in (module, better):
        assert driver("run", path, "--ref").status == 0
        (found,) = migraphx.compile(path, "cpu").run(np.float32([2]))
        np.testing.assert_array_equal(found, (SHIFT + 2).max(0))
    assert sorted(p.name for p in tmp_path.glob("*.npz")) == ["better.mlir.npz", "m.mlir.npz"]
