"""A compiled module in memory: parameters in place, checked calls, results that own memory."""

from __future__ import annotations

import bisect
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import FileError, RunError
from mgx_mlir.core.given import native
from mgx_mlir.core.literals import ALIGNMENT, aligned, aligned_copy, is_aligned
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.programs.lowered import IN_PLACE, in_place_name
from mgx_mlir.runtime.buffers import address, span, writable_address, writable_view
from mgx_mlir.runtime.code_memory import Code
from mgx_mlir.runtime.device import (
    IREE_ERRORS,
    Device,
    details,
    forget,
    has_failed,
    open_device,
    short,
    vm_instance,
)
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.entries import Choice, Entry, ForSizes
from mgx_mlir.runtime.gpu_calls import entered
from mgx_mlir.runtime.gpu_inputs import FromHost, Inputs
from mgx_mlir.runtime.gpu_memory import retry_trimmed, trim
from mgx_mlir.runtime.gpu_streams import wait_for_readers
from mgx_mlir.runtime.gpu_updates import Updates
from mgx_mlir.runtime.host_memory import add_parameter, drop_old, keep_after_failure
from mgx_mlir.runtime.lanes import Lanes
from mgx_mlir.runtime.load_errors import load_error
from mgx_mlir.runtime.ports import Port, Spec, ports_of
from mgx_mlir.runtime.prepared_calls import (
    COPY_BELOW,
    PreparedCall,
    PreparedCalls,
    Shapes,
    is_large,
)
from mgx_mlir.runtime.size_refusal import refusal


class LoadedModule:
    """A .vmfb loaded on a device.

    vmfb: bytes, an array of them, or a path (mapped). params: values of the module's parameters
    by key; 64-byte aligned ones are used in place, others are copied once. inputs, outputs: the
    signature, for names in errors and for unsigned types; without it types are as the module
    declares them. device: "local-sync", "local-task", "hip", "cuda" or None; threads:
    see `device.choose`; device_id: of several GPUs; library: the HIP library that they are of.
    entry: the exported function; variants: functions that are called instead for inputs of their
    sizes. in_place: (input, output) of results that `run_in_place` writes to inputs' memory.
    input_alignment: of the address of an input that is read in place; others are copied.

    lanes: how many calls run side by side on a CPU, None: one for each CPU. records: see
    `open_device`.

    `run` is thread-safe; calls on a GPU are serialized.
    Errors: FileError for a damaged module or missing parameter, TargetError for a module of
    another target or a missing device.
    """

    _closed = True  # until it is loaded

    def __init__(
        self,
        vmfb: bytes | np.ndarray | str | os.PathLike[str],
        params: Mapping[str, np.ndarray] | None = None,
        *,
        inputs: Sequence[Spec] | None = None,
        outputs: Sequence[Spec] | None = None,
        device: str | None = None,
        threads: int | None = None,
        entry: str = "main",
        scope: str = "model",
        variants: Sequence[ForSizes] = (),
        in_place: Sequence[tuple[int, int]] = (),
        device_id: int = 0,
        library: str | None = None,
        input_alignment: int = ALIGNMENT,
        lanes: int | None = None,
        records: bool = False,
    ) -> None:
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        self._rt = rt
        self.device: Device = open_device(device, threads, device_id, library, records=records)
        self._hal = self.device.hal
        self._is_local = self.device.is_local
        self.may_be_lost = self.device.kind != "local-sync"
        self.view_type, self.list_type = rt.HalBufferView, rt.VmVariantList
        self._allocator = self._hal.allocator
        self._copy_type = int(rt.MemoryType.DEVICE_LOCAL)
        self._import_type = int(rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE)
        self._usage = int(rt.BufferUsage.DEFAULT)
        self.input_alignment = input_alignment
        instance = vm_instance()
        where = str(vmfb) if isinstance(vmfb, (str, os.PathLike)) else None
        self._code = self._load(instance, vmfb, where)
        module = self._code.module
        provider, self.copied_parameter_bytes = self._provide(params or {}, scope)
        hal = self._hal

        def context() -> Any:
            parameters = rt.create_io_parameters_module(instance, provider)
            return rt.VmContext(instance, [parameters, rt.create_hal_module(instance, hal), module])

        try:
            with entered(self.device):
                self.lanes: Lanes | None = Lanes(
                    context, (lanes or available_cpus()) if self._is_local else 1
                )
        except IREE_ERRORS as e:
            forget(self.device, e)  # a run at load may have failed
            raise load_error(self.device, e, where) from e
        self._main = self._entry(module, entry, inputs, outputs, where)
        self.inputs, self.outputs = self._main.inputs, self._main.outputs
        self._choice = Choice(self._main)
        for v in variants:
            places = [*((i, d) for i, d, _ in v.sizes), *(p for group in v.alike for p in group)]
            if any(i >= len(self.inputs) for i, _ in places):
                raise FileError(f"the function '{v.function}' is for other inputs", location=where)
            if in_place and module.lookup_function(v.function) is None:
                continue  # a GPU's sizes have the function in place alone
            self._choice.add(v, self._entry(module, v.function, inputs, outputs, where))
        self._caches = dict(in_place)
        self._views: dict[int, tuple[Any, Any]] = {}  # views of the caches of the last call
        self.updating = self._entry(module, IN_PLACE, inputs, outputs, where) if in_place else None
        self.updates: Updates | None = None
        if self.updating is not None and not self._is_local:
            self.updates = Updates(self, self.updating, self._caches)
            for v in variants:
                name = in_place_name(v.function)
                if module.lookup_function(name) is not None:
                    self.updates.add(v, self._entry(module, name, inputs, outputs, where))
        self.prepared = self._prepared_calls() if self._is_local and self.inputs else None
        self.from_host = None if self._is_local else FromHost(self.device, self._main.is_static)
        self._closed = False

    def _prepared_calls(self) -> PreparedCalls:
        hal, ports, kind, usage = self._hal, self.inputs, self._import_type, self._usage
        choice = self._choice

        # a function without `self`: a cycle would keep the weights until a garbage collection
        def prepared(shapes: Shapes) -> PreparedCall:
            return PreparedCall(hal, choice.at(shapes)[1], ports, shapes, kind, usage)

        return PreparedCalls(ports, prepared)

    def _entry(
        self,
        module: Any,
        name: str,
        inputs: Sequence[Spec] | None,
        outputs: Sequence[Spec] | None,
        where: str | None,
    ) -> Entry:
        function = module.lookup_function(name)
        if function is None:
            raise FileError(f"the module exports no function '{name}'", location=where)
        return Entry(function, *ports_of(function, inputs, outputs, where))

    # ------------------------------------------------------------------ loading

    def _load(
        self, instance: Any, vmfb: bytes | np.ndarray | str | os.PathLike[str], where: str | None
    ) -> Code:
        try:
            if isinstance(vmfb, (str, os.PathLike)):
                path = Path(vmfb)
                if not path.is_file():
                    raise FileError("no such file", location=where)
                raw = np.fromfile(path, np.uint8)
            else:
                raw = vmfb if isinstance(vmfb, np.ndarray) else np.frombuffer(vmfb, np.uint8)
            if raw.nbytes < 64:
                raise FileError("too short to be a compiled module", location=where)
            return Code(self._rt, instance, raw)
        except IREE_ERRORS as e:
            raise FileError(f"the compiled module is damaged: {short(e)}", location=where) from e

    def _provide(self, params: Mapping[str, np.ndarray], scope: str) -> tuple[Any, int]:
        index, copied = self._rt.ParameterIndex(), 0
        self.held: list[np.ndarray] | None = []
        for key, value in params.items():
            data = np.asarray(value)
            if not is_aligned(data):
                data = aligned(data)
                copied += data.nbytes
            # bytes: the binding lacks the 8- and 16-bit float types
            raw = data.reshape(-1).view(np.uint8)
            self.held.append(raw)
            if self._is_local:
                add_parameter(index, key, raw)
            else:
                index.add_buffer(key, raw if data.size else b"")
        self._spans = sorted(span(a) for a in self.held) if self._is_local else []
        return index.create_provider(scope=scope), copied

    def close(self) -> None:
        """Release the code and the weights. Nothing runs afterwards."""
        if self._closed:
            return
        self._closed = True
        # calls have ended, so nothing reads the weights: host_memory.py
        self.lanes = self.prepared = self.from_host = None
        self._views = {}
        self._code.close()
        self.held = None
        drop_old()
        if not self._is_local and not self.device.is_lost:
            trim(self.device)

    def __del__(self, _ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not (self._closed or _ending()):
            with interrupts.later():
                self.close()

    # ------------------------------------------------------------------ running

    def run(
        self, args: Sequence[np.ndarray | DeviceTensor], shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        """Call the function with arrays in order; the results own their memory.

        shapes: those of `args`; given only if all are arrays of the inputs' types.
        Errors: RunError for a wrong number, type or shape, before anything runs, and for a call
        that fails.
        """
        calls = self.prepared
        if calls is not None:
            if shapes is None:
                shapes = calls.shapes_of(args)
            if shapes is not None:
                call = calls.take(shapes)
                if call is not None:
                    found = self.make(call, args)
                    calls.give_back(shapes, call)
                    return found
        imported: list[tuple[np.ndarray, int]] = []
        if self.from_host is not None:
            return self.from_host.run(self.invoke, args)
        entry, results = self.invoke(args, imported)
        found = self.take(entry.outputs, results, [(b, b + a.nbytes) for a, b in imported])
        del imported  # until here a result may be in an input's memory
        if calls is not None:
            calls.passed(shapes)
        return found

    __call__ = run

    def make(
        self, call: PreparedCall, args: Sequence[np.ndarray | DeviceTensor]
    ) -> list[np.ndarray]:
        """Make a prepared call with arrays of its shapes and types."""
        if self.may_be_lost:
            self.device.check()
        entry, arguments, spans = call.entry, call.arguments, call.spans
        if arguments is not None:
            owned: list[Any] = call.own
            for own, a in zip(owned, args):  # noqa: B905  (as many)
                own[...] = a
            return self.take(entry.outputs, self.call(entry, arguments, args), spans)
        found = self._again(call, args)
        imported: list[tuple[np.ndarray, int]] = []
        if found is not None:
            arguments, spans = found
        else:
            arguments = self._list_of(call, args, imported)
            spans = spans + [(b, b + a.nbytes) for a, b in imported]
        results = self.take(entry.outputs, self.call(entry, arguments, args), spans)
        del imported  # the binding keeps no array, so the memory of results was kept until now
        return results

    def _again(
        self, call: PreparedCall, args: Sequence[Any]
    ) -> tuple[Any, list[tuple[int, int]]] | None:
        """Return the kept arguments for large inputs at the addresses of the last call.

        None for other addresses; arguments are made at the second call with them. A large kernel
        evicts the interpreter's data from the CPU's caches, so each Python step costs three times
        as much, and making arguments takes longer than a small kernel.
        """
        found: list[int] = []
        for port, own, a in zip(call.entry.inputs, call.own, args):  # noqa: B905  (as many)
            if own is not None:
                own[...] = a
                found.append(0)
                continue
            if not (port.as_is and a.flags.carray):  # without gaps, and writable
                return None
            found.append(writable_address(a))
            if found[-1] % self.input_alignment:  # an unaligned array is copied
                return None
        places = tuple(found)
        if places != call.places:
            call.places, call.placed = places, None
            return None
        if call.placed is None:
            imported: list[tuple[np.ndarray, int]] = []
            arguments = self._list_of(call, args, imported)
            call.placed = arguments, call.spans + [(b, b + a.nbytes) for a, b in imported]
        return call.placed

    def _list_of(
        self,
        call: PreparedCall,
        args: Sequence[Any],
        imported: list[tuple[np.ndarray, int]],
    ) -> Any:
        """Do what `push` does for a call with large inputs, in fewer steps."""
        arguments = self._rt.VmVariantList(len(args))
        kind, usage = self._import_type, self._usage
        make: Any = self.view_type
        slots = zip(call.entry.inputs, call.own, call.views, args)  # noqa: B905  (as many)
        for port, own, view, a in slots:
            if own is not None:
                own[...] = a
                arguments.push_ref(view)
                continue
            if port.as_is and a.flags.carray:  # without gaps, and writable
                begin = writable_address(a)
                if begin % self.input_alignment == 0:
                    buffer = self._allocator.import_host_allocation(a, kind, usage)
                    arguments.push_ref(make(buffer, a.shape, port.element_type))
                    imported.append((a, begin))
                    continue
            self.push(arguments, port, a, imported)
        return arguments

    def run_in_place(
        self, args: Sequence[np.ndarray], caches: Mapping[int, np.ndarray]
    ) -> list[np.ndarray]:
        """Call the function that updates caches in place, on this CPU.

        caches: the array of a cache by its result's number; it becomes the result. Raises
        as `run` does; a call that fails may have written rows.
        """
        assert self.updating is not None
        self.device.check()
        entry, imported = self.updating, list[tuple[np.ndarray, int]]()
        arguments = self._rt.VmVariantList(len(entry.inputs))
        held: dict[int, np.ndarray] = {}
        for i, (port, a) in enumerate(zip(entry.inputs, args, strict=True)):
            k = self._caches.get(i)
            if k is None:
                self.push(arguments, port, a, imported)
                continue
            port.check(a)
            held[k] = caches[k] if self._fits(caches[k]) else aligned_copy(caches[k])
            arguments.push_ref(self._imported(port, held[k], i))
        results = self.call(entry, arguments, args)
        spans = [(b, b + a.nbytes) for a, b in imported]
        found = self.take(entry.outputs, results, spans, held)
        for k, a in held.items():
            if a is not caches[k]:
                caches[k][...] = a
                found[k] = caches[k]
        return found

    def _fits(self, a: np.ndarray) -> bool:
        """Return whether the code can work in the memory of an array."""
        return address(a) % self.input_alignment == 0

    def _imported(self, port: Port, a: np.ndarray, number: int) -> Any:
        """Return a buffer view of an input's memory; reuse that of the last call at the same
        address.

        A view keeps no array alive.
        """
        key = address(a), a.shape
        before = self._views.get(number)
        if before is not None and before[0] == key:
            return before[1]
        view = self.view_of(port, a)
        self._views[number] = key, view
        return view

    def view_of(self, port: Port, a: np.ndarray) -> Any:
        """Return a buffer view of the memory of an array, which it does not hold."""
        raw = a if port.as_is else a.view(port.raw)
        buffer = self._allocator.import_host_allocation(raw, self._import_type, self._usage)
        return self._rt.HalBufferView(buffer, a.shape, port.element_type)

    def run_on_device(self, args: Sequence[np.ndarray | DeviceTensor]) -> list[DeviceTensor]:
        """Run as `run` does, and leave the results in the memory of the device."""
        return self.on_device(*self.invoke(args, None))

    def on_device(self, entry: Entry, results: Any) -> list[DeviceTensor]:
        """Return a call's results as tensors in the memory of the device."""
        views = [results.get_as_object(i, self._rt.HalBufferView) for i in range(len(results))]
        return [
            DeviceTensor(self.device, view, port.dtype, tuple(view.shape))
            for port, view in zip(entry.outputs, views, strict=True)
        ]

    def invoke(
        self,
        args: Sequence[np.ndarray | DeviceTensor],
        imported: list[tuple[np.ndarray, int]] | None,
        inputs: Inputs | None = None,
        entry: Entry | None = None,
    ) -> tuple[Entry, Any]:
        """Check and make a call; return the function and its results.

        entry: the function; None is the one for the sizes of `args`.

        imported: gets the arrays that are used in place, with their addresses. The caller keeps
        them until the results are taken, which may be in their memory. None: nothing is used in
        place. inputs: device memory for host arrays, kept as long.
        """
        self.device.check()
        if len(args) != len(self.inputs):
            raise RunError(f"expected {len(self.inputs)} inputs, got {len(args)}")
        with entered(self.device):
            if not self._is_local:
                wait_for_readers(self.device)
            return self._invoked(args, imported, inputs, entry)

    def _invoked(
        self,
        args: Sequence[np.ndarray | DeviceTensor],
        imported: list[tuple[np.ndarray, int]] | None,
        inputs: Inputs | None,
        entry: Entry | None,
    ) -> tuple[Entry, Any]:
        if entry is None:
            entry = self._chosen(args)[1] if self._choice.variants else self._main
        ports = entry.inputs
        rt = self._rt
        arguments = rt.VmVariantList(len(ports))
        for port, arg in zip(ports, args, strict=True):
            if isinstance(arg, DeviceTensor):
                if arg.dims != port.static or arg.dtype is not port.dtype:
                    port.check(arg.shadow)
                if arg.device is not self.device:
                    failed = ", which has failed" if has_failed(arg.device) else ""
                    raise RunError(
                        f"{port.label} expected memory of {self.device}, got {arg.device}{failed}"
                    )
                arguments.push_ref(arg.view)
                continue
            self.push(arguments, port, arg, imported, inputs)
        if inputs is not None:
            inputs.finish()
        return entry, self.call(entry, arguments, args)

    def push(
        self, arguments: Any, port: Port, arg: Any,
        imported: list[tuple[np.ndarray, int]] | None, inputs: Inputs | None = None,
    ) -> None:  # fmt: skip
        """Check an array and add it to the arguments of a call."""
        try:
            a = np.asarray(arg, order="C")
        except MemoryError as e:
            raise RunError(f"{port.label}: too little memory: {str(e).lower()}") from None
        if a.dtype is not port.np:
            a = native(a)
        port.check(a)
        try:
            put = self._view(port, a, imported) if inputs is None else inputs.put(port, a)
            arguments.push_ref(put)
        except IREE_ERRORS as e:
            if interrupts.is_callers(e):
                raise
            forget(self.device, e)
            raise RunError(f"{port.label} cannot be put on the device: {short(e)}") from e

    def call(self, entry: Entry, arguments: Any, args: Sequence[np.ndarray | DeviceTensor]) -> Any:
        """Make a call; return the results, in the device's memory."""
        results = self._rt.VmVariantList(len(entry.outputs))
        held = self.held  # read before `_lanes`: keeps the weights during a concurrent `close`
        lanes = self.lanes
        if lanes is None:
            raise RunError("the program is closed")
        try:
            if self._is_local:
                lanes.call(entry.function, arguments, results)
            else:
                retry_trimmed(self.device, lambda: lanes.call(entry.function, arguments, results))
        except IREE_ERRORS as e:
            self.fail(entry, arguments, args, held, e)
        del held
        return results

    def fail(
        self, entry: Entry, arguments: Any, args: Sequence[np.ndarray | DeviceTensor], held: Any,
        e: Exception,
    ) -> NoReturn:  # fmt: skip
        """Raise the error of a call that failed. held: the weights that it may still read."""
        if interrupts.is_callers(e):
            raise e
        if self.device.kind == "local-task":
            keep_after_failure(arguments, args, held)
        refused = refusal(entry, args, str(e))
        if refused is not None:
            raise refused from None
        forget(self.device, e)
        raise RunError(f"the program failed: {short(e, 1000)}", notes=details(e)) from e

    def function_for(self, args: Sequence[np.ndarray | DeviceTensor]) -> str:
        """Return the function that `run` calls for these inputs."""
        return self._chosen(args)[0]

    def _chosen(self, args: Sequence[np.ndarray | DeviceTensor]) -> tuple[str, Entry]:
        try:
            return self._choice.at(
                [a.dims if isinstance(a, DeviceTensor) else a.shape for a in args]
            )
        except (AttributeError, IndexError) as e:
            if interrupts.is_callers(e):
                raise
            # the check raises the error
            return "main", self._main

    def _view(
        self, port: Port, a: np.ndarray, imported: list[tuple[np.ndarray, int]] | None
    ) -> Any:
        """Return a buffer view of an input: in place where that is safe, else a copy."""
        rt = self._rt
        if a.size == 0:
            buffer = self._allocator.allocate_buffer(self._copy_type, self._usage, 64)
            return rt.HalBufferView(buffer, a.shape, port.element_type)
        if imported is not None and is_large(a.nbytes) and self._is_local:
            # the binding requires a writable buffer, and does not write
            raw = writable_view(a if port.as_is else a.view(port.raw))
            begin = writable_address(raw)
            if begin % self.input_alignment == 0:
                buffer = self._allocator.import_host_allocation(raw, self._import_type, self._usage)
                imported.append((a, begin))
                return rt.HalBufferView(buffer, a.shape, port.element_type)
        if not self._is_local:
            return DeviceTensor.of(self.device, a, port.dtype).view
        return self._allocator.allocate_buffer_copy(
            self._copy_type,
            self._usage,
            self._hal,
            a if port.as_is else a.view(port.raw),
            port.element_type,
        )

    def take(
        self, ports: Sequence[Port], results: Any, used: Sequence[tuple[int, int]],
        caches: Mapping[int, np.ndarray] = {},
    ) -> list[np.ndarray]:  # fmt: skip
        """Return the results as arrays: small ones are copied, others hold the device's memory.

        used: address ranges of inputs. A result that overlaps one of them, or an earlier result, is
        copied. caches: for a result's number, the array that it is in or is copied to.
        """
        found: list[np.ndarray] = []
        taken: list[tuple[int, int]] | None = None
        kind = self.view_type
        for i, port in enumerate(ports):
            view, shape, size = results.get_as_object(i, kind), port.static, port.size
            if shape is None:
                shape = tuple(view.shape)
                size = math.prod(shape) * port.itemsize
            if size == 0:
                found.append(np.empty(shape, port.np))
                continue
            # the mapping is the array's base, and holds the buffer
            array = np.ndarray(shape, port.np, view.map())
            cache = caches.get(i)
            if cache is not None:
                if address(array) != address(cache):
                    cache[...] = array
                found.append(cache)
                continue
            if size < COPY_BELOW:
                found.append(array.copy())
                continue
            if taken is None:
                taken = list(used)
            begin = writable_address(array if port.as_is else array.view(port.raw))
            if self.is_used(begin, begin + size, taken):
                array = array.copy()
            else:
                taken.append((begin, begin + size))
            found.append(array)
        return found

    def is_used(self, begin: int, end: int, used: Sequence[tuple[int, int]]) -> bool:
        """Return whether a result shares memory with inputs or results (`used`), or weights."""
        for b, e in used:
            if b < end and begin < e:
                return True
        at = bisect.bisect(self._spans, (begin, sys.maxsize)) - 1
        return at >= 0 and begin < self._spans[at][1]
