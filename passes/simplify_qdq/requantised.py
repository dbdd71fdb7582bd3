"""Patterns of simplify_qdq that keep values in 8 bits between matmuls and convolutions."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.pointwise_binary import Add
from mgx_mlir.dialects.migraphx.pointwise_unary import Relu
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, QuantizeLinear
from mgx_mlir.passes.analysis.constants import constant_map, splat
from mgx_mlir.passes.analysis.qdq_values import dequantised, is_zero, same_constant
from mgx_mlir.passes.analysis.view_chains import Map, build_map, varying
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

SAME = 1e-5  # relative gap of scales that were rounded in another way
BYTES = (dtypes.INT8, dtypes.UINT8)


@pattern(Add)
def find_integer_bias(op: Add, rw: Rewriter) -> Replacement:
    """dq(x, s) + dq(b, s) -> dq(x + b, s), x sums in i32 and b a constant of i32

    This is the form of a quantised dot's bias in models: its scale is the product of both operands'
    scales.
    """
    for value, other in ((op.a, op.b), (op.b, op.a)):
        total = defined_by(value, DequantizeLinear)
        if total is None or not _is_sum(total) or not has_one_use(value):
            continue
        bias = dequantised(other)
        if bias is None or not is_zero(bias.op.zero_point):
            continue
        if TensorType.of(bias.op.input).dtype is not dtypes.INT32:
            continue
        scale = bias.scale_map(bias.op.scale)
        if scale is None or not _same_scale(total.scale, scale):
            continue
        rw.merge_location(total, bias.op)
        summed = rw.op("add", total.input, bias.apply(rw, bias.op.input))
        return rw.op("dequantizelinear", summed, total.scale)
    return no_match("it adds no bias of i32 that has the scale of the sums")


def _is_sum(op: DequantizeLinear) -> bool:
    return op.zero_point is None and TensorType.of(op.input).dtype is dtypes.INT32


def _constant_scale(value: ir.Value) -> tuple[np.ndarray, Map] | None:
    """Return the numbers of a constant scale, and their index for each element."""
    found = constant_map(value)
    if found is None or not literals.is_literal(found[0]):
        return None
    return literals.array_of(found[0].owner), found[1]


def _same_scale(value: ir.Value, other: tuple[ir.Value, Map]) -> bool:
    """Return whether two scales are equal up to rounding."""
    one = splat(value)
    if one is not None:
        two = splat(other[0])
        return two is not None and bool(np.isclose(one, two, rtol=SAME, atol=0))
    first = _constant_scale(value)
    if first is None or not literals.is_literal(other[0]):
        return False
    a, b = first[0].reshape(-1), literals.array_of(other[0].owner).reshape(-1)
    if varying(first[1]) != varying(other[1]) or a.shape != b.shape:
        return False
    return len(varying(first[1])) == 1 and bool(np.allclose(a, b, rtol=SAME, atol=0))


@pattern(QuantizeLinear)
def find_requantised(op: QuantizeLinear, rw: Rewriter) -> Replacement:
    """quantizelinear(dq(x, s), t, z) -> quantizelinear(dq(x, s / t), 1, z)

    Also with a relu between. x sums in i32, s and t constants, t one number. Only with the option
    `requantised`: one rounding instead of two, which may change a result near a tie by one step.
    """
    if not rw.options.requantised:
        return no_match("the option requantised is off")
    step = splat(op.scale)
    if step is None or not step > 0 or step == 1:
        return no_match("the scale is not one positive number other than 1")
    relu = defined_by(op.input, Relu)
    if relu is not None and not has_one_use(op.input):
        return no_match("the quantised value has other readers")
    value = op.input if relu is None else relu.operands[0]
    total = defined_by(value, DequantizeLinear)
    if total is None or not _is_sum(total) or not has_one_use(value):
        return no_match("the input is not a dequantised sum with one reader")
    found = _constant_scale(total.scale)
    if found is None:
        return no_match("the scale of the sums is no constant")
    array, m = found
    if array.dtype != np.float32:
        return no_match("the scale is {}", array.dtype)
    rw.merge_location(total)
    y = rw.op("dequantizelinear", total.input, build_map(rw, rw.literal(array / step), m))
    if relu is not None:
        y = rw.op("relu", y)
    one = rw.multibroadcast(rw.literal(np.float32(1)), TensorType.of(op.input).dims)
    return rw.op("quantizelinear", y, one, op.zero_point, out_type=TensorType.of(op.result).dtype)


@pattern(QuantizeLinear)
def find_quantised_again(op: QuantizeLinear, rw: Rewriter) -> Replacement:
    """quantizelinear(dq(x, s, z), s, z) -> x, of 8-bit integers, also through views

    Exact: (x - z) s is within half a step of itself.
    """
    found = dequantised(op.input)
    if found is None or TensorType.of(found.op.input).dtype not in BYTES:
        return no_match("the input is no dequantised 8-bit integer")
    if TensorType.of(op.result).dtype is not TensorType.of(found.op.input).dtype:
        return no_match("the types differ")
    if splat(op.scale) is None or (op.zero_point is not None and splat(op.zero_point) is None):
        return no_match("scale or zero point is not one number")
    if not splat(op.scale) > 0:
        return no_match("the scale is not positive")
    if not same_constant(op.scale, found.op.scale):
        return no_match("the scales differ")
    if not same_constant(op.zero_point, found.op.zero_point):
        return no_match("the zero points differ")
    if TensorType.of(found.op.result).dtype is not TensorType.of(op.input).dtype:
        return no_match("it is converted in between")
    rw.merge_location(found.op)
    return found.apply(rw, found.op.input)


@pattern(Pooling)
def find_pooled(op: Pooling, rw: Rewriter) -> Replacement:
    """max_pooling(dq(x, s, z)) -> dq(max_pooling(x), s, z), s > 0 one number

    Only if the pooled value is quantised again.
    """
    if op.mode != "max":
        return no_match("mode {} gives values between the quantised steps", op.mode)
    found = defined_by(op.input, DequantizeLinear)
    if found is None or TensorType.of(found.input).dtype not in BYTES:
        return no_match("the input is no dequantised 8-bit integer")
    if not all(is_a(u.owner, QuantizeLinear) for u in op.out.uses):
        return no_match("it has readers other than quantizelinear")
    scale = splat(found.scale)
    zero = None if found.zero_point is None else splat(found.zero_point)
    if scale is None or not scale > 0 or (found.zero_point is not None and zero is None):
        return no_match("scale or zero point is not one positive number")
    rw.merge_location(found)
    pooled = rw.op("pooling", found.input, **attributes_of(op))
    dims = TensorType.of(pooled).dims
    operands = [
        None if v is None else rw.multibroadcast(rw.literal(np.asarray(n)), dims)
        for v, n in ((found.scale, scale), (found.zero_point, zero))
    ]
    return rw.op("dequantizelinear", pooled, *operands)
