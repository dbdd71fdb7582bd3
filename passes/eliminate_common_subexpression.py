"""eliminate_common_subexpression: one op for each distinct computation, in every region."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, is_a, op_class
from mgx_mlir.dialects.migraphx.pointwise_binary import (
    Add,
    BitwiseAnd,
    Equal,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    Mul,
    SqDiff,
)
from mgx_mlir.rewrite.passes import Pass

# commutative bit for bit (not max and min, which may distinguish -0 from 0)
COMMUTATIVE = (Add, Mul, Equal, SqDiff, LogicalAnd, LogicalOr, LogicalXor, BitwiseAnd)

Scope = dict[Hashable, list[ir.Value]]


@dataclass(frozen=True)
class EliminateCommonSubexpression(Pass):
    """Merge ops of equal name, operands, attributes and regions; equal literals merge too."""

    name: ClassVar[str] = "eliminate_common_subexpression"

    def run(self, module: ir.Operation) -> bool:
        merged = 0
        for region in module.regions:
            for block in region.blocks:
                merged += merge_equal(block, {})
        return merged > 0


def merge_equal(block: ir.Block, seen: Scope) -> int:
    """Replace each op by an equal one before it, here or in a block around; return how many."""
    merged = 0
    for view in list(block.operations):
        op = view.operation
        for region in op.regions:
            blocks = list(region.blocks)
            # functions, kernels (isolated from above) and blocks of a region with control flow
            # start with an empty table
            fresh = op.name == "func.func" or is_a(op, Kernel) or len(blocks) > 1
            for inner in blocks:
                merged += merge_equal(inner, {} if fresh else dict(seen))
        cls = op_class(op)
        if cls is None or not cls.is_pure() or not len(op.results):
            continue
        key = op_key(op, {})
        earlier = seen.get(key)
        if earlier is None:
            seen[key] = list(op.results)
            continue
        for old, new in zip(op.results, earlier, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        merged += 1
    return merged


def op_key(op: ir.Operation, local: dict[ir.Value, int]) -> Hashable:
    """Return a key that ops with the same computation share; values of the op's regions by
    number.
    """
    operands: list[Any] = [local.get(v, v) for v in op.operands]
    if is_a(op, COMMUTATIVE):
        operands.sort(key=hash)
    attributes = op.attributes
    key: list[Any] = [
        op.name,
        tuple(operands),
        tuple(attributes.items()),  # MLIR keeps them sorted by name
        tuple(r.type for r in op.results),
    ]
    for region in op.regions:
        for block in region.blocks:
            for arg in block.arguments:
                local[arg] = len(local)
                key.append(arg.type)
            for view in block.operations:
                key.append(op_key(view.operation, local))
                for r in view.operation.results:
                    local[r] = len(local)
    return tuple(key)
