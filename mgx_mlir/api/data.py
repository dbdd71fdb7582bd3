"""Making arguments: from lists, constants, addresses, and MIGraphX's pseudo-random numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.api.argument import argument
from mgx_mlir.api.shape import shape
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.core.random_numbers import random_elements
from mgx_mlir.core.weight_files import read_weights
from mgx_mlir.programs.layout import Shape
from mgx_mlir.programs.strided import array_over, holdable, laid_out


def _held(s: shape) -> Shape:
    """Return a static shape that memory can hold. Errors: ShapeError."""
    if not isinstance(s, shape):
        raise ShapeError(
            f"expected a shape, got {type(s).__name__}", notes=['shape(type="float", lens=[2, 3])']
        )
    return holdable(s._static())


def create_argument(s: shape, values: Sequence[Any]) -> argument:
    """Make an argument of shape `s` from values in the shape's logical order.

    Errors: ShapeError where the number of values is not the number of elements.
    """
    found = _held(s)
    flat = np.asarray(values).reshape(-1)
    if flat.size != found.elements:
        raise ShapeError(f"expected {found.elements} values for {found}, got {flat.size}")
    if flat.size and flat.dtype.kind not in "biuf" and flat.dtype != found.dtype.np:
        raise ShapeError(f"expected numbers, got {flat.dtype}")
    return argument(array_over(laid_out(flat.astype(found.dtype.np), found), found))


def fill_argument(s: shape, value: Any) -> argument:
    """Make an argument whose elements are all `value`."""
    found = _held(s)
    flat = np.full(found.elements, value).astype(found.dtype.np)
    return argument(array_over(laid_out(flat, found), found))


def generate_argument(s: shape, seed: int = 0) -> argument:
    """Make an argument of pseudo-random elements that depend on `seed` alone.

    MIGraphX's generator and ranges: floats in [-1, 1), signed integers of n bytes in half of
    2**(5n) either way, unsigned ones below 2**(5n), bools by the lowest bit.
    """
    found = _held(s)
    buffer = aligned_empty((found.element_space,), found.dtype.np)
    buffer[...] = random_elements(found.element_space, found.dtype, seed)
    return argument(array_over(buffer, found))


def load_weights(filename: str | os.PathLike[str]) -> dict[str, argument]:
    """Read arrays by name, from an .npz that `to_py(weights=...)` wrote, or from an .onnx file. Of
    an .onnx these are the floats in external data: the parameters of
    `external_weights_as_parameters`.

    Errors: FileError, ModelError.
    """
    if os.fspath(filename).endswith(".onnx"):
        # start-up: only the frontend that the file needs
        from mgx_mlir.frontends.onnx.outside import read_outside_weights

        return {k: argument(a) for k, a in read_outside_weights(filename).items()}
    return {k: argument(a) for k, a in read_weights(os.fspath(filename)).items()}


def argument_from_pointer(shape: shape, address: int) -> argument:
    """Make an argument over memory at an address, without a copy. The caller keeps it alive.

    A program for gpu takes it as device memory if the device knows the address. Any other program
    takes it as host memory. Errors: ShapeError for address 0.
    """
    return argument.at(int(address), holdable(shape._static()))
