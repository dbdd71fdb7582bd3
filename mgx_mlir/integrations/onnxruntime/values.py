"""OrtValue and OrtDevice: inputs and outputs of a session, in host memory."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mgx_mlir.integrations.onnxruntime.enums import OrtDeviceVendorId
from mgx_mlir.integrations.onnxruntime.errors import BindingError
from mgx_mlir.integrations.onnxruntime.types import array_dtype, element_number, value_type

_DEVICES = {"cpu": 0, "cuda": 1, "gpu": 1, "rocm": 1, "dml": 1, "webgpu": 1, "npu": 2, "cann": 2}
_VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
}


@dataclass(frozen=True)
class _Place:
    """Memory kinds that an OrtDevice names."""

    kind: int
    index: int
    vendor: int


class OrtDevice:
    """A device by kind and number. Values are in host memory only."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return a device by its name ("cpu", "gpu"). Errors: BindingError for another name."""
        kind = _DEVICES.get(ort_device_name)
        if kind is None:
            known = ", ".join(_DEVICES)
            raise BindingError(f"unknown device '{ort_device_name}', expected one of {known}")
        vendor = _VENDORS.get(ort_device_name, 0) if vendor_id < 0 else vendor_id
        return OrtDevice(_Place(kind, int(device_id), int(vendor)))

    def device_id(self) -> int:
        """Return the number of the device among those of its kind."""
        return self._place.index

    def device_type(self) -> int:
        """Return the number of the kind: 0 cpu, 1 gpu, 2 npu."""
        return self._place.kind

    def device_vendor_id(self) -> int:
        """Return the PCI number of the vendor, 0 for any."""
        return self._place.vendor

    def device_mem_type(self) -> int:
        """Return the kind of memory: 0, the default."""
        return 0


class _Capsule:
    """Adapter from a DLPack capsule to an object that numpy accepts."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class OrtValue:
    """A tensor, a sequence of tensors, a map, or an absent optional.

    Made by its class methods. Errors: BindingError, a RuntimeError.
    """

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def of(cls, value: Any) -> OrtValue:
        """Convert to an OrtValue: an OrtValue itself, or anything with `numpy()`."""
        if isinstance(value, OrtValue):
            return value
        if not isinstance(value, np.ndarray) and hasattr(value, "numpy"):
            value = value.numpy()
        made = np.asarray(value)
        return cls(made.astype(made.dtype.newbyteorder("="), copy=False))

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:  # fmt: skip
        """Return a value over an array's memory.

        The array is copied where it is not contiguous, or of another byte order.
        """
        _host(device_type, device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUT":
            raise BindingError(f"expected an array of numbers, got {type(numpy_obj).__name__}")
        made = _contiguous(numpy_obj)
        element_number(made.dtype)
        return cls(made)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: np.ndarray, /, onnx_element_type: int
    ) -> OrtValue:
        """Return a value over an array's memory, read as an ONNX type of the same size."""
        wanted = array_dtype(int(onnx_element_type))
        if not isinstance(data, np.ndarray) or data.dtype.itemsize != wanted.itemsize:
            raise BindingError(f"expected an array of elements of {wanted.itemsize} bytes")
        return cls(_contiguous(data).view(wanted))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu",
        device_id: int = 0, vendor_id: int = -1, memory_info: object = None,
    ) -> OrtValue:  # fmt: skip
        """Return a value of zeros. `element_type` is a numpy type or the number of ONNX's."""
        _host(device_type, device_id, vendor_id)
        sizes = [operator.index(n) for n in shape]
        if any(n < 0 for n in sizes):
            raise BindingError(f"expected sizes, got {sizes}")
        try:
            return cls(np.zeros(sizes, array_dtype(element_type)))
        except (MemoryError, ValueError):  # numpy raises ValueError beyond what it can count
            raise BindingError(f"expected sizes that fit in memory, got {sizes}") from None

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Return a value over the memory of a DLPack object or capsule on the host."""
        source: Any = data if hasattr(data, "__dlpack__") else _Capsule(data)
        try:
            return cls(np.from_dlpack(source))
        except (TypeError, ValueError, RuntimeError, BufferError, AttributeError) as e:
            raise BindingError(f"expected a DLPack object in host memory: {e}") from None

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: object) -> OrtValue:
        """Refuse: there are no sparse tensors."""
        raise BindingError("sparse tensors are not supported")

    def as_sparse_tensor(self) -> Any:
        """Refuse: there are no sparse tensors."""
        raise BindingError("sparse tensors are not supported")

    def _tensor(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise BindingError(f"expected a tensor, the value is a {self.data_type()}")
        return self._value

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return self._tensor().ctypes.data

    def device_name(self) -> str:
        """Return "cpu"."""
        return "cpu"

    def shape(self) -> list[int]:
        """Return the sizes of a tensor."""
        return list(self._tensor().shape)

    def data_type(self) -> str:
        """Return the type, such as "tensor(float)"."""
        return value_type(self._value)

    def element_type(self) -> int:
        """Return the number of ONNX's element type; for a sequence, of its tensors' type."""
        value = self._value
        while isinstance(value, list | tuple) and value:
            value = value[0]
        return element_number(value.dtype) if isinstance(value, np.ndarray) else 1

    def tensor_size_in_bytes(self) -> int:
        """Return the bytes of a tensor."""
        return self._tensor().nbytes

    def has_value(self) -> bool:
        """Return False for an optional that is absent."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Return whether the value is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """Return False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Return whether the value is a sequence of tensors."""
        value = self._value
        return isinstance(value, list | tuple) and not any(isinstance(v, dict) for v in value)

    def numpy(self) -> np.ndarray:
        """Return the tensor as an array over the same memory."""
        return self._tensor()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = np.asarray(self._tensor(), dtype=dtype)
        return found.copy() if copy and found is self._value else found

    def __dlpack__(self, **options: Any) -> Any:
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor().__dlpack_device__()

    def update_inplace(self, data: Any) -> None:
        """Copy an array or a value into this one, element by element in C order.

        Errors: BindingError for another type or number of elements.
        """
        if not isinstance(data, np.ndarray | OrtValue):
            raise TypeError(f"expected an array or an OrtValue, got {type(data).__name__}")
        source, own = np.asarray(data), self._tensor()
        if source.size != own.size or source.dtype.newbyteorder("=") != own.dtype:
            raise BindingError(
                f"expected {own.dtype.name}{list(own.shape)}, "
                f"got {source.dtype.name}{list(source.shape)}"
            )
        if not own.flags.writeable:
            raise BindingError("the value's memory is read-only")
        own[...] = source.reshape(own.shape)


OrtValueVector = list  # a class of its own in onnxruntime


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: object = None) -> None:
    """Copy each tensor of `src` into the tensor of `dst` at the same index."""
    if len(src) != len(dst):
        raise BindingError(f"expected {len(src)} values to copy to, got {len(dst)}")
    for source, own in zip(src, dst, strict=True):
        own.update_inplace(source)


def array_at(pointer: int, shape: Sequence[int], element_type: Any) -> np.ndarray:
    """Return an array over host memory. Errors: BindingError for a null address."""
    dtype, dims = array_dtype(element_type), [int(n) for n in shape]
    size = math.prod(dims) * dtype.itemsize
    if any(n < 0 for n in dims):
        raise BindingError(f"expected sizes, got {dims}")
    if not size:
        return np.zeros(dims, dtype)
    if not pointer:
        raise BindingError("expected an address, got 0")
    at = cast(Callable[[int], Any], (ctypes.c_char * size).from_address)
    return np.frombuffer(at(int(pointer)), np.uint8).view(dtype).reshape(dims)


def _contiguous(array: np.ndarray) -> np.ndarray:
    """Return the array in C order and the machine's byte order, a copy where it is in another."""
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return native if native.flags.c_contiguous else np.ascontiguousarray(native)


def _host(device_type: str, device_id: int, vendor_id: int) -> None:
    """Raise BindingError for a device other than the host."""
    if OrtDevice.make(device_type.lower(), device_id, vendor_id).device_type() != 0:
        raise BindingError(
            f"values are in host memory only, not on '{device_type}'",
            notes=["a session on a GPU copies its inputs and outputs itself"],
        )
