"""A loaded program whose calls are one launch of a HIP graph, or whose launches are marked.

The first call runs normally, through a recorder (native/record): a library that adds the runtime's
launches, device copies and fills to a graph. Later calls copy the inputs to the first call's
memory, launch the graph, and copy the results. The memory of the
first call stays with the graph.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.core.given import native
from mgx_mlir.runtime import gpu_calls
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.device import Device, forget, open_device
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.gpu_streams import Stream
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.runtime.ports import Port

# a recording captures all work of its device, so other users of such devices wait
_turn = forks.lock(waits=True)


def markable(recorder: str, *args: Any, **kwargs: Any) -> LoadedModule:
    """Load a module on a GPU through the recorder in a folder, so that `mark` works on it."""
    with _turn:
        return LoadedModule(*args, library=recorder, records=True, **kwargs)


@contextmanager
def mark(module: LoadedModule, begin: Any, end: Any) -> Iterator[None]:
    """Wrap the submission of each launch in a range with the kernel's name.

    begin, end: C functions as rocTX's roctxRangePushA and roctxRangePop. Launches of other modules
    that were loaded so, on the same library, have ranges, too.
    """
    with gpu_calls.current(module.device) as library:
        library.mgxMarkers(begin, end)
    try:
        yield
    finally:
        with gpu_calls.current(module.device) as library:
            library.mgxMarkers(None, None)


class GraphModule:
    """A module loaded on a GPU, which must have fixed sizes; `run` and `run_on_device` as there.

    `home` is the same GPU opened without a recorder; arguments and results are in its memory.
    `recorder`: the folder of the recorder over its library. `priority`: of the stream that
    the graph runs on. Errors: UsageError for dynamic dims, and at the first call for a program that
    reads values on the host (a loop, a branch); TargetError.
    """

    may_be_lost = True
    prepared = None

    def __init__(
        self, home: Device, recorder: str, priority: int | None, *args: Any, **kwargs: Any
    ) -> None:
        self._recorded: _Recorded | None = None
        self._lock = forks.lock(waits=True)
        self.device, self._stream = home, Stream(home, priority)
        with _turn:
            self._at = open_device("hip", index=home.index, library=recorder, records=True)
            self._inner = LoadedModule(*args, library=recorder, records=True, **kwargs)
        self.inputs, self.outputs = self._inner.inputs, self._inner.outputs
        dynamic_ones = [p.label for p in (*self.inputs, *self.outputs) if p.static is None]
        if dynamic_ones:
            self._inner.close()
            raise UsageError(
                f"a HIP graph is for a program of fixed sizes, {dynamic_ones[0]} has dynamic dims",
                notes=["state the sizes, or leave graph (--graph) out"],
            )

    def run(
        self, args: Sequence[np.ndarray | DeviceTensor], shapes: object = None
    ) -> list[np.ndarray]:
        """Call it with arrays or device tensors in order; return the results in host memory."""
        return self._call(args, self._to_host)

    def run_on_device(self, args: Sequence[np.ndarray | DeviceTensor]) -> list[DeviceTensor]:
        """Call it, and leave the results in new memory of the device."""
        return self._call(args, self._to_new)

    def function_for(self, args: Sequence[object]) -> str:
        """Return the function that is run: there is one."""
        return "main"

    def close(self) -> None:
        """Give back the graph, the code and the weights."""
        with self._lock:
            recorded, self._recorded = self._recorded, None
            if recorded is not None:
                recorded.drop()
            self._inner.close()

    def __del__(self) -> None:
        if getattr(self, "_recorded", None) is not None:
            with interrupts.later():
                self.close()

    @interrupts.held
    def _call(
        self,
        args: Sequence[np.ndarray | DeviceTensor],
        take: Callable[[_Recorded, _Queue], list[Any]],
    ) -> list[Any]:
        self.device.check()
        if len(args) != len(self.inputs):
            raise RunError(f"expected {len(self.inputs)} inputs, got {len(args)}")
        pairs = zip(self.inputs, args, strict=True)
        checked = [self._checked(port, a) for port, a in pairs]
        with self._lock:
            if self._inner.lanes is None:
                raise RunError("the program is closed")
            queue = _Queue(self.device, self._stream)
            try:
                if self._recorded is None:
                    self._recorded = self._record(checked)
                else:
                    for place, a in zip(self._recorded.inputs, checked, strict=True):
                        queue.put(place, a)
                    queue.launch(self._recorded.executable)
                found = take(self._recorded, queue)
                queue.finish()
            except RunError as e:
                forget(self._at, e)
                raise
            return found

    def _checked(self, port: Port, arg: np.ndarray | DeviceTensor) -> np.ndarray | DeviceTensor:
        if isinstance(arg, DeviceTensor):
            port.check(arg.shadow)
            if arg.device is not self.device:
                raise RunError(f"{port.label} expected memory of {self.device}, got {arg.device}")
            return arg
        a = np.asarray(arg, order="C")
        if a.dtype is not port.np:
            a = native(a)
        port.check(a)
        return a

    def _record(self, args: Sequence[np.ndarray | DeviceTensor]) -> _Recorded:
        """Make the first call. Its results are in the recording's memory."""
        with _turn:
            places = [DeviceTensor.empty(self._at, p.dtype, p.dims) for p in self.inputs]
            queue = _Queue(self.device, self._stream)
            for place, a in zip(places, args, strict=True):
                queue.put(place, a)
            queue.finish()
            recorded = _Recorded(self._at, places)
            try:
                recorded.results = self._inner.run_on_device(places)
                recorded.end()
            except BaseException:
                recorded.give_up()
                raise
        if recorded.on_host:
            recorded.drop()
            raise UsageError(
                "the program cannot be one HIP graph: it reads values on the host, as loops and "
                "branches do",
                notes=["leave graph (--graph) out"],
            )
        return recorded

    def _to_host(self, recorded: _Recorded, queue: _Queue) -> list[np.ndarray]:
        found = [np.empty(t.dims, t.dtype.np) for t in recorded.results]
        for t, a in zip(recorded.results, found, strict=True):
            queue.get(t, a)
        return found

    def _to_new(self, recorded: _Recorded, queue: _Queue) -> list[DeviceTensor]:
        found = [DeviceTensor.empty(self.device, t.dtype, t.dims) for t in recorded.results]
        for t, own in zip(recorded.results, found, strict=True):
            queue.put(own, t)
        return found


class _Recorded:
    """A recorded call: its graph, and the memory of its inputs and results."""

    def __init__(self, device: Device, inputs: list[DeviceTensor]) -> None:
        self.device, self.inputs = device, inputs
        self.results: list[DeviceTensor] = []
        self._handle, self.executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.nodes, self.on_host = 0, False
        with gpu_calls.current(device) as library:
            device.api.check(library, "hipGraphCreate", library.mgxRecordBegin())

    def end(self) -> None:
        """Instantiate the graph. RunError where HIP refuses."""
        nodes, on_host = ctypes.c_uint64(), ctypes.c_int()
        gpu_calls.device_synchronize(self.device)
        with gpu_calls.current(self.device) as library:
            status = library.mgxRecordEnd(
                ctypes.byref(self._handle), ctypes.byref(self.executable), ctypes.byref(nodes),
                ctypes.byref(on_host),
            )  # fmt: skip
            self.device.api.check(library, "hipGraphInstantiate", status)
        self.nodes, self.on_host = nodes.value, bool(on_host.value)

    def give_up(self) -> None:
        """End a recording whose call failed, and drop it."""
        with contextlib.suppress(RunError):  # report the call's error, not this one
            self.end()
        self.drop()

    def drop(self) -> None:
        """Give back the graph; then the memory."""
        with gpu_calls.current(self.device) as library:
            if self._handle:
                library.mgxRecordDrop(self._handle)
        self.inputs, self.results = [], []


class _Queue:
    """Copies and launches on one stream, complete after `finish`. Errors: RunError.

    `device` was opened without a recorder, which would capture these calls.
    """

    def __init__(self, device: Device, stream: Stream) -> None:
        self._device, self._stream = device, ctypes.c_void_p(stream.address)
        self._todo: list[tuple[str, tuple[Any, ...]]] = []

    def put(self, place: DeviceTensor, source: np.ndarray | DeviceTensor) -> None:
        """Copy an array, or another tensor of the device, to a tensor."""
        if isinstance(source, DeviceTensor):
            self._copy(place.address(), source.address(), place.nbytes, "copy_within_async")
        else:
            self._copy(place.address(), address(source), place.nbytes, "copy_to_device_async")

    def get(self, source: DeviceTensor, to: np.ndarray) -> None:
        """Copy a tensor to an array."""
        self._copy(address(to), source.address(), source.nbytes, "copy_to_host_async")

    def _copy(self, to: int, source: int, nbytes: int, name: str) -> None:
        if nbytes:
            places = ctypes.c_void_p(to), ctypes.c_void_p(source)
            self._todo.append((name, (*places, ctypes.c_size_t(nbytes))))

    def launch(self, executable: ctypes.c_void_p) -> None:
        """Launch a graph."""
        self._todo.append(("graph_launch", (executable,)))

    def finish(self) -> None:
        """Submit all of it to the driver library, and wait."""
        todo, self._todo = self._todo, []
        api = self._device.api
        with gpu_calls.current(self._device) as library:
            for name, args in todo:
                api.call(library, name, *args, self._stream)
            api.call(library, "stream_synchronize", self._stream)
