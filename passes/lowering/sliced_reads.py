"""Elements of slices, as elements of the sliced tensors (docs/iree-hazards.md, hazards 27 and 41).

IREE loads a slice as a view of the sliced tensor. A vector of elements at computed indices is then
read as if the slice's rows lay side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir, tensor
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.index_builder import Index, IndexBuilder

_SAME_INDICES = ("tensor.cast", "flow.tensor.tie_shape")

_VIEWS = (tensor.ExtractSliceOp, tensor.ExpandShapeOp, tensor.CollapseShapeOp)


def behind(source: ir.Value, where: Sequence[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    """Return the tensor whose element at `where` is one of a slice, and the indices there.

    Other tensors are returned as they are, slices too whose elements lie side by side.
    """
    k, at = IndexBuilder(), list[Index](where)
    while _is_apart(source):
        op = _op(source)
        if isinstance(op, tensor.ExtractSliceOp):
            at = _in_whole(k, op, at)
        elif isinstance(op, tensor.ExpandShapeOp):
            at = _in_collapsed(k, op, at)
        elif isinstance(op, tensor.CollapseShapeOp):
            at = _in_expanded(k, op, at)
        source = source.owner.operands[0]
    return source, [k.index(i) for i in at]


def _op(value: ir.Value) -> ir.OpView | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.opview


def _is_apart(value: ir.Value) -> bool:
    """Return whether the elements of a value may lie apart in a tensor that it is a view of."""
    while (op := _op(value)) is not None:
        if isinstance(op, tensor.ExtractSliceOp) and not _is_one_piece(op):
            return True
        if not isinstance(op, _VIEWS) and op.operation.name not in _SAME_INDICES:
            return False
        value = op.operation.operands[0]
    return False


def _is_one_piece(op: tensor.ExtractSliceOp) -> bool:
    """Return whether the elements of a slice lie side by side in the sliced tensor."""
    sizes, whole = list(op.static_sizes), list(ir.RankedTensorType(op.source.type).shape)
    if DYN in sizes or DYN in whole[1:] or any(step != 1 for step in op.static_strides):
        return False
    first = next((i for i, n in enumerate(sizes) if n != 1), len(sizes))
    return sizes[first + 1 :] == whole[first + 1 :]


def _in_whole(k: IndexBuilder, op: tensor.ExtractSliceOp, at: list[Index]) -> list[Index]:
    """Return the indices in the sliced tensor; dims of 1 that the slice drops have index 0."""
    dynamic, left = iter(op.offsets), iter(at)
    dims = list(ir.RankedTensorType(op.result.type).shape)
    found = list[Index]()
    for size, step, offset in zip(
        op.static_sizes, op.static_strides, op.static_offsets, strict=True
    ):
        start = next(dynamic) if offset == DYN else offset
        if dims and dims[0] == size:
            dims.pop(0)
            found.append(k.add(k.mul(next(left), step), start))
        else:
            found.append(start)
    return found


def _in_collapsed(k: IndexBuilder, op: tensor.ExpandShapeOp, at: list[Index]) -> list[Index]:
    dynamic = iter(op.output_shape)
    dims = [next(dynamic) if n == DYN else n for n in op.static_output_shape]
    return [_number(k, [at[i] for i in group], [dims[i] for i in group]) for group in _groups(op)]


def _in_expanded(k: IndexBuilder, op: tensor.CollapseShapeOp, at: list[Index]) -> list[Index]:
    source = op.operation.operands[0]
    found = list[Index]()
    for i, group in zip(at, _groups(op), strict=True):
        inner = [_extent(k, source, axis) for axis in group[1:]]
        found += [k.div(i, k.product(inner)), *k.unraveled(i, inner)]
    return found


def _groups(op: ir.OpView) -> list[list[int]]:
    groups = ir.ArrayAttr(op.operation.attributes["reassociation"])
    return [[ir.IntegerAttr(i).value for i in ir.ArrayAttr(group)] for group in groups]


def _extent(k: IndexBuilder, value: ir.Value, axis: int) -> Index:
    n = ir.RankedTensorType(value.type).shape[axis]
    return tensor.DimOp(value, k.index(axis)).result if n == DYN else n


def _number(k: IndexBuilder, at: Sequence[Index], dims: Sequence[Index]) -> Index:
    """Return the number of the element at `at`, in row-major order."""
    number: Index = 0
    for i, n in zip(at, dims, strict=True):
        number = k.add(k.mul(number, n), i)
    return number
