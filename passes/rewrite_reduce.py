"""rewrite_reduce: reductions in forms that keep precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.passes import PatternPass, option
from mgx_mlir.core.pattern import Pattern, has_one_use, no_match, pattern
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.layout_convolution import rebuild

_BETWEEN = ("add", "sub", "mul", "div", "where")


@pattern("softmax")
def find_dot_softmax_fp32(op: Any, rw: Any) -> Any:
    """softmax(pointwise(dot(a, b))) in 16 bits -> convert(softmax(pointwise(convert(dot(a, b)))))

    The scores of attention stay in f32 between the dot and the softmax: a kernel's sum is not
    rounded before it is converted. MIGraphX's pattern of this name.
    """
    t = TensorType.of(op.input)
    if not t.dtype.is_low_precision:
        return no_match("{} is not a 16-bit float", t.dtype)
    if not _comes_from_dot(rw, op.input):
        return no_match("the input does not come from a dot")
    wide = _in_f32(rw, op.input)
    y = rw.op("softmax", wide, axis=op.axis)
    return rw.op("convert", y, target_type=t.dtype)


@pattern("dot")
def find_softmax_dot_fp32(op: Any, rw: Any) -> Any:
    """dot(convert(softmax), v) in 16 bits -> convert(dot(softmax, convert(v)))

    The weights of attention stay in f32 too. For targets whose dots compute in f32 anyway.
    """
    if not rw.options.wide_values:
        return no_match("the target has 16-bit dots (wide-values is off)")
    t = TensorType.of(op.out)
    view = rw.defining(op.a, "convert")
    if not t.dtype.is_low_precision or view is None:
        return no_match("it is no 16-bit dot of a convert")
    softmax = view.operation.operands[0]
    if rw.defining(softmax, "softmax") is None or TensorType.of(softmax).dtype != dtypes.FLOAT:
        return no_match("the convert is not of a softmax in f32")
    v = rw.op("convert", op.b, target_type=dtypes.FLOAT)
    return rw.op("convert", rw.op("dot", softmax, v), target_type=t.dtype)


def _comes_from_dot(rw: Any, v: ir.Value) -> bool:
    """Whether `v` is a dot, or pointwise ops on one that nothing else reads."""
    if not has_one_use(v):
        return False
    if rw.defining(v, "dot") is not None:
        return True
    view = rw.defining(v, *_BETWEEN)
    return view is not None and any(_comes_from_dot(rw, x) for x in view.operation.operands)


def _in_f32(rw: Any, v: ir.Value) -> ir.Value:
    """`v` computed in f32, from the dot on."""
    t = TensorType.of(v)
    if not t.dtype.is_low_precision:
        return v  # a condition
    view = rw.defining(v, *_BETWEEN)
    if view is None or not _comes_from_dot(rw, v):
        return rw.op("convert", v, target_type=dtypes.FLOAT)
    operands = [_in_f32(rw, x) for x in view.operation.operands]
    return rebuild(view, operands, t.with_dtype(dtypes.FLOAT))


@dataclass(frozen=True)
class RewriteReduce(PatternPass):
    """Attention in 16 bits: scores and softmax in f32, on some targets the weights' dot too."""

    name: ClassVar[str] = "rewrite_reduce"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_dot_softmax_fp32,
        find_softmax_dot_fp32,
    )
    wide_values: bool = option(False, "the dot of the softmax with the values is in f32 too")
