"""compile() of models that are objects: ONNX messages, open files, memory that others own."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import mgx_mlir
from mgx_mlir.core.errors import ModelError, UsageError
from mgx_mlir.core.literals import Shared, WeightStore
from mgx_mlir.frontends.onnx.held import load_held
from mgx_mlir.frontends.onnx.importer import import_model
from tests.support.models import parsed

WEIGHT = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) / 100
X = np.ones((3, 64), np.float32)


def model(weight: TensorProto | None = None) -> onnx.ModelProto:
    """x @ w."""
    held = [weight or numpy_helper.from_array(WEIGHT, "w")]
    return parsed("(float[n,64] x) => (float[n,32] y) { y = MatMul (x, w) }", held, opset=18)


def outside() -> TensorProto:
    """The weight as external data."""
    made = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=WEIGHT.shape)
    made.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "held"), ("length", str(WEIGHT.nbytes))):
        made.external_data.add(key=key, value=value)
    return made


def test_a_message_a_file_and_bytes_are_compiled(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model().SerializeToString())
    with path.open("rb") as f:
        given = [model(), f, io.BytesIO(path.read_bytes()), bytearray(path.read_bytes())]
        for each in given:
            [y] = mgx_mlir.compile(each, "ref").run([X])
            np.testing.assert_allclose(y, X @ WEIGHT, rtol=1e-5)


@pytest.mark.parametrize("given", [5, None, object(), [1], {"x": 1}])
def test_another_kind_of_object_is_an_error(given: object) -> None:
    with pytest.raises(UsageError, match="expected a path, an open file"):
        mgx_mlir.compile(given, "ref")


def test_a_file_of_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_text("text")
    with path.open() as f, pytest.raises(UsageError) as e:
        mgx_mlir.compile(f, "ref")
    assert "open for bytes, got str" in str(e.value)


def test_weights_that_others_own_are_not_copied() -> None:
    held = Shared(WEIGHT, WEIGHT.ctypes.data, WEIGHT.nbytes)
    arrays = {"w": np.asarray(held)}
    with load_held(model(outside()), arrays) as loaded:
        program = import_model(loaded)
    [kept] = [a for _, a in program.store.items()]
    assert kept.ctypes.data == WEIGHT.ctypes.data
    assert not kept.flags.writeable
    [y] = mgx_mlir.compile(program, "ref").run([X])
    np.testing.assert_allclose(y, X @ WEIGHT, rtol=1e-5)


def test_weights_that_are_not_given_are_an_error() -> None:
    for arrays in ({}, {"w": np.zeros(5, np.uint8)}):
        with (
            pytest.raises(ModelError, match="not among the arrays"),
            load_held(model(outside()), arrays) as loaded,
        ):
            import_model(loaded)


def test_an_array_that_somebody_can_write_to_is_still_copied() -> None:
    mine = WEIGHT.copy()
    store = WeightStore()
    kept = store.get(store.add(mine))
    assert kept.ctypes.data != mine.ctypes.data
