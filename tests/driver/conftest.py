"""Small models, a compile cache of its own, and a way to run the command line in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from examples.mnist import onnx_model, weights
from mgx_mlir.tools.driver.main import main


@dataclass(frozen=True)
class Ran:
    """What a command ended with."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def errors(self) -> list[str]:
        return self.err.splitlines()


Driver = Callable[..., Ran]


@pytest.fixture(autouse=True, scope="package")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("MGX_CACHE_DIR")
    os.environ["MGX_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["MGX_CACHE_DIR"]
    else:
        os.environ["MGX_CACHE_DIR"] = before


@pytest.fixture
def driver(capfd: pytest.CaptureFixture[str]) -> Driver:
    """Run mgx-driver; nothing it prints may be a traceback."""

    def run(*arguments: object) -> Ran:
        capfd.readouterr()
        status = main([str(a) for a in arguments])
        found = capfd.readouterr()
        assert "Traceback" not in found.out + found.err
        return Ran(status, found.out, found.err)

    return run


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[tuple[str, int, list]],
    outputs: list[tuple[str, int, list]],
    held: dict[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(*i) for i in inputs],
        [helper.make_tensor_value_info(*o) for o in outputs],
        [numpy_helper.from_array(v, k) for k, v in (held or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models: mnist, flipped, dynamic_batch, tokens, narrow, wider, logs."""
    folder = tmp_path_factory.mktemp("models")
    values = weights()
    onnx.save(onnx_model(values), folder / "mnist.onnx")
    # the largest weight of a unit that the drawn input switches on
    changed = dict(values)
    changed["w1"] = values["w1"].copy()
    x = np.abs(values["w1"]).max(axis=1)
    changed["w1"][int(np.argsort(x)[-2])] *= -1
    onnx.save(onnx_model(changed), folder / "flipped.onnx")
    relu = [helper.make_node("Relu", ["x"], ["y"])]
    f32, i64, f16 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.FLOAT16
    onnx.save(model_of(relu, [("x", f32, ["n", 3])], [("y", f32, ["n", 3])]), folder / "open.onnx")
    onnx.save(model_of(relu, [("x", f32, [2, 4])], [("y", f32, [2, 4])]), folder / "wider.onnx")
    onnx.save(model_of(relu, [("x", f16, [2, 4])], [("y", f16, [2, 4])]), folder / "half.onnx")
    tokens = [
        helper.make_node("Gather", ["table", "ids"], ["rows"]),
        helper.make_node("Cast", ["mask"], ["m"], to=f32),
        helper.make_node("Unsqueeze", ["m", "last"], ["m1"]),
        helper.make_node("Mul", ["rows", "m1"], ["masked"]),
        helper.make_node("Add", ["ids", "mask"], ["sums"]),
    ]
    table = np.random.default_rng(1).standard_normal((11, 4)).astype(np.float32)
    onnx.save(
        model_of(
            tokens,
            [("ids", i64, [2, 6]), ("mask", i64, [2, 6])],
            [("masked", f32, [2, 6, 4]), ("sums", i64, [2, 6])],
            {"table": table, "last": np.array([-1])},
        ),
        folder / "tokens.onnx",
    )
    log = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Abs", ["n"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Log", ["b"], ["y"]),
        helper.make_node("Sub", ["x", "x"], ["z"]),
    ]
    onnx.save(
        model_of(log, [("x", f32, [8])], [("y", f32, [8]), ("z", f32, [8])]), folder / "logs.onnx"
    )
    return folder
