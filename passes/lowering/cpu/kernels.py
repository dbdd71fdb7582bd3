"""Which kernel ops the CPU has vector loops for, and their operands as the loops read them."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.open_dims import UndecidedError
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.attention import GqaRotaryEmbedding
from mgx_mlir.dialects.migraphx.fused import FusedConcat, FusedReduce, Group
from mgx_mlir.dialects.migraphx.indexing import Gather, NonZero
from mgx_mlir.dialects.migraphx.movement import Pad
from mgx_mlir.dialects.migraphx.normalize import TopK
from mgx_mlir.dialects.migraphx.reduce import ArgMax, ArgMin, PrefixScanSum
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.dialects.migraphx.selection import NonMaxSuppression
from mgx_mlir.dialects.migraphx.trees import TreeSums
from mgx_mlir.passes.analysis.access_maps import Unreadable
from mgx_mlir.passes.analysis.attention_form import CACHED, TAGS, attention_form
from mgx_mlir.passes.fuse_concat import readable
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.attention.attention import attention
from mgx_mlir.passes.lowering.cpu.copies import (
    bordered,
    elementwise,
    gathering,
    quantization,
    repeat,
    resize,
    rotary,
    transposition,
)
from mgx_mlir.passes.lowering.cpu.copies.rows import rows
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.irregular import box_suppression, places, trees
from mgx_mlir.passes.lowering.cpu.products import blocked_dot, dot_kernel
from mgx_mlir.passes.lowering.cpu.rows import arg_extreme, group_rows, prefix_scan, row_kernel, topk
from mgx_mlir.passes.lowering.cpu.windows import convolution_kernel, pooling_kernel
from mgx_mlir.passes.lowering.expr import Compute, View
from mgx_mlir.passes.lowering.named_body import NamedBody
from mgx_mlir.passes.lowering.registry import Results
from mgx_mlir.passes.lowering.views import reshape_tensor


def lower(e: LoweringContext, op: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    """Return the results of a kernel as vector loops; None where there are none for it.

    The operands are known to `e` under the body's arguments; nothing else has been lowered.
    """
    if is_a(op, FusedConcat):
        return _concat(e, op, body)
    for family in (
        _rows,
        _attention,
        _gather,
        convolution_kernel.lower,
        dot_kernel.lower,
        blocked_dot.lower,
        pooling_kernel.lower,
        quantization.lower,
        elementwise.lower,
    ):
        found = family(e, op, body)
        if found is not None:
            return found
    return None


def _rows(e: LoweringContext, op: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    isa = isa_of(e.options.arch)
    if isa is None or not is_a(op, FusedReduce):
        return None
    form = row_kernel.form_of(e, op, body)
    if form is None:
        return None
    return (group_rows.plan_of(e, form, isa) or row_kernel.Plan(e, form, isa)).run()


def lower_op(
    e: LoweringContext, op: ir.Operation, operands: Sequence[Results | None]
) -> list[ir.Value] | None:
    """Return the results of an op outside of kernels as vector loops; None: there are none."""
    isa = isa_of(e.options.arch)
    x = operands[0] if operands else None
    if isa is None or not isinstance(x, ir.Value):
        return None
    view = op.opview
    if isinstance(view, ArgMax | ArgMin):
        return arg_extreme.lower(e, view, x, isa)
    if isinstance(view, Resize):
        target = operands[1]
        assert target is None or isinstance(target, ir.Value)
        return resize.lower(e, view, x, target, isa)
    if isinstance(view, PrefixScanSum):
        return prefix_scan.lower(e, view, x, isa)
    if isinstance(view, GqaRotaryEmbedding):
        found = rotary.lower(e, view, _tensors(operands), isa)
        return None if found is None else [found]
    if isinstance(view, NonMaxSuppression):
        return box_suppression.lower(e, view, isa)
    if isinstance(view, Gather):
        indices = operands[1]
        assert isinstance(indices, ir.Value)
        return gathering.lower(e, view, x, indices, isa)
    if isinstance(view, Pad):
        return bordered.lower(e, view, x, isa)
    if isinstance(view, NonZero):
        return places.lower(e, view, x, isa)
    if isinstance(view, TreeSums):
        return trees.lower(e, view, _tensors(operands))
    return topk.lower(e, view, x, isa) if isinstance(view, TopK) else None


def _tensors(operands: Sequence[Results | None]) -> list[ir.Value]:
    """Return operands that are one tensor each."""
    return [v for v in operands if isinstance(v, ir.Value)]


def lower_pointwise(e: LoweringContext, x: Compute) -> ir.Value | None:
    """Return a pointwise op outside of kernels as vector loops; None: there are none for it."""
    return quantization.lower_op(e, x)


def lower_view(e: LoweringContext, x: View) -> ir.Value | None:
    """Return the tensor of a view as vector loops; None: there are none for it."""
    isa = isa_of(e.options.arch)
    if isa is None:
        return None
    found = repeat.lower(e, x, isa)
    return transposition.lower(e, x, isa) if found is None else found


def _concat(e: LoweringContext, op: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    results = list(body.operations)[-1].operation.operands
    run = readable(results[0], list(body.arguments)) if len(results) == 1 else None
    if run is None:
        return None
    found = rows(results[0], operand_tensors(e, op, body), run)
    t = TensorType.of(results[0])
    if t.dtype.is_bool:
        found = e.cast_tensor(found, dtypes.INT8, dtypes.BOOL)
    return [reshape_tensor(e, found, t, list(t.dims))]


def _attention(e: LoweringContext, op: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    if not is_a(op, Group) or op.opview.tag not in TAGS:
        return None
    named = NamedBody(e, op, body, operand_tensors(e, op, body))
    try:
        form = attention_form(named.block)
        named.check_sizes()
        cached = op.opview.tag == CACHED
        made = attention(e, form, named, TensorType.of(op.results[0]), cached=cached)
    except (Unreadable, UndecidedError):
        return None
    finally:
        named.forget()
    return [made]


def _gather(e: LoweringContext, op: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    """Lower a kernel that is a gather alone."""
    isa, ops = isa_of(e.options.arch), list(body.operations)
    if isa is None or len(ops) != 2 or not isinstance(view := ops[0], Gather):
        return None
    operands: dict[ir.Value, ir.Value] = dict(zip(body.arguments, op.operands, strict=True))
    if view.data not in operands or view.indices not in operands:
        return None
    tensors = [e.tensor(operands[v]) for v in (view.data, view.indices)]
    found = gathering.lower(e, view, tensors[0], tensors[1], isa)
    if found is not None:
        e.sizes.relations_of(view.operation, Gather)
    return found


def operand_tensors(
    e: LoweringContext, op: ir.Operation, body: ir.Block
) -> dict[ir.Value, ir.Value]:
    """Return the lowered tensor of each block argument; bools as bytes."""
    out: dict[ir.Value, ir.Value] = {}
    for arg, v in zip(body.arguments, op.operands, strict=True):
        value = e.tensor(v)
        if TensorType.of(v).dtype.is_bool:
            value = e.cast_tensor(value, dtypes.BOOL, dtypes.INT8)
        out[arg] = value
    return out
