"""Weights apart from code: parameters of a compiled program, exchanged without a compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import mgx_mlir as migraphx
from mgx_mlir.compiler import compile as compiling
from mgx_mlir.core.errors import RunError, UsageError

RNG = np.random.default_rng(5)
X = RNG.standard_normal((2, 8)).astype(np.float32)


def weights() -> dict[str, np.ndarray]:
    return {
        "w": RNG.standard_normal((8, 4)).astype(np.float32),
        "bias": RNG.standard_normal(4).astype(np.float32),
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose weights, and the dims of a Reshape, are in another file."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[4, 2] y) '
        "{ a = MatMul(x, w)  c = Add(a, bias)  y = Reshape(c, dims) }"
    )
    arrays = {**weights(), "dims": np.array([4, 2])}
    for name, a in arrays.items():
        model.graph.initializer.append(numpy_helper.from_array(a, name))
    found = tmp_path_factory.mktemp("model") / "net.onnx"
    onnx.save(
        model, found, save_as_external_data=True, location="net.data", size_threshold=0
    )  # fmt: skip
    return found


def wanted(held: dict[str, np.ndarray]) -> np.ndarray:
    return (X @ held["w"] + held["bias"]).reshape(4, 2)


def run(p: Any, **more: object) -> np.ndarray:
    return np.array(p.run({"x": X, **more})[0])


def test_weights_are_parameters(path: Path) -> None:
    p = migraphx.parse_onnx(path, external_weights_as_parameters=True)
    assert {n: s.lens() for n, s in p.get_parameter_shapes().items()} == {
        "x": [2, 8], "w": [8, 4], "bias": [4],
    }  # fmt: skip
    assert migraphx.parse_onnx(path).get_parameter_names() == ["x"]
    held = {n: np.array(a) for n, a in migraphx.load_weights(path).items()}
    assert list(held) == ["w", "bias"]
    np.testing.assert_allclose(run(p, **held), wanted(held), atol=1e-5)
    data = path.read_bytes()
    q = migraphx.parse_onnx_buffer(
        data, external_data_path=str(path.parent), external_weights_as_parameters=True
    )
    assert q == p


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_exchanged_without_a_compile(
    path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = migraphx.parse_onnx(path, external_weights_as_parameters=True)
    p.compile(migraphx.get_target(target))
    monkeypatch.setattr(compiling, "compile", None)  # nothing compiles from here on
    one, other = weights(), weights()
    first = p.create_program_with_weights(one)
    second = p.create_program_with_weights(other)
    for made, held in ((first, one), (second, other), (first, one)):
        assert made.get_parameter_names() == ["x"]
        np.testing.assert_allclose(run(made), wanted(held), atol=1e-5)
    # some of them, then the others
    half = p.create_program_with_weights({"w": one["w"]})
    assert half.get_parameter_names() == ["x", "bias"]
    whole = half.create_program_with_weights({"bias": migraphx.argument(one["bias"])})
    np.testing.assert_allclose(run(whole.clone()), wanted(one), atol=1e-5)
    assert p.get_parameter_names() == ["x", "w", "bias"]


def test_wrong_weights(path: Path) -> None:
    p = migraphx.parse_onnx(path, external_weights_as_parameters=True)
    with pytest.raises(RunError, match="the program has no parameter 'v'"):
        p.create_program_with_weights({"v": X})
    with pytest.raises(RunError, match=r"bias: expected float_type, \{4\}, got double_type"):
        p.create_program_with_weights({"bias": np.zeros(4)})
    made = p.create_program_with_weights(weights())
    with pytest.raises(UsageError, match="values for parameters that files do not hold: w, bias"):
        migraphx.save_buffer(made)
