"""The dispatch region of a kernel: its operands, the extents of its results, and its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.ir import ir, tensor
from mgx_mlir.core.op import BroadcastOp, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import normalize_axes
from mgx_mlir.dialects.migraphx.fused import FusedConcat, FusedReduce, PointwiseKernel
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.hardware.architectures import vendor_of
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View
from mgx_mlir.passes.lowering.gpu import pointwise_tiles, rows
from mgx_mlir.passes.lowering.gpu.matmul import image_windows
from mgx_mlir.passes.lowering.gpu.matmul.gathered_convolution import WindowRows
from mgx_mlir.passes.lowering.gpu.matmul.stored_rows import rows_of
from mgx_mlir.passes.lowering.iree import iree_ops, regions
from mgx_mlir.passes.lowering.ops.windows import axes_of
from mgx_mlir.passes.lowering.scalar import signless


def broadcast_operand(e: LoweringContext, arg: ir.Value, v: ir.Value) -> Expr | None:
    """Return an operand that its kernel only broadcasts, without its extents of 1.

    Such an extent is indexed by a constant, so its map is not a projection, and IREE does not tile
    the anchor with its epilogue.
    """
    t = TensorType.of(v)
    kept = [i for i, d in enumerate(t.dims) if d != 1]
    if not t.is_static or len(kept) == t.rank:
        return None
    if any(not is_a(use.owner, BroadcastOp) for use in arg.uses):
        return None
    small = t.with_dims(t.dims[i] for i in kept)
    value = views.reshape_tensor(e, e.tensor(v), small, list(small.dims))
    return View(t, Leaf(small, value), tuple(kept), list(t.dims))


def result_extents(
    e: LoweringContext, op: ir.Operation, body: ir.Block
) -> list[list[Extent]] | None:
    """Return the extents of a kernel's results from its operands.

    None where they depend on values that the body computes, and where a region does not compile.
    """
    if is_a(op, FusedConcat):
        return None  # a region cannot have insert_slice
    if regions.is_two_dots(op):
        return None  # two dots take minutes to compile for a GPU
    anchors = [o for o in body.operations if o.operation.name in regions.ANCHORS]
    # a convolution reads through transposes
    anchor = next((o for o in anchors if is_a(o, Convolution)), anchors[0] if anchors else None)
    static = all(TensorType.of(r).is_static for r in op.results)
    windows = _dynamic_windows(e, op, body, anchor)
    tiled = bool(windows) or (anchor is not None and regions.tiles_at_run_time(anchor))
    if not static and not (is_a(op, PointwiseKernel) or tiled or _has_fixed_sums(e, op)):
        # a region with dynamic dims around a reduction of these or a window does not compile
        return None
    if _reduces_dynamic_dims(e, op):
        return None
    refused = (regions.is_padded_row, regions.pads_some_axes)
    if anchor is not None and not windows and any(r(anchor) for r in refused):
        return None
    if any(_pads_in_memory(e, o) for o in body.operations):
        return None
    out: list[list[Extent]] = []
    for r in op.results:
        t = TensorType.of(r)
        extents: list[Extent] = list(t.dims)
        for axis, d in enumerate(t.dims):
            if d == DYN and windows:
                extents[axis] = windows[axis]
            elif d == DYN:
                found = _extent_source(op, body, anchor, t, axis)
                if found is None:
                    return None
                extents[axis] = e.extent(e.tensor(found[0]), found[1])
        out.append(extents)
    return out


def _has_fixed_sums(e: LoweringContext, op: ir.Operation) -> bool:
    """Return whether a kernel for a GPU reduces along fixed dims alone: its rows are dynamic."""
    if e.options.target != "gpu" or not is_a(op, FusedReduce):
        return False
    kinds = [TensorType.of(v) for v in (*op.operands, *op.results)]
    axes = normalize_axes(op.opview.axes, max(t.rank for t in kinds))
    return all(t.dims[a] != DYN for t in kinds for a in axes if a < t.rank)


def _reduces_dynamic_dims(e: LoweringContext, op: ir.Operation) -> bool:
    """Return whether a kernel reduces dynamic dims on an NVIDIA GPU, which IREE does not distribute
    beside other loops.
    """
    if vendor_of(e.options.arch) != "nvidia" or not is_a(op, FusedReduce):
        return False
    return not _has_fixed_sums(e, op)


def _dynamic_windows(
    e: LoweringContext, op: ir.Operation, body: ir.Block, anchor: ir.OpView | None
) -> list[Extent]:
    """Return the extents of a convolution's result [n, oh, ow], where it becomes a matmul of
    windows of an operand with dynamic sizes; empty for others."""
    if not isinstance(anchor, Convolution | QuantConvolution):
        return []
    if isinstance(e.scope.exprs.get(anchor.weights), WindowRows):
        batch = _batch_of(e, anchor.input)
        return [] if batch is None else [batch, *TensorType.of(anchor.out).dims[1:]]
    weights = rows_of(e, e.expr(anchor.weights))
    image = _operand_of(op, body, anchor.input)
    if weights is None or image is None or not image_windows.takes(e, anchor):
        return []
    n, *size = e.extents(e.tensor(image))[:-1]
    kernel = ir.RankedTensorType(weights.type).shape[1:-1]
    return [n, *(a.count(e) for a in axes_of(e, anchor, size, kernel))]


def _batch_of(e: LoweringContext, v: ir.Value) -> Extent | None:
    """Return the extent of the first axis of a value that a kernel computes."""
    axis = 0
    while not isinstance(v.owner, ir.Block):
        op = v.owner
        if is_a(op, Transpose):
            axis = op.opview.permutation[axis]
        elif TensorType.of(op.operands[0]).dims != TensorType.of(v).dims:
            return None
        v = op.operands[0]
    return e.expr_extents(e.expr(v))[axis]


def _pads_in_memory(e: LoweringContext, op: ir.OpView) -> bool:
    """Return whether a convolution pads an input that its kernel computes."""
    if not regions.pads_computed(op) or op.out in e.plan.padded_inputs:
        return False
    return not isinstance(e.scope.exprs.get(op.weights), WindowRows)


def _extent_source(
    op: ir.Operation, body: ir.Block, anchor: ir.OpView | None, t: TensorType, axis: int
) -> tuple[ir.Value, int] | None:
    """Return the operand, and its dim, that has the extent of a result's dynamic dim."""
    if anchor is None:
        candidates = [(v, axis) for v in op.operands]
    elif is_a(anchor, Dot):
        side = 1 if axis == t.rank - 1 else 0
        candidates = [(_operand_of(op, body, anchor.operation.operands[side]), axis)]
    elif axis == 0:  # the batch of a convolution or a pooling
        candidates = [(_operand_of(op, body, anchor.operation.operands[0]), 0)]
    else:
        return None
    for v, i in candidates:
        if v is not None and TensorType.of(v).rank == t.rank and TensorType.of(v).dims[i] == DYN:
            return v, i
    return None


def dispatched(
    e: LoweringContext,
    op: ir.Operation,
    extents: Sequence[Sequence[Extent]],
    build: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """Return a kernel's results, of these extents, which `build` makes in a region.

    A result that only copies an operand is replaced by it, as IREE has no code for a copying loop.
    If all are, there is no kernel.
    """
    types = [
        ir.RankedTensorType.get(e.static_dims(own), signless(TensorType.of(r).dtype))
        for r, own in zip(op.results, extents, strict=True)
    ]
    # built in a region without results, whose block is moved later, so that equal results are
    # merged
    draft = iree_ops.dispatch_region([], [])
    inner = draft.regions[0].blocks.append()
    with ir.InsertionPoint(inner):
        e.in_region = True
        try:
            results = list(build())
        finally:
            e.in_region = False
        results = rows.share(e, inner, results)
        pointwise_tiles.give(e.options, inner)
        results = [_copied(r, inner) or r for r in results]
        results = [
            r if r.type == t or not _is_of(r, inner) else tensor.CastOp(t, r).result
            for r, t in zip(results, types, strict=True)
        ]
        unique = [r for r in dict.fromkeys(results) if _is_of(r, inner)]
        iree_ops.flow_return(unique)
    if not unique:
        draft.erase()
        e.kernels.pop()
        return [_cast(r, t) for r, t in zip(results, types, strict=True)]
    dims = [d for r in unique for d in e.dynamic_values(extents[results.index(r)])]
    with ir.InsertionPoint(draft):
        region = iree_ops.dispatch_region([r.type for r in unique], dims)
    inner.append_to(region.regions[0])
    draft.erase()
    return [
        region.results[unique.index(r)] if r in unique else _cast(r, t)
        for r, t in zip(results, types, strict=True)
    ]


def _cast(v: ir.Value, t: ir.Type) -> ir.Value:
    return v if v.type == t else tensor.CastOp(t, v).result


def _is_of(v: ir.Value, block: ir.Block) -> bool:
    """Return whether an op of this block makes a value."""
    return not isinstance(v.owner, ir.Block) and v.owner.operation.block == block


def _copied(v: ir.Value, block: ir.Block) -> ir.Value | None:
    """Return the outer tensor that a loop of this block copies, else None."""
    if not _is_of(v, block) or v.owner.name != "linalg.generic":
        return None
    op = v.owner.operation
    inner = op.regions[0].blocks[0]
    given = inner.operations[len(inner.operations) - 1].operands[0]
    if len(op.results) != 1 or not isinstance(given.owner, ir.Block) or given.owner != inner:
        return None
    at = ir.BlockArgument(given).arg_number
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    read = op.operands[at]
    if maps[at] != maps[len(maps) - 1] or read.type != v.type or _is_of(read, block):
        return None
    return read


def _operand_of(op: ir.Operation, body: ir.Block, v: ir.Value) -> ir.Value | None:
    """Return the kernel's operand behind a block argument."""
    for arg, operand in zip(body.arguments, op.operands, strict=True):
        if arg == v:
            return operand
    return None
