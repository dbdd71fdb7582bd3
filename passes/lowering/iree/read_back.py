"""Barriers that keep sizes read from tensors on the host.

Dispatches are launched with their sizes. IREE 3.13 moves the read of a scalar into kernels that
copy slices, whose launch size is then unknown (docs/iree-hazards.md, hazard 36). It does not move
values across a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.iree.iree_ops import barrier, segments_of

_SIZED = ("flow.dispatch.region", "flow.dispatch.workgroups", "tensor.empty", "tensor.pad")
_SLICES = ("tensor.extract_slice", "tensor.insert_slice")
_SCALARS = "arith."


def keep(block: ir.Block) -> None:
    """Put barriers on numbers from which sizes of tensors in a host block are computed.

    They come after the cast to index, as a cast inside of a kernel is as bad as the read.
    """
    found: dict[ir.Value, None] = {}
    seen: set[ir.Value] = set()
    for op in _on_host(block):
        for size in _sizes(op):
            _find(size, found, seen)
    for value in found:
        uses = list(value.uses)
        with ir.InsertionPoint.after(value.owner.operation), value.owner.operation.location:
            kept = barrier(value)
        for use in uses:
            use.owner.operands[use.operand_number] = kept


def _on_host(block: ir.Block) -> Iterator[ir.Operation]:
    """Yield the ops of a block, and those of its branches and loops."""
    for view in block.operations:
        yield view.operation
        if view.operation.name.startswith("scf."):
            for region in view.operation.regions:
                for inner in region.blocks:
                    yield from _on_host(inner)


def _sizes(op: ir.Operation) -> list[ir.Value]:
    if op.name in _SIZED:
        found = list(op.operands)
    elif op.name in _SLICES:
        parts = segments_of(op)
        offsets, sizes = parts[-3], parts[-2]
        first = sum(parts[:-3]) + offsets
        found = list(op.operands)[first : first + sizes]
    else:
        return []
    return [v for v in found if isinstance(v.type, ir.IndexType)]


def _find(size: ir.Value, found: dict[ir.Value, None], seen: set[ir.Value]) -> None:
    """Collect the index values that a size depends on and that are read from tensors."""
    waiting = [size]
    while waiting:
        v = waiting.pop()
        if v in seen or isinstance(v.owner, ir.Block):
            continue
        seen.add(v)
        op = v.owner.operation
        if not op.name.startswith(_SCALARS):
            continue
        numbers = [x for x in op.operands if not isinstance(x.type, ir.IndexType)]
        if any(_is_read(x) for x in numbers):
            found[v] = None
        else:
            waiting += [x for x in op.operands if isinstance(x.type, ir.IndexType)]


def _is_read(value: ir.Value) -> bool:
    """Return whether a scalar comes from elements of tensors."""
    waiting, seen = [value], {value}
    while waiting:
        v = waiting.pop()
        if isinstance(v.owner, ir.Block):
            continue
        op = v.owner.operation
        if op.name == "tensor.extract":
            return True
        if op.name.startswith(_SCALARS):
            waiting += [x for x in op.operands if x not in seen]
            seen.update(op.operands)
    return False
