"""Run-time sizes on a GPU: checks of them in a branch, and slices of what they size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.core.errors import RunError
from tests.sizes.test_branches import checks, choice, named
from tests.support.oracle import ort_session
from tests.targets.test_branch_moves import branches_of_convolutions


def test_a_branch_checks_its_sizes(library: Path, gpu_arch: str) -> None:
    compiled = mgx_mlir.compile(choice(), "gpu", arch=gpu_arch, emulate=True, cache=False)
    checks(named(compiled), 5, 3)


def test_kernels_beside_assertions(library: Path, gpu_arch: str) -> None:
    model = branches_of_convolutions(8).SerializeToString()
    compiled = mgx_mlir.compile(model, "gpu", arch=gpu_arch, emulate=True, cache=False)
    session = ort_session(model)
    x = np.random.default_rng(0).standard_normal((2, 2, 9)).astype(np.float32)
    for k in (np.array(True), np.array(False)):
        (got,), (want,) = compiled.run(k=k, x=x), session.run(None, {"k": k, "x": x})
        np.testing.assert_allclose(got, want, atol=2e-5)
    with pytest.raises(RunError, match="If_0/Conv_0"):
        compiled.run(k=np.array(True), x=x[:, :, :0])


def halves_of_rows(table: np.ndarray) -> ModelProto:
    """x times the second half of the table's row of each place, every number of it twice: rotary
    positions as GPT-J has them."""
    numbers = {"zero": np.int64(0), "one": np.int64(1), "first": np.array([0]),
               "from": np.array([2]), "to": np.array([4]), "last": np.array([2]),
               "beside": np.array([3]), "twice": np.array([1, 1, 1, 2]),
               "joined": np.array([0, 0, 4]), "table": table}  # fmt: skip
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["dims"]),
        node("Gather", ["dims", "one"], ["n"]),
        node("Range", ["zero", "n", "one"], ["places"]),
        node("Unsqueeze", ["places", "first"], ["at"]),
        node("Gather", ["table", "at"], ["rows"]),
        node("Slice", ["rows", "from", "to", "last"], ["half"]),
        node("Unsqueeze", ["half", "beside"], ["apart"]),
        node("Tile", ["apart", "twice"], ["tiled"]),
        node("Reshape", ["tiled", "joined"], ["repeated"]),
        node("Mul", ["x", "repeated"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(k, TensorProto.FLOAT, ["b", "n", 4]) for k in "xy")
    weights = [numpy_helper.from_array(np.asarray(v), k) for k, v in numbers.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_a_slice_of_rows_of_run_time_number(library: Path, gpu_arch: str) -> None:
    rng = np.random.default_rng(3)
    table = rng.standard_normal((16, 4)).astype(np.float32)
    model = halves_of_rows(table).SerializeToString()
    compiled = mgx_mlir.compile(model, "gpu", arch=gpu_arch, emulate=True, cache=False)
    for b, n in ((1, 9), (2, 13), (1, 1)):
        x = rng.standard_normal((b, n, 4)).astype(np.float32)
        (got,) = compiled.run(x=x)
        np.testing.assert_array_equal(got, x * table[None, :n, [2, 2, 3, 3]])
