"""fp8_ocp_to_fnuz: f8E4M3FN matmuls as f8E4M3FNUZ ones, for hardware that has only those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.quant import QuantizeLinear
from mgx_mlir.passes.analysis.qdq_values import Dequantised, dequantised
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

MOST = 448.0  # largest f8E4M3FN


@pattern(Dot, Convolution)
def match_fp8ocp_convert_to_fp8fnuz(op: Dot | Convolution, rw: Rewriter) -> Replacement:
    """dot(dq(x, s), dq(w, t)) -> dot(dq(fnuz(x), 2 s), dq(fnuz(w), 2 t)); convolution likewise

    x and w of f8E4M3FN; where x is computed by quantizelinear, it rounds to f8E4M3FNUZ directly.
    The same bits mean half the value in f8E4M3FNUZ, except 0x80 (-0 in OCP, NaN in FNUZ), 0x7f and
    0xff (NaN in OCP). It is exact if twice the scale is finite, except that -0 becomes 0.
    """
    found: list[tuple[Dequantised, dtypes.DType]] = []
    for value, which in ((op.operands[0], "first"), (op.operands[1], "second")):
        side = dequantised(value)
        if side is None:
            return no_match("the {} operand is not dequantised", which)
        dtype = TensorType.of(side.op.input).dtype
        if dtype is not dtypes.FP8E4M3FN:
            return no_match("the {} operand is of {}, not fp8e4m3fn", which, dtype)
        if not TensorType.of(side.op.input).is_static:
            return no_match("dims of the {} operand are known only at run time", which)
        found.append((side, TensorType.of(value).dtype))
    rw.merge_location(*(side.op for side, _ in found))
    operands = [_operand(rw, side, dtype) for side, dtype in found]
    return rw.op(type(op).mnemonic, *operands, **attributes_of(op))


def _operand(rw: Rewriter, side: Dequantised, dtype: dtypes.DType) -> ir.Value:
    """Build the operand, dequantised from f8E4M3FNUZ."""
    dq = side.op
    zero = None if dq.zero_point is None else as_fnuz(rw, dq.zero_point)
    value = rw.op("dequantizelinear", as_fnuz(rw, dq.input), _doubled(rw, dq.scale), zero)
    value = side.apply(rw, value)
    if TensorType.of(value).dtype is not dtype:
        value = rw.op("convert", value, target_type=dtype)
    return value


def _doubled(rw: Rewriter, scale: ir.Value) -> ir.Value:
    """Build twice a scale; a broadcast constant stays one."""
    number = rw.const(scale)
    if number is not None:
        return rw.literal(number * number.dtype.type(2), TensorType.of(scale).dtype)
    view = rw.defining(scale, Multibroadcast)
    if view is None or len(view.operation.operands) != 1 or not TensorType.of(scale).is_static:
        return rw.mul(scale, 2)
    return rw.multibroadcast(_doubled(rw, view.operation.operands[0]), TensorType.of(scale).dims)


def as_fnuz(rw: Rewriter, x: ir.Value) -> ir.Value:
    """Build f8E4M3FNUZ values of half of each f8E4M3FN value.

    A quantizelinear to f8E4M3FN is replaced by one to f8E4M3FNUZ, clamped to the former's range, as
    half the number has the same rounding steps.
    """
    codes = rw.const(x)
    if codes is not None:
        bits = codes.view(np.uint8)
        found = np.where(bits & 0x7F == 0x7F, 0x80, np.where(bits == 0x80, 0, bits))
        return rw.literal(found.astype(np.uint8).view(dtypes.FP8E4M3FNUZ.np), dtypes.FP8E4M3FNUZ)
    q = rw.defining(x, QuantizeLinear)
    if q is not None and q.zero_point is None and TensorType.of(q.input).dtype is dtypes.FLOAT:
        value = rw.clip(rw.div(q.input, q.scale), -MOST, MOST)
        own = TensorType.of(value).dims
        two = rw.multibroadcast(rw.literal(np.float32(2)), own)
        return rw.op("quantizelinear", value, two, out_type=dtypes.FP8E4M3FNUZ)
    return _converted(rw, x)


def _converted(rw: Rewriter, x: ir.Value) -> ir.Value:
    """Build f8E4M3FNUZ values by their bits."""
    dims = TensorType.of(x).dims

    def code(number: int) -> ir.Value:
        return rw.multibroadcast(rw.literal(np.uint8(number)), dims)

    def same(number: int) -> ir.Value:
        found = rw.op("equal", bits, code(number))
        return rw.op("convert", found, target_type=dtypes.BOOL)

    bits = rw.op("bit_cast", x, target_type=dtypes.UINT8)
    nan = rw.op("logical_or", same(0x7F), same(0xFF))
    plain = rw.op("where", same(0x80), code(0), bits)
    return rw.op("bit_cast", rw.op("where", nan, code(0x80), plain), target_type=dtypes.FP8E4M3FNUZ)


@dataclass(frozen=True)
class Fp8OcpToFnuz(PatternPass):
    """Multiply f8E4M3FN values as f8E4M3FNUZ ones, for gfx94x, which has no others."""

    name: ClassVar[str] = "fp8_ocp_to_fnuz"
    patterns: ClassVar[tuple[Pattern, ...]] = (match_fp8ocp_convert_to_fp8fnuz,)
