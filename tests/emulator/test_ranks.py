"""TopK on GPUs: ranks that all lanes count, with equal elements, NaN and sizes of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from tests.support.models import parsed

NET = """(float[r,c] x, int64[1] k) => (float[r,m] v, int64[r,m] i) {
v, i = TopK <axis = -1, largest = 1> (x, k) }"""
COUNTED = """
import numpy as np
import mgx_mlir
from tests.support.models import parsed
NET = "(float[3,1021] x) => (float[3,1021] v, int64[3,1021] i) { v, i = TopK (x, k) }"
model = parsed(NET, {"k": np.array([1021])}, opset=18).SerializeToString()
program = mgx_mlir.compile(model, "gpu", arch="gfx942", emulate=True, cache=False)
program.run(x=np.zeros((3, 1021), np.float32))
"""


def best(x: np.ndarray, k: int) -> np.ndarray:
    """Indices of the largest, NaN ahead, of equal ones the first one first."""
    keys = np.where(np.isnan(x), np.inf, x)
    return np.argsort(-keys, axis=-1, kind="stable")[:, :k]


@pytest.mark.parametrize("arch", ["gfx942", pytest.param("gfx1100", marks=pytest.mark.slow)])
def test_ranks(arch: str, library: Path) -> None:
    program = mgx_mlir.compile(
        parsed(NET, {}, opset=18).SerializeToString(), "gpu", arch=arch, emulate=True, cache=False
    )
    rng = np.random.default_rng(0)
    for rows, columns, k in ((3, 300, 300), (1, 1, 1), (2, 77, 5), (2, 9, 0)):
        x = rng.integers(-9, 9, (rows, columns)).astype(np.float32)
        x[:, 1::40] = np.nan
        v, i = program.run(x=x, k=np.array([k]))
        at = best(x, k)
        np.testing.assert_array_equal(i, at)
        np.testing.assert_array_equal(v, np.take_along_axis(x, at, -1))


@pytest.mark.slow
@pytest.mark.emulator
def test_instructions(library: Path, tmp_path: Path) -> None:
    """Waves took 22.5 million instructions with one lane a row."""
    stats = tmp_path / "stats"
    environment = {**os.environ, "MGX_EMULATE_STATS": str(stats)}
    environment["MGX_EMULATOR_PATH"] = str(library)
    subprocess.run([sys.executable, "-c", COUNTED], env=environment, check=True)
    launches = json.loads(stats.read_text())["launches"]
    assert sum(launch["instructions"] for launch in launches) < 3 * 22_500_000 / 50
