"""Element types that the dialect lacks, and their representation in a program.

4-bit integers are kept as i8, 4-bit floats as an 8-bit float type that has all of their values.
Inputs and outputs of a program name the model's type (`migraphx.element`), so that users pass and
get arrays of that type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType

ELEMENT = "migraphx.element"  # argument and result attribute: the name of the model's type


@dataclass(frozen=True)
class Narrow:
    """An element type: `bits` wide in a file, `held` in a program, `np` in an array.

    A float type has `mantissa` bits, normal exponents `least` to `most`, and the largest value
    `top`.
    """

    name: str
    onnx: int
    bits: int
    held: DType
    np: np.dtype
    mantissa: int = 0
    least: int = 0
    most: int = 0
    top: float = 0.0

    @property
    def is_integer(self) -> bool:
        return self.held.is_integer

    @property
    def low(self) -> int:
        """The smallest number of an integer type."""
        return -(1 << (self.bits - 1)) if self.held.is_signed else 0

    @property
    def high(self) -> int:
        """The largest number of an integer type."""
        return (1 << (self.bits - self.held.is_signed)) - 1


def _row(name: str, onnx: int, bits: int, held: DType, np_type: DTypeLike, **form: Any) -> Narrow:
    return Narrow(name, onnx, bits, held, np.dtype(np_type), **form)


NARROW: tuple[Narrow, ...] = (
    _row("uint4", 21, 4, dtypes.UINT8, ml_dtypes.uint4),
    _row("int4", 22, 4, dtypes.INT8, ml_dtypes.int4),
    _row("float4e2m1", 23, 4, dtypes.FP8E4M3FN, ml_dtypes.float4_e2m1fn,
         mantissa=1, least=0, most=2, top=6.0),
    _row("float8e8m0", 24, 8, dtypes.FLOAT, ml_dtypes.float8_e8m0fnu),
    _row("uint2", 25, 2, dtypes.UINT8, ml_dtypes.uint2),
    _row("int2", 26, 2, dtypes.INT8, ml_dtypes.int2),
    _row("float6e2m3", 27, 6, dtypes.FP8E4M3FN, ml_dtypes.float6_e2m3fn,
         mantissa=3, least=0, most=2, top=7.5),
    _row("float6e3m2", 28, 6, dtypes.FP8E4M3FN, ml_dtypes.float6_e3m2fn,
         mantissa=2, least=-2, most=4, top=28.0),
)  # fmt: skip
BY_ONNX = {n.onnx: n for n in NARROW}
BY_NAME = {n.name: n for n in NARROW}


def held_array(array: np.ndarray, kind: Narrow) -> np.ndarray:
    """Convert an array of the type to the program's representation."""
    return array.astype(kind.held.np)


def stated_array(array: np.ndarray, kind: Narrow) -> np.ndarray:
    """Convert a program's representation to an array of the type."""
    wide = array.astype(np.float32) if array.dtype.itemsize == 1 and not kind.is_integer else array
    return wide.astype(kind.np)


def unpacked(raw: np.ndarray, count: int, kind: Narrow) -> np.ndarray:
    """Unpack `count` values (the first in the lowest bits) to the program's representation."""
    if kind.bits == 8:
        codes = raw[:count]
    elif kind.bits == 6:  # four in three bytes
        whole = np.zeros(-(-raw.size // 3) * 3, np.uint32)
        whole[: raw.size] = raw
        word = whole[0::3] | whole[1::3] << 8 | whole[2::3] << 16
        codes = np.stack([word >> (6 * i) & 63 for i in range(4)], -1).reshape(-1)[:count]
    else:
        step, mask = kind.bits, (1 << kind.bits) - 1
        parts = [raw >> np.uint8(i) & np.uint8(mask) for i in range(0, 8, step)]
        codes = np.stack(parts, -1).reshape(-1)[:count]
    codes = codes.astype(np.uint8)
    if kind.is_integer and kind.held.is_signed:
        half = 1 << (kind.bits - 1)
        return (codes.astype(np.int8) ^ np.int8(half)) - np.int8(half)
    if kind.is_integer:
        return codes
    return codes.view(kind.np).astype(np.float32).astype(kind.held.np)


def packed_bytes(count: int, kind: Narrow) -> int:
    """Return how many bytes `count` packed values take."""
    return (count * kind.bits + 7) // 8


__all__ = [
    "BY_NAME",
    "BY_ONNX",
    "ELEMENT",
    "NARROW",
    "Narrow",
    "held_array",
    "packed_bytes",
    "stated_array",
    "unpacked",
]
