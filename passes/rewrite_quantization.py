"""rewrite_quantization: (de)quantisation in ordinary arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, QuantizeLinear
from mgx_mlir.passes.analysis.constants import is_splat, splat
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern


@pattern(QuantizeLinear)
def apply_quantizelinear(op: QuantizeLinear, rw: Rewriter) -> Replacement:
    """quantizelinear(x, s, z) -> convert(clip(nearbyint(x / s) + z))

    16-bit floats are converted to f32 first. For an f8 type nothing is rounded before the convert.
    Types of more than 16 bits have no clip, as the convert saturates at bounds that f32 cannot
    represent.
    """
    wide, to = TensorType.of(op.input).dtype, TensorType.of(op.out).dtype
    x, scale = op.input, op.scale
    if wide.is_low_precision:
        wide = dtypes.FLOAT
        x, scale = (rw.op("convert", v, target_type=wide) for v in (x, scale))
    y = x if is_splat(op.scale, 1) else rw.op("div", x, scale)
    if to.is_integer:
        y = rw.op("nearbyint", y)
    if op.zero_point is not None:
        y = rw.op("add", y, _converted(rw, op.zero_point, wide))
    if to.is_integer and to.bits <= 16:
        y = rw.clip(y, to.lowest(), to.highest())
    return rw.op("convert", y, target_type=to)


@pattern(DequantizeLinear)
def apply_dequantizelinear(op: DequantizeLinear, rw: Rewriter) -> Replacement:
    """dequantizelinear(x, s, z) -> (convert(x) - convert(z)) * s"""
    to, kind = TensorType.of(op.scale).dtype, TensorType.of(op.input).dtype
    if to.is_low_precision and not (to.size == 2 and kind.is_integer and kind.bits == 8):
        return no_match("differences of {} are rounded in {}", kind, to)
    y = rw.op("convert", op.input, target_type=to)
    if op.zero_point is not None:
        y = rw.op("sub", y, _converted(rw, op.zero_point, to))
    return rw.op("mul", y, op.scale)


def _converted(rw: Rewriter, zero: ir.Value, dtype: DType) -> ir.Value:
    """Return a zero point in a float type; a splat literal is converted directly, for kernels
    to inline.
    """
    number = splat(zero)
    if number is None:
        return rw.op("convert", zero, target_type=dtype)
    one = rw.literal(float(number), dtype)
    if TensorType.of(zero).is_static:
        return rw.multibroadcast(one, TensorType.of(zero).dims)
    return rw.op("multibroadcast", [one, zero])


@dataclass(frozen=True)
class RewriteQuantization(PatternPass):
    """Replace quantizelinear and dequantizelinear by the arithmetic that they stand for.

    Both have lowerings with the same results. As arithmetic they are fused into kernels.
    """

    name: ClassVar[str] = "rewrite_quantization"
    patterns: ClassVar[tuple[Pattern, ...]] = (apply_quantizelinear, apply_dequantizelinear)
