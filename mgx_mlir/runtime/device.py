"""IREE devices: one per kind and thread count for the life of the process.

A device must outlive every buffer it made, and results are such buffers, which a user may hold
until the interpreter ends: a device that is destroyed first crashes the process. So devices,
drivers and the VM instance are never destroyed.
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from mgx_mlir.core import forks
from mgx_mlir.core.errors import TargetError, UsageError
from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.machine import HIP_VARIABLE, available_cpus, has_tile_registers
from mgx_mlir.runtime import gpu_api, hip_library
from mgx_mlir.runtime.gpu_api import APIS, HIP, Api

# four times the largest stack that a compiled dispatch may use
WORKER_STACK = 4 << 20
# exceptions of the binding for status codes of the runtime
IREE_ERRORS = (RuntimeError, ValueError, LookupError, MemoryError, OSError)
_QUEUE_SURVIVES = (
    "OutOfMemory", "NoBinaryForGpu", "InvalidImage", "hipErrorNotFound",
    "CUDA_ERROR_OUT_OF_MEMORY", "CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_INVALID_PTX", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_NOT_FOUND",
)  # fmt: skip
KINDS = ("local-sync", "local-task", *gpu_api.KINDS)
# memory that a stream allocates has no address that could be shared (DLPack)
_CUDA_ALLOCATORS: list[str] | None = ["caching"]
_CUDA_FLAGS = ("--cuda_async_allocations=false",)


@dataclass(frozen=True)
class Device:
    """A HAL device. `is_local`: it computes in host memory, so buffers can be mapped. `index`
    counts the GPUs of `library`, the folder or file of a HIP library ("": the system's).
    `records`: a recorder (runtime/graphs.py) sees its calls."""

    kind: str
    threads: int
    hal: Any
    index: int = 0
    library: str = ""
    fork: int = 0  # the process that made it: `forks.count()`
    records: bool = False

    def __str__(self) -> str:
        if self.is_local:
            return self.kind
        return f"{self.kind} device {self.index}" + (f" of {self.library}" if self.library else "")

    @property
    def is_local(self) -> bool:
        """Return whether it is this machine's CPU."""
        return self.kind not in APIS

    @property
    def api(self) -> Api:
        """The driver library of a GPU."""
        return APIS[self.kind]

    @property
    def is_lost(self) -> bool:
        """Return whether this is a forked child, and the device, with its threads, the parent's."""
        return self.fork != forks.count() and self.kind != "local-sync"

    def check(self) -> None:
        """Raise TargetError for a device of the parent of this forked process."""
        if self.is_lost:
            raise TargetError(
                f"{self} was opened before this process was forked: it cannot be used here",
                notes=["fork before the first run, or start the process with 'spawn'"],
            )


_lock = forks.lock()
_devices: dict[tuple[str, int, int, str, bool], Device] = {}
_instance: Any = None


def _immortal(o: Any) -> Any:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(o))
    return o


@functools.cache
def runtime_version() -> str:
    """Return the version of IREE that code must be made for. TargetError where there is none."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    try:
        return version("iree-base-runtime")
    except PackageNotFoundError:
        raise TargetError(
            "iree-base-runtime is not installed", notes=["pip install iree-base-runtime==3.13.0"]
        ) from None


def load_runtime() -> None:
    """Load IREE's runtime without opening a device, for a process that forks before it runs
    anything.
    """
    from iree.runtime import _binding  # lazy: slow to load, and only calls need it

    _binding.disable_leak_checker()


def vm_instance() -> Any:
    """Return the one VM instance of this process."""
    global _instance
    if _instance is None:
        from iree.runtime import _binding  # lazy: slow to load, and only calls need it

        # no leak reports at exit for objects that live for ever
        _binding.disable_leak_checker()
        _instance = _immortal(_binding.VmInstance())
    return _instance


def choose(kind: str | None, threads: int | None) -> tuple[str, int]:
    """Return the device kind and thread count of a request.

    One thread: the caller's (local-sync); more: a pool (local-task). Without a thread count all
    CPUs of the process's affinity are used. Errors: UsageError.
    """
    if kind is not None and kind not in KINDS:
        raise UsageError(f"unknown device '{kind}', expected one of {', '.join(KINDS)}")
    if threads is not None and threads < 1:
        raise UsageError(f"expected at least 1 thread, got {threads}")
    if kind in APIS:
        if threads not in (None, 1):
            raise UsageError(f"a {kind} device takes no thread count")
        return kind, 1
    if kind == "local-sync":
        if threads not in (None, 1):
            raise UsageError(f"device local-sync has 1 thread, got {threads}")
        return kind, 1
    count = threads or available_cpus()
    return kind or ("local-sync" if count == 1 else "local-task"), count


def open_device(
    kind: str | None = None, threads: int | None = None, index: int = 0, library: str | None = None,
    *, records: bool = False,
) -> Device:  # fmt: skip
    """Return a device, opened once; `index` selects one of several GPUs.

    `library`: the folder or file of a HIP library, in place of what the environment names or the
    system has; a process may use several. records: a recorder (runtime/graphs.py) sees its calls.
    On HIP `library` is the recorder, to which freed memory is returned instead of the driver's free
    list. Errors: TargetError where there is no such device; UsageError.
    """
    kind, count = choose(kind, threads)
    if kind == "hip":
        library = os.environ.get(HIP_VARIABLE, "") if library is None else library
    key = (kind, count, index, library or "", records)
    with _lock:
        found = _devices.get(key)
        if found is not None and found.is_lost:
            if not found.is_local:
                found.check()
            found = None
        if found is None:
            vm_instance()
            found = _devices[key] = _create(*key)
        return found


def forget(device: Device, e: Exception) -> None:
    """Stop using this GPU for programs loaded later, if its queue has failed.

    A failed queue returns the error at every later call. Wrong calls, lack of memory and code for
    another device do not fail the queue. On CUDA a kernel fault destroys the process's context, so
    no later device works.
    """
    if isinstance(e, ValueError | MemoryError | LookupError):
        return
    if any(name in str(e) for name in _QUEUE_SURVIVES):
        return
    with _lock:
        for key in [k for k, d in _devices.items() if d is device and not d.is_local]:
            del _devices[key]


def has_failed(device: Device) -> bool:
    """Return whether the device failed and was dropped."""
    with _lock:
        return all(d is not device for d in _devices.values())


def is_open(kind: str, library: str = "") -> bool:
    """Return whether a device of the kind (and of this HIP library) was opened in this process."""
    with _lock:
        return any((k, at) == (kind, library) for k, _, _, at, _ in _devices)


def _create(kind: str, threads: int, index: int, library: str, records: bool) -> Device:
    import iree.runtime as rt  # lazy: slow to load, and only calls need it

    if kind == "local-task":
        rt.flags.parse_flags(  # read when the driver is made
            f"--task_topology_group_count={threads}", f"--task_worker_stack_size={WORKER_STACK}"
        )
    if kind not in APIS:
        has_tile_registers()  # kernels may use them once they have been asked for
        try:
            driver = _immortal(_create_driver(kind))
            # otherwise every large result costs page faults
            hal = driver.create_default_device(allocators=["caching"])
        except IREE_ERRORS as e:
            raise TargetError(f"cannot open the {kind} device: {short(e)}") from e
        return Device(kind, threads, _immortal(hal), index, library, forks.count())
    api = APIS[kind]
    try:
        driver = _immortal(_hip_driver(library, records) if api is HIP else _cuda_driver())
        rows = driver.query_available_devices()
        if not 0 <= index < len(rows):
            raise TargetError(_no_device(api, index, len(rows)))
        gpu_api.check_version(api, library)
        # the driver's own allocations of a stream cannot be shared by their addresses
        kept = None if api is HIP else _CUDA_ALLOCATORS
        hal = driver.create_device(rows[index]["device_id"], allocators=kept)
    except IREE_ERRORS as e:
        raise _no_gpu(api, library, e) from e
    return Device(kind, threads, _immortal(hal), index, library, forks.count(), records)


def _create_driver(kind: str) -> Any:
    """Create a driver; the runtime's `get_driver` would share one."""
    from iree.runtime import _binding  # lazy: slow to load, and only calls need it

    return _binding.create_hal_driver(kind)  # pyright: ignore[reportAttributeAccessIssue]  (no stub)


def _named(library: str) -> str:
    """Return the library's file as IREE takes it, which looks for `libamdhip64.so` alone.

    Where it cannot be loaded, what was given: IREE's error says more.
    """
    try:
        loaded = gpu_api.loaded(HIP, library)
        # a recorder forwards to another library, so take the file of its own function
        found = loaded._name if os.sep in loaded._name else hip_library.file_of(loaded.hipInit)
    except (TargetError, AttributeError):
        return library
    return library if found is None else f"file:{found}"


def _hip_driver(library: str, records: bool) -> Any:
    """Create a hip driver over a HIP library. Only the environment variable can name it."""
    before = os.environ.get(HIP_VARIABLE)
    named = _named(library)
    if named:
        os.environ[HIP_VARIABLE] = named
    if records:
        import iree.runtime as rt  # lazy: slow to load, and only calls need it

        rt.flags.parse_flags("--hip_async_caching=false")  # read when the driver is made
    try:
        return _create_driver("hip")
    finally:
        if records:
            rt.flags.parse_flags("--hip_async_caching=true")
        if named and before is None:
            del os.environ[HIP_VARIABLE]
        elif before is not None:
            os.environ[HIP_VARIABLE] = before


def _cuda_driver() -> Any:
    """Create a cuda driver."""
    import iree.runtime as rt  # lazy: slow to load, and only calls need it

    rt.flags.parse_flags(*_CUDA_FLAGS)  # read when the driver is made
    return _create_driver("cuda")


# CUDA's errors that a kernel made, after which the process has no device
_FAULTS = ("ILLEGAL_ADDRESS", "LAUNCH_FAILED", "MISALIGNED_ADDRESS", "ILLEGAL_INSTRUCTION",
           "HARDWARE_STACK_ERROR", "INVALID_PC", "LAUNCH_TIMEOUT", "ASSERT")  # fmt: skip


def _no_gpu(api: Api, library: str, e: Exception) -> TargetError:
    if any(f"CUDA_ERROR_{name}" in str(e) for name in _FAULTS):
        return TargetError(
            "a kernel failed in this process: its NVIDIA GPU cannot be used in it any more",
            notes=[short(e), "start a new process"],
        )
    if library:
        return TargetError(
            f"no {api.vendor} GPU can be used through the {api.name} library in {library}",
            notes=[short(e)],
        )
    notes = [short(e)]
    if api is not HIP and "libcuda" in notes[0]:
        notes.append("libcuda.so is part of NVIDIA's driver; a container needs '--gpus all'")
    emulated = ", or with --emulate (in Python emulate=True)" if api is HIP else ""
    notes.append(
        f"a program for the gpu target compiles here; it runs where {api.name} is{emulated}"
    )
    return TargetError(
        f"there is no {api.vendor} GPU that {api.name} can use on this machine", notes=notes
    )


def _no_device(api: Api, index: int, count: int) -> str:
    """Explain why there is no GPU of an index."""
    if count == 0:
        return f"there is no {api.vendor} GPU: {api.name} finds no device"
    numbers = "0" if count == 1 else f"0 to {count - 1}"
    return f"there is no {api.name} device {index}, expected {numbers}"


def details(e: Exception) -> list[str]:
    """Return the lines below the first of an error, as the emulator indents them."""
    lines = (line for line in str(e).splitlines()[1:] if line.startswith("  "))
    return [line.partition("; mismatched target chip?")[0].strip() for line in lines]


def short(e: Exception, limit: int = 300) -> str:
    """Return the first line of an IREE error, without its source file."""
    lines = str(e).strip().splitlines()
    text = lines[0] if lines else type(e).__name__
    _, found, rest = text.partition(".c:")
    if found:
        number, _, tail = rest.partition(": ")
        text = tail if number.isdigit() else text
    return text[:limit]
