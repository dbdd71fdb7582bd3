"""The ONNX Backend API: devices, positions and names of inputs, run_node, errors."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import mgx_mlir.backend
from mgx_mlir.core.errors import MgxError, RunError, TargetError, UsageError
from mgx_mlir.integrations import backend
from mgx_mlir.integrations.backend import Backend
from tests.support.models import model_of, node


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    """sub = a - b, and a named output that is no Python identifier."""
    nodes = [node("Sub", "a b", "sub"), node("Neg", "sub", "1")]
    return model_of(nodes, {"a": [2, 3], "b": [2, 3]}, {"sub": [2, 3], "1": [2, 3]}, opset=18)


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.full((2, 3), 10, np.float32)


def test_both_names_are_one_module() -> None:
    assert mgx_mlir.backend.Backend is backend.Backend
    assert issubclass(Backend, onnx.backend.base.Backend)


def test_devices() -> None:
    assert Backend.supports_device("CPU")
    assert Backend.supports_device("CPU:0")
    assert not Backend.supports_device("CUDA")
    assert not Backend.supports_device("CPU:1")
    with pytest.raises(TargetError, match="unknown device 'CUDA'"):
        Backend.set_device("CUDA")


def test_inputs_by_position_and_by_name(model: onnx.ModelProto) -> None:
    prepared = Backend.prepare(model, "CPU")
    outputs = prepared.run([A, B])
    np.testing.assert_array_equal(outputs[0], A - B)
    np.testing.assert_array_equal(outputs[1], B - A)
    np.testing.assert_array_equal(outputs.sub, A - B)
    np.testing.assert_array_equal(outputs["1"], B - A)
    np.testing.assert_array_equal(prepared.run({"b": B, "a": A})[0], A - B)


def test_run_model(model: onnx.ModelProto) -> None:
    np.testing.assert_array_equal(Backend.run_model(model, [A, B])[0], A - B)


def test_wrong_number_of_inputs(model: onnx.ModelProto) -> None:
    with pytest.raises(RunError, match="expected 2 inputs, got 1"):
        Backend.prepare(model).run([A])


def test_an_unknown_option_is_an_error(model: onnx.ModelProto) -> None:
    with pytest.raises((MgxError, TypeError)):
        Backend.prepare(model, "CPU", no_such_option=1)
    with pytest.raises(UsageError, match="no option 'fast'"):
        Backend.prepare(model, "CPU").run([A, B], fast=True)


def test_is_compatible(model: onnx.ModelProto) -> None:
    assert Backend.is_compatible(model)
    odd = onnx.ModelProto()
    odd.CopyFrom(model)
    odd.graph.node[0].op_type = "NoSuchOperator"
    assert not Backend.is_compatible(odd)


def test_run_node_with_opset_and_absent_input() -> None:
    node = helper.make_node("Clip", ["x", "", "high"], ["y"])
    outputs = Backend.run_node(node, [A, np.float32(3)], opset_version=13)
    np.testing.assert_array_equal(outputs[0], np.minimum(A, 3))


def test_run_node_with_outputs_info() -> None:
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    info = [(np.int64, (2,))]
    outputs = Backend.run_node(node, A, outputs_info=info)
    np.testing.assert_array_equal(outputs[0], np.array([2, 2]))
    assert outputs[0].dtype == np.int64
