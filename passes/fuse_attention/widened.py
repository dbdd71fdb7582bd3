"""Attention of widened 16-bit operands: a kernel that reads them unwidened."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import TAGS, attention_form
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.analysis.kernel_ops import make_kernel
from mgx_mlir.passes.analysis.widened_attention import narrowed, rounded, widening
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

# fewer do not fill a tile of matrix instructions: such a kernel may be split again, and scores
# stored in 16 bits overflow
_LEAST_QUERIES = 16


@pattern(Convert)
def find_widened_attention(op: Convert, rw: Rewriter) -> Replacement:
    """convert(group of attention of convert(q), convert(k), convert(v)) -> group of q, k and v

    For a kernel that accumulates 16-bit multiplications in f32 and keeps scores and softmax in f32:
    only the weights and the result are rounded. Fewer than 16 queries, or a dynamic number, stay
    widened, and only the result is rounded in the kernel; the lowering decides whether to read them
    unwidened. A `where` with a constant between, for fully masked rows, is moved after it.
    """
    out = TensorType.of(op.operation.results[0])
    source = op.operation.operands[0]
    guard = defined_by(source, Where)
    number = None
    if guard is not None:
        number = splat(guard.operation.operands[1])
        if number is None or number.astype(out.dtype.np) != number or not has_one_use(source):
            return no_match(
                "the operand selects between other values than the attention and a number"
            )
        source = guard.operation.operands[2]
    group = defined_by(source, Group)
    if not rw.options.flash or group is None or group.tag not in TAGS:
        return no_match("the operand is no attention whose kernel keeps scores in f32")
    if out.dtype.size != 2 or not out.dtype.is_float or not has_one_use(source):
        return no_match("{} is no 16-bit float, or the attention is read elsewhere too", out)
    block = group.operation.regions[0].blocks[0]
    try:
        form = attention_form(block)
    except Unreadable as e:
        return no_match("{}", str(e))
    if TensorType.of(form.output).dtype is not dtypes.FLOAT or form.epilogue:
        return no_match("the attention is not of f32, or more is computed of it")
    narrow = widening(form, out.dtype)
    if narrow is None:
        return no_match("an operand is not widened from {}, or other ops read it, too", out.dtype)
    rw.merge_location(group)

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        if is_named(form.queries) or form.queries < _LEAST_QUERIES:
            return [rounded(block, form, arguments, out.dtype)]
        return [narrowed(block, form, narrow, arguments, out.dtype)]

    inputs = list(group.operation.operands)
    found = make_kernel("group", inputs, [out.mlir()], build, tag=group.tag).results[0]
    if guard is None:
        return [found]
    other = rw.multibroadcast(rw.literal(number, out.dtype), out.dims)
    return [rw.op("where", guard.operation.operands[0], other, found)]


__all__ = ["find_widened_attention"]
