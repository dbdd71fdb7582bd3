"""Arguments in a GPU's memory: to_gpu, from_gpu, allocate_gpu, gpu_sync, and a device's context."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np

from mgx_mlir.api.argument import argument
from mgx_mlir.api.shape import shape
from mgx_mlir.compiler.recording import open_gpu
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ShapeError, TargetError, UsageError
from mgx_mlir.hardware.machine import HIP_VARIABLE
from mgx_mlir.programs.layout import Shape
from mgx_mlir.runtime import gpu_calls
from mgx_mlir.runtime.device import Device, is_open, open_device
from mgx_mlir.runtime.device_memory import DeviceTensor, from_dlpack
from mgx_mlir.runtime.gpu_api import APIS
from mgx_mlir.runtime.gpu_streams import Event, Stream, priorities
from mgx_mlir.targets import emulator
from mgx_mlir.targets.devices import gpu_kind


def gpu_device(device_id: int = 0, emulate: bool | None = None) -> Device:
    """Open a GPU, or an emulated one.

    `emulate` None: emulate where this process has asked for emulation and has not used a GPU.
    Errors: TargetError where there is no such device.
    """
    if emulate is None:
        emulate = emulator.active() and not _uses_gpu()
    if emulate:
        return open_device("hip", index=device_id, library=str(emulator.activate()))
    return open_gpu("cuda" if is_open("cuda") else gpu_kind(), device_id)


def _uses_gpu() -> bool:
    return is_open("cuda") or is_open("hip", os.environ.get(HIP_VARIABLE, ""))


def to_gpu(
    arg: Any, host: bool = False, *, device_id: int = 0, emulate: bool | None = None
) -> argument:
    """Copy an argument, or anything that converts to one, to the memory of a GPU.

    A tensor of another library that is in that GPU's memory already (DLPack, as torch for ROCm or
    CUDA gives it) is taken without a copy. `host` asks for pinned host memory in MIGraphX. It
    changes nothing here: the runtime pins what it copies. `emulate`: see `gpu_device`. Errors:
    TargetError without a GPU.
    """
    device = gpu_device(device_id, emulate)
    held = arg.device_tensor if isinstance(arg, argument) else None
    if held is not None:
        if held.device is device:
            return arg
        arg = from_gpu(arg)
    if is_on_gpu(arg):
        return argument.on_device(shared(device, arg))
    return argument.on_device(DeviceTensor.of(device, argument(arg).array))


def from_gpu(arg: argument) -> argument:
    """Copy an argument to host memory; return one that is in host memory already."""
    if arg.device_tensor is None:
        return arg
    return argument(arg.device_tensor.to_host())


def allocate_gpu(
    s: shape, host: bool = False, *, device_id: int = 0, emulate: bool | None = None
) -> argument:
    """Allocate an argument in the memory of a GPU; its elements are not initialised.

    `host` and `emulate`: see `to_gpu`. Errors: ShapeError unless `s` is a static tensor of standard
    layout.
    """
    own = s._shape
    if not isinstance(own, Shape) or s.dynamic() or not s.standard():
        raise ShapeError(f"expected a tensor of static dims and standard layout, got {s}")
    dims = [d for d in own.dims if isinstance(d, int)]
    device = gpu_device(device_id, emulate)
    return argument.on_device(DeviceTensor.empty(device, own.dtype, dims))


def gpu_sync(*, device_id: int = 0, emulate: bool | None = None) -> None:
    """Wait until all work submitted to the GPU is done; `emulate` as in `to_gpu`.

    On a machine without a GPU it returns at once. Errors: TargetError where the named GPU does not
    exist.
    """
    try:
        device = gpu_device(device_id, emulate)
    except TargetError:
        if device_id or emulate:
            raise
        return
    gpu_calls.device_synchronize(device)


class context:
    """A GPU and its stream, as a program's target has it.

    Programs run on the runtime's stream, and a call returns when it is done. `finish` waits for
    work that other libraries submitted to the device, `wait_for` for one of their streams.
    """

    def __init__(self, device_id: int = 0, emulate: bool | None = None) -> None:
        self.device_id, self.emulate = device_id, emulate
        self._device: Device | None = None

    @staticmethod
    def of(device: Device) -> context:
        """Return the context of an open device."""
        made = context(device.index)
        made._device = device
        return made

    @property
    def device(self) -> Device:
        """TargetError where there is none."""
        if self._device is not None:
            return self._device
        return gpu_device(self.device_id, self.emulate)

    def finish(self) -> None:
        """Wait for the device."""
        gpu_calls.device_synchronize(self.device)

    def wait_for(self, stream: int) -> None:
        """Wait until all work submitted to a stream is done. stream: the address of an
        ihipStream_t, or of a CUstream_st.
        """
        gpu_calls.stream_synchronize(self.device, stream)

    def create_stream(self, priority: int | None = None) -> Stream:
        """Create a stream; `program.run_async(params, stream.address)` runs on it in order.

        `priority`: within `stream_priorities`, a lower number comes first.
        """
        return Stream(self.device, priority)

    def stream_priorities(self) -> tuple[int, int]:
        """Return the least and the greatest priority of streams; the greatest is the lower
        number.
        """
        return priorities(self.device)

    def create_event(self) -> Event:
        """Create an event, to be recorded in a stream."""
        return Event(self.device)

    def finish_on(self, stream: Stream) -> None:
        """Make the stream wait for all work already submitted by programs."""
        done = self.create_event()
        done.record()
        stream.wait(done)


STREAM_TYPE = "ihipStream_t"  # MIGraphX's name; on CUDA it means CUstream_st
_STREAM_TYPES = tuple(api.stream_type for api in APIS.values())


def check_stream(stream_name: str) -> None:
    """Raise UsageError unless a stream is of HIP's or CUDA's type."""
    if stream_name not in _STREAM_TYPES:
        expected = " or ".join(_STREAM_TYPES)
        raise UsageError(f"expected a stream of type {expected}, got {stream_name}")


def is_on_gpu(value: object) -> bool:
    """Return whether a value is another library's tensor in a GPU's memory (DLPack)."""
    if isinstance(value, argument | np.ndarray):
        return False
    kind = getattr(value, "__dlpack_device__", None)
    return kind is not None and kind()[0] in {api.dlpack for api in APIS.values()}


def shared(device: Device, tensor: Any) -> DeviceTensor:
    """Take another library's tensor in the device's memory, without a copy.

    Work on that library's current stream is done when this returns. Errors:
    TargetError for another device, RunError.
    """
    return from_dlpack(device, tensor, _dtype_of(tensor))


def _dtype_of(source: Any) -> dtypes.DType:
    """Return the element type of another library's tensor, from its name (torch.float16)."""
    name = str(source.dtype).rsplit(".", 1)[-1]
    try:
        return dtypes.from_numpy(getattr(ml_dtypes, name, None) or np.dtype(name))
    except TypeError:
        raise ShapeError(f"expected a tensor of a known element type, got {name}") from None
