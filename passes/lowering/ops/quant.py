"""Lowerings of packed 4-bit values: pack_int4, unpack_int4, pack_fp4, unpack_fp4."""

from __future__ import annotations

import itertools

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.quant import PackFp4, PackInt4, UnpackFp4, UnpackInt4
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, narrow, widen

# e2m1: the magnitudes, and the limits above which the next one is taken. Ties go to the even code,
# so a limit between an odd and the next even code belongs to the latter.
FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_LIMITS = tuple((a + b) / 2 for a, b in itertools.pairwise(FP4))


@lowers(PackInt4, PackFp4)
def pack(op: PackFp4 | PackInt4, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Two neighbours along the axis as one byte, the first in the low half."""
    x, t, out = ins[0], TensorType.of(op.input), TensorType.of(op.out)
    axis = axis_of(op.axis, t.rank)
    extents = e.extents(x)
    extents[axis] = e.div(extents[axis], 2)
    if 0 in extents:
        return e.empty(extents, out.dtype)
    code = _int4_code if isinstance(op, PackInt4) else _fp4_code

    def body(where: list[ir.Value]) -> ir.Value:
        codes: list[TypedScalar] = []
        for i in (0, 1):
            at = e.add(e.mul(where[axis], 2), i)
            value = indices.read(x, [*where[:axis], e.index(at), *where[axis + 1 :]])
            codes.append(code(widen(TypedScalar(value, t.dtype))))
        b = ArithScalars(dtypes.UINT8, dtypes.UINT8)
        return b.or_(b.and_(codes[0], 15), b.shl(codes[1], 4)).value

    return indices.from_positions(e, extents, out.dtype, body)


def _int4_code(x: TypedScalar) -> TypedScalar:
    b = ArithScalars(x.dtype, dtypes.UINT8)
    limited = b.min(x, 15) if x.dtype.is_unsigned else b.max(b.min(x, 7), -8)
    return TypedScalar(limited.value, dtypes.UINT8)


def _fp4_code(x: TypedScalar) -> TypedScalar:
    b = ArithScalars(x.dtype, dtypes.UINT8)
    magnitude = b.abs(x)
    code = b.const(0, dtypes.UINT8)
    for i, limit in enumerate(_LIMITS, 1):
        # to even: a magnitude at the limit goes up to an even code, and stays below an odd one
        above = b.cmp("ge" if i % 2 == 0 else "gt", magnitude, limit)
        code = b.select(above, b.const(i, dtypes.UINT8), code)
    bits = b.bitcast(x, dtypes.INT64 if x.dtype is dtypes.DOUBLE else dtypes.INT32)
    sign = b.and_(b.cmp("lt", bits, 0), b.not_(b.is_nan(x)))
    return b.or_(code, b.select(sign, b.const(8, dtypes.UINT8), b.const(0, dtypes.UINT8)))


def half_byte(e: LoweringContext, byte: ir.Value, number: ir.Value) -> TypedScalar:
    """Return the low half of a byte for an even number, the high half for an odd one."""
    half = indices.as_i64(e, e.rem(number, 2))
    b = ArithScalars(dtypes.UINT8, dtypes.UINT8)
    shift = b.mul(b.cast(TypedScalar(half, dtypes.INT64), dtypes.UINT8), 4)
    return b.and_(b.shr(TypedScalar(byte, dtypes.UINT8), shift), 15)


@lowers(UnpackInt4, UnpackFp4)
def unpack(op: UnpackFp4 | UnpackInt4, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Each byte gives two neighbours along the axis, the low half first."""
    x, t, out = ins[0], TensorType.of(op.input), TensorType.of(op.out)
    axis = axis_of(op.axis, t.rank)
    extents = e.extents(x)
    extents[axis] = e.mul(extents[axis], 2)
    if 0 in extents:
        return e.empty(extents, out.dtype)

    def body(where: list[ir.Value]) -> ir.Value:
        at = e.index(e.div(where[axis], 2))
        byte = indices.read(x, [*where[:axis], at, *where[axis + 1 :]])
        b, code = ArithScalars(dtypes.UINT8, dtypes.UINT8), half_byte(e, byte, where[axis])
        if isinstance(op, UnpackFp4):
            return narrow(_fp4_value(b, code), out.dtype).value
        if not t.dtype.is_unsigned:
            # the sign bit of the half to that of the byte, and back with its copies
            signed = TypedScalar(b.shl(code, 4).value, dtypes.INT8)
            return b.shr(signed, 4).value
        return code.value

    return indices.from_positions(e, extents, out.dtype, body)


def _fp4_value(b: ArithScalars, code: TypedScalar) -> TypedScalar:
    """Return the number of an e2m1 code, in f32."""
    index = b.and_(code, 7)
    value = b.const(0.0, dtypes.FLOAT)
    for i, number in enumerate(FP4[1:], 1):
        value = b.select(b.cmp("eq", index, i), b.const(number, dtypes.FLOAT), value)
    return b.select(b.cmp("ge", code, 8), b.neg(value), value)
