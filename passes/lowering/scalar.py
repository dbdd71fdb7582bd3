"""Scalar arithmetic on arith and math ops: the ScalarBuilder that linalg bodies are made with."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math, tensor
from mgx_mlir.core.scalar import ScalarBuilder
from mgx_mlir.dialects.migraphx import scalar_math

Number = float | np.generic  # int and bool with it


@dataclass(frozen=True)
class TypedScalar:
    """An SSA value of a signless MLIR type, and its element type.

    `stored` is the narrow element that a widened one was read from.
    """

    value: ir.Value
    dtype: DType
    stored: TypedScalar | None = None


ScalarLike = TypedScalar | Number  # a number means a constant of the other operand's type
_Op = Callable[..., ir.OpView | ir.Operation | ir.Value]


def signless(dtype: DType) -> ir.Type:
    """Return the type that values of `dtype` have after lowering: signedness is in the ops."""
    return ir.Type.parse(dtype.mlir.removeprefix("u"))


def computed(dtype: DType) -> DType:
    """Return the type an element is computed in: f32 for 16- and 8-bit floats, else itself."""
    return dtypes.FLOAT if dtype.is_low_precision else dtype


_FLOAT_PREDICATES = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13, "uno": 14}
_SIGNED_PREDICATES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_UNSIGNED_PREDICATES = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}


def constant_of(kind: ir.Type, attribute: ir.Attribute) -> ir.Value:
    """Return an arith.constant of an attribute."""
    # the binding is annotated for Python numbers only
    return arith.ConstantOp(kind, attribute).result


def constant(value: Number, dtype: DType) -> TypedScalar:
    """Return an arith.constant of `dtype`; integers wrap into the type."""
    attribute = element_attr(value, dtype)
    return TypedScalar(constant_of(signless(dtype), attribute), dtype)


def element_attr(value: Number, dtype: DType) -> ir.Attribute:
    """Return a number as an attribute of the lowered element type; integers wrap into it."""
    t = signless(dtype)
    if dtype.is_float:
        return _float_attr(value, dtype, t)
    if dtype.is_bool:
        return ir.IntegerAttr.get(t, 1 if value else 0)
    width = dtype.bits
    wrapped = int(value) & ((1 << width) - 1)
    signed = wrapped - (1 << width) if wrapped >> (width - 1) else wrapped
    return ir.IntegerAttr.get(t, signed)


def _float_attr(value: Number, dtype: DType, t: ir.Type) -> ir.Attribute:
    with np.errstate(all="ignore"):
        rounded = np.array(value, np.float64).astype(dtype.np)
    f = float(rounded)
    if pymath.isfinite(f):
        return ir.FloatAttr.get(t, f)
    bits = int(rounded.reshape(1).view(f"u{dtype.size}")[0])
    return ir.Attribute.parse(f"0x{bits:0{2 * dtype.size}X} : {dtype.mlir}")


def _is_same(x: ScalarLike, y: ScalarLike) -> TypeGuard[TypedScalar]:
    """Return whether two scalars are the same value, which an idempotent op returns.

    IREE would fold that too late for equal results of a kernel to be merged.
    """
    return isinstance(x, TypedScalar) and isinstance(y, TypedScalar) and x.value == y.value


class ArithScalars:
    """mgx_mlir.core.scalar.ScalarBuilder over arith and math, at the current insertion point."""

    def __init__(self, dtype: DType, result_dtype: DType, *, fast: bool = False) -> None:
        self.dtype, self.result_dtype = computed(dtype), computed(result_dtype)

    def const(self, value: Number, dtype: DType | None = None) -> TypedScalar:
        return constant(value, self.dtype if dtype is None else dtype)

    def type_of(self, dtype: DType) -> ir.Type:
        """Return the type of a value that stands for elements of `dtype`."""
        return signless(dtype)

    def _pair(self, x: ScalarLike, y: ScalarLike) -> tuple[TypedScalar, TypedScalar]:
        if not isinstance(x, TypedScalar):
            x = self.const(x, y.dtype if isinstance(y, TypedScalar) else None)
        if not isinstance(y, TypedScalar):
            y = self.const(y, x.dtype)
        if x.dtype is not y.dtype:
            raise TypeError(f"operands of {x.dtype} and {y.dtype} in one scalar operation")
        return x, y

    def _one(self, x: ScalarLike) -> TypedScalar:
        return x if isinstance(x, TypedScalar) else self.const(x)

    def _binary(
        self,
        x: ScalarLike,
        y: ScalarLike,
        floats: _Op | None,
        signed: _Op | None,
        unsigned: _Op | None,
        bools: _Op | None,
    ) -> TypedScalar:
        a, b = self._pair(x, y)
        d = a.dtype
        f = floats if d.is_float else bools if d.is_bool else unsigned if d.is_unsigned else signed
        if f is None:
            raise TypeError(f"no such scalar operation on {d}")
        return TypedScalar(_value(f(a.value, b.value)), d)

    def add(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, arith.AddFOp, arith.AddIOp, arith.AddIOp, arith.OrIOp)

    def sub(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, arith.SubFOp, arith.SubIOp, arith.SubIOp, arith.XOrIOp)

    def mul(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, arith.MulFOp, arith.MulIOp, arith.MulIOp, arith.AndIOp)

    def div(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, arith.DivFOp, arith.DivSIOp, arith.DivUIOp, None)

    def rem(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, arith.RemFOp, arith.RemSIOp, arith.RemUIOp, None)

    def max(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        if _is_same(x, y):
            return x
        return self._binary(x, y, arith.MaximumFOp, arith.MaxSIOp, arith.MaxUIOp, arith.OrIOp)

    def min(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        if _is_same(x, y):
            return x
        return self._binary(x, y, arith.MinimumFOp, arith.MinSIOp, arith.MinUIOp, arith.AndIOp)

    def and_(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        if _is_same(x, y):
            return x
        return self._binary(x, y, None, arith.AndIOp, arith.AndIOp, arith.AndIOp)

    def or_(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        if _is_same(x, y):
            return x
        return self._binary(x, y, None, arith.OrIOp, arith.OrIOp, arith.OrIOp)

    def xor(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, None, arith.XOrIOp, arith.XOrIOp, arith.XOrIOp)

    def shl(self, x: ScalarLike, count: ScalarLike) -> TypedScalar:
        return self._binary(x, count, None, arith.ShLIOp, arith.ShLIOp, None)

    def shr(self, x: ScalarLike, count: ScalarLike) -> TypedScalar:
        return self._binary(x, count, None, arith.ShRSIOp, arith.ShRUIOp, None)

    def pow(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._binary(x, y, math.PowFOp, None, None, None)

    def copysign(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        a, b = self._pair(x, y)
        if a.dtype is dtypes.DOUBLE:
            # LLVM's AMDGPU selection crashes on copysign of <1 x double>, also where LLVM forms it
            # from bit operations or a select between constants
            magnitude = self.abs(a)
            negative = self.cmp("lt", self.bitcast(b, dtypes.INT64), 0)
            return self.select(negative, self.neg(magnitude), magnitude)
        return self._binary(x, y, math.CopySignOp, None, None, None)

    def fma(self, x: ScalarLike, y: ScalarLike, z: ScalarLike) -> TypedScalar:
        a, b = self._pair(x, y)
        _, c = self._pair(a, z)
        return TypedScalar(math.FmaOp(a.value, b.value, c.value).result, a.dtype)

    def not_(self, x: ScalarLike) -> TypedScalar:
        a = self._one(x)
        return self.xor(a, self.const(1 if a.dtype.is_bool else -1, a.dtype))

    def neg(self, x: ScalarLike) -> TypedScalar:
        a = self._one(x)
        if a.dtype.is_float:
            return TypedScalar(arith.NegFOp(a.value).result, a.dtype)
        return a if a.dtype.is_bool else self.sub(self.const(0, a.dtype), a)

    def abs(self, x: ScalarLike) -> TypedScalar:
        a = self._one(x)
        if a.dtype.is_float:
            return TypedScalar(math.AbsFOp(a.value).result, a.dtype)
        if not a.dtype.is_signed:
            return a
        return TypedScalar(math.AbsIOp(a.value).result, a.dtype)

    def _float(self, op: _Op, x: ScalarLike) -> TypedScalar:
        a = self._one(x)
        return TypedScalar(_value(op(a.value)), a.dtype)

    def sqrt(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.SqrtOp, x)

    def rsqrt(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.RsqrtOp, x)

    def exp(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.ExpOp, x)

    def exp2(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.Exp2Op, x)

    def log(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.LogOp, x)

    def log2(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.Log2Op, x)

    def sin(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.SinOp, x)

    def cos(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.CosOp, x)

    def tanh(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.TanhOp, x)

    def sigmoid(self, x: ScalarLike) -> TypedScalar:
        found = scalar_math.sigmoid_by_exp(cast(ScalarBuilder, self), self._one(x))
        return cast(TypedScalar, found)

    def erf(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.ErfOp, x)

    def floor(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.FloorOp, x)

    def ceil(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.CeilOp, x)

    def trunc(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.TruncOp, x)

    def round_even(self, x: ScalarLike) -> TypedScalar:
        return self._float(math.RoundEvenOp, x)

    def is_nan(self, x: ScalarLike) -> TypedScalar:
        return self.cmp("ne", x, x)

    def is_inf(self, x: ScalarLike) -> TypedScalar:
        a = self._one(x)
        return self.cmp("eq", self.abs(a), self.const(float("inf"), a.dtype))

    def cmp(self, predicate: str, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        a, b = self._pair(x, y)
        if a.dtype.is_float:
            number, op = _FLOAT_PREDICATES[predicate], arith.CmpFOp
        else:
            signed = a.dtype.is_signed
            table = _SIGNED_PREDICATES if signed else _UNSIGNED_PREDICATES
            number, op = table[predicate], arith.CmpIOp
        return TypedScalar(_value(op(number, a.value, b.value)), dtypes.BOOL)

    def select(self, condition: TypedScalar, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        a, b = self._pair(x, y)
        if a.value == b.value:  # IREE would make it a copying loop, for which it has no code
            return a
        return TypedScalar(arith.SelectOp(condition.value, a.value, b.value).result, a.dtype)

    def cast(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        """Convert as the protocol says; a 16- or 8-bit float is rounded and returned in f32."""
        if dtype.is_low_precision:
            wide = self._cast(x, dtypes.FLOAT) if x.dtype is not dtypes.DOUBLE else x
            return self.rounded(wide, dtype)
        return self._cast(x, dtype)

    def rounded(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        """Round to a 16- or 8-bit float, in the type that it is computed in."""
        return widen(narrow(x, dtype))

    def exact(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        """Return a computed element as one of type `dtype`.

        Rounded to it unless it was read from one.
        """
        if not dtype.is_low_precision or x.stored is not None:
            return x
        return self.rounded(x, dtype)

    def _cast(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        source = x.dtype
        if source is dtype:
            return x
        t = self.type_of(dtype)
        if dtype.is_bool:
            return self.cmp("ne", x, self.const(0, source))
        if source.is_float and dtype.is_float:
            op = arith.ExtFOp if dtype.size > source.size else arith.TruncFOp
            return TypedScalar(op(t, x.value).result, dtype)
        if source.is_float:
            op = arith.FPToSIOp if dtype.is_signed else arith.FPToUIOp
            return TypedScalar(op(t, x.value).result, dtype)
        if dtype.is_float:
            op = arith.SIToFPOp if source.is_signed else arith.UIToFPOp
            return TypedScalar(op(t, x.value).result, dtype)
        if dtype.bits < source.bits:
            return TypedScalar(arith.TruncIOp(t, x.value).result, dtype)
        if dtype.bits > source.bits:
            op = arith.ExtSIOp if source.is_signed else arith.ExtUIOp
            return TypedScalar(op(t, x.value).result, dtype)
        return TypedScalar(x.value, dtype)

    def bitcast(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        if signless(x.dtype) == signless(dtype):
            return TypedScalar(x.value, dtype)
        return TypedScalar(arith.BitcastOp(self.type_of(dtype), x.value).result, dtype)

    def lookup(self, x: TypedScalar, table: Sequence[int], dtype: DType) -> TypedScalar:
        """Return an 8-bit integer's number in a table of 256 8-bit integers."""
        at = arith.IndexCastUIOp(ir.IndexType.get(), x.value).result
        kind = ir.RankedTensorType.get([len(table)], signless(dtype))
        every = ir.DenseElementsAttr.get([element_attr(n, dtype) for n in table], kind)
        return TypedScalar(tensor.ExtractOp(constant_of(kind, every), [at]).result, dtype)

    def by_number(self, yields: str, a: TypedScalar, b: TypedScalar) -> TypedScalar | None:
        """Return the larger or smaller of two floats if one is a constant, else None.

        yields: the comparison for which the constant is returned; it is false for NaN.
        """
        if _is_number(a):
            a, b = b, a
        return self.select(self.cmp(yields, a, b), b, a) if _is_number(b) else None


class GpuScalars(ArithScalars):
    """Scalars for GPUs, where IREE lowers maximumf as maxnumf, which drops NaN.

    Reductions keep maximumf, by which IREE finds tiles: `reduce_max` and others use integers, and
    poolings ignore NaN.
    """

    def max(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._with_nan("le", super().max, x, y)

    def min(self, x: ScalarLike, y: ScalarLike) -> TypedScalar:
        return self._with_nan("ge", super().min, x, y)

    def tanh(self, x: ScalarLike) -> TypedScalar:
        """Compute tanh by exp.

        LLVM's is a call, for which undefined lanes, such as those past a matmul's edges, are
        undefined behaviour: LLVM would remove the whole kernel.
        """
        return cast(TypedScalar, scalar_math.tanh_by_exp(cast(ScalarBuilder, self), self._one(x)))

    def _with_nan(
        self, yields: str, plain: Callable[..., TypedScalar], x: ScalarLike, y: ScalarLike
    ) -> TypedScalar:
        if _is_same(x, y):
            return x
        a, b = self._pair(x, y)
        if not a.dtype.is_float:
            return plain(a, b)
        found = self.by_number(yields, a, b)
        if found is not None:
            return found
        return self.select(self.cmp("uno", a, b), self.add(a, b), plain(a, b))


def _is_number(x: TypedScalar) -> bool:
    """Return whether a float is a constant other than NaN."""
    op = x.value.owner
    if not isinstance(op, ir.Operation | ir.OpView) or op.name != "arith.constant":
        return False
    value = op.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            return False
        value = value.get_splat_value()
    return not pymath.isnan(ir.FloatAttr(value).value)


def ordered(b: ArithScalars, bits: TypedScalar, kind: DType) -> TypedScalar:
    """Turn bits of floats into signed integers of type `kind` in the floats' order, and back."""
    # negative floats order backwards by their bits
    return b.xor(bits, b.and_(b.shr(bits, kind.bits - 1), int(kind.highest())))


def _value(result: ir.OpView | ir.Operation | ir.Value) -> ir.Value:
    return result.result if isinstance(result, ir.OpView | ir.Operation) else result


def widen(x: TypedScalar) -> TypedScalar:
    """Return a stored element as the type it is computed in."""
    if not x.dtype.is_low_precision:
        return x
    wide = TypedScalar(arith.ExtFOp(signless(dtypes.FLOAT), x.value).result, dtypes.FLOAT, x)
    if x.dtype is not dtypes.FP8E4M3FN:
        return wide
    # IREE's emulation reads the negative NaN (0xFF) of this type as -480
    byte = TypedScalar(arith.BitcastOp(signless(dtypes.INT8), x.value).result, dtypes.INT8)
    b = ArithScalars(dtypes.FLOAT, dtypes.FLOAT)
    found = b.select(b.cmp("eq", byte, -1), b.const(float("nan")), wide)
    return TypedScalar(found.value, dtypes.FLOAT, x)


def rounded_bf16(b: ArithScalars, x: TypedScalar) -> TypedScalar:
    """Return an f32 rounded to bf16."""
    return cast(TypedScalar, scalar_math.to_bf16(cast(ScalarBuilder, b), x))


def _to_odd(x: TypedScalar) -> TypedScalar:
    """Return an f64 as the f32 beside it whose last bit is 1; exact ones as they are.

    To round that to f16 is to round once. IREE rounds f64 to f32 and then to f16 on CPUs without
    an instruction for f16.
    """
    b = ArithScalars(dtypes.DOUBLE, dtypes.FLOAT)
    near = TypedScalar(arith.TruncFOp(signless(dtypes.FLOAT), x.value).result, dtypes.FLOAT)
    back = TypedScalar(arith.ExtFOp(signless(dtypes.DOUBLE), near.value).result, dtypes.DOUBLE)
    bits = b.bitcast(near, dtypes.INT32)
    one = b.const(1, dtypes.INT32)
    is_even = arith.XOrIOp(arith.AndIOp(bits.value, one.value).result, one.value).result
    # bits of a larger magnitude are a larger number
    grown = b.cmp("gt", b.abs(x), b.abs(back))
    shrunk = b.cmp("lt", b.abs(x), b.abs(back))
    step = b.select(grown, one, b.select(shrunk, b.const(-1, dtypes.INT32), 0))
    odd = arith.AddIOp(bits.value, arith.MulIOp(step.value, is_even).result).result
    return b.bitcast(TypedScalar(odd, dtypes.INT32), dtypes.FLOAT)


def narrow(x: TypedScalar, dtype: DType) -> TypedScalar:
    """Return a computed element as the type it is stored in."""
    if x.dtype is dtype:
        return x
    if x.stored is not None and x.stored.dtype is dtype:
        return x.stored
    if not dtype.is_low_precision or not x.dtype.is_float:
        raise TypeError(f"a scalar of {x.dtype} where {dtype} is stored")
    if x.dtype is dtypes.DOUBLE and dtype is dtypes.HALF:
        x = _to_odd(x)
    elif x.dtype is dtypes.DOUBLE:  # IREE cannot convert f64 to f8
        x = TypedScalar(arith.TruncFOp(signless(dtypes.FLOAT), x.value).result, dtypes.FLOAT)
    if dtype is dtypes.BF16:  # IREE drops the conversion where the value is not stored
        x = rounded_bf16(ArithScalars(dtypes.FLOAT, dtypes.FLOAT), x)
    return TypedScalar(arith.TruncFOp(signless(dtype), x.value).result, dtype)


__all__ = ["ArithScalars", "TypedScalar", "computed", "constant", "narrow", "ordered",
           "rounded_bf16", "signless", "widen"]  # fmt: skip
