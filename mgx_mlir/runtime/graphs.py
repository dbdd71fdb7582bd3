"""A loaded program whose calls are one launch of a HIP or CUDA graph, or whose launches are marked.

The first call runs normally, through a recorder (native/record): a library that adds the runtime's
launches, device copies and fills to a graph. Later calls with inputs of the same dims copy the
inputs to the first call's memory, launch the graph, and copy the results. The memory of the
recorded call stays with the graph. Caches that a call updates are no copies: a graph is of their
addresses.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import RunError, TargetError, UsageError
from mgx_mlir.core.given import native
from mgx_mlir.runtime import gpu_api, gpu_calls
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.device import Device, forget, open_device
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.gpu_api import CUDA
from mgx_mlir.runtime.gpu_memory import memory, trim
from mgx_mlir.runtime.gpu_streams import Copies, Stream, wait_for_readers
from mgx_mlir.runtime.gpu_updates import Updates
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.runtime.ports import Port

_MOST_GRAPHS = 16  # recordings of a program
_MOST_SEEN = 256  # dims that came once, and are a graph when they come again
_SHARE = 8  # recordings of a program with dynamic dims may take this share of a device's memory

# a recording captures all work of its device, so other users of such devices wait
_turn = forks.lock(waits=True)

Argument = np.ndarray | DeviceTensor
Dims = tuple[tuple[int, ...], ...]
Key = tuple[Dims, tuple[int, ...]]  # dims of inputs, addresses of caches


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


@functools.lru_cache(maxsize=8)
def recorder_of(home: Device, folder: str) -> Recorder:
    """Return the recorder in a folder for a device. TargetError where IREE does not go through it.

    Of CUDA it must have been loaded ahead of the first device (`gpu_api.loaded`).
    """
    return Recorder(home, folder)


class Recorder:
    """A device of IREE's whose driver library is a recorder, beside `home`, which it records for.

    Memory is of both: they are one GPU.
    """

    def __init__(self, home: Device, folder: str) -> None:
        self.home, self.folder = home, folder
        self.library = gpu_api.loaded(home.api, folder)
        if home.api is CUDA:
            self._place = gpu_calls.context_of(home)
        else:
            self._place = ctypes.c_void_p(home.index)

    def device(self) -> Device:
        """Return the device that is recorded: another one where it has failed."""
        if self.home.api is not CUDA:
            return open_device("hip", index=self.home.index, library=self.folder, records=True)
        self.library.mgxDevice(1)
        try:
            found = open_device("cuda", index=self.home.index, records=True)
        finally:
            count = self.library.mgxDevice(0)
        if not count:
            raise TargetError(
                "calls cannot be recorded: IREE has a CUDA library that was loaded before",
                notes=["load mgx_mlir ahead of what loads 'libcuda.so' by this name"],
            )
        return found

    def begin(self) -> None:
        """Begin to record. Errors: RunError."""
        with gpu_calls.current(self.home):
            self.check("graph_create", self.library.mgxRecordBegin())

    def check(self, name: str, status: int) -> None:
        """Raise RunError where a call of the recorder's failed."""
        self.home.api.check(gpu_api.loaded(self.home.api, self.home.library), name, status)

    def replay(self, handle: Any, stream: Any, given: Any, taken: Any, wait: bool) -> None:
        """Launch a recording between copies. Errors: RunError."""
        status = self.library.mgxReplay(
            handle, self._place, stream, given, ctypes.c_size_t(len(given)), taken,
            ctypes.c_size_t(len(taken)), wait,
        )  # fmt: skip
        if status:
            self.check("graph_launch", status)


class GraphModule:
    """A module loaded on a GPU; `run` and `run_on_device` are LoadedModule's.

    `recorder.home` is the same GPU opened without a recorder; arguments and results are in its
    memory. `priority`: of the stream that the graph runs on. `is_required`: a program that
    reads values on the host (a loop, a branch) is a UsageError at its first call; otherwise, and
    at dims of inputs that come for the first time in a program of dynamic dims, it runs by
    launches. Errors: TargetError.
    """

    may_be_lost = True
    prepared = None

    def __init__(
        self, recorder: Recorder, priority: int | None, is_required: bool, *args: Any, **kwargs: Any
    ) -> None:
        self._recorder, self._is_required = recorder, is_required
        self._calls: dict[Key, Replay] = {}  # the latest last
        self._seen: set[Key] = set()
        self._lock = forks.lock(waits=True)
        self.device = recorder.home
        self._stream = Stream(self.device, priority)
        with _turn:
            self._at = recorder.device()
            library = None if self.device.api is CUDA else recorder.folder
            self._inner = LoadedModule(*args, library=library, records=True, **kwargs)
        self.inputs, self.outputs = self._inner.inputs, self._inner.outputs
        self._is_static = all(p.static is not None for p in self.inputs)
        # functions that read values on the host, and whether in place: they are launches
        self._apart = set[tuple[str, bool]]()
        inner = self._inner.updates
        self.updates = None if inner is None else GraphUpdates(self, inner)

    def run(self, args: Sequence[Argument], shapes: object = None) -> list[np.ndarray]:
        """Call it with arrays or device tensors in order; return the results in host memory."""
        return self._call(
            args, lambda port, dims: np.empty(dims, port.np), address, self._inner.run
        )

    def run_on_device(self, args: Sequence[Argument]) -> list[DeviceTensor]:
        """Call it, and leave the results in new memory of the device."""
        home = self.device

        return self._call(
            args, lambda port, dims: DeviceTensor.empty(home, port.dtype, dims),
            DeviceTensor.address, lambda given: self.at_home(self._inner.run_on_device(given)),
        )  # fmt: skip

    def at_home(self, tensors: Sequence[DeviceTensor]) -> list[DeviceTensor]:
        """Return tensors of the device that is recorded as those of `device`."""
        return [DeviceTensor(self.device, t.view, t.dtype, t.dims) for t in tensors]

    def update(self, args: Sequence[Argument], inner: Updates) -> list[np.ndarray]:
        """Write new rows to the caches among `args`; return the other results in host memory.

        A graph is of the caches' addresses, which are not copied. Errors: those of `Updates.run`.
        """
        return self._call(
            args, lambda port, dims: np.empty(dims, port.np), address, inner.run, inner
        )

    def updated(self, args: Sequence[Argument], inner: Updates) -> list[DeviceTensor]:
        """Write new rows as `update` does; return all results in the memory of the device.

        Calls are launches: their functions check values, which the host reads.
        """
        checked = self._all_checked(args)
        wait_for_readers(self.device)
        with self._lock, _turn:
            return self.at_home(inner.on_device([self._moved(a) for a in checked]))

    def recorded(self, args: Sequence[Argument]) -> Replay | None:
        """Return the call at the dims of these inputs; None where it is made by launches.

        Where dims of a program of dynamic dims came once before, a call is made and recorded.
        """
        self.device.check()
        checked = self._all_checked(args)
        with self._lock:
            return self._replay(checked)

    @property
    def recorded_on(self) -> Device:
        """The device that was recorded: of the program's own queue, which a fault takes along."""
        return self._at

    @property
    def stream(self) -> int:
        """The address of the stream that calls from the host run on."""
        return self._stream.address

    @property
    def recordings(self) -> int:
        """The number of calls that are held as graphs."""
        return len(self._calls)

    @property
    def launched(self) -> frozenset[str]:
        """The functions whose calls cannot be recorded, since they read values on the host."""
        return frozenset(name for name, _ in self._apart)

    def function_for(self, args: Sequence[Argument]) -> str:
        """Return the function that is run for these inputs."""
        return self._inner.function_for(args)

    def close(self) -> None:
        """Release the graphs, the code and the weights."""
        with self._lock:
            calls, self._calls = self._calls, {}
            for call in calls.values():
                call.drop()
            self._inner.close()

    def __del__(self) -> None:
        if getattr(self, "_calls", None):
            with interrupts.later():
                self.close()

    @interrupts.held
    def _call(
        self, args: Sequence[Argument], new: Callable[[Port, tuple[int, ...]], Any],
        place: Callable[[Any], int], launched: Callable[[Sequence[Argument]], list[Any]],
        updates: Updates | None = None,
    ) -> list[Any]:  # fmt: skip
        self.device.check()
        checked = self._all_checked(args)
        wait_for_readers(self.device)
        kept = {} if updates is None else updates.caches
        with self._lock:
            try:
                call = self._replay(checked, updates)
                if call is None:
                    if len(self._seen) >= _MOST_SEEN:
                        self._seen.clear()
                    self._seen.add(_key(checked, kept))
                    with _turn:
                        return launched([self._moved(a) for a in checked])
                ports = [p for i, p in enumerate(self.outputs) if i not in kept.values()]
                found = [new(p, d) for p, d in zip(ports, call.dims, strict=True)]
                call.launch(
                    [_place(a) for i, a in enumerate(checked) if i not in kept],
                    [place(a) for a in found], self._stream.address, wait=True,
                )  # fmt: skip
            except RunError as e:
                forget(self._at, e)
                raise
            return found

    def _all_checked(self, args: Sequence[Argument]) -> list[Argument]:
        if len(args) != len(self.inputs):
            raise RunError(f"expected {len(self.inputs)} inputs, got {len(args)}")
        return [self._checked(port, a) for port, a in zip(self.inputs, args, strict=True)]

    def _checked(self, port: Port, arg: Argument) -> Argument:
        if isinstance(arg, DeviceTensor):
            if arg.dims != port.static or arg.dtype is not port.dtype:
                port.check(arg.shadow)
            if arg.device is not self.device:
                raise RunError(f"{port.label} expected memory of {self.device}, got {arg.device}")
            return arg
        a = np.asarray(arg, order="C")
        if a.dtype is not port.np:
            a = native(a)
        port.check(a)
        return a

    def _moved(self, a: Argument) -> Argument:
        """Return an argument as one of the device that is recorded."""
        if isinstance(a, DeviceTensor):
            return DeviceTensor(self._at, a.view, a.dtype, a.dims)
        return a

    def _replay(self, args: Sequence[Argument], updates: Updates | None = None) -> Replay | None:
        """Return the recorded call at the dims of checked inputs; it is recorded where it pays.

        updates: the functions in place, whose calls are at addresses of caches, too.
        """
        if self._inner.lanes is None:
            raise RunError("the program is closed")
        name = self._inner.function_for(args) if updates is None else updates.function_for(args)
        kind = name, updates is not None
        if kind in self._apart:
            return None
        key = _key(args, {} if updates is None else updates.caches)
        call = self._calls.pop(key, None)
        if call is not None:
            self._calls[key] = call
            return call
        if updates is not None:
            held = all(isinstance(args[i], DeviceTensor) for i in updates.caches)
            if not (held and key in self._seen and updates.is_in_place(name)):
                return None  # a graph copies no cache
        elif not (self._is_static or self._is_required or key in self._seen):
            return None  # sizes that come once are no graph
        call = self._record(args, updates)
        if call is None:
            self._apart.add(kind)
            return None
        self._calls[key] = call
        if not self._is_static:
            self._make_room()
        return call

    def _make_room(self) -> None:
        """Drop the earliest recordings where there are many, or they hold much memory."""
        most = memory(self.device).total // _SHARE
        while len(self._calls) > 1 and (
            len(self._calls) > _MOST_GRAPHS or sum(c.nbytes for c in self._calls.values()) > most
        ):
            self._calls.pop(next(iter(self._calls))).drop()

    def _record(self, args: Sequence[Argument], updates: Updates | None) -> Replay | None:
        """Make the first call; None for one that reads values on the host."""
        kept = {} if updates is None else updates.caches
        made = self._inner.run_on_device if updates is None else updates.on_device
        with _turn:
            places: list[DeviceTensor] = []
            copies, own = Copies(self.device), list[DeviceTensor]()
            for i, (port, a) in enumerate(zip(self.inputs, args, strict=True)):
                if i in kept and isinstance(a, DeviceTensor):
                    places.append(DeviceTensor(self._at, a.view, a.dtype, a.dims))
                    continue
                to = DeviceTensor.empty(self._at, port.dtype, _dims(a))
                places.append(to)
                own.append(to)
                kind = copies.within if isinstance(a, DeviceTensor) else copies.to_device
                kind(to.address(), _place(a), to.nbytes)
            copies.finish()
            # blocks that are kept for later calls would be those of later calls, too
            trim(self._at)
            call = Replay(self._recorder, self._lock, own)
            try:
                found = made(places)
                call.end([t for i, t in enumerate(found) if i not in kept.values()])
            except BaseException:
                call.give_up()
                raise
            finally:
                trim(self._at)
        if not call.on_host:
            return call
        call.drop()
        if updates is not None or not self._is_required:
            return None
        name = self.device.api.name
        raise UsageError(
            f"the program cannot be one {name} graph: it reads values on the host, as loops and "
            "branches do",
            notes=["leave graph (--graph) out"],
        )


class _Copy(ctypes.Structure):
    """Copy (native/record/recording.h)."""

    _fields_ = (("to", ctypes.c_void_p), ("source", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Replay:
    """A recorded call: its graph, and the memory of its inputs and results.

    `dims`: of its results; `nbytes`: of the memory that it allocated.
    `lock`: held by who launches or drops it.
    """

    def __init__(self, recorder: Recorder, lock: Any, inputs: list[DeviceTensor]) -> None:
        self._recorder, self.lock, self._inputs = recorder, lock, inputs
        self._results: list[DeviceTensor] = []
        self._handle = ctypes.c_void_p()
        self.dims: Dims = ()
        self.nodes, self.nbytes, self.on_host = 0, 0, False
        self._given, self._taken = (_Copy * len(inputs))(), (_Copy * 0)()
        for c, t in zip(self._given, inputs, strict=True):
            c.to, c.size = t.address(), t.nbytes
        recorder.begin()

    def end(self, results: Sequence[DeviceTensor] = ()) -> None:
        """Instantiate the graph. Errors: RunError where the driver refuses."""
        nodes, nbytes, on_host = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int()
        gpu_calls.device_synchronize(self._recorder.home)
        with gpu_calls.current(self._recorder.home):
            status = self._recorder.library.mgxRecordEnd(
                ctypes.byref(self._handle), ctypes.byref(nodes), ctypes.byref(nbytes),
                ctypes.byref(on_host),
            )  # fmt: skip
        self._recorder.check("graph_instantiate", status)
        self.nodes, self.nbytes, self.on_host = nodes.value, nbytes.value, bool(on_host.value)
        self._results, self.dims = list(results), tuple(t.dims for t in results)
        self._taken = (_Copy * len(results))()
        for c, t in zip(self._taken, results, strict=True):
            c.source, c.size = t.address(), t.nbytes

    @property
    def is_dropped(self) -> bool:
        """Return whether it cannot be launched any more."""
        return not self._handle

    def launch(
        self, sources: Sequence[int], targets: Sequence[int], stream: int, *, wait: bool
    ) -> None:
        """Copy inputs from addresses, launch, and copy results to addresses, all on a stream.

        Addresses are of the host or the device. wait: it is done on return; without it the caller
        keeps host memory until the stream has come so far. Errors: RunError.
        """
        if self.is_dropped:
            raise RunError("the program is closed")
        for c, at in zip(self._given, sources):  # noqa: B905  (as many)
            c.source = at
        for c, at in zip(self._taken, targets):  # noqa: B905  (as many)
            c.to = at
        self._recorder.replay(self._handle, ctypes.c_void_p(stream), self._given, self._taken, wait)

    def give_up(self) -> None:
        """End a recording whose call failed, and drop it."""
        with contextlib.suppress(RunError):  # report the call's error, not this one
            self.end()
        self.drop()

    def drop(self) -> None:
        """Release the graph, once no call launches it; then the memory."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            with contextlib.suppress(RunError):  # a device that failed has nothing to wait for
                gpu_calls.device_synchronize(self._recorder.home)
            with gpu_calls.current(self._recorder.home):
                self._recorder.library.mgxRecordDrop(handle)
        self._inputs, self._results = [], []


class GraphUpdates:
    """Updates of a GraphModule's caches; `run` and `on_device` are those of `Updates`."""

    def __init__(self, module: GraphModule, inner: Updates) -> None:
        self._module, self._inner = weakref.ref(module), inner

    def run(self, args: Sequence[Argument]) -> list[np.ndarray]:
        """Write new rows to the caches among `args`; return the other results in host memory."""
        return self._held().update(args, self._inner)

    def on_device(self, args: Sequence[Argument]) -> list[DeviceTensor]:
        """Write new rows as `run` does; return all results in the memory of the device."""
        return self._held().updated(args, self._inner)

    def _held(self) -> GraphModule:
        module = self._module()
        if module is None:
            raise RunError("the program is closed")
        return module


def _key(args: Sequence[Argument], caches: Mapping[int, int]) -> Key:
    """Return the dims of a call's inputs, and the addresses of its caches."""
    return tuple(map(_dims, args)), tuple(_place(args[i]) for i in caches)


def _dims(a: Argument) -> tuple[int, ...]:
    return a.dims if isinstance(a, DeviceTensor) else a.shape


def _place(a: Argument) -> int:
    return a.address() if isinstance(a, DeviceTensor) else address(a)


__all__ = ["GraphModule", "Recorder", "Replay", "mark", "markable", "recorder_of"]
