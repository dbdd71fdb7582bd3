"""Merge equal results of a dispatch region before IREE does, which merges them wrongly.

iree-compile merges equal results of a flow.dispatch.region, and then replaces each merged one by
the first result, whichever result it equals. Lowering yields no value twice, but expressions may
become equal after constant folding, or when extents of dispatch results are propagated. So results
that upstream's canonicalizer and CSE find equal in a copy of the module are merged here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from mgx_mlir.core.ir import ir, passmanager
from mgx_mlir.passes.lowering.iree.iree_ops import dispatch_extent, dispatch_region, flow_return

_MARK = "mgx.region"  # numbers the regions, which a copy keeps
_FOLD = "builtin.module(canonicalize,cse)"


def merge_equal_results(module: ir.Module) -> None:
    """Merge equal results of each region of `module`.

    Leaves a module without regions of several results alone.
    """
    found = list(_regions(module.operation))
    if not found:
        return
    kind = ir.IntegerType.get_signless(64)
    for i, region in enumerate(found):
        region.attributes[_MARK] = ir.IntegerAttr.get(kind, i)
    copy = module.operation.clone()
    for op in list(copy.regions[0].blocks[0].operations):
        if op.operation.name == "flow.executable":
            op.operation.erase()  # the kernel of the result does not matter here
    try:
        _follow_extents(copy)
        passmanager.PassManager.parse(_FOLD).run(copy)
        if _merge_equal_inputs(copy):
            passmanager.PassManager.parse(_FOLD).run(copy)
        firsts = {
            ir.IntegerAttr(r.attributes[_MARK]).value: _firsts(r)
            for r in _regions(copy)
            if _MARK in r.attributes
        }
    finally:
        copy.erase()
    for i, region in enumerate(found):
        del region.attributes[_MARK]
        # a region that is gone from the copy is never reached
        same = firsts.get(i, list(range(len(region.results))))
        if same != sorted(set(same)):
            _rebuild(region, same)


def _regions(root: ir.Operation) -> Iterator[ir.Operation]:
    """Return the dispatch regions of several results within an operation."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.dispatch.region" and len(op.results) > 1:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return iter(found)


def _follow_extents(root: ir.Operation) -> None:
    """Replace the extents of dispatches' results by what the dispatches say that they are."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tensor.dim":
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    for op in found:
        extent = _extent(op)  # computed now, as it may just have been replaced
        if extent is not None:
            op.results[0].replace_all_uses_with(extent)
            op.erase()


def _merge_equal_inputs(root: ir.Operation) -> bool:
    """Make loops read an operand that they have several times once; return whether any does."""
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        if op.name != "linalg.generic":
            return ir.WalkResult.ADVANCE
        maps = ir.ArrayAttr(op.attributes["indexing_maps"])
        arguments = list(op.regions[0].blocks[0].arguments)
        firsts: dict[Hashable, ir.Value] = {}
        for i in range(len(op.operands) - len(op.results)):
            first = firsts.setdefault((op.operands[i], str(maps[i])), arguments[i])
            if first != arguments[i] and any(True for _ in arguments[i].uses):
                arguments[i].replace_all_uses_with(first)
                found = True
        return ir.WalkResult.ADVANCE

    root.walk(visit)
    return found


def _extent(dim: ir.Operation) -> ir.Value | None:
    """Return the operand of a dispatch that is an extent of its result, None for other tensors."""
    source, place = dim.operands
    owner, at = source.owner, place.owner
    if isinstance(owner, ir.Block) or isinstance(at, ir.Block) or at.name != "arith.constant":
        return None
    axis = ir.IntegerAttr(at.attributes["value"]).value
    return dispatch_extent(owner.operation, source, axis)


def _firsts(region: ir.Operation) -> list[int]:
    """For each result of a region the first one that is equal to it."""
    block = region.regions[0].blocks[0]
    keys = [_key(v) for v in block.operations[len(block.operations) - 1].operands]
    return [keys.index(k) for k in keys]


def _key(value: ir.Value) -> Hashable:
    """Return a key that equal values share: for a generic its yielded value and output map."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "linalg.generic":
        return value
    op = owner.operation if isinstance(owner, ir.OpView) else owner
    at = ir.OpResult(value).result_number
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    body = op.regions[0].blocks[0]
    yielded = body.operations[len(body.operations) - 1].operands[at]
    return (op, yielded, str(maps[len(maps) - len(op.results) + at]))


def _rebuild(region: ir.Operation, same: list[int]) -> None:
    """Rebuild the region with only the first of equal results."""
    kept = sorted(set(same))
    extents = iter(region.operands)
    dims = [[next(extents) for _ in range(_dynamic(ir.ShapedType(r.type)))] for r in region.results]
    block = region.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    returned = [end.operands[i] for i in kept]
    end.erase()
    with ir.InsertionPoint(block), region.location:
        flow_return(returned)
    with ir.InsertionPoint(region), region.location:
        new = dispatch_region(
            [region.results[i].type for i in kept], [d for i in kept for d in dims[i]]
        )
    block.append_to(new.regions[0])
    for old, first in zip(region.results, same, strict=True):
        old.replace_all_uses_with(new.results[kept.index(first)])
    region.erase()


def _dynamic(kind: ir.ShapedType) -> int:
    return sum(kind.is_dynamic_dim(i) for i in range(kind.rank))
