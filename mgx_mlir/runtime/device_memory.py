"""Tensors in a device's memory: made from host arrays, read back, and shared through DLPack."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import RunError, TargetError
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.device import IREE_ERRORS, Device, forget, short
from mgx_mlir.runtime.gpu_calls import call, entered
from mgx_mlir.runtime.gpu_memory import retry_trimmed
from mgx_mlir.runtime.gpu_streams import Copies, copy_in

_LEAST = 64  # bytes of the buffer of an empty tensor
_HOST = 1  # DLPack's number of host memory


class DeviceTensor:
    """A tensor in the memory of a device; row-major, without gaps.

    `view` is the runtime's buffer view. Errors of its operations: RunError.
    """

    def __init__(self, device: Device, view: Any, dtype: DType, dims: Sequence[int]) -> None:
        self.device, self.view = device, view
        self.dtype, self.dims = dtype, tuple(dims)
        self._address = 0  # known once it was asked for

    @classmethod
    def of(cls, device: Device, array: np.ndarray, dtype: DType | None = None) -> DeviceTensor:
        """Copy a host array to a device. dtype: the array's, if known."""
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        dtype = dtypes.from_numpy(array.dtype) if dtype is None else dtype
        if array.size == 0:
            return cls.empty(device, dtype, array.shape)
        if not device.is_local:
            # IREE's copy maps memory each time: 250 us for 8 KB on an H200
            made, held = cls.empty(device, dtype, array.shape), np.ascontiguousarray(array)
            copy_in(device, made.address(), address(held), held.nbytes)
            return made
        try:
            with entered(device):
                view = device.hal.allocator.allocate_buffer_copy(
                    int(rt.MemoryType.DEVICE_LOCAL),
                    int(rt.BufferUsage.DEFAULT),
                    device.hal,
                    np.ascontiguousarray(array).view(_raw(dtype)),
                    element_type(_wire(dtype)),
                )
        except IREE_ERRORS as e:
            if interrupts.is_callers(e):
                raise
            raise RunError(f"cannot allocate {array.nbytes} bytes on the device: {short(e)}") from e
        return cls(device, view, dtype, array.shape)

    @classmethod
    def empty(cls, device: Device, dtype: DType, dims: Sequence[int]) -> DeviceTensor:
        """Allocate a tensor; its elements are not initialised."""
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        size = math.prod(dims) * dtype.size or _LEAST
        kind, usage = int(rt.MemoryType.DEVICE_LOCAL), int(rt.BufferUsage.DEFAULT)
        allocate = device.hal.allocator.allocate_buffer
        try:
            with entered(device):
                buffer = retry_trimmed(device, lambda: allocate(kind, usage, size))
            view = rt.HalBufferView(buffer, tuple(dims), element_type(_wire(dtype)))
        except IREE_ERRORS as e:
            if interrupts.is_callers(e):
                raise
            raise RunError(f"cannot allocate {size} bytes on the device: {short(e)}") from e
        return cls(device, view, dtype, dims)

    @classmethod
    def zeros(cls, device: Device, dtype: DType, dims: Sequence[int]) -> DeviceTensor:
        """Allocate a tensor of zeros on a GPU."""
        made = cls.empty(device, dtype, dims)
        place = ctypes.c_void_p(made.address())
        call(device, "fill", place, ctypes.c_int(0), ctypes.c_size_t(made.nbytes))
        call(device, "synchronize")
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.dims) * self.dtype.size

    @functools.cached_property
    def shadow(self) -> np.ndarray:
        """An array of the same dtype and dims without data, for checks."""
        return np.broadcast_to(np.zeros((), self.dtype.np), self.dims)

    def to_host(self) -> np.ndarray:
        """Copy to host memory, once all work submitted to the device is done."""
        if self.device.is_local:
            if self.nbytes == 0:
                return np.empty(self.dims, self.dtype.np)
            return np.ndarray(self.dims, self.dtype.np, self.view.map()).copy()
        return read_back(self.device, [(self.view, self.dtype, self.dims)])[0]

    def viewed(self, kind: Any, dims: Sequence[int]) -> Any:
        """Return a view of the memory as a tensor of another element type of the runtime's."""
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        return rt.HalBufferView(self.view.get_buffer(), tuple(dims), kind)

    def _as_bytes(self) -> DeviceTensor:
        """Return the memory as a tensor of bytes."""
        dims = (self.nbytes,)
        return DeviceTensor(self.device, self.viewed(element_type("i8"), dims), dtypes.INT8, dims)

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """DLPack's numbers of the device."""
        kind = _HOST if self.device.is_local else self.device.api.dlpack
        return kind, self.device.index

    def dlpack(self) -> Any:
        """Return a DLPack capsule over the memory, which it keeps alive."""
        try:
            return self.device.hal.create_dlpack_capsule(self.view, *self.dlpack_device)
        except IREE_ERRORS as e:
            if interrupts.is_callers(e):
                raise
            raise RunError(f"the tensor cannot be shared: {short(e)}") from e

    def address(self) -> int:
        """Return the device address of the first element."""
        if self._address:
            return self._address
        try:
            capsule = self.dlpack()
        except RunError:  # a type that DLPack or the binding has no number for
            capsule = self._as_bytes().dlpack()
        tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
        self._address = (tensor.data or 0) + tensor.byte_offset
        return self._address


# a prototype of its own: other packages set the types of the one that `ctypes.pythonapi` shares
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _DLTensor(ctypes.Structure):
    """The beginning of a DLManagedTensor (dlpack.h)."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor (dlpack.h)."""

    _fields_ = (
        ("tensor", _DLTensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


def from_dlpack(device: Device, source: Any, dtype: DType) -> DeviceTensor:
    """Take another library's tensor in the device's memory, without a copy.

    It returns when that library's work on the tensor is done: a stream of ours waits for that
    library's current stream, and is synchronized.
    Errors: TargetError for memory of another kind or device; RunError where it cannot be taken.
    """
    refuse_other(device, source.__dlpack_device__())
    # calls of the program need the device
    from mgx_mlir.runtime.gpu_streams import own_stream

    try:
        stream = own_stream(device)
        capsule = source.__dlpack__(stream=stream.address)
        stream.synchronize()
    except IREE_ERRORS as e:
        raise RunError(f"the tensor cannot be taken: {short(e)}") from e
    return from_capsule(device, capsule, dtype)


def refuse_other(device: Device, place: tuple[int, int]) -> None:
    """Raise TargetError for memory that DLPack says is of another kind or device."""
    if place != (device.api.dlpack, device.index):
        raise TargetError(
            f"expected memory of {device.api.name} device {device.index}, got DLPack device "
            f"({place[0]}, {place[1]})"
        )


def from_capsule(device: Device, capsule: Any, dtype: DType) -> DeviceTensor:
    """Take the tensor of a DLPack capsule, of memory of the device. Errors: RunError."""
    try:
        view = device.hal.from_dlpack_capsule(capsule)
    except IREE_ERRORS as e:
        raise RunError(f"the tensor cannot be taken: {short(e)}") from e
    return DeviceTensor(device, view, dtype, tuple(view.shape))


def at_address(device: Device, address: int, dtype: DType, dims: Sequence[int]) -> DeviceTensor:
    """Take memory of the device at an address, without a copy. The caller keeps it alive.

    Errors: RunError where it cannot be taken.
    """
    import iree.runtime as rt  # the runtime takes long to load, and only calls need it

    nbytes = math.prod(dims) * dtype.size
    if nbytes == 0:
        return DeviceTensor.empty(device, dtype, dims)
    try:
        held = device.hal.from_dlpack_capsule(
            _bytes_at(address, nbytes, device.api.dlpack, device.index)
        )
        view = rt.HalBufferView(held.get_buffer(), tuple(dims), element_type(_wire(dtype)))
    except IREE_ERRORS as e:
        if interrupts.is_callers(e):
            raise
        raise RunError(f"the memory at {address:#x} cannot be taken: {short(e)}") from e
    return DeviceTensor(device, view, dtype, dims)


def _bytes_at(address: int, nbytes: int, kind: int, index: int) -> Any:
    """Return a DLPack capsule over memory. Its record is freed by C's own `free`, so that it may
    outlive the interpreter."""
    c = ctypes.CDLL(None)
    c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    size = ctypes.sizeof(_Managed)
    place = c.malloc(size + 8)
    ctypes.c_int64.from_address(place + size).value = nbytes
    made = _Managed.from_address(place)
    made.manager = None
    made.deleter = ctypes.cast(c.free, ctypes.c_void_p).value
    t = made.tensor
    t.data, t.device_type, t.device_id, t.ndim = address, kind, index, 1
    t.code, t.bits, t.lanes = 1, 8, 1  # bytes
    t.shape, t.strides, t.byte_offset = place + size, None, 0
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(place, b"dltensor", None)


def read_back(
    device: Device, given: Sequence[tuple[Any, DType, tuple[int, ...]]]
) -> list[np.ndarray]:
    """Copy a GPU's tensors, as views with their types and dims, to arrays in host memory."""
    found = [np.empty(dims, dtype.np) for _, dtype, dims in given]
    copies = Copies(device)
    try:
        with entered(device):
            for a, (view, dtype, dims) in zip(found, given, strict=True):
                if a.size:
                    source = DeviceTensor(device, view, dtype, dims).address()
                    copies.to_host(address(a), source, a.nbytes)
        copies.finish()
    except RunError as e:
        forget(device, e)
        raise RunError(f"the result cannot be copied from the device: {e.message}") from e
    return found


def element_type(wire: str) -> Any:
    """Return the runtime's element type of a module's declared type. KeyError for others."""
    # the runtime takes long to load, and only calls need it
    from iree.runtime import HalElementType as T

    names = {
        "i1": T.BOOL_8, "i8": T.INT_8, "i16": T.INT_16, "i32": T.INT_32, "i64": T.INT_64,
        "f16": T.FLOAT_16, "bf16": T.BFLOAT_16, "f32": T.FLOAT_32, "f64": T.FLOAT_64,
        "f8E4M3FN": T.FLOAT_8_E4M3_FN, "f8E4M3FNUZ": T.FLOAT_8_E4M3_FNUZ,
        "f8E5M2": T.FLOAT_8_E5M2, "f8E5M2FNUZ": T.FLOAT_8_E5M2_FNUZ,
    }  # fmt: skip
    return names[wire]


def _wire(dtype: DType) -> str:
    """Return the signless type."""
    return dtype.mlir.removeprefix("u")


def _raw(dtype: DType) -> np.dtype[Any]:
    """Return the numpy type that the binding accepts for the elements: it lacks the small
    floats.
    """
    plain = dtypes.is_numpys(dtype.np) and not dtype.is_bool
    return dtype.np if plain else np.dtype(f"u{dtype.np.itemsize}")
