"""Builders of IREE's ops, which MLIR's bindings know only as unregistered ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.index_builder import Index

SEGMENTS = "operandSegmentSizes"
TIED = "tied_operands"
# address space of an input's buffer, which the compile worker replaces (worker_kernels.py)
INPUT = "mgx.input"
# the segment of the operands that holds the extents of all results
_SEGMENT = {"flow.dispatch.region": 0, "flow.dispatch.workgroups": 3, "flow.dispatch": 3}


def build(
    name: str,
    operands: Sequence[ir.Value] = (),
    results: Sequence[ir.Type] = (),
    *,
    segments: Sequence[int] | None = None,
    regions: int = 0,
    attributes: Mapping[str, ir.Attribute] | None = None,
) -> ir.Operation:
    """Build an op at the insertion point.

    segments: operands of each group, for ops that have several groups of any length.
    """
    given = dict(attributes or {})
    if segments is not None:
        given[SEGMENTS] = ir.DenseI32ArrayAttr.get(list(segments))
    return ir.Operation.create(name, list(results), list(operands), given, regions=regions)


def index_attribute(number: int) -> ir.Attribute:
    """Return an integer attribute of type index."""
    return ir.IntegerAttr.get(ir.IndexType.get(), number)


def segments_of(op: ir.Operation) -> list[int]:
    """Return the number of operands in each group of an op."""
    return list(ir.DenseI32ArrayAttr(op.attributes[SEGMENTS]))


# ---- tensors -------------------------------------------------------------------------------------


def barrier(value: ir.Value) -> ir.Value:
    """Return a value that IREE neither folds nor fuses with its producer."""
    return build("util.optimization_barrier", [value], [value.type]).result


def tied(value: ir.Value, sizes: Sequence[ir.Value]) -> ir.Value:
    """Return a tensor whose dynamic dims are `sizes`."""
    if not sizes:
        return value
    return build("flow.tensor.tie_shape", [value, *sizes], [value.type]).result


def reshaped(
    value: ir.Value, kind: ir.Type, source: Sequence[ir.Value], target: Sequence[ir.Value]
) -> ir.Value:
    """Return the elements of a tensor in other dims; source, target: the dynamic ones."""
    segments = 1, len(source), len(target)
    operands = [value, *source, *target]
    return build("flow.tensor.reshape", operands, [kind], segments=segments).result


# ---- dispatches ----------------------------------------------------------------------------------


def dispatch_region(types: Sequence[ir.Type], dims: Sequence[ir.Value]) -> ir.Operation:
    """Return a flow.dispatch.region with dynamic extents of its results, and no block yet."""
    return build("flow.dispatch.region", dims, types, segments=(len(dims), 0), regions=2)


def flow_return(values: Sequence[ir.Value] = ()) -> None:
    """End the block of a dispatch with its results."""
    build("flow.return", values)


def ordinal(argument: ir.Value, number: int) -> ir.Value:
    """Return an argument of a dispatch's body as the value of that number in the workload."""
    name, at = "iree_tensor_ext.dispatch.workload.ordinal", {"ordinal": index_attribute(number)}
    return build(name, [argument], [ir.IndexType.get()], attributes=at).result


def tied_binding(binding: ir.Value, dims: Sequence[Index]) -> ir.Value:
    """Return a binding whose dynamic dims are these values."""
    sizes = dynamic(dims)
    if not sizes:
        return binding
    return build("flow.dispatch.tie_shape", [binding, *sizes], [binding.type]).result


def group_id(axis: int) -> ir.Value:
    """Return the index of the workgroup along an axis of the grid."""
    at = {"dimension": index_attribute(axis)}
    return build("flow.dispatch.workgroup.id", (), [ir.IndexType.get()], attributes=at).result


def tied_operands(arguments: Sequence[int]) -> dict[str, ir.Attribute]:
    """Return the attribute that ties each result to the argument whose memory it takes."""
    return {TIED: ir.ArrayAttr.get(list(map(index_attribute, arguments)))} if arguments else {}


def binding(access: str, t: ir.Type) -> ir.Type:
    """Return the type of a tensor in memory; access: readonly, writeonly or readwrite."""
    return ir.Type.parse(f"!iree_tensor_ext.dispatch.tensor<{access}:{t}>")


def slice_attributes(offsets: Sequence[Index], sizes: Sequence[Index]) -> dict[str, ir.Attribute]:
    """Return the attributes of a slice with strides of 1."""
    lists = {"offsets": static(offsets), "sizes": static(sizes), "strides": [1] * len(sizes)}
    return {f"static_{name}": ir.DenseI64ArrayAttr.get(own) for name, own in lists.items()}


def load(binding: ir.Value, t: ir.Type, dims: Sequence[Index]) -> ir.Value:
    """Return the whole tensor behind a binding."""
    sizes, name = dynamic(dims), "iree_tensor_ext.dispatch.tensor.load"
    segments = 1, len(sizes), 0, len(sizes), 0  # source, its dims, offsets, sizes, strides
    return build(
        name, [binding, *sizes, *sizes], [t], segments=segments,
        attributes=slice_attributes([0] * len(dims), dims),
    ).result  # fmt: skip


def buffer(tensor: ir.Value) -> ir.Value:
    """Return the memory of a tensor of static extents that `load` returned, for reading.

    Its address space is a name that the compile worker replaces by IREE's.
    """
    kind = ir.RankedTensorType(tensor.type)
    steps = [1]
    for extent in reversed(list(kind.shape)[1:]):
        steps.insert(0, steps[0] * extent)
    dims = "x".join([*map(str, kind.shape), str(kind.element_type)])
    memory = ir.Type.parse(f'memref<{dims}, strided<{steps}, offset: ?>, "{INPUT}">')
    only_read = {"read_only": ir.UnitAttr.get()}
    return build("bufferization.to_buffer", [tensor], [memory], attributes=only_read).result


def store(
    value: ir.Value, offsets: Sequence[Index], sizes: Sequence[Index], binding: ir.Value,
    dims: Sequence[Index],
) -> None:  # fmt: skip
    """Write a tile of a tensor behind a binding, at static or dynamic offsets."""
    own, at, extents = dynamic(dims), dynamic(offsets), dynamic(sizes)
    segments = 1, 1, len(own), len(at), len(extents), 0  # value, target, its dims, as for loads
    build(
        "iree_tensor_ext.dispatch.tensor.store", [value, binding, *own, *at, *extents],
        segments=segments, attributes=slice_attributes(offsets, sizes),
    )  # fmt: skip


def static(indices: Sequence[Index]) -> list[int]:
    """Return indices as an op's static attribute, in which values are `?`."""
    return [i if isinstance(i, int) else DYN for i in indices]


def dynamic(indices: Sequence[Index]) -> list[ir.Value]:
    """Return those indices that are values."""
    return [i for i in indices if not isinstance(i, int)]


def dispatch_extent(op: ir.Operation, result: ir.Value, axis: int) -> ir.Value | None:
    """Return the operand that is a result's dynamic extent; None where it is fixed, or `op` is no
    dispatch."""
    part = _SEGMENT.get(op.name)
    if part is None:
        return None
    at = sum(segments_of(op)[:part])
    for r in op.results:
        kind = ir.ShapedType(r.type)
        if r == result:
            if not kind.is_dynamic_dim(axis):
                return None
            return op.operands[at + sum(kind.is_dynamic_dim(i) for i in range(axis))]
        at += sum(kind.is_dynamic_dim(i) for i in range(kind.rank))
    return None
