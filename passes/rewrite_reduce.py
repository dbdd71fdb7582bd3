"""rewrite_reduce: reductions in forms that keep precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import DYN, TensorType, product
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.normalize import LogSoftmax, Softmax
from mgx_mlir.dialects.migraphx.pointwise_binary import Div, Mul, Pow, SqDiff, Sub
from mgx_mlir.dialects.migraphx.pointwise_unary import Exp
from mgx_mlir.dialects.migraphx.reduce import ReduceMax, ReduceMean, ReduceSum, Reduction
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, has_one_use, no_match, pattern

_BETWEEN = ("add", "sub", "mul", "div", "where")


@pattern(Softmax)
def find_dot_softmax_fp32(op: Softmax, rw: Rewriter) -> Replacement:
    """softmax(pointwise(dot(a, b))) in 16 bits -> convert(softmax(pointwise(convert(dot(a, b)))))

    The scores of attention stay in f32 between the dot and the softmax, as a kernel's sum is not
    rounded before a convert. MIGraphX's pattern of this name.
    """
    t = TensorType.of(op.input)
    if not t.dtype.is_low_precision:
        return no_match("{} is not a 16-bit float", t.dtype)
    if not _comes_from_dot(rw, op.input):
        return no_match("the input does not come from a dot")
    wide = _in_f32(rw, op.input)
    y = rw.op("softmax", wide, axis=op.axis)
    return rw.op("convert", y, target_type=t.dtype)


@pattern(Dot)
def find_softmax_dot_fp32(op: Dot, rw: Rewriter) -> Replacement:
    """dot(convert(softmax), v) in 16 bits -> convert(dot(softmax, convert(v)))

    The weights of attention stay in f32 too. For targets whose dots compute in f32 anyway.
    """
    if not rw.options.wide_values:
        return no_match("the target has 16-bit dots (wide-values is off)")
    t = TensorType.of(op.out)
    view = rw.defining(op.a, Convert)
    if not t.dtype.is_low_precision or view is None:
        return no_match("it is no 16-bit dot of a convert")
    softmax = view.operation.operands[0]
    if rw.defining(softmax, Softmax) is None or TensorType.of(softmax).dtype != dtypes.FLOAT:
        return no_match("the convert is not of a softmax in f32")
    v = rw.op("convert", op.b, target_type=dtypes.FLOAT)
    return rw.op("convert", rw.op("dot", softmax, v), target_type=t.dtype)


def _comes_from_dot(rw: Rewriter, v: ir.Value) -> bool:
    """Return whether `v` is a dot, or single-use pointwise ops on one."""
    if not has_one_use(v):
        return False
    if rw.defining(v, Dot) is not None:
        return True
    view = rw.defining(v, *_BETWEEN)
    return view is not None and any(_comes_from_dot(rw, x) for x in view.operation.operands)


def _in_f32(rw: Rewriter, v: ir.Value) -> ir.Value:
    """Build `v` computed in f32, from the dot on."""
    t = TensorType.of(v)
    if not t.dtype.is_low_precision:
        return v  # a bool: it has no float type
    view = rw.defining(v, *_BETWEEN)
    if view is None or not _comes_from_dot(rw, v):
        return rw.op("convert", v, target_type=dtypes.FLOAT)
    operands = [_in_f32(rw, x) for x in view.operation.operands]
    return rebuild(view, operands, t.with_dtype(dtypes.FLOAT))


@pattern(LogSoftmax)
def find_logsoftmax(op: LogSoftmax, rw: Rewriter) -> Replacement:
    """logsoftmax(x) -> log(softmax(x))

    -infinity where softmax underflows.
    """
    if not rw.options.logsoftmax:
        return no_match("logsoftmax is a kernel (logsoftmax is off)")
    return rw.op("log", rw.op("softmax", op.input, axis=op.axis))


@pattern(Softmax)
def find_softmax(op: Softmax, rw: Rewriter) -> Replacement:
    """softmax(x) -> e / reduce_sum(e), e = exp(x - reduce_max(x))"""
    if not rw.options.softmax:
        return no_match("softmax is a kernel (softmax is off)")
    t = TensorType.of(op.input)
    axis = op.axis % t.rank
    e = rw.op("exp", _with_row(rw, "sub", op.input, "reduce_max", axis))
    return _with_row(rw, "div", e, "reduce_sum", axis)


def _with_row(rw: Rewriter, name: str, x: ir.Value, reduce: str, axis: int) -> ir.Value:
    """Build name(x, reduce(x) repeated along the axis)."""
    return rw.op(name, x, _repeat(rw, rw.op(reduce, x, axes=[axis]), x))


@pattern(Div)
def find_softmax_base_ops(op: Div, rw: Rewriter) -> Replacement:
    """exp(x - reduce_max(x)) / reduce_sum(..) in 16 bits -> convert(the same of convert(x))"""
    t = TensorType.of(op.out)
    if not t.dtype.is_low_precision:
        return no_match("{} is not a 16-bit float", t.dtype)
    e = rw.defining(op.a, Exp)
    total = _row_of(rw, op.b, ReduceSum)
    if e is None or total is None or total.input != op.a:
        return no_match("it is not exp over its own reduce_sum")
    shifted = rw.defining(e.input, Sub)
    if shifted is None:
        return no_match("exp is not of a difference")
    largest = _row_of(rw, shifted.b, ReduceMax)
    if largest is None or largest.input != shifted.a or list(largest.axes) != list(total.axes):
        return no_match("exp is not of x - reduce_max(x) along the same axes")
    # the exp is read here and by the sum; a third reader would recompute it
    if len(list(op.a.uses)) != 2 or not has_one_use(e.input):
        return no_match("intermediate values have other readers")
    x = rw.op("convert", shifted.a, target_type=dtypes.FLOAT)
    moved = [x, _again(rw, shifted.b, x)]
    wide = rw.op("exp", rw.op("sub", *moved))
    return rw.op("convert", rw.op("div", wide, _again(rw, op.b, wide)), target_type=t.dtype)


def _row_of(rw: Rewriter, v: ir.Value, reduce: type[Reduction]) -> Reduction | None:
    """Return the reduction that `v` repeats along the axes it reduced."""
    view = rw.defining(v, Multibroadcast)
    found = None if view is None else rw.defining(view.operation.operands[0], reduce)
    return found if found is not None and found.axes_tensor is None else None


def _again(rw: Rewriter, v: ir.Value, x: ir.Value) -> ir.Value:
    """Build the reduction and the broadcast that make `v`, of `x`."""
    below = rw.defining(rw.defining(v).operands[0])
    return _repeat(rw, rw.op(below.mnemonic, x, axes=below.axes), x)


def _repeat(rw: Rewriter, row: ir.Value, x: ir.Value) -> ir.Value:
    """Build `row` repeated to the dims of `x`."""
    t = TensorType.of(x)
    return rw.multibroadcast(row, t.dims) if t.is_static else rw.op("multibroadcast", [row, x])


@pattern(ReduceMean)
def find_reduce_mean_variance(op: ReduceMean, rw: Rewriter) -> Replacement:
    """reduce_mean((x - reduce_mean(x))^2) -> reduce_mean(x^2) - reduce_mean(x)^2

    If the mean is much larger than the deviation, the difference loses precision.
    """
    if not rw.options.variance:
        return no_match("the two-pass form is one kernel (variance is off)")
    t = TensorType.of(op.input)
    if not t.dtype.is_float:
        return no_match("integers truncate")
    square = rw.defining(op.input, Mul, Pow, SqDiff)
    if square is None or not has_one_use(op.input):
        return no_match("it is not the mean of a square with one reader")
    a, b = square.operation.operands
    if square.mnemonic == "sqdiff":
        x, mean = a, _row_of(rw, b, ReduceMean)
    else:
        exponent = splat(b) if square.mnemonic == "pow" else None
        if a != b and not (exponent is not None and exponent == 2):
            return no_match("it is not a square")
        sub = rw.defining(a, Sub)
        if sub is None:
            return no_match("it is not the square of a difference")
        x, mean = sub.a, _row_of(rw, sub.b, ReduceMean)
    if mean is None or mean.input != x or _axes(mean) != _axes(op):
        return no_match("the subtrahend is not the mean along the same axes")
    squares = rw.op("reduce_mean", rw.op("mul", x, x), axes=op.axes)
    return rw.op("sub", squares, rw.op("mul", mean.out, mean.out))


@pattern(ReduceMean)
def find_reduce_mean(op: ReduceMean, rw: Rewriter) -> Replacement:
    """reduce_mean(x) -> reduce_sum(x) / n, integers in 64 bits, 16-bit floats in f32"""
    if not rw.options.mean:
        return no_match("the mean is a kernel (mean is off)")
    t = TensorType.of(op.input)
    if op.axes_tensor is not None:
        return no_match("the axes are known at run time only")
    extents = [t.dims[a] for a in _axes(op)]
    if DYN in extents or 0 in extents:
        return no_match("it is the mean over extents that are dynamic or 0")
    wide = t.dtype
    if wide.size == 1 and wide.is_float:
        return no_match("{} has no infinity", wide)
    if wide.is_low_precision:
        wide = dtypes.FLOAT
    elif wide.is_integer:
        wide = dtypes.UINT64 if wide.is_unsigned else dtypes.INT64
    x = op.input if wide is t.dtype else rw.op("convert", op.input, target_type=wide)
    y = rw.div(rw.op("reduce_sum", x, axes=op.axes), product(extents))
    return y if wide is t.dtype else rw.op("convert", y, target_type=t.dtype)


def _axes(op: Op) -> list[int]:
    """Return the axes that a reduction reduces, from the front; all of them where it names none."""
    rank = TensorType.of(op.input).rank
    return sorted(a % rank for a in op.axes) or list(range(rank))


@dataclass(frozen=True)
class RewriteReduce(PatternPass):
    """Attention and softmax in 16 bits compute in f32; optionally reductions are decomposed.

    The decompositions are off, as the lowering has softmax, logsoftmax, the mean and the two-pass
    variance as kernels, which are at least as fast.
    """

    name: ClassVar[str] = "rewrite_reduce"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_dot_softmax_fp32,
        find_softmax_dot_fp32,
        find_logsoftmax,
        find_softmax,
        find_softmax_base_ops,
        find_reduce_mean_variance,
        find_reduce_mean,
    )
    wide_values: bool = option(False, "the dot of the softmax with the values is in f32 too")
    logsoftmax: bool = option(False, "logsoftmax in parts")
    softmax: bool = option(False, "softmax in parts")
    variance: bool = option(False, "the variance from the mean of squares")
    mean: bool = option(False, "the mean as a sum and a division")
