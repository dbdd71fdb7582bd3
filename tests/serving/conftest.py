"""A directory of models that the tests serve."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)


def model_bytes(version: int = 1, rows: int | str = "n") -> bytes:
    """y = x W + version; `rows` is the first dim."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 4])],
        [numpy_helper.from_array(WEIGHTS, "w"),
         numpy_helper.from_array(np.array(version, np.float32), "b")],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()


def texts_bytes() -> bytes:
    """Which strings equal one."""
    graph = helper.make_graph(
        [helper.make_node("Equal", ["a", "b"], ["c"])],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.STRING, ["n"]),
         helper.make_tensor_value_info("b", TensorProto.STRING, [1])],
        [helper.make_tensor_value_info("c", TensorProto.BOOL, ["n"])],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 19)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()


def write_models(folder: Path) -> Path:
    """rows: versions 1 and 2, joined up to 8 rows; alone: not joined; words: strings."""
    for name, version, data in (
        ("rows", "1", model_bytes(1)),
        ("rows", "2", model_bytes(2)),
        ("alone", "1", model_bytes(3)),
        ("words", "1", texts_bytes()),
    ):
        (folder / name / version).mkdir(parents=True, exist_ok=True)
        (folder / name / version / "model.onnx").write_bytes(data)
    (folder / "rows" / "config.json").write_text(json.dumps({"max_batch_size": 8}))
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models"))


def expected(x: np.ndarray, version: int) -> np.ndarray:
    return x.astype(np.float64) @ WEIGHTS.astype(np.float64) + version


__all__ = ["expected", "model_bytes", "onnx", "texts_bytes", "write_models"]
