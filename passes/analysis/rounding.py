"""Queries for rewrites that change rounding: readers of a result, and exactness."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import Pointwise, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.linear import Convolution, ConvolutionBackwards, Dot
from mgx_mlir.dialects.migraphx.movement import Concat, Pad, Reverse, Slice
from mgx_mlir.dialects.migraphx.normalize import Lrn, SoftmaxBase
from mgx_mlir.dialects.migraphx.pointwise_binary import Div, Mul
from mgx_mlir.dialects.migraphx.pointwise_trig import Tanh
from mgx_mlir.dialects.migraphx.pointwise_unary import Erf, Exp, Recip, Rsqrt, Sigmoid, Sqrt
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import QuantConvolution, QuantDot
from mgx_mlir.dialects.migraphx.reduce import (
    PrefixScanSum,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from mgx_mlir.dialects.migraphx.views import Contiguous, Identity, ReshapeOp, Transpose
from mgx_mlir.passes.analysis.constants import constant_map, is_constant, splat
from mgx_mlir.passes.analysis.view_chains import varying

_FOLLOWED = 64  # most readers that are followed
_LOOKED_AT = 1 << 12  # most elements of a constant that is inspected

# sums and norms, whose last bits differ between compilers
_INEXACT = (
    Dot, BlockedDot, Convolution, ConvolutionBackwards, QuantDot, QuantConvolution, ReduceSum,
    ReduceMean, ReduceProd, SoftmaxBase, Lrn, Pooling, PrefixScanSum,
)  # fmt: skip
# ops whose error is relative to their result, whatever their operands
_ROUNDED = (*_INEXACT, Mul, Div, Exp, Tanh, Sigmoid, Erf, Sqrt, Rsqrt, Recip)
_CARRIED = (
    Transpose, ReshapeOp, Contiguous, Identity, Multibroadcast, Broadcast, Slice, Concat, Pad,
    Gather, Reverse, ReduceMax, ReduceMin,
)  # fmt: skip


def feeds_steps(value: ir.Value) -> bool:
    """Return whether a discontinuous op (floor, a comparison, a cast to integer) may read `value`.

    It looks through ops with exact results. At a jump, a difference in the last bit may become a
    whole step.
    """
    seen: set[ir.Value] = {value}
    todo = [value]
    while todo:
        for use in todo.pop().uses:
            op = use.owner.operation
            if is_a(op, _INEXACT) or op.name == "func.return":
                continue
            cls = op_class(op)
            if cls is None or (cls.discontinuous and not _rounds_alone(op)):
                return True
            if not issubclass(cls, (Pointwise, *_CARRIED)):
                return True
            for r in op.results:
                if r not in seen:
                    seen.add(r)
                    todo.append(r)
            if len(seen) > _FOLLOWED:
                return True
    return False


def _rounds_alone(op: ir.Operation) -> bool:
    """Return whether an op is a conversion to a float type, which only rounds."""
    return is_a(op, Convert) and TensorType.of(op.results[0]).dtype.is_float


def is_rounded(value: ir.Value) -> bool:
    """Return whether `value` has a rounding error in its last bits already, so that x + c loses
    nothing.

    An argument, or a sum with cancellation, may be exact, and then x - c is exact for close
    numbers.
    """
    if not TensorType.of(value).dtype.is_float:
        return True
    owner = value.owner
    while not isinstance(owner, ir.Block):
        if is_a(owner, _ROUNDED):
            # 2 x and 1 x are exact
            return not is_a(owner, Mul) or not any(
                is_constant(v) and _powers_of_two(v) for v in owner.operands
            )
        if not is_a(owner, (*_CARRIED, Convert)):
            return False
        owner = owner.operands[0].owner
    return False


def _powers_of_two(value: ir.Value) -> bool:
    found = numbers(value)
    return found is not None and bool(np.all(np.abs(np.frexp(found)[0]) == 0.5))


def numbers(value: ir.Value) -> np.ndarray | None:
    """Return the numbers, in f64, that a constant repeats; None where it is large or not folded."""
    number = splat(value)
    if number is not None:
        return np.array([number]).astype(np.float64)
    found = constant_map(value)
    if found is None or isinstance(found[0].owner, ir.Block):
        return None
    owner = found[0].owner
    if not is_literal(owner) or TensorType.of(found[0]).elements > _LOOKED_AT:
        return None
    return literals.array_of(owner).reshape(-1).astype(np.float64)


def exact_reciprocal(value: ir.Value, dtype: DType) -> bool:
    """Return whether x * (1 / c) is exactly x / c: every c is a power of two with a normal 1 /
    c.
    """
    found = numbers(value)
    return found is not None and _powers_of_two(value) and _normal(found, dtype)


def normal_reciprocal(value: ir.Value, dtype: DType) -> bool:
    """Return whether every 1 / c is a normal number of the type: none overflows or is flushed
    to 0.
    """
    found = numbers(value)
    return found is not None and _normal(found, dtype)


def _normal(found: np.ndarray, dtype: DType) -> bool:
    info = dtypes.float_info(dtype.np)
    with np.errstate(all="ignore"):
        size = np.abs(1 / found)
    return bool(np.all((size >= float(info.smallest_normal)) & (size <= float(info.max))))


def _axes(value: ir.Value) -> frozenset[int]:
    """Return the axes along which a constant varies."""
    found = constant_map(value)
    return frozenset() if found is None else varying(found[1])


def may_add(x: ir.Value, a: ir.Value, b: ir.Value) -> bool:
    """Return whether x + (a + b) is as exact as (x + a) + b, for constant a and b.

    False where a + b is far smaller than both, as in x + 2**23 - 2**23, which rounds x to an
    integer. False where a + b is rounded and x is exact, as x + a may be small.
    """
    dtype = TensorType.of(x).dtype
    if not dtype.is_float:
        return True
    left, right = numbers(a), numbers(b)
    if left is None or right is None:
        return False
    if not (1 in (left.size, right.size) or (left.size == right.size and _axes(a) == _axes(b))):
        # all pairs, not only those that broadcast together
        left, right = left[:, None], right[None, :]
    if left.size * right.size > _LOOKED_AT**2:
        return False
    with np.errstate(all="ignore"):
        total = left + right
        if np.any(np.abs(total) * 2**10 < np.maximum(np.abs(left), np.abs(right))):
            return False
        return is_rounded(x) or bool(np.all(total.astype(dtype.np).astype(np.float64) == total))


__all__ = ["exact_reciprocal", "feeds_steps", "is_rounded", "may_add", "normal_reciprocal"]
