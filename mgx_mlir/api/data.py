"""Making arguments: from lists, constants, addresses, and MIGraphX's pseudo-random numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.api.argument import argument
from mgx_mlir.api.shape import shape
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.core.weight_files import read_weights
from mgx_mlir.programs.strided import array_over, holdable, laid_out

_MASK = np.uint64(0xFFFFFFFFFFFFFFFF)


def create_argument(s: shape, values: Sequence[Any]) -> argument:
    """Make an argument of shape `s` from values in the shape's logical order.

    Errors: ShapeError where the number of values is not the number of elements.
    """
    found = holdable(s._static())
    flat = np.asarray(values).reshape(-1)
    if flat.size != found.elements:
        raise ShapeError(f"expected {found.elements} values for {found}, got {flat.size}")
    if flat.size and flat.dtype.kind not in "biuf" and flat.dtype != found.dtype.np:
        raise ShapeError(f"expected numbers, got {flat.dtype}")
    return argument(array_over(laid_out(flat.astype(found.dtype.np), found), found))


def fill_argument(s: shape, value: Any) -> argument:
    """Make an argument whose elements are all `value`."""
    found = holdable(s._static())
    flat = np.full(found.elements, value).astype(found.dtype.np)
    return argument(array_over(laid_out(flat, found), found))


def generate_argument(s: shape, seed: int = 0) -> argument:
    """Make an argument of pseudo-random elements that depend on `seed` alone.

    MIGraphX's generator and ranges: floats in [-1, 1), signed integers of n bytes in half of
    2**(5n) either way, unsigned ones below 2**(5n), bools by the lowest bit.
    """
    found = holdable(s._static())
    buffer = aligned_empty((found.element_space,), found.dtype.np)
    buffer[...] = _scaled(random_words(found.element_space, seed), found.dtype)
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


def random_words(count: int, seed: int = 0) -> np.ndarray:
    """Return the first `count` 64-bit words of MIGraphX's xorshf96 generator.

    Word n+3 is A(word n) ^ word n+1 ^ word n+2, with A a linear map on bits (three xor-shifts).
    Over GF(2) the recurrence holds with all distances doubled and A squared. So each step extends
    the sequence by half of its length instead of by a word.
    """
    words = np.array([123456789, 362436069, 521288629 ^ (seed & 0xFFFFFFFFFFFFFFFF)], np.uint64)
    columns = _xorshift(np.uint64(1) << np.arange(64, dtype=np.uint64))
    step = 1
    while words.size < count + 3:
        while words.size < min(6 * step, count + 3):
            n = words.size - 3 * step
            made = _apply(columns, words[n : n + step])
            made ^= words[n + step : n + 2 * step] ^ words[n + 2 * step : n + 3 * step]
            words = np.concatenate([words, made])
        columns = _apply(columns, columns)
        step *= 2
    return words[3 : 3 + count]


def _xorshift(x: np.ndarray) -> np.ndarray:
    x = x ^ (x << np.uint64(16)) & _MASK
    x = x ^ (x >> np.uint64(5))
    return x ^ (x << np.uint64(1)) & _MASK


def _apply(columns: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Apply a linear map on bits to words; `columns` are the images of the single bits."""
    out = np.zeros_like(x)
    for byte in range(8):
        table = np.zeros(256, np.uint64)
        for bit in range(8):
            table[1 << bit : 2 << bit] = table[: 1 << bit] ^ columns[8 * byte + bit]
        out ^= table[(x >> np.uint64(8 * byte)) & np.uint64(255)]
    return out


def _scaled(words: np.ndarray, dtype: DType) -> np.ndarray:
    """Convert random words to elements of a type."""
    if dtype.is_bool:
        return (words & np.uint64(1)).astype(np.bool_)
    if dtype.is_float:
        fraction = (words % np.uint64(32768)).astype(np.float64) / 16384 - 1
        return np.where(words == 0, 0.0, fraction).astype(dtype.np)
    top = 1 << (5 * dtype.size)
    rest = (words % np.uint64(top)).astype(np.int64)
    return (rest if dtype.is_unsigned else top // 2 - rest).astype(dtype.np)
