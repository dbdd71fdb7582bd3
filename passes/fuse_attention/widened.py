"""Attention of 16-bit operands that were widened for it: a kernel that reads them as they are."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.open_dims import is_named
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import AttentionForm, attention_form
from mgx_mlir.passes.analysis.kernel_ops import Known, copy_op, make_kernel
from mgx_mlir.passes.analysis.view_chains import VIEWS_AND_SLICE
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
    users,
)

# fewer are no tile of matrix instructions: such a kernel may be taken apart again, and scores that
# stand in memory in 16 bits overflow
_LEAST_QUERIES = 16


@pattern(Convert)
def find_widened_attention(op: Convert, rw: Rewriter) -> Replacement:
    """convert(group of attention of convert(q), convert(k), convert(v)) -> group of q, k and v

    For a kernel that sums products of 16 bits in f32 and keeps scores and softmax so: the weights
    are rounded as the result is, and nothing else.
    """
    out = TensorType.of(op.operation.results[0])
    source = op.operation.operands[0]
    group = defined_by(source, Group)
    if not rw.options.flash or group is None or group.tag != "attention":
        return no_match("the operand is no attention whose kernel keeps scores in f32")
    if out.dtype.size != 2 or not out.dtype.is_float or not has_one_use(source):
        return no_match("{} is no 16-bit float, or the attention is read elsewhere too", out)
    block = group.operation.regions[0].blocks[0]
    try:
        form = attention_form(block)
    except Unreadable as e:
        return no_match("{}", e)
    if is_named(form.queries) or form.queries < _LEAST_QUERIES:
        return no_match("{} queries are no tile", form.queries)
    if TensorType.of(form.output).dtype is not dtypes.FLOAT or form.epilogue:
        return no_match("the attention is not of f32, or more is computed of it")
    chains = [_chain(v, out.dtype) for v in form.multiplied]
    if not all(chains):
        return no_match("the operands are not widened from {}", out.dtype)
    narrow = {o for chain in chains for o in chain}
    reading = {*narrow, form.product.owner.operation, form.output.owner.operation}
    if any(user not in reading for o in narrow for user in users(o.results[0])):
        return no_match("an operand is read by other ops than the products, too")
    rw.merge_location(group)

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        return [_copied(rw, block, form, narrow, arguments, out)]

    inputs = list(group.operation.operands)
    return list(make_kernel("group", inputs, [out.mlir()], build, tag=group.tag).results)


def _chain(v: ir.Value, dtype: DType) -> list[ir.Operation]:
    """Return the convert from `dtype` that an operand is a view of, and the views; [] without."""
    found: list[ir.Operation] = []
    while is_a(v.owner, VIEWS_AND_SLICE) and len(v.owner.operands) == 1:
        found.append(v.owner.operation)
        v = v.owner.operands[0]
    if not is_a(v.owner, Convert) or TensorType.of(v.owner.operands[0]).dtype is not dtype:
        return []
    return [v.owner.operation, *found]


def _copied(
    rw: Rewriter,
    block: ir.Block,
    form: AttentionForm,
    narrow: set[ir.Operation],
    arguments: Sequence[ir.Value],
    out: TensorType,
) -> ir.Value:
    """Copy the body onto `arguments`, with `narrow` ops, the products and the result in 16 bits."""
    known: Known = dict(zip(block.arguments, arguments, strict=True))
    first, second = form.product.owner, form.output.owner
    *ops, end = [o.operation for o in block.operations]
    behind = False
    for op in ops:
        if op in narrow and is_a(op, Convert):
            known[op.results[0]] = known[op.operands[0]]
            continue
        if op == second.operation:
            weights = known[op.operands[0]]
            known[op.operands[0]] = rw.op("convert", weights, target_type=out.dtype)
            behind = True
        copy_op(op, known)
        made = known[op.results[0]]
        if behind or op in narrow or op == first.operation:
            made.set_type(TensorType.of(made).with_dtype(out.dtype).mlir())
        if op == first.operation:
            known[op.results[0]] = rw.op("convert", made, target_type=dtypes.FLOAT)
    return known[end.operands[0]]


__all__ = ["find_widened_attention"]
