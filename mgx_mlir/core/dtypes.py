"""The table of element types: names in MIGraphX, MLIR, numpy and ONNX, and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, cast

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir


@dataclass(frozen=True)
class DType:
    """An element type. `number` is MIGraphX's enum value, `onnx` ONNX's; `size` is in bytes."""

    name: str
    short: str
    number: int
    mlir: str
    np: np.dtype
    onnx: int
    kind: str  # "bool", "signed", "unsigned", "float"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.np.itemsize

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "unsigned"

    @property
    def is_signed(self) -> bool:
        return self.kind == "signed"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def bits(self) -> int:
        """Significant bits: 1 for bool."""
        return 1 if self.is_bool else 8 * self.size

    @property
    def is_low_precision(self) -> bool:
        """A 16- or 8-bit float, computed in f32 by every reference and every accumulation."""
        return self.is_float and self.size < 4

    def ir_type(self) -> ir.Type:
        """Return the MLIR element type in the current context."""
        return ir.Type.parse(self.mlir)

    def lowest(self) -> float | int:
        """Return the smallest value: -inf for floats that have it, else the smallest finite one."""
        if self.is_bool:
            return 0
        if self.is_integer:
            return int(np.iinfo(self.np).min)
        return float("-inf") if self.has_infinity else _finite(self.np)[0]

    def highest(self) -> float | int:
        """Return the largest value: inf for floats that have it, else the largest finite one."""
        if self.is_bool:
            return 1
        if self.is_integer:
            return int(np.iinfo(self.np).max)
        return float("inf") if self.has_infinity else _finite(self.np)[1]

    @property
    def has_infinity(self) -> bool:
        """A float type with infinities; the others saturate or give NaN."""
        return self.is_float and self.short not in ("fp8e4m3fnuz", "fp8e4m3fn", "fp8e5m2fnuz")

    def __str__(self) -> str:
        return self.name


class FloatInfo(Protocol):
    """Interface of numpy's and ml_dtypes' descriptions of a float type."""

    nmant: int
    min: np.floating
    max: np.floating
    smallest_normal: np.floating
    smallest_subnormal: np.floating


def float_info(dtype: np.dtype) -> FloatInfo:
    """Return the limits of a float type; ml_dtypes' class does not annotate them."""
    return cast(FloatInfo, ml_dtypes.finfo(dtype))


def _finite(dtype: np.dtype) -> tuple[float, float]:
    """Return the least and the greatest finite value of a float type."""
    info = float_info(dtype)
    return float(info.min), float(info.max)


def _row(
    short: str,
    number: int,
    mlir: str,
    np_type: DTypeLike,
    onnx: int,
    kind: str,
    name: str | None = None,
) -> DType:
    return DType(name or f"{short}_type", short, number, mlir, np.dtype(np_type), onnx, kind)


BOOL = _row("bool", 0, "i1", np.bool_, 9, "bool")
HALF = _row("half", 1, "f16", np.float16, 10, "float")
FLOAT = _row("float", 2, "f32", np.float32, 1, "float")
DOUBLE = _row("double", 3, "f64", np.float64, 11, "float")
UINT8 = _row("uint8", 4, "ui8", np.uint8, 2, "unsigned")
INT8 = _row("int8", 5, "i8", np.int8, 3, "signed")
UINT16 = _row("uint16", 6, "ui16", np.uint16, 4, "unsigned")
INT16 = _row("int16", 7, "i16", np.int16, 5, "signed")
INT32 = _row("int32", 8, "i32", np.int32, 6, "signed")
INT64 = _row("int64", 9, "i64", np.int64, 7, "signed")
UINT32 = _row("uint32", 10, "ui32", np.uint32, 12, "unsigned")
UINT64 = _row("uint64", 11, "ui64", np.uint64, 13, "unsigned")
FP8E4M3FNUZ = _row("fp8e4m3fnuz", 12, "f8E4M3FNUZ", ml_dtypes.float8_e4m3fnuz, 18, "float")
FP8E4M3FN = _row("fp8e4m3fn", 13, "f8E4M3FN", ml_dtypes.float8_e4m3fn, 17, "float")
FP8E5M2 = _row("fp8e5m2", 14, "f8E5M2", ml_dtypes.float8_e5m2, 19, "float")
BF16 = _row("bf16", 15, "bf16", ml_dtypes.bfloat16, 16, "float")
FP8E5M2FNUZ = _row("fp8e5m2fnuz", 16, "f8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz, 20, "float")

DTYPES: tuple[DType, ...] = (
    BOOL, HALF, FLOAT, DOUBLE, UINT8, INT8, UINT16, INT16, INT32, INT64, UINT32, UINT64,
    FP8E4M3FNUZ, FP8E4M3FN, FP8E5M2, BF16, FP8E5M2FNUZ,
)  # fmt: skip
FLOATS = tuple(d for d in DTYPES if d.is_float)
INTEGERS = tuple(d for d in DTYPES if d.is_integer)

# two 4-bit floats in a byte; has a name and a number, and is ui8 in programs
FP4X2 = _row("fp4x2", 18, "ui8", np.uint8, 0, "unsigned")

_BY_MLIR = {d.mlir: d for d in DTYPES}
_BY_NAME = {
    **{n: d for d in DTYPES for n in (d.name, d.short, d.mlir)},
    **dict.fromkeys((FP4X2.name, FP4X2.short), FP4X2),
    **{f"{d.short}_t": d for d in INTEGERS},  # C's spelling, which MIGraphX accepts
}
_BY_ONNX = {d.onnx: d for d in DTYPES}
_BY_NUMBER = {d.number: d for d in (*DTYPES, FP4X2)}
_BY_NUMPY = {d.np: d for d in DTYPES}


# types by class, width and signedness: printing a type takes 3 us, and verifying asks each value;
# names of classes, since the bindings may not be loaded
_BY_CLASS: dict[str, DType] = {
    "F16Type": HALF,
    "BF16Type": BF16,
    "F32Type": FLOAT,
    "F64Type": DOUBLE,
    "Float8E4M3FNType": FP8E4M3FN,
    "Float8E4M3FNUZType": FP8E4M3FNUZ,
    "Float8E5M2Type": FP8E5M2,
    "Float8E5M2FNUZType": FP8E5M2FNUZ,
}
_INTEGERS = {(d.bits, d.is_unsigned): d for d in (BOOL, *INTEGERS)}


def is_numpys(dtype: np.dtype) -> bool:
    """Return whether numpy itself defines a type, so that its files and methods know it.

    ml_dtypes registers float8_e5m2 as kind "f" and its other types as kind "V".
    """
    return dtype.isbuiltin == 1


def from_mlir(t: ir.Type | str) -> DType:
    """Return the DType of an MLIR element type."""
    known = _BY_CLASS.get(t.__class__.__name__)
    if known is None and isinstance(t, ir.IntegerType) and not t.is_signed:
        known = _INTEGERS.get((t.width, t.is_unsigned))
    if known is not None:
        return known
    text = t if isinstance(t, str) else str(t)
    found = _BY_MLIR.get(text)
    if found is None:
        known = ", ".join(_BY_MLIR)
        raise ShapeError(f"element type {text} is not supported, expected one of {known}")
    return found


def from_numpy(dtype: DTypeLike) -> DType:
    """Return the DType of a numpy (or ml_dtypes) dtype."""
    found = _BY_NUMPY.get(dtype) if isinstance(dtype, np.dtype) else None
    if found is None:
        found = _BY_NUMPY.get(np.dtype(dtype).newbyteorder("="))
    if found is None:
        raise ShapeError(f"numpy dtype {np.dtype(dtype)} has no element type here")
    return found


def from_onnx(number: int) -> DType:
    """Return the DType of an ONNX TensorProto.DataType value."""
    found = _BY_ONNX.get(int(number))
    if found is None:
        raise ShapeError(f"ONNX element type {number} is not supported")
    return found


def from_name(name: str) -> DType:
    """Return the DType of a name in any spelling: float_type, float, f32, int8_t."""
    found = _BY_NAME.get(name)
    if found is None:
        known = ", ".join(d.short for d in DTYPES)
        raise ShapeError(f"unknown type '{name}', expected one of {known}")
    return found


def from_number(number: int) -> DType:
    """Return the DType of MIGraphX's enum value."""
    found = _BY_NUMBER.get(int(number))
    if found is None:
        raise ShapeError(f"type number {number} is not supported")
    return found
