"""Arguments in a GPU's memory, without one: what is refused (tests/emulator has the rest)."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import MgxError, RunError, ShapeError, TargetError, UsageError
from mgx_mlir.runtime.device import open_device
from mgx_mlir.runtime.device_memory import DeviceTensor

ARRAYS = [
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.arange(6, dtype=np.float16),
    np.array([True, False, True]),
    np.array(3, np.int64),
    np.array([200, 3], np.uint8),
    np.empty((0, 4), np.float32),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_there_and_back(array: np.ndarray) -> None:
    """With the processor's device, which has the same buffers."""
    tensor = DeviceTensor.of(open_device("local-sync"), array)
    assert (tensor.dims, tensor.dtype.np) == (array.shape, array.dtype)
    found = tensor.to_host()
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    assert tensor.shadow.shape == array.shape
    assert tensor.shadow.strides == (0,) * array.ndim or array.size == 0


def test_an_argument_in_device_memory() -> None:
    tensor = DeviceTensor.of(open_device("local-sync"), ARRAYS[0])
    arg = migraphx.argument.on_device(tensor)
    assert str(arg.get_shape()) == "float_type, {2, 3, 4}, {12, 4, 1}"
    with pytest.raises(UsageError, match="in a device's memory") as caught:
        np.array(arg)
    assert "from_gpu" in str(caught.value)
    assert migraphx.from_gpu(arg).tolist() == list(range(24))
    first = ctypes.c_float.from_address(arg.data_ptr() + 4)
    assert first.value == 1.0


def test_programs_of_other_targets_refuse_it() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[2, 3, 4]))
    m.add_return([m.add_instruction(migraphx.op("relu"), [x])])
    p.compile(migraphx.get_target("cpu"), offload_copy=False)
    arg = migraphx.argument.on_device(DeviceTensor.of(open_device("local-sync"), ARRAYS[0]))
    with pytest.raises(RunError, match="x: expected host memory"):
        p.run({"x": arg})
    with pytest.raises(UsageError, match="does not run on a stream"):
        p.run_async({"x": ARRAYS[0]}, 0x1000)
    assert p.run_async({"x": ARRAYS[0]}, 0)[0].tolist() == list(range(24))
    with pytest.raises(UsageError, match="expected a stream of type ihipStream_t or CUstream_st"):
        p.run_async({"x": ARRAYS[0]}, 0, "cudaStream_t")
    assert p.run({"x": ARRAYS[0]})[0].tolist() == list(range(24))


def test_target_memory_of_a_host() -> None:
    t = migraphx.get_target("cpu")
    arg = migraphx.argument(ARRAYS[0])
    assert t.copy_to(arg) is arg
    assert t.copy_from(arg) is arg
    assert t.allocate(arg.get_shape()).tolist() == [0.0] * 24
    with pytest.raises(UsageError, match="target cpu has no device context"):
        t.get_context()


WITHOUT = """
import mgx_mlir as migraphx
import numpy as np
migraphx.gpu_sync()  # nothing was asked of a GPU
for call in (lambda: migraphx.to_gpu(np.zeros(2)), lambda: migraphx.gpu_sync(device_id=1),
             lambda: migraphx.allocate_gpu(migraphx.shape(type="float_type", lens=[2]))):
    try:
        call()
    except migraphx.MgxError as e:
        print(type(e).__name__, str(e).splitlines()[0])
"""


def test_without_a_device() -> None:
    """In a process of its own: this one's HIP may be the emulator."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True,
        env={k: v for k, v in __import__("os").environ.items() if k != "IREE_HIP_DYLIB_PATH"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("TargetError") for line in lines)


def test_wrong_shapes() -> None:
    s = migraphx.shape(type="float_type", lens=[2, 3], strides=[1, 2])
    with pytest.raises(ShapeError, match="standard layout"):
        migraphx.allocate_gpu(s)
    assert issubclass(TargetError, MgxError)
