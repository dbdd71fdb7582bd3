"""`argument`: data with a shape, an input or a result of programs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mgx_mlir.api.shape import shape
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ShapeError, UsageError
from mgx_mlir.frontends.mxr.reader import load_argument
from mgx_mlir.printers.text import element_texts
from mgx_mlir.printers.value_tree import ArrayTree, save_argument
from mgx_mlir.programs.layout import Shape, TupleShape
from mgx_mlir.programs.strided import array_over, shape_of_array

if TYPE_CHECKING:
    from mgx_mlir.runtime.device_memory import DeviceTensor


class argument:
    """A tensor's data, or a tuple of arguments.

    Made from anything with the buffer protocol or `__array__`, without a copy. Reads as a numpy
    array (`np.array(a)`, `np.asarray(a)`); `memoryview(a)` works from Python 3.12 on, below it
    `memoryview(np.asarray(a))` is over the same memory. `pointer` is the address and shape of an
    argument that `argument_from_pointer` made. Whether that is a device's memory is decided when a
    program runs.
    """

    pointer: tuple[int, Shape] | None = None
    _parts: tuple[argument, ...] | None = None
    _tensor: DeviceTensor | None = None

    def __init__(self, data: object) -> None:
        if isinstance(data, argument):
            self._array, self._parts, self._tensor = data._array, data._parts, data._tensor
            self.pointer = data.pointer
            return
        self._array = array_of(data)

    @staticmethod
    def on_device(tensor: DeviceTensor) -> argument:
        """Wrap a tensor that is in a device's memory."""
        made = argument.__new__(argument)
        made._array, made._tensor = tensor.shadow, tensor
        return made

    @property
    def device_tensor(self) -> DeviceTensor | None:
        """Buffer in a device's memory; None for an argument in host memory."""
        return self._tensor

    @staticmethod
    def of_array(array: np.ndarray) -> argument:
        """Wrap an array whose element type programs support."""
        made = argument.__new__(argument)
        made._array = array
        return made

    @staticmethod
    def at(address: int, s: Shape) -> argument:
        """Wrap memory at an address, of this process or of a device."""
        made = argument.of_array(array_at(address, s))
        made.pointer = (address, s)
        return made

    @staticmethod
    def tuple_of(parts: Sequence[argument]) -> argument:
        """Make a tuple of arguments."""
        made = argument.__new__(argument)
        made._array, made._parts = None, tuple(parts)
        return made

    @property
    def array(self) -> np.ndarray:
        """The data as a numpy array that shares its memory; ShapeError for a tuple."""
        if self._parts is not None:
            raise ShapeError("expected a tensor, got a tuple", notes=["see get_sub_objects()"])
        if self._tensor is not None:
            raise UsageError("the argument is in a device's memory", notes=["from_gpu copies it"])
        if self.pointer is not None:
            address, nbytes = self.pointer[0], self.pointer[1].element_space * self._array.itemsize
            if nbytes and not (is_readable(address) and is_readable(address + nbytes - 1)):
                raise UsageError(
                    f"this process cannot read the argument's memory at {address:#x}",
                    notes=["pass device memory to a program compiled for gpu"],
                )
        return self._array

    def get_shape(self) -> shape:
        """Return the shape; of a tuple, a tuple shape."""
        if self._parts is not None:
            parts = tuple(p.get_shape()._shape for p in self._parts)
            return shape.of(TupleShape(parts))
        if self._tensor is not None:
            return shape.of(Shape.standard(self._tensor.dtype, self._tensor.dims))
        return shape.of(shape_of_array(self._array))

    def get_sub_objects(self) -> list[argument]:
        """Return the parts of a tuple; an empty list for a tensor."""
        return list(self._parts or ())

    def data_ptr(self) -> int:
        """Return the address of the first element, in host or device memory."""
        if self._tensor is not None:
            return self._tensor.address()
        return self.pointer[0] if self.pointer is not None else self.array.ctypes.data

    def tolist(self) -> list[Any]:
        """Return all elements in logical order, as Python numbers."""
        flat = self.array.reshape(-1)
        plain = dtypes.is_numpys(flat.dtype)
        return flat.tolist() if plain else flat.astype(np.float64).tolist()

    @staticmethod
    def save(arg: argument, filename: str | os.PathLike[str]) -> None:
        """Write an argument as MIGraphX does (msgpack of shape and data)."""
        save_argument(tree_parts(arg), filename)

    @staticmethod
    def load(filename: str | os.PathLike[str]) -> argument:
        """Read what `save` wrote; FileError for anything else."""
        return from_parts(load_argument(filename))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        plain = self._tensor is None and self._parts is None and self.pointer is None
        found = self._array if plain else self.array
        if dtype is not None and np.dtype(dtype) != found.dtype:
            if copy is False:
                raise ValueError("a change of dtype needs a copy")
            return found.astype(dtype)
        return found.copy() if copy else found

    def __buffer__(self, flags: int) -> memoryview:
        return self.array.data

    def __dlpack__(self, **options: Any) -> Any:
        if self._tensor is not None:
            wanted = options.get("dl_device")
            if wanted not in (None, self._tensor.dlpack_device) or options.get("copy"):
                raise BufferError("memory of a GPU is shared as it is: from_gpu copies it")
            # ready: a call returns when its results are complete
            return self._tensor.dlpack()
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self._tensor is not None:
            return self._tensor.dlpack_device
        return self.array.__dlpack_device__()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, argument):
            return NotImplemented
        if self._parts is not None or other._parts is not None:
            return self._parts == other._parts
        a, b = self.array, other.array
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(np.array_equal(a, b))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self._parts is not None:
            return "[" + ", ".join(map(repr, self._parts)) + "]"
        if self._tensor is not None:
            return f"<{self.get_shape()} on {self._tensor.device}>"
        return "{" + ", ".join(element_texts(self._array)) + "}"


def array_of(data: Any) -> np.ndarray:
    """Return a numpy array over a buffer, without a copy where possible."""
    if type(data) is np.ndarray:
        found: np.ndarray = data
    elif isinstance(data, argument):
        return data.array
    elif isinstance(data, np.ndarray | np.generic) or hasattr(data, "__array__"):
        found = np.asarray(data)
    else:
        try:
            found = np.asarray(memoryview(data))
        except TypeError:
            raise ShapeError(
                f"expected data with the buffer protocol, got {type(data).__name__}",
                notes=["make one with numpy.array, or with create_argument(shape, list)"],
            ) from None
    if not found.dtype.isnative:
        found = found.astype(found.dtype.newbyteorder("="))
    dtypes.from_numpy(found.dtype)
    return found


def array_at(address: int, s: Shape) -> np.ndarray:
    """Return an array over memory at an address. The caller keeps the memory alive."""
    nbytes = s.element_space * s.dtype.size
    if nbytes and not address:
        raise ShapeError("expected the address of the data, got 0")
    raw = (ctypes.c_uint8 * nbytes).from_address(address)
    return array_over(np.frombuffer(memoryview(raw), np.uint8).view(s.dtype.np), s)


def is_readable(address: int) -> bool:
    """Return whether this process can read a byte; a system call finds out, so that a bad address
    cannot crash.
    """
    if os.name != "posix":
        return True
    read, write = os.pipe()
    try:
        os.write(write, memoryview((ctypes.c_uint8 * 1).from_address(address)))
    except OSError:
        return False
    finally:
        os.close(read)
        os.close(write)
    return True


def tree_parts(arg: argument) -> ArrayTree:
    """Convert an argument to an array, or to a tuple of such trees."""
    parts = arg.get_sub_objects()
    return tuple(tree_parts(p) for p in parts) if arg._parts is not None else arg.array


def from_parts(value: ArrayTree) -> argument:
    """Convert the result of `tree_parts` back to an argument."""
    if isinstance(value, tuple):
        return argument.tuple_of([from_parts(v) for v in value])
    return argument(value)
