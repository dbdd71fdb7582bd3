"""Conversions of 8-bit floats by integer arithmetic, for NVIDIA: IREE makes none for its GPUs.

arith.truncf f32 -> f8, arith.extf f8 -> f32  ->  operations on bits and on f32

A conversion inside of a matmul for matrix instructions stays, as they read the bytes. Rounding is
to nearest, ties to even. Numbers out of range become infinity, or NaN in types without infinity, as
in IREE's conversions.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, signless

_NAN = 0x7FC00000  # bits of a NaN in f32
_MANTISSA, _BIAS = 23, 127  # mantissa bits and bias of f32


@dataclass(frozen=True)
class _Format:
    """An 8-bit float."""

    mantissa: int  # bits
    bias: int
    infinity: int  # bits of NaN without the sign, -1 without one
    nan: int  # bits of a NaN
    signed_zero: bool = True  # False: the bits of a negative zero are the NaN

    @property
    def least(self) -> float:
        """Step between its subnormal numbers."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def beyond(self) -> int:
        """The bits of its largest number plus 1."""
        return self.infinity if self.infinity >= 0 else self.nan if self.signed_zero else 0x80


_FORMATS = {
    dtypes.FP8E4M3FN: _Format(3, 7, -1, 0x7F),
    dtypes.FP8E5M2: _Format(2, 15, 0x7C, 0x7F),
    dtypes.FP8E4M3FNUZ: _Format(3, 8, -1, 0x80, signed_zero=False),
    dtypes.FP8E5M2FNUZ: _Format(2, 16, -1, 0x80, signed_zero=False),
}


def expand_small_floats(module: ir.Module) -> int:
    """Replace the conversions of a lowered module, in place; return how many."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in ("arith.truncf", "arith.extf") and _kind(op) is not None:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    changed = 0
    for op in found:
        dtype = _kind(op)
        if dtype is None or (op.name == "arith.extf" and _is_multiplied(op)):
            continue
        with ir.InsertionPoint(op), op.location:
            b = ArithScalars(dtypes.FLOAT, dtypes.FLOAT)
            made = (_narrowed if op.name == "arith.truncf" else _widened)(b, op.operands[0], dtype)
        op.results[0].replace_all_uses_with(made)
        op.erase()
        changed += 1
    return changed


def _kind(op: ir.Operation) -> DType | None:
    """Return the 8-bit float of a conversion from or to f32, None of any other."""
    small, wide = op.results[0].type, op.operands[0].type
    if op.name == "arith.extf":
        small, wide = wide, small
    if not isinstance(wide, ir.F32Type):
        return None
    return next((d for d in _FORMATS if signless(d) == small), None)


def _is_multiplied(op: ir.Operation) -> bool:
    """Return whether the op around has a tile of matrix instructions."""
    parent = op.parent
    info = (
        parent.attributes["compilation_info"]
        if (parent is not None and "compilation_info" in parent.attributes)
        else None
    )
    return info is not None and "mma_kind" in str(info)


def _widened(b: ArithScalars, x: ir.Value, dtype: DType) -> ir.Value:
    """Place the bits below an exponent of f32; subnormal numbers are multiples of a step."""
    form = _FORMATS[dtype]
    byte = arith.ExtUIOp(signless(dtypes.INT32), arith.BitcastOp(signless(dtypes.INT8), x).result)
    bits = TypedScalar(byte.result, dtypes.INT32)
    size = b.and_(bits, 0x7F)
    placed = b.shl(size, _MANTISSA - form.mantissa)
    normal = b.bitcast(b.add(placed, (_BIAS - form.bias) << _MANTISSA), dtypes.FLOAT)
    steps = TypedScalar(arith.SIToFPOp(signless(dtypes.FLOAT), size.value).result, dtypes.FLOAT)
    is_small = b.cmp("lt", size, 1 << form.mantissa)
    value = b.select(is_small, b.mul(steps, form.least), normal)
    negative = b.cmp("ne", b.and_(bits, 0x80), 0)
    found = b.select(negative, b.neg(value), value)
    nan = b.const(float("nan"))
    if not form.signed_zero:
        return b.select(b.cmp("eq", bits, form.nan), nan, found).value
    first = form.infinity if form.infinity >= 0 else form.nan
    if form.infinity >= 0:
        infinite = b.const(float("inf"))
        signed = b.select(negative, b.neg(infinite), infinite)
        found = b.select(b.cmp("eq", size, form.infinity), signed, found)
        first += 1
    return b.select(b.cmp("ge", size, first), nan, found).value


def _narrowed(b: ArithScalars, x: ir.Value, dtype: DType) -> ir.Value:
    """Round the bits of f32; a sum with a large number rounds what will be subnormal."""
    form = _FORMATS[dtype]
    whole = TypedScalar(arith.BitcastOp(signless(dtypes.INT32), x).result, dtypes.INT32)
    size = b.and_(whole, 0x7FFFFFFF)
    value = b.bitcast(size, dtypes.FLOAT)
    drop = _MANTISSA - form.mantissa
    # half a step minus one, plus one if the last kept bit is odd: ties go to even
    odd = b.and_(b.shr(size, drop), 1)
    moved = b.sub(size, (_BIAS - form.bias) << _MANTISSA)
    normal = b.shr(b.add(b.add(moved, (1 << (drop - 1)) - 1), odd), drop)
    magic = form.least * 2.0**_MANTISSA  # neighbours in this format are one step apart
    summed = b.bitcast(b.add(value, magic), dtypes.INT32)
    subnormal = b.sub(summed, b.bitcast(b.const(magic), dtypes.INT32))
    is_small = b.cmp("lt", value, 2.0 ** (1 - form.bias))
    found = b.select(is_small, subnormal, normal)
    is_beyond = b.or_(b.cmp("ge", found, form.beyond), b.cmp("ge", size, 0x7F800000))
    found = b.select(is_beyond, form.infinity if form.infinity >= 0 else form.nan, found)
    found = b.select(b.cmp("gt", size, 0x7F800000), form.nan, found)
    sign = b.and_(b.shr(whole, 24), 0x80)
    signed = b.or_(found, sign)
    if not form.signed_zero:  # 0x80 is NaN: no sign beside it, nor beside zero
        plain = b.or_(b.cmp("eq", found, 0), b.cmp("eq", found, form.nan))
        signed = b.select(plain, found, signed)
    byte = arith.TruncIOp(signless(dtypes.INT8), signed.value).result
    return arith.BitcastOp(signless(dtype), byte).result


__all__ = ["expand_small_floats"]
