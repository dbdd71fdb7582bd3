"""Weights of .gguf files in blocks of 4 and 8 bits.

Codes are the results of gguf's `dequantize` for blocks whose scales are 1 and whose minima are 0.
Offsets of scales and minima in a block:
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h
"""

# gguf and transformers are extras, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.text.blocks import BlockWeights, packed

Floats = NDArray[np.float32]

_PIECE = 1 << 20  # weights converted at a time
_HALF_ONE = np.frombuffer(np.float16(1).tobytes(), np.uint8)
# twelve bytes of Q4_K and Q5_K for which the eight scales are 1 and the eight minima 0
_SCALES_OF_ONE = np.repeat(np.array([1, 0, 1], np.uint8), 4)


@dataclass(frozen=True)
class _Form:
    """A block type of gguf: bits of a code, elements per scale, the code of weight 0 without
    minima.

    ones: byte ranges of a block, with the bytes that make each scale 1 and each minimum 0.
    numbers: function of rows of blocks to their scales, and their minima or None.
    """

    bits: Literal[4, 8]
    size: int
    middle: int
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
    "Q4_0": _Form(4, 32, 8, (_ONE,), _scale),
    "Q4_1": _Form(4, 32, 0, _ONES, _scale_and_minimum),
    "Q5_0": _Form(8, 32, 128, (_ONE,), _scale),
    "Q5_1": _Form(8, 32, 0, _ONES, _scale_and_minimum),
    "Q8_0": _Form(8, 32, 128, (_ONE,), _scale),
    "Q4_K": _Form(4, 32, 0, (*_ONES, (_S, _SCALES_OF_ONE)), _of_eight),
    "Q5_K": _Form(8, 32, 0, (*_ONES, (_S, _SCALES_OF_ONE)), _of_eight),
    "Q6_K": _Form(
        8, 16, 128, ((slice(192, 208), 1), (slice(208, 210), _HALF_ONE)), _of_sixteen
    ),
}  # fmt: skip


def held(kind: str) -> bool:
    """Return whether `blocks_of` supports a type of gguf: 4- or 8-bit codes in blocks."""
    return kind in _FORMS


def blocks_of(raw: np.ndarray, kind: str) -> BlockWeights:
    """Convert the bytes {rows, bytes of a row} of a matrix of a `held` type to block weights.

    Without minima weights are equal to those of `dequantize`. With minima they are within 2 units
    in the last place of the larger of weight and minimum, as zero points are rounded to f32.
    """
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    form, number = _FORMS[kind], GGMLQuantizationType[kind]
    elements, size = GGML_QUANT_SIZES[number]
    rows, columns = len(raw), raw.shape[1] // size * elements
    codes = np.empty((rows, columns * form.bits // 8), np.uint8)
    scales, offsets = form.numbers(raw.reshape(-1, size))
    step = max(1, _PIECE // columns)
    for at in range(0, rows, step):
        part = raw[at : at + step]
        blocks = part.reshape(-1, size).copy()
        for place, value in form.ones:
            blocks[:, place] = value
        whole = (dequantize(blocks.reshape(part.shape), number) + form.middle).astype(np.uint8)
        codes[at : at + step] = packed(whole) if form.bits == 4 else whole
    scales, zeros = scales.reshape(rows, -1), None
    if offsets is not None:
        scales, zeros = _zero_points(scales, offsets.reshape(rows, -1))
    codes = codes.reshape(*scales.shape, -1)
    return BlockWeights(codes, scales, zeros, columns, form.bits, form.size)


def _zero_points(scales: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return scales and zero points: scale * code + offset is scale * (code - zero point).

    Zero points are rounded to f32. Equal weights have scale 0, and codes of 0, in the file: their
    value becomes the scale, 1 above a zero point of -1.
    """
    equal = scales == 0
    zeros = np.where(equal, np.float32(-1), -offsets / np.where(equal, np.float32(1), scales))
    return np.where(equal, offsets, scales), zeros
