"""Device memory through the API: programs on it, DLPack, errors, threads, what is given back."""

from __future__ import annotations

import ctypes
import functools
import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.errors import MgxError, RunError, ShapeError, TargetError, UsageError
from mgx_mlir.runtime import gpu_streams
from mgx_mlir.runtime.device import open_device
from mgx_mlir.runtime.gpu_api import HIP
from mgx_mlir.runtime.gpu_calls import device_arch
from mgx_mlir.targets import emulator

RNG = np.random.default_rng(7)
A = RNG.standard_normal((64, 128), np.float32)
B = RNG.standard_normal((128, 64), np.float32)
WANTED = A.astype(np.float64) @ B


def product() -> Any:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[64, 128]))
    y = m.add_parameter("y", migraphx.shape(type="float_type", lens=[128, 64]))
    m.add_return([m.add_instruction(migraphx.op("dot"), [x, y])])
    return p


@pytest.fixture(scope="module")
def target(gpu_arch: str) -> Any:
    return migraphx.get_target("gpu", arch=gpu_arch, emulate=True)


@pytest.fixture(scope="module")
def staying(target: Any) -> Any:
    """A program whose arguments and results stay on the device."""
    p = product()
    p.compile(target, offload_copy=False)
    return p


@pytest.fixture
def given(target: Any) -> dict[str, Any]:
    return {n: target.copy_to(migraphx.argument(a)) for n, a in (("x", A), ("y", B))}


def check(found: Any) -> None:
    np.testing.assert_allclose(migraphx.from_gpu(found).array, WANTED, rtol=1e-4, atol=1e-4)


def test_results_stay(staying: Any, given: dict[str, Any]) -> None:
    (found,) = staying.run(given)
    assert repr(found).startswith("<float_type, {64, 64}, {64, 1} on hip device 0")
    check(found)
    with pytest.raises(UsageError, match="the argument is in a device's memory"):
        np.array(found)


def test_offload_copy_takes_both(target: Any, given: dict[str, Any]) -> None:
    p = product()
    p.compile(target)
    for params in ({"x": A, "y": B}, {"x": given["x"], "y": B}, given):
        (found,) = p.run(params)
        assert found.device_tensor is None
        check(found)


def test_streams(staying: Any, target: Any, given: dict[str, Any]) -> None:
    check(staying.run_async(given, 0)[0])
    at = target.get_context()
    at.finish()
    at.wait_for(0)
    migraphx.gpu_sync()
    stream, begin, end = at.create_stream(), at.create_event(), at.create_event()
    with pytest.raises(UsageError, match="the event was not recorded"):
        begin.synchronize()
    begin.record(stream)
    check(staying.run_async(given, stream.address)[0])
    at.finish_on(stream)
    end.record(stream)
    end.synchronize()
    stream.wait(end)
    stream.synchronize()
    assert end.elapsed_ms(begin) > 0
    with pytest.raises(
        UsageError, match="expected a stream of type ihipStream_t or CUstream_st, got cuda"
    ):
        staying.run_async(given, 0, "cudaStream_t")


@pytest.mark.emulator
def test_a_stream_that_is_not_there(staying: Any, given: dict[str, Any]) -> None:
    with pytest.raises(RunError, match="status 400: the stream, event or pool is not there"):
        staying.run_async(given, 123456)


@pytest.mark.parametrize(
    "dtype",
    [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.bool_, np.int8, np.uint64, "f8"],
)
def test_copies_of_all_types(dtype: Any, target: Any) -> None:
    value = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(migraphx.from_gpu(migraphx.to_gpu(value, emulate=True)), value)
    turned = migraphx.to_gpu(value.T, emulate=True)  # row-major there
    assert turned.get_shape().strides() == [2, 1]
    np.testing.assert_array_equal(migraphx.from_gpu(turned).array, value.T)


def test_copies_of_odd_sizes(target: Any) -> None:
    for value in (np.float32(3), np.zeros((0, 3), np.float32), RNG.standard_normal(1 << 22)):
        held = target.copy_to(migraphx.argument(value))
        np.testing.assert_array_equal(migraphx.from_gpu(held).array, value)
        assert target.copy_to(held) is held
    made = target.allocate(migraphx.shape(type="half_type", lens=[3, 5]))
    assert made.get_shape() == migraphx.shape(type="half_type", lens=[3, 5])
    assert migraphx.from_gpu(made).array.shape == (3, 5)
    with pytest.raises(ShapeError, match="standard layout"):
        target.allocate(migraphx.shape(type="half_type", lens=[3, 5], strides=[1, 3]))


def test_wrong_arguments(staying: Any, target: Any, given: dict[str, Any]) -> None:
    on = target.copy_to
    wrong: list[tuple[dict[str, Any], str]] = [
        ({**given, "y": given["x"]}, "input 'y' expected float_type {128, 64}, got {64, 128}"),
        ({**given, "x": on(migraphx.argument(A.astype(np.float16)))}, "expected float32, got"),
        ({"x": given["x"]}, "missing inputs: y"),
        ({**given, "y": B}, "y: expected arguments in device memory"),
    ]
    for params, text in wrong:
        with pytest.raises(RunError, match=text.replace("{", r"\{")):
            staying.run(params)
    with pytest.raises(TargetError, match="there is no HIP device 99, expected 0"):
        migraphx.to_gpu(A, device_id=99, emulate=True)
    p = product()
    p.compile(migraphx.get_target("cpu", threads=1))
    with pytest.raises(RunError, match="x, y: expected host memory, got a device's"):
        p.run(given)


class Tensor(ctypes.Structure):
    """DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class Managed(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = (("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


def tensor_in(capsule: Any) -> Tensor:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Tensor.from_address(get(capsule, b"dltensor"))


class Foreign:
    """A tensor of another library, as torch for ROCm gives it."""

    dtype = "torch.float32"

    def __init__(
        self, capsule: Callable[[], Any], device: tuple[int, int] = (HIP.dlpack, 0)
    ) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_dlpack(staying: Any, given: dict[str, Any]) -> None:
    (found,) = staying.run(given)
    assert found.__dlpack_device__() == (HIP.dlpack, 0)
    capsule = found.__dlpack__(stream=0, max_version=(1, 0))
    t = tensor_in(capsule)
    assert (t.device_type, t.device_id, t.ndim) == (HIP.dlpack, 0, 2)
    assert (t.code, t.bits, t.lanes) == (2, 32, 1)  # a float
    assert t.shape[:2] == [64, 64]
    assert (t.data or 0) + t.byte_offset == found.data_ptr()
    with pytest.raises(BufferError, match="memory of a GPU is shared as it is"):
        found.__dlpack__(dl_device=(1, 0))
    back = migraphx.to_gpu(Foreign(found.__dlpack__), emulate=True)
    assert back.data_ptr() == found.data_ptr()
    del found, capsule, t  # memory outlives the program
    check(back)
    check(staying.run({**given, "x": given["x"]})[0])


def foreign(dims: list[int], strides: list[int] | None, pointer: int) -> tuple[Any, list[Any]]:
    """A capsule over memory, and what must outlive it."""
    sizes = (ctypes.c_int64 * len(dims))(*dims)
    steps = None if strides is None else (ctypes.c_int64 * len(dims))(*strides)
    own = Managed()
    own.tensor = Tensor(pointer, HIP.dlpack, 0, len(dims), 2, 32, 1, sizes, steps, 0)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(own), b"dltensor", None), [own, sizes, steps]


def test_another_library_s_tensors(staying: Any, given: dict[str, Any]) -> None:
    pointer = given["x"].data_ptr()
    capsule, kept = foreign([64, 128], [128, 1], pointer)
    taken = migraphx.to_gpu(Foreign(lambda: capsule), emulate=True)
    check(staying.run({**given, "x": taken})[0])
    capsule, more = foreign([128, 64], [1, 128], pointer)  # transposed
    with pytest.raises(RunError, match="the tensor cannot be taken"):
        migraphx.to_gpu(Foreign(lambda: capsule), emulate=True)
    with pytest.raises(TargetError, match=r"expected memory of HIP device 0, got .* \(10, 1\)"):
        migraphx.to_gpu(Foreign(lambda: capsule, (HIP.dlpack, 1)), emulate=True)
    del taken
    assert len(kept) == len(more) == 3


def test_threads(staying: Any, given: dict[str, Any]) -> None:
    errors: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(8):
                check(staying.run(given)[0])
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def used(library: Path) -> int:
    """The bytes of the device that are taken, as HIP says."""
    hip = ctypes.CDLL(str(library / emulator.LIBRARY))
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    assert hip.hipMemGetInfo(ctypes.byref(left), ctypes.byref(total)) == 0
    return total.value - left.value


def test_memory_is_given_back(staying: Any, given: dict[str, Any], library: Path) -> None:
    gc.collect()  # programs of other tests
    calls, taken = 100, []
    for _ in range(4):
        for _ in range(calls):
            (found,) = staying.run(given)
            held = migraphx.to_gpu(np.zeros(1 << 16), emulate=True)
        taken.append(used(library))
    # the runtime's pools keep some, and grow by a megabyte at a time: far less than the results
    leaked = 2 * calls * WANTED.size * 4
    assert max(taken[2:]) - taken[1] < leaked / 2
    del held, found


def test_the_other_hip_stays_as_it_is(library: Path) -> None:
    """Emulation is a driver of its own: the process's environment and its GPUs are untouched."""
    device = open_device("hip", library=str(library))
    assert device.library == str(library)
    assert device is open_device("hip", library=str(library))
    assert device is not open_device("local-sync")


def test_failed_calls_leave_the_device(staying: Any, given: dict[str, Any], target: Any) -> None:
    """More memory than there is, and code that is not for the device."""
    with pytest.raises(RunError, match="bytes on the device"):
        target.allocate(migraphx.shape(type="int8_type", lens=[1 << 46]))
    check(staying.run(given)[0])
    at = target.get_context().device
    p = product()
    p.compile(target, cache=False)
    vmfb = bytearray(p.compiled.executable.vmfb)
    flags = vmfb.find(b"\x7fELF") + 48  # the ELF file's flags: they contain the architecture
    vmfb[flags] ^= 0x7F
    object.__setattr__(p.compiled.executable, "vmfb", bytes(vmfb))
    with pytest.raises(MgxError):
        p.run({"x": A, "y": B})
    assert target.get_context().device is at
    check(staying.run(given)[0])


def test_saved_code(gpu_arch: str, target: Any) -> None:
    other = "gfx1100" if gpu_arch != "gfx1100" else "gfx942"
    p = product()
    p.compile(migraphx.get_target("gpu", arch=[other, gpu_arch], emulate=True))
    q = migraphx.load_buffer(migraphx.save_buffer(p), emulate=True)
    assert set(q.compiled.archs) == {other, gpu_arch}
    if device_arch(target.get_context().device):
        check(q.run({"x": A, "y": B})[0])
    else:  # an emulated device takes any: what was named first is run
        assert q.compiled.executable.arch == other
    p = product()
    p.compile(migraphx.get_target("cpu", threads=1))
    with pytest.raises(UsageError, match="only gpu programs are emulated, the file's code is for"):
        migraphx.load_buffer(migraphx.save_buffer(p), emulate=True)
    with pytest.raises(UsageError, match="device_id is for gpu"):
        product().compile(migraphx.get_target("cpu", device_id=1))


def pointer(held: Any, at: int = 0) -> Any:
    return migraphx.argument_from_pointer(held.get_shape(), held.data_ptr() + at)


def test_pointers_and_buffers(staying: Any, target: Any, given: dict[str, Any]) -> None:
    """Scripts for MIGraphX pass device pointers as inputs and outputs."""
    shapes = staying.get_parameter_shapes()
    assert list(shapes) == ["x", "y", "main:#output_0"]
    held = target.allocate(shapes["main:#output_0"])
    params = {n: pointer(a) for n, a in {**given, "main:#output_0": held}.items()}
    found = staying.run(params)
    assert found[0] is params["main:#output_0"]
    check(held)
    other = target.allocate(shapes["main:#output_0"])
    assert staying.run_async({**given, "main:#output_0": other}, 0)[0] is other
    check(other)


def test_a_pointer_with_offload_copy(target: Any, given: dict[str, Any]) -> None:
    p = product()
    p.compile(target)
    host = migraphx.argument_from_pointer(p.get_parameter_shapes()["y"], B.ctypes.data)
    check(p.run({"x": pointer(given["x"]), "y": host})[0])


def test_pointers_of_the_wrong_memory(staying: Any, target: Any, given: dict[str, Any]) -> None:
    host = migraphx.argument_from_pointer(given["x"].get_shape(), A.ctypes.data)
    with pytest.raises(RunError, match=r"x: expected arguments in device memory .*got host memory"):
        staying.run({**given, "x": host})
    with pytest.raises(RunError, match=r"x: .*this process cannot read"):
        staying.run({**given, "x": migraphx.argument_from_pointer(host.get_shape(), 4096)})
    with pytest.raises(RunError, match=r"main:#output_0: expected memory of hip .*got host memory"):
        staying.run({**given, "main:#output_0": np.zeros((64, 64), np.float32)})
    with pytest.raises(RunError, match=r"x: expected 32768 bytes of hip device 0.* got"):
        staying.run({**given, "x": pointer(given["x"], 4096)})
    check(staying.run(given)[0])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.bool_, np.uint8])
def test_pointers_of_all_types(dtype: Any, target: Any) -> None:
    p = migraphx.program()
    m = p.get_main_module()
    value = np.arange(6).reshape(2, 3).astype(dtype)
    s = migraphx.argument(value).get_shape()
    m.add_return([m.add_instruction(migraphx.op("transpose", permutation=[1, 0]),
                                    [m.add_parameter("x", s)])])  # fmt: skip
    p.compile(target, offload_copy=False)
    held = target.copy_to(migraphx.argument(value))
    found = p.run({"x": pointer(held)})[0]
    np.testing.assert_array_equal(migraphx.from_gpu(found).array, value.T)


@pytest.mark.parametrize("offload_copy", [True, False])
def test_weights_are_copied_once(target: Any, given: dict[str, Any], offload_copy: bool) -> None:
    p = product()
    p.compile(target, offload_copy=offload_copy)
    made = p.create_program_with_weights({"y": B})
    assert [n for n in made.get_parameter_names() if n[0] != "m"] == ["x"]
    for _ in range(2):
        check(made.run({"x": given["x"]})[0])


def test_values_on_the_device_are_not_checked(target: Any) -> None:
    """A divisor whose value the host does not know; one in host memory is checked."""
    p = migraphx.program()
    m = p.get_main_module()
    s = migraphx.shape(type="int32_type", lens=[3])
    x, y = (m.add_parameter(name, s) for name in "xy")
    m.add_return([m.add_instruction(migraphx.op("div"), [x, y])])
    p.compile(target)
    x, y = np.array([7, 8, 9], np.int32), np.array([2, 3, 4], np.int32)
    (found,) = p.run({"x": x, "y": target.copy_to(migraphx.argument(y))})
    assert np.array_equal(found, x // y)
    with pytest.raises(RunError, match="'y' is a divisor and contains 0"):
        p.run({"x": x, "y": y * 0})


def test_threads_that_ask_first_share_a_stream(
    target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream of a thread that lost the race would be destroyed while it copies."""
    made: list[Any] = []

    def slowly(device: Any) -> object:
        made.append(device)
        time.sleep(0.05)
        return object()

    monkeypatch.setattr(gpu_streams, "_own_stream", functools.lru_cache(slowly))
    device, found = target.get_context().device, list[object]()
    threads = [
        threading.Thread(target=lambda: found.append(gpu_streams.own_stream(device)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(map(id, found))) == 1
