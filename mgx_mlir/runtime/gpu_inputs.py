"""Calls of a GPU program with host arrays: device memory of inputs is reused between calls.

A new buffer per input and call would cost an allocation, a release, and ten driver calls to order
them. All inputs of a call are copied in sequence and waited for once, and so are the results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes, forks
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor, read_back
from mgx_mlir.runtime.entries import Entry
from mgx_mlir.runtime.gpu_memory import Watch
from mgx_mlir.runtime.gpu_streams import Copies
from mgx_mlir.runtime.ports import Port

_LEAST = 256  # bytes of a block

Args = Sequence[np.ndarray | DeviceTensor]


class Inputs:
    """Device memory for the host arrays of one call at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._blocks: dict[str, tuple[DeviceTensor, int]] = {}  # with the block's address
        self._views: dict[str, tuple[tuple[int, ...], Any]] = {}
        self._copies = Copies(device)
        self._arrays: list[np.ndarray] = []  # arrays whose bytes are to be copied

    def put(self, port: Port, a: np.ndarray) -> Any:
        """Return a buffer view for an input, whose bytes `finish` copies. Errors: RunError.

        The array is kept until then: the caller's one may be a copy in another layout.
        """
        held, at = self._blocks.get(port.label, (None, 0))
        if held is None or held.nbytes < a.nbytes:
            self._views.pop(port.label, None)
            self._blocks.pop(port.label, None)
            # sizes that grow by little reuse the block
            size = max(_LEAST, 1 << max(a.nbytes - 1, 0).bit_length())
            held = DeviceTensor.empty(self._device, dtypes.INT8, (size,))
            at = held.address()
            self._blocks[port.label] = held, at
        self._copies.to_device(at, address(a), a.nbytes)
        self._arrays.append(a)
        dims, view = self._views.get(port.label, (None, None))
        if dims != a.shape:
            view = held.viewed(port.element_type, a.shape)
            self._views[port.label] = a.shape, view
        return view

    def finish(self) -> None:
        """Copy the inputs that were put, and wait for the copies. Errors: RunError."""
        self._copies.finish()
        self._arrays.clear()

    def drop(self) -> None:
        """Forget inputs that were put and not copied, after a refused call."""
        self._copies.drop()
        self._arrays.clear()


class FromHost:
    """Calls of one program with host arrays. is_static: its inputs have fixed sizes."""

    def __init__(self, device: Device, is_static: bool) -> None:
        self._device = device
        self._inputs, self._lock = Inputs(device), forks.lock(waits=True)
        self._watch = None if is_static else Watch(device)

    def run(
        self,
        invoke: Callable[[Args, None, Inputs], tuple[Entry, Any]],
        args: Args,
        kept: Collection[int] = (),
    ) -> list[np.ndarray]:
        """Make a call, and copy its results to the host, without those of the numbers `kept`.

        Errors: those of `invoke`; RunError.
        """
        if self._lock.locked():  # another thread calls
            found = self._run(invoke, args, Inputs(self._device), kept)
        else:
            with self._lock:
                found = self._run(invoke, args, self._inputs, kept)
        if self._watch is not None:
            self._watch.passed(
                tuple(a.dims if isinstance(a, DeviceTensor) else np.shape(a) for a in args)
            )
        return found

    def _run(
        self,
        invoke: Callable[[Args, None, Inputs], tuple[Entry, Any]],
        args: Args,
        inputs: Inputs,
        kept: Collection[int],
    ) -> list[np.ndarray]:
        try:
            entry, results = invoke(args, None, inputs)
        finally:
            inputs.drop()
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        ports = [
            (port, results.get_as_object(i, rt.HalBufferView))
            for i, port in enumerate(entry.outputs)
            if i not in kept
        ]
        # a result may be in the memory of an input, which the next call overwrites
        return read_back(self._device, [(v, p.dtype, tuple(v.shape)) for p, v in ports])


__all__ = ["FromHost", "Inputs"]
