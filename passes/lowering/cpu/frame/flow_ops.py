"""The ops of flow and iree_tensor_ext in a dispatch: bindings, their loads, and stores of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.index_builder import Index

TIED = "tied_operands"


def ordinal(argument: ir.Value, number: int) -> ir.Value:
    """Return an argument of the body as the value of that number in the workload."""
    index = ir.IndexType.get()
    return ir.Operation.create(
        "iree_tensor_ext.dispatch.workload.ordinal",
        results=[index],
        operands=[argument],
        attributes={"ordinal": ir.IntegerAttr.get(index, number)},
    ).result


def tie(binding: ir.Value, dims: Sequence[Index]) -> ir.Value:
    """Return a binding whose dynamic dims are these values."""
    dynamic = [d for d in dims if isinstance(d, ir.Value)]
    if not dynamic:
        return binding
    return ir.Operation.create(
        "flow.dispatch.tie_shape", results=[binding.type], operands=[binding, *dynamic]
    ).result


def group_id(axis: int) -> ir.Value:
    """Return the index of the work-group along an axis of the grid."""
    return ir.Operation.create(
        "flow.dispatch.workgroup.id",
        results=[ir.IndexType.get()],
        attributes={"dimension": ir.IntegerAttr.get(ir.IndexType.get(), axis)},
    ).result


def tied_operands(arguments: Sequence[int]) -> dict[str, ir.Attribute]:
    """Return the attribute that ties each result to the argument whose memory it takes."""
    if not arguments:
        return {}
    index = ir.IndexType.get()
    return {TIED: ir.ArrayAttr.get([ir.IntegerAttr.get(index, i) for i in arguments])}


def binding(access: str, t: ir.Type) -> ir.Type:
    """Return the type of a tensor in memory; access: readonly, writeonly or readwrite."""
    return ir.Type.parse(f"!iree_tensor_ext.dispatch.tensor<{access}:{t}>")


def load(binding: ir.Value, t: ir.Type, dims: Sequence[Index]) -> ir.Value:
    """Return the whole tensor behind a binding."""
    dynamic = [d for d in dims if isinstance(d, ir.Value)]
    return ir.Operation.create(
        "iree_tensor_ext.dispatch.tensor.load",
        results=[t],
        operands=[binding, *dynamic, *dynamic],
        attributes={
            # source, its dims, offsets, sizes, strides
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dynamic), 0, len(dynamic), 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([0] * len(dims)),
            "static_sizes": ir.DenseI64ArrayAttr.get(static(dims)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(dims)),
        },
    ).result


def store(
    value: ir.Value, offsets: Sequence[Index], sizes: Sequence[Index], binding: ir.Value,
    dims: Sequence[Index],
) -> None:  # fmt: skip
    """Write a tile of a tensor behind a binding, at static or dynamic offsets."""
    dynamic = [d for d in dims if isinstance(d, ir.Value)]
    at = [i for i in offsets if not isinstance(i, int)]
    extents = [i for i in sizes if not isinstance(i, int)]
    ir.Operation.create(
        "iree_tensor_ext.dispatch.tensor.store",
        operands=[value, binding, *dynamic, *at, *extents],
        attributes={
            # value, target, its dims, offsets, sizes, strides
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                [1, 1, len(dynamic), len(at), len(extents), 0]
            ),
            "static_offsets": ir.DenseI64ArrayAttr.get(static(offsets)),
            "static_sizes": ir.DenseI64ArrayAttr.get(static(sizes)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
        },
    )


def static(indices: Sequence[Index]) -> list[int]:
    """Return indices as an op's static attribute has them: values are `?`."""
    return [i if isinstance(i, int) else DYN for i in indices]
