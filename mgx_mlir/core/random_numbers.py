"""MIGraphX's pseudo-random numbers."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import DType

_MASK = np.uint64(0xFFFFFFFFFFFFFFFF)


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


def random_elements(count: int, dtype: DType, seed: int = 0) -> np.ndarray:
    """Return pseudo-random elements of a type, in MIGraphX's ranges."""
    words = random_words(count, seed)
    if dtype.is_bool:
        return (words & np.uint64(1)).astype(np.bool_)
    if dtype.is_float:
        fraction = (words % np.uint64(32768)).astype(np.float64) / 16384 - 1
        return np.where(words == 0, 0.0, fraction).astype(dtype.np)
    top = 1 << (5 * dtype.size)
    rest = (words % np.uint64(top)).astype(np.int64)
    return (rest if dtype.is_unsigned else top // 2 - rest).astype(dtype.np)


__all__ = ["random_elements", "random_words"]
