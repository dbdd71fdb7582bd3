"""rewrite_dot: dots with a broadcast matrix as dots of rows; reshapes move past other ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Op, Pointwise, is_a, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType, product
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.normalize import LogSoftmax, Softmax
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.dialects.migraphx.quant import QuantDot
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import Flatten, Reshape, Squeeze, Unsqueeze
from mgx_mlir.passes.analysis.channels_last import to_first, to_last
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.passes.analysis.row_views import is_solvable, reshaped, rows_of
from mgx_mlir.passes.analysis.shared_heads import repeated
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
    users,
)


@pattern(Dot, QuantDot)
def find_dot_broadcast_rows(op: Dot | QuantDot, rw: Rewriter) -> Replacement:
    """dot(x, broadcast(w)) -> reshape(dot(reshape(x), w)); quant_dot likewise"""
    if len(op.operands) > 2:
        return no_match("its scales have the operands' dims")
    a, out = TensorType.of(op.a), TensorType.of(op.out)
    if out.rank < 3 or DYN in (a.dims[-1], out.dims[-1]) or a.dims[:-1] != out.dims[:-1]:
        return no_match("rank below 3, or dynamic columns")
    if not (is_solvable(a) and is_solvable(out)):
        return no_match("an extent of 0, or several dynamic dims")
    w = _matrix_below(rw, op.b)
    if w is None:
        return no_match("b is not one broadcast matrix")
    flat = reshaped(rw, op.a, (rows_of(a.dims[:-1]), a.dims[-1]))
    return reshaped(rw, rw.op(mnemonic(op), flat, w), out.dims)


def _matrix_below(rw: Rewriter, v: ir.Value) -> ir.Value | None:
    """Return the rank-2 value that `v` repeats over its leading dims."""
    view = rw.defining(v, Multibroadcast, Broadcast)
    if view is None:
        t = TensorType.of(v)
        if all(d == 1 for d in t.dims[:-2]) and t.is_static:
            return rw.op("reshape", v, dims=list(t.dims[-2:])) if _is_literal(v) else None
        return None
    x = view.operation.operands[0]
    t, out = TensorType.of(x), TensorType.of(v)
    if is_a(view, Broadcast) and view.axis + t.rank != out.rank:
        return None
    if t.rank < 2 or t.dims[-2:] != out.dims[-2:] or any(d != 1 for d in t.dims[:-2]):
        return None
    return x if t.rank == 2 else rw.op("reshape", x, dims=list(t.dims[-2:]))


@pattern(Dot)
def find_dot_shared_heads(op: Dot, rw: Rewriter) -> Replacement:
    """dot of one row for each of `h * n` heads, repeat(b, n) -> dot of n rows for h heads, b

    For keys and values that heads share. Their repeated form would be written to memory.
    """
    a, out = TensorType.of(op.a), TensorType.of(op.out)
    if not rw.options.shared_heads:
        return no_match("it is not asked for")
    if a.dtype is not dtypes.FLOAT or out.rank < 3 or a.dims[-2] != 1 or not out.is_static:
        return no_match("its rows are not one of f32, or a dim is dynamic")
    found = repeated(op.b)
    if found is None or found.axis != out.rank - 3:
        return no_match("b is not repeated for heads that follow each other")
    order = [axis for axis in found.axes if axis is not None]
    kept = [n for n, i in zip(TensorType.of(found.value).dims, found.axes, strict=True)
            if i is not None]  # fmt: skip
    lead, last = list(range(out.rank - 2)), [out.rank - 2, out.rank - 1]
    if order not in ([*lead, *last], [*lead, *last[::-1]]):
        return no_match("the heads of b are not its first axes")
    batch = product(kept[:-2])
    b = reshaped(rw, found.value, (batch, *kept[-2:]))
    if order[-1] != last[-1]:
        b = rw.op("transpose", b, permutation=[0, 2, 1])
    grouped = reshaped(rw, op.a, (batch, found.times, a.dims[-1]))
    return reshaped(rw, rw.op("dot", grouped, b), out.dims)


def _is_literal(v: ir.Value) -> bool:
    owner = v.owner
    return is_literal(owner)


@pattern(Dot)
def find_dot_batch(op: Dot, rw: Rewriter) -> Replacement:
    """dot of rank 4 and above -> reshape(dot of rank 3(reshape(a), reshape(b)))

    Not for dots of an attention, as the ops between them have all dims, and would be separated from
    them.
    """
    a, b, out = TensorType.of(op.a), TensorType.of(op.b), TensorType.of(op.out)
    if out.rank < 4 or not (a.is_static and b.is_static):
        return no_match("rank below 4 or dynamic dims")
    if 0 in a.dims or 0 in b.dims:
        return no_match("an extent of 0")
    if all(d % rw.options.aligned == 0 for d in (*a.dims[-2:], b.dims[-1])):
        return no_match("all of M, K and N are whole tiles")
    if _is_of_attention(op):
        return no_match("a softmax precedes or follows it")
    batch = product(out.dims[:-2])
    x = rw.op("reshape", op.a, dims=[batch, *a.dims[-2:]])
    y = rw.op("reshape", op.b, dims=[batch, *b.dims[-2:]])
    return rw.op("reshape", rw.op("dot", x, y), dims=list(out.dims))


def _is_of_attention(op: Dot) -> bool:
    """Return whether a dot's left operand comes from a softmax, or its only use is a softmax."""
    v = op.a
    while (view := defined_by(v, Convert, Where)) is not None:
        v = view.operation.operands[-1]
    if defined_by(v, Softmax) is not None:
        return True
    v = op.out
    while has_one_use(v):
        user = users(v)[0]
        if is_a(user, Softmax):
            return True
        if not is_a(user, Pointwise):
            break
        v = user.results[0]
    return False


@pattern(Pointwise)
def find_pointwise_reshape(op: Pointwise, rw: Rewriter) -> Replacement:
    """pointwise(reshape(x), y) -> reshape(pointwise(x, reshape(y)))"""
    out = TensorType.of(op.operation.results[0])
    operands = list(op.operation.operands)
    below = next((x for v in operands if (x := _flat_below(rw, v, out)) is not None), None)
    if below is None:
        return no_match("no operand has its leading dims split by a reshape")
    new: list[ir.Value] = []
    for v in operands:
        moved = _as_flat(rw, v, out, below)
        if moved is None:
            return no_match("an operand cannot be read with its leading dims as one")
        new.append(moved)
    y = rebuild(op, new, out.with_dims(TensorType.of(below).dims))
    return reshaped(rw, y, out.dims)


def _flat_below(rw: Rewriter, v: ir.Value, out: TensorType) -> ir.Value | None:
    """Return the [n, ..] value of rank 2 or 3 whose first dim `v` splits: `v` = reshape of it."""
    view = rw.defining(v, Reshape)
    if view is None or view.dims_tensor is not None or not is_solvable(out):
        return None
    t = TensorType.of(view.input)
    if t.rank not in (2, 3) or t.rank >= out.rank or DYN in t.dims[1:]:
        return None
    return view.input if t.dims[1:] == out.dims[1 - t.rank :] else None


def _as_flat(rw: Rewriter, v: ir.Value, out: TensorType, below: ir.Value) -> ir.Value | None:
    """Return `v`, of `out`'s dims, with `below`'s dims: reshaped, or broadcast again."""
    flat = TensorType.of(below).dims
    view = rw.defining(v, BroadcastOp)
    if view is None:
        return reshaped(rw, v, flat)
    x = view.operation.operands[0]
    t = TensorType.of(x)
    if not t.is_static:
        return None
    if t.elements == 1:
        y = x if t.dims == (1,) else rw.op("reshape", x, dims=[1])
        return _repeat(rw, y, below)
    if is_a(view, Broadcast):
        full = [1] * view.axis + list(t.dims) + [1] * (out.rank - view.axis - t.rank)
    else:
        full = [1] * (out.rank - t.rank) + list(t.dims)
    keep = len(flat) - 1
    lead, tail = full[:-keep], full[-keep:]
    if all(d == 1 for d in lead):
        dims = [1, *tail]
    elif tuple(lead) == out.dims[:-keep]:
        dims = [flat[0], *tail]
    else:
        return None
    return _repeat(rw, x if t.dims == tuple(dims) else rw.op("reshape", x, dims=dims), below)


def _repeat(rw: Rewriter, x: ir.Value, like: ir.Value) -> ir.Value:
    """Build `x` broadcast to the dims of `like`."""
    t = TensorType.of(like)
    if not t.is_static:
        return rw.op("multibroadcast", [x, like])
    return x if TensorType.of(x).dims == t.dims else rw.multibroadcast(x, t.dims)


@pattern(NumberReduction)
def find_reduce_rows(op: NumberReduction, rw: Rewriter) -> Replacement:
    """reduce(reshape(x), last axis) -> reshape(reduce(x, last axis))"""
    operands = list(op.operation.operands)
    t, out = TensorType.of(operands[0]), TensorType.of(op.out)
    if len(operands) != 1 or [a % t.rank for a in op.axes] != [t.rank - 1]:
        return no_match("it does not reduce the last axis alone")
    x = _flat_below(rw, operands[0], t)
    if x is None:
        return no_match("the input's leading dims are not split by a reshape")
    y = rw.op(op.mnemonic, x, axes=[TensorType.of(x).rank - 1])
    return reshaped(rw, y, out.dims)


@pattern(Softmax, LogSoftmax)
def find_softmax_rows(op: Softmax | LogSoftmax, rw: Rewriter) -> Replacement:
    """softmax(reshape(x), last axis) -> reshape(softmax(x, last axis))"""
    t = TensorType.of(op.input)
    if op.axis % t.rank != t.rank - 1:
        return no_match("it is not along the last axis")
    x = _flat_below(rw, op.input, t)
    if x is None:
        return no_match("the input's leading dims are not split by a reshape")
    y = rw.op(op.mnemonic, x, axis=TensorType.of(x).rank - 1)
    return reshaped(rw, y, TensorType.of(op.out).dims)


@pattern(Convolution)
def find_1x1_convolution(op: Convolution, rw: Rewriter) -> Replacement:
    """convolution(x, w of 1x1) -> dot of rows(x as pixels by channels, w), w constant"""
    x, w, out = TensorType.of(op.input), TensorType.of(op.weights), TensorType.of(op.out)
    if not rw.options.convolutions and not (
        rw.options.dynamic_images and _is_dynamic_image(op, out)
    ):
        return no_match("the lowering chooses (convolutions is off)")
    spatial = x.rank - 2
    window = w.dims[:spatial] if op.channels_last else w.dims[2:]
    if any(d != 1 for d in window) or op.group != 1:
        return no_match("its window is not 1x1, or it has groups")
    if any(op.padding) and op.padding_mode == "default_":
        return no_match("it has padding")
    if any(s != 1 for s in op.stride) and not rw.options.strided:
        return no_match("its pixels are not contiguous (strided is off)")
    if not (x.is_static and out.is_static) or 0 in x.dims or 0 in out.dims:
        return no_match("{} has dims that are dynamic or 0", x)
    if not is_constant(op.weights):
        return no_match("the weights are not constant")
    if x.dtype.is_integer:
        return no_match("a dot of {} is not faster", x.dtype)
    y = op.input if op.channels_last else rw.op("transpose", op.input, permutation=to_last(x.rank))
    if any(s != 1 for s in op.stride):
        y = rw.op("step", y, axes=list(range(1, 1 + spatial)), steps=op.stride)
    ci, co = (w.dims[-2:]) if op.channels_last else (w.dims[1], w.dims[0])
    pixels = TensorType.of(y).dims[:-1]
    matrix = rw.op("reshape", op.weights, dims=[ci, co] if op.channels_last else [co, ci])
    if not op.channels_last:
        matrix = rw.op("transpose", matrix, permutation=[1, 0])
    rows = rw.op("dot", reshaped(rw, y, (product(pixels), ci)), matrix)
    y = reshaped(rw, rows, (*pixels, co))
    return y if op.channels_last else rw.op("transpose", y, permutation=to_first(x.rank))


def _is_dynamic_image(op: Convolution, out: TensorType) -> bool:
    """Return whether an image is f32 with dynamic height or width, whose pixels as one dim tile
    better.
    """
    pixels = out.dims[1:-1] if op.channels_last else out.dims[2:]
    return out.dtype is dtypes.FLOAT and any(map(is_named, pixels))


_LARGEST = {dtypes.INT8: 128, dtypes.UINT8: 255}
_EXACT = 1 << 24  # up to here f32 has every integer


@pattern(QuantDot)
def find_exact_bytes(op: QuantDot, rw: Rewriter) -> Replacement:
    """quant_dot(x, y) -> convert(dot(convert(x), convert(y))), where no sum is rounded

    For two computed operands, as in attention, since 8-bit kernels need packed weights.
    """
    if not rw.options.exact_bytes or len(op.operands) > 2:
        return no_match("the target has 8-bit matmuls, or the dot has scales")
    a, b = TensorType.of(op.a), TensorType.of(op.b)
    if a.dtype not in _LARGEST or b.dtype not in _LARGEST:
        return no_match("operands are not of 8 bits")
    if is_constant(op.b):
        return no_match("the second operand is constant")
    depth = a.dims[-1]
    if depth == DYN or is_named(depth) or depth * _LARGEST[a.dtype] * _LARGEST[b.dtype] > _EXACT:
        return no_match("sums over a depth of {} may be inexact in f32", depth)
    wide = [rw.op("convert", v, target_type=dtypes.FLOAT) for v in (op.a, op.b)]
    return rw.op("convert", rw.op("dot", *wide), target_type=TensorType.of(op.out).dtype)


@pattern(Reshape, Squeeze, Unsqueeze, Flatten)
def find_reshape_pair(op: Op, rw: Rewriter) -> Replacement:
    """reshape(reshape(x)) -> reshape(x)"""
    out = TensorType.of(op.out)
    if not is_solvable(out):
        return no_match("an extent of 0, or several dynamic dims")
    x = op.operation.operands[0]
    inner = rw.defining(x, Reshape, Squeeze, Unsqueeze, Flatten)
    if inner is None:
        if is_a(op, Reshape) and TensorType.of(x).dims == out.dims:
            return x
        return no_match("input is not a reshape")
    source = inner.operation.operands[0]
    if TensorType.of(source).dims == out.dims:
        return source
    return reshaped(rw, source, out.dims)


@dataclass(frozen=True)
class RewriteDot(PatternPass):
    """Batched dots with one matrix as dots of rows; reshapes move past the following ops."""

    name: ClassVar[str] = "rewrite_dot"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_dot_broadcast_rows,
        find_dot_shared_heads,
        find_dot_batch,
        find_pointwise_reshape,
        find_reduce_rows,
        find_softmax_rows,
        find_1x1_convolution,
        find_exact_bytes,
        find_reshape_pair,
    )
    aligned: int = option(16, "a batched dot stays as it is when M, K, N are multiples of this")
    convolutions: bool = option(False, "1x1 convolutions too; the lowering does so where it pays")
    dynamic_images: bool = option(False, "those of images of dynamic height or width")
    strided: bool = option(True, "also those with strides, after a step")
    shared_heads: bool = option(False, "one row of f32 by keys that heads share, without copies")
    exact_bytes: bool = option(False, "8-bit dots of two computed operands in f32")
    max_iterations: int = option(-1, "sweeps over the module; -1: until nothing changes")
