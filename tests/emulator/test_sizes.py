"""Dynamic sizes on a GPU: checks of them in a branch, and slices of what they size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import mgx_mlir
from mgx_mlir.core.errors import RunError
from tests.sizes.test_branches import checks, choice, named
from tests.support.compare import agrees
from tests.support.models import parsed
from tests.targets.test_branch_moves import branches_of_convolutions


def test_a_branch_checks_its_sizes(library: Path, gpu_arch: str) -> None:
    compiled = mgx_mlir.compile(choice(), "gpu", arch=gpu_arch, emulate=True, cache=False)
    checks(named(compiled), 5, 3)


def test_kernels_beside_assertions(library: Path, gpu_arch: str) -> None:
    model = branches_of_convolutions(8).SerializeToString()
    x = np.random.default_rng(0).standard_normal((2, 2, 9)).astype(np.float32)
    calls = [{"k": np.array(k), "x": x} for k in (True, False)]
    compiled = agrees(model, calls, "gpu", rtol=1e-7, atol=2e-5, arch=gpu_arch, emulate=True)
    with pytest.raises(RunError, match="If_0/Conv_0"):
        compiled.run(k=np.array(True), x=x[:, :, :0])


def halves_of_rows(table: np.ndarray) -> ModelProto:
    """x times the second half of the table's row of each place, every number of it twice: rotary
    positions as GPT-J has them."""
    numbers = {"zero": np.int64(0), "one": np.int64(1), "first": np.array([0]),
               "from": np.array([2]), "to": np.array([4]), "last": np.array([2]),
               "beside": np.array([3]), "twice": np.array([1, 1, 1, 2]),
               "joined": np.array([0, 0, 4]), "table": table}  # fmt: skip
    return parsed(
        """(float[b,n,4] x) => (float[b,n,4] y) {
        dims = Shape (x) n = Gather (dims, one) places = Range (zero, n, one)
        at = Unsqueeze (places, first) rows = Gather (table, at)
        half = Slice (rows, from, to, last) apart = Unsqueeze (half, beside)
        tiled = Tile (apart, twice) repeated = Reshape (tiled, joined) y = Mul (x, repeated) }""",
        numbers,
        opset=18,
    )


def test_a_slice_of_rows_of_run_time_number(library: Path, gpu_arch: str) -> None:
    rng = np.random.default_rng(3)
    table = rng.standard_normal((16, 4)).astype(np.float32)
    model = halves_of_rows(table).SerializeToString()
    compiled = mgx_mlir.compile(model, "gpu", arch=gpu_arch, emulate=True, cache=False)
    for b, n in ((1, 9), (2, 13), (1, 1)):
        x = rng.standard_normal((b, n, 4)).astype(np.float32)
        (got,) = compiled.run(x=x)
        np.testing.assert_array_equal(got, x * table[None, :n, [2, 2, 3, 3]])
