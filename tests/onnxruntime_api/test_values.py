"""OrtValue, OrtDevice and IOBinding, in both packages alike."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir.onnxruntime
from tests.onnxruntime_api.conftest import K, W, X, two_outputs


def test_a_value_over_an_array(ort: ModuleType) -> None:
    x = X.copy()
    v = ort.OrtValue.ortvalue_from_numpy(x)
    assert v.shape() == [2, 3]
    assert (v.data_type(), v.element_type(), v.device_name()) == ("tensor(float)", 1, "cpu")
    assert (v.has_value(), v.is_tensor(), v.is_sparse_tensor()) == (True, True, False)
    assert v.tensor_size_in_bytes() == 24
    assert v.data_ptr() == x.ctypes.data
    assert np.shares_memory(v.numpy(), x)
    assert np.array_equal(np.asarray(v), x)
    v.update_inplace(X + 1)
    assert np.array_equal(x, X + 1)
    with pytest.raises(RuntimeError):
        v.update_inplace(np.zeros((2, 4), np.float32))
    with pytest.raises(TypeError):
        v.update_inplace([1])
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy([1, 2])
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy(np.array(["a"]))
    with pytest.raises(RuntimeError):
        ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)


def test_values_of_shape_and_type(ort: ModuleType) -> None:
    v = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.int64)
    assert (v.shape(), v.data_type()) == ([2, 3], "tensor(int64)")
    v = ort.OrtValue.ortvalue_from_shape_and_type([4], TensorProto.BFLOAT16)
    assert (v.shape(), v.data_type()) == ([4], "tensor(bfloat16)")
    w = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ones(2, np.uint16), TensorProto.BFLOAT16)
    assert w.data_type() == "tensor(bfloat16)"


def test_a_value_takes_as_many_elements_as_it_has(ort: ModuleType) -> None:
    v = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    for source in (X[None], X.reshape(3, 2), X.reshape(-1)):
        v.update_inplace(source + 1)
        assert np.array_equal(v.numpy(), X + 1)
    with pytest.raises(RuntimeError):
        v.update_inplace(X[0])


def test_sizes_that_are_none(ort: ModuleType) -> None:
    make = ort.OrtValue.ortvalue_from_shape_and_type
    with pytest.raises(TypeError):
        make([2.5], np.float32)
    for sizes in ([-1, 2], [2**40, 2**40]):
        with pytest.raises(RuntimeError):
            make(sizes, np.float32)


@pytest.mark.parametrize("kind", [">f4", ">f8", ">i8"])
def test_arrays_of_another_byte_order_keep_their_numbers(kind: str) -> None:
    """onnxruntime reads their bytes as they are."""
    values = mgx_mlir.onnxruntime.OrtValue
    x = X.astype(kind)
    v = values.ortvalue_from_numpy(x)
    assert v.element_type() == values.ortvalue_from_numpy(X.astype(kind[1:])).element_type()
    for made in (v, values.of(x)):
        assert np.array_equal(made.numpy(), X)
        made.update_inplace(x + 1)
        assert np.array_equal(made.numpy(), X + 1)


def test_dlpack(ort: ModuleType) -> None:
    v = ort.OrtValue.ortvalue_from_numpy(X.copy())
    assert v.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(v)
    assert np.shares_memory(shared, v.numpy())
    for source in (v, v.numpy(), v.__dlpack__()):
        again = ort.OrtValue.from_dlpack(source)
        assert again.data_ptr() == v.data_ptr()
        assert again.data_type() == "tensor(float)"


def test_devices(ort: ModuleType) -> None:
    d = ort.OrtDevice.make("cpu", 0)
    assert (d.device_type(), d.device_id(), d.device_mem_type(), d.device_vendor_id()) == (
        0, 0, 0, 0,
    )  # fmt: skip
    with pytest.raises(Exception, match="nvme"):
        ort.OrtDevice.make("nvme", 0)


@pytest.fixture
def session(ort: ModuleType) -> Any:
    return ort.InferenceSession(two_outputs())


def test_a_binding(ort: ModuleType, session: Any) -> None:
    io = session.io_binding()
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(io)
    io.bind_cpu_input("x", X)
    io.bind_ortvalue_input("k", ort.OrtValue.ortvalue_from_numpy(K))
    io.bind_output("z")
    io.bind_output("y")
    session.run_with_iobinding(io)
    z, y = io.copy_outputs_to_cpu()
    assert np.array_equal(y, X + W)
    assert np.array_equal(z, (X + W) * K)
    assert [v.shape() for v in io.get_outputs()] == [[2, 3], [2, 3]]
    with pytest.raises(RuntimeError):
        io.bind_cpu_input("q", X)
    io.clear_binding_outputs()
    io.synchronize_inputs()
    io.synchronize_outputs()
    place = np.zeros((2, 3), np.float32)
    io.bind_output("y", "cpu", 0, np.float32, [2, 3], place.ctypes.data)
    io.bind_input("x", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    session.run_with_iobinding(io)
    assert np.array_equal(place, X + W)
    own = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    io.bind_ortvalue_output("y", own)
    session.run_with_iobinding(io)
    assert np.array_equal(own.numpy(), X + W)
    wrong = np.zeros((2, 4), np.float32)
    io.bind_output("y", "cpu", 0, np.float32, [2, 4], wrong.ctypes.data)
    with pytest.raises(RuntimeError):
        session.run_with_iobinding(io)
    assert not wrong.any()
    io.bind_cpu_input("x", X.astype(np.float64))
    with pytest.raises(RuntimeError, match=r"data type|expected float32"):
        session.run_with_iobinding(io)


def test_runs_on_values(ort: ModuleType, session: Any) -> None:
    feed = {n: ort.OrtValue.ortvalue_from_numpy(v) for n, v in (("x", X), ("k", K))}
    [z] = session.run_with_ort_values(["z"], feed)
    assert np.array_equal(z.numpy(), (X + W) * K)
    [y] = session.run(["y"], feed)
    assert np.array_equal(y, X + W)
    with pytest.raises(ValueError, match="k"):
        session.run_with_ort_values(["z"], {"x": feed["x"]})


def test_copies_of_values() -> None:
    kind = mgx_mlir.onnxruntime.OrtValue
    source, own = (kind.ortvalue_from_numpy(a) for a in (X, np.zeros_like(X)))
    mgx_mlir.onnxruntime.copy_tensors([source], [own])
    assert np.array_equal(own.numpy(), X)
    with pytest.raises(RuntimeError, match="expected float32"):
        own.update_inplace(np.zeros((2, 3), np.int32))
