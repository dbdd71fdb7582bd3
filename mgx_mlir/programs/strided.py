"""Arrays over memory in a shape's order: strided, transposed and broadcast."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.programs.layout import Shape

# limits of numpy's arrays
_RANK, _BYTES = 64, 1 << 62


def shape_of_array(array: np.ndarray) -> Shape:
    """Return the shape of an array, its strides in elements."""
    dtype = dtypes.from_numpy(array.dtype)
    size = array.itemsize
    regular = all(s >= 0 and s % size == 0 for s in array.strides)
    if not regular or array.flags.c_contiguous:
        return Shape.standard(dtype, array.shape)
    return Shape(dtype, array.shape, tuple(s // size for s in array.strides))


def own_strides(array: np.ndarray) -> tuple[int, ...] | None:
    """Return the strides of an array in elements, None if they are row-major."""
    found = shape_of_array(array)
    return None if found.is_standard or not found.dims else found.strides


def holdable(s: Shape) -> Shape:
    """Return the shape if an array can have it. Errors: ShapeError, for rank and size."""
    if len(s.dims) > _RANK:
        raise ShapeError(f"expected rank {_RANK} or less, got {len(s.dims)}")
    if any(n > _BYTES for n in s.lens) or (s.element_space + 1) * s.dtype.size > _BYTES:
        raise ShapeError(f"{s} has more elements than an array can hold")
    return s


def array_over(buffer: ArrayLike, s: Shape) -> np.ndarray:
    """Return a view of a flat array of the shape's element space with the shape's strides."""
    flat = np.asarray(buffer)
    if not s.dims:
        return flat[:1].reshape(())
    if s.is_standard or s.elements == 0:
        return flat[: s.elements].reshape(s.lens)
    steps = [x * flat.itemsize for x in s.strides]
    raw = flat.view(f"u{flat.itemsize}")  # numpy does not know the names of all types
    return np.lib.stride_tricks.as_strided(raw, s.lens, steps).view(flat.dtype)


def laid_out(array: np.ndarray, s: Shape) -> np.ndarray:
    """Copy `array` to flat memory of the shape's element space, in the shape's layout.

    `array` holds the elements in logical order. ShapeError if elements that share an address
    differ.
    """
    if s.is_standard or not s.dims:
        return np.ascontiguousarray(array).reshape(-1)
    wanted = np.ascontiguousarray(array).reshape(s.lens)
    buffer = np.zeros(s.element_space, array.dtype)
    view = array_over(buffer, s)
    view[...] = wanted
    if s.element_space < s.elements and view.tobytes() != wanted.tobytes():
        raise ShapeError(f"elements that share an address in {s} differ")
    return buffer
