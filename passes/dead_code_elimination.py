"""dead_code_elimination: erase ops whose results have no uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a, op_class
from mgx_mlir.core.op_fields import segment_sizes, spread
from mgx_mlir.dialects.migraphx.control import If, Loop, Yield
from mgx_mlir.rewrite.passes import Pass

# upstream dialects whose ops on tensors and scalars have no side effects
_PURE_PREFIXES = ("arith.", "math.", "tensor.", "affine.apply", "linalg.", "complex.")


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Erase ops without side effects whose results are unused, in every region.

    Unused results of an `if` are removed with their computations in the branches, and so are unused
    scan outputs of a loop. Carried values that a loop does not change become outer values.
    """

    name: ClassVar[str] = "dead_code_elimination"

    def run(self, module: ir.Operation) -> bool:
        return erase_dead(module) > 0


def erase_dead(root: ir.Operation) -> int:
    """Erase dead ops below `root`; users go before their producers, so one walk finds all."""
    ops: list[ir.Operation] = []
    add, advance = ops.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        add(op)
        return advance

    # in this order the ops of a region come after the op that holds it
    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    erased = 0
    for op in reversed(ops):
        if has_no_use(op) and is_removable(op):
            op.erase()
            erased += 1
        elif is_a(op, If):
            erased += drop_unused_results(op)
        elif is_a(op, Loop):
            erased += drop_unchanged(op) or drop_unused_results(op)
    return erased


def has_no_use(op: ir.Operation) -> bool:
    """Say whether the op has results, and none is used."""
    results = op.results
    return len(results) > 0 and all(next(r.uses, None) is None for r in results)


def is_removable(op: ir.Operation) -> bool:
    """Say whether an op without users can go: it has no side effects."""
    cls = op_class(op)
    if cls is None:
        return op.name.startswith(_PURE_PREFIXES)
    return cls.is_pure() and all(
        is_removable(inner.operation) or is_a(inner, Yield)
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )


def drop_unused_results(op: ir.Operation) -> int:
    """Rebuild an `if` without its unused results, or a loop without its unused scan outputs.

    Return how many ops went with them.
    """
    first = 0  # a loop's carried values, which the next iteration may read
    yields: list[int] = []  # leading operands of the terminators that are not results
    if is_a(op, Loop):
        first, yields = len(op.operands) - 2, [0]
    results = list(op.results)
    kept = [i for i, r in enumerate(results) if i < first or next(r.uses, None) is not None]
    if len(kept) == len(results):
        return 0
    types = [results[i].type for i in kept]
    with op.location, ir.InsertionPoint(op):
        attributes = dict(op.attributes.items())
        attributes["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(spread(types))
        key = "scan_output_directions"
        if key in attributes and len(attributes[key]):
            directions = list(attributes[key])
            attributes[key] = ir.DenseI64ArrayAttr.get(
                [directions[i - first] for i in kept if i >= first]
            )
        new = ir.Operation.create(
            op.name, types, list(op.operands), attributes, regions=len(op.regions)
        )
    for old_region, region in zip(op.regions, new.regions, strict=True):
        old_region.blocks[0].append_to(region)
        last = region.blocks[0].operations[len(region.blocks[0].operations) - 1].operation
        with last.location, ir.InsertionPoint(last):
            OPS["yield"]([last.operands[i] for i in [*yields, *(len(yields) + i for i in kept)]])
        last.erase()
    for i, r in zip(kept, new.results, strict=True):
        results[i].replace_all_uses_with(r)
    op.erase()
    return 1 + erase_dead(new)


def drop_unchanged(op: ir.Operation) -> int:
    """Rebuild a loop without the carried values that no iteration changes.

    Return how many ops went with them.
    """
    body = op.regions[0].blocks[0]
    last = body.operations[len(body.operations) - 1].operation
    arguments, results = list(body.arguments), list(op.results)
    carried = list(op.operands)[2:]
    changed: list[int] = []
    for i, (v, argument, r) in enumerate(zip(carried, arguments[2:], results, strict=False)):
        if last.operands[1 + i] != argument or not v.type == argument.type == r.type:
            changed.append(i)
            continue
        r.replace_all_uses_with(v)
        argument.replace_all_uses_with(v)
    if len(changed) == len(carried):
        return 0
    kept = [*changed, *range(len(carried), len(results))]
    types = [results[i].type for i in kept]
    operands = [*list(op.operands)[:2], *(carried[i] for i in changed)]
    with op.location, ir.InsertionPoint(op):
        attributes = dict(op.attributes.items())
        attributes["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(spread(types))
        taken = [[v.type] for v in operands[:2]] + [[v.type for v in operands[2:]]]
        sizes = segment_sizes(Loop.OPERANDS, taken)
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
        new = ir.Operation.create(op.name, types, operands, attributes, regions=1)
    body.append_to(new.regions[0])
    for i in reversed(range(len(carried))):
        if i not in changed:
            body.erase_argument(2 + i)
    with last.location, ir.InsertionPoint(last):
        OPS["yield"]([last.operands[0], *(last.operands[1 + i] for i in kept)])
    last.erase()
    for i, r in zip(kept, new.results, strict=True):
        results[i].replace_all_uses_with(r)
    op.erase()
    return 1 + erase_dead(new)
