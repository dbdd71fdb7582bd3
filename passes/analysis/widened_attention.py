"""An attention of widened 16-bit operands: the widening ops, and the attention without them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.analysis.kernel_ops import Known, copy_op
from mgx_mlir.passes.analysis.view_chains import VIEWS_AND_SLICE


def widening(form: AttentionForm, dtype: DType) -> set[ir.Operation] | None:
    """Return the converts and views from operands of `dtype` to the f32 dots.

    None where an operand is not widened from it, or has other readers than the dots.
    """
    if TensorType.of(form.output).dtype is not dtypes.FLOAT:
        return None
    chains = [_chain(v, dtype) for v in form.multiplied]
    if not all(chains):
        return None
    found = {o for chain in chains for o in chain}
    reading = {*found, form.product.owner.operation, form.output.owner.operation}
    readers = (use.owner.operation for o in found for use in o.results[0].uses)
    return found if all(reader in reading for reader in readers) else None


def source_type(form: AttentionForm) -> DType | None:
    """Return the type of 16 bits that the queries are widened from; None where they are not."""
    v = form.multiplied[0]
    while is_a(v.owner, VIEWS_AND_SLICE) and len(v.owner.operands) == 1:
        v = v.owner.operands[0]
    if not is_a(v.owner, Convert):
        return None
    found = TensorType.of(v.owner.operands[0]).dtype
    return found if found.is_float and found.size == 2 else None


def _chain(v: ir.Value, dtype: DType) -> list[ir.Operation]:
    """Return the convert from `dtype` that an operand is a view of, and the views; [] without."""
    found: list[ir.Operation] = []
    while is_a(v.owner, VIEWS_AND_SLICE) and len(v.owner.operands) == 1:
        found.append(v.owner.operation)
        v = v.owner.operands[0]
    if not is_a(v.owner, Convert) or TensorType.of(v.owner.operands[0]).dtype is not dtype:
        return []
    return [v.owner.operation, *found]


def narrowed(
    block: ir.Block,
    form: AttentionForm,
    narrow: Collection[ir.Operation],
    arguments: Sequence[ir.Value],
    dtype: DType,
) -> ir.Value:
    """Copy the body onto `arguments`, with `narrow` ops and the dots in 16 bits.

    Scores and softmax stay in f32. So does an epilogue of the second dot; without one the result
    has 16 bits.
    """
    known: Known = dict(zip(block.arguments, arguments, strict=True))
    first, second = form.product.owner, form.output.owner
    *ops, end = [o.operation for o in block.operations]
    plain = all(is_a(o, Convert) for o in form.epilogue)
    behind = False
    for op in ops:
        if is_a(op, Convert) and (op in narrow or (behind and plain)):
            known[op.results[0]] = known[op.operands[0]]
            continue
        if op == second.operation:
            known[op.operands[0]] = _converted(known[op.operands[0]], dtype)
            behind = True
        copy_op(op, known)
        made = known[op.results[0]]
        product = op in (first.operation, second.operation)
        if product or op in narrow or (behind and plain):
            made.set_type(TensorType.of(made).with_dtype(dtype).mlir())
        if product and not (behind and plain):
            known[op.results[0]] = _converted(made, dtypes.FLOAT)
    return known[end.operands[0]]


def rounded(
    block: ir.Block, form: AttentionForm, arguments: Sequence[ir.Value], dtype: DType
) -> ir.Value:
    """Copy the body onto `arguments`, with a convert of the second dot before its views."""
    known: Known = dict(zip(block.arguments, arguments, strict=True))
    *ops, end = [o.operation for o in block.operations]
    behind = False
    for op in ops:
        copy_op(op, known)
        made = known[op.results[0]]
        if behind:
            made.set_type(TensorType.of(made).with_dtype(dtype).mlir())
        if op == form.output.owner.operation:
            known[op.results[0]] = _converted(made, dtype)
            behind = True
    return known[end.operands[0]]


def _converted(x: ir.Value, dtype: DType) -> ir.Value:
    return OPS["convert"](x, target_type=dtype).operation.results[0]


__all__ = ["narrowed", "rounded", "source_type", "widening"]
