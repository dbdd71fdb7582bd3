"""Weights of .gguf files as codes of 4 and 8 bits with a scale and an offset for each block.

Codes are what gguf's `dequantize` makes of blocks whose scales are 1 and whose minima are 0. Places
of scales and minima: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

# gguf and transformers are extras, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

MIDDLE = 8  # code of 0 in 4 bits without offsets
_PIECE = 1 << 20  # weights that are taken apart at a time
_HALF_ONE = np.frombuffer(np.float16(1).tobytes(), np.uint8)
# twelve bytes of Q4_K and Q5_K: eight scales of 1 and eight minima of 0, or all of both 0
_SCALES_OF_ONE = np.repeat(np.array([1, 0, 1], np.uint8), 4)


@dataclass(frozen=True)
class Blocks:
    """A matrix N x K whose element is scale * (code - middle) + offset, computed in f32.

    codes: (N, K), ui8 of 0 .. 15 for 4 bits, i8 for 8. scales, offsets: (N, K / size) in f32.
    Without offsets the middle is 8 for 4 bits, else 0.
    """

    codes: np.ndarray
    bits: int
    size: int
    scales: np.ndarray
    offsets: np.ndarray | None = None

    def dense(self) -> np.ndarray:
        """Return the matrix in f32, each element rounded as gguf's `dequantize` does."""
        parts = self.codes.reshape(*self.scales.shape, self.size).astype(np.float32)
        if self.offsets is None and self.bits == 4:
            parts -= MIDDLE
        parts *= self.scales[..., None]
        if self.offsets is not None:
            parts += self.offsets[..., None]
        return parts.reshape(self.codes.shape)

    def with_zero_points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return codes, scales and zero points: an element is scale * (code - zero point).

        A zero point is -offset / scale, rounded to f32: elements are off by less than two units in
        the last place of the larger of offset and element. Equal weights have scale 0 in the file;
        their common value becomes the scale, 1 above a zero point of -1.
        """
        if self.offsets is None:
            return self.codes, self.scales, None
        equal = self.scales == 0
        scales = np.where(equal, self.offsets, self.scales)
        zeros = -self.offsets / np.where(equal, np.float32(1), self.scales)
        zeros = np.where(equal, np.float32(-1), zeros).astype(np.float32)
        codes = self.codes.reshape(*equal.shape, self.size) * ~equal[..., None]
        return codes.reshape(self.codes.shape).astype(self.codes.dtype), scales, zeros

    def rows(self, order: np.ndarray) -> Blocks:
        """Return the matrix of these rows."""
        offsets = None if self.offsets is None else self.offsets[order]
        return replace(self, codes=self.codes[order], scales=self.scales[order], offsets=offsets)


@dataclass(frozen=True)
class _Form:
    """A type of gguf: bits of its codes, elements that share a scale, what is added to codes.

    ones: places of a block and the bytes by which each scale becomes 1 and each minimum 0.
    numbers: scales, and minima or None, of blocks in rows.
    """

    bits: int
    size: int
    shift: int
    ones: tuple[tuple[slice, Any], ...]
    numbers: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]]


_D, _M = slice(0, 2), slice(2, 4)
_S = slice(4, 16)  # scales and minima of the eight parts of Q4_K and Q5_K


def _half(blocks: np.ndarray, place: slice) -> np.ndarray:
    return np.ascontiguousarray(blocks[:, place]).view("<f2").astype(np.float32)


def _scale(blocks: np.ndarray) -> tuple[np.ndarray, None]:
    return _half(blocks, _D), None


def _scale_and_minimum(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _half(blocks, _D), _half(blocks, _M)


def _of_eight(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from gguf.quants import Q4_K

    scales, minima = Q4_K.get_scale_min(np.ascontiguousarray(blocks[:, _S]))
    return _half(blocks, _D) * scales, -(_half(blocks, _M) * minima)


def _of_sixteen(blocks: np.ndarray) -> tuple[np.ndarray, None]:
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    return _half(blocks, slice(208, 210)) * scales, None


_ONE = (_D, _HALF_ONE)
_ONES = (_ONE, (_M, 0))
_FORMS = {
    "Q4_0": _Form(4, 32, MIDDLE, (_ONE,), _scale),
    "Q4_1": _Form(4, 32, 0, _ONES, _scale_and_minimum),
    "Q5_0": _Form(8, 32, 0, (_ONE,), _scale),
    "Q5_1": _Form(8, 32, 0, _ONES, _scale_and_minimum),
    "Q8_0": _Form(8, 32, 0, (_ONE,), _scale),
    "Q4_K": _Form(4, 32, 0, (*_ONES, (_S, _SCALES_OF_ONE)), _of_eight),
    "Q5_K": _Form(8, 32, 0, (*_ONES, (_S, _SCALES_OF_ONE)), _of_eight),
    "Q6_K": _Form(
        8, 16, 0, ((slice(192, 208), 1), (slice(208, 210), _HALF_ONE)), _of_sixteen
    ),
}  # fmt: skip


def held(kind: str) -> bool:
    """Return whether a type of gguf has codes of 4 or 8 bits in blocks."""
    return kind in _FORMS


def blocks_of(raw: np.ndarray, kind: str) -> Blocks:
    """Take the bytes of a matrix apart: (N, bytes of a row), of a type that is `held`."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    form, number = _FORMS[kind], GGMLQuantizationType[kind]
    elements, size = GGML_QUANT_SIZES[number]
    rows, columns = len(raw), raw.shape[1] // size * elements
    codes = np.empty((rows, columns), np.uint8 if form.bits == 4 else np.int8)
    scales, offsets = form.numbers(raw.reshape(-1, size))
    step = max(1, _PIECE // columns)
    for at in range(0, rows, step):
        part = raw[at : at + step]
        blocks = part.reshape(-1, size).copy()
        for place, value in form.ones:
            blocks[:, place] = value
        codes[at : at + step] = dequantize(blocks.reshape(part.shape), number) + form.shift
    scales = scales.reshape(rows, -1)
    offsets = None if offsets is None else offsets.reshape(rows, -1)
    return Blocks(codes, form.bits, form.size, scales, offsets)
