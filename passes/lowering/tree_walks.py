"""Walks through decision trees, several side by side, as scalar code at the insertion point."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, scf
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, constant_of, widen


@dataclass(frozen=True)
class Trees:
    """The trees of `migraphx.tree_leaves`, and reads of their tables.

    `count` and `features` are how many nodes and features there are; indices are of type index.
    """

    depth: int
    dtype: DType  # type of features
    flags: bool  # some nodes take the true branch for NaN
    count: ir.Value
    features: ir.Value
    roots: Callable[..., ir.Value]
    nodes: Callable[[ir.Value, int], ir.Value]
    split: Callable[[ir.Value], ir.Value]
    value: Callable[[ir.Value, ir.Value], ir.Value]

    def root(self, *tree: ir.Value) -> ir.Value:
        """Return the node that a tree begins at, by its group where there are any, and number."""
        return _within(self.roots(*tree), self.count)


def walked(trees: Trees, row: ir.Value, at: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the end nodes of walks from these nodes, with interleaved steps."""
    kind, i1 = ir.IndexType.get(), ir.IntegerType.get_signless(1)
    kinds = [*[kind] * (len(at) + 1), i1]
    b = ArithScalars(computed(trees.dtype), computed(trees.dtype))
    zero, one, depth = (_number(n) for n in (0, 1, trees.depth))
    moved = constant_of(i1, ir.IntegerAttr.get(i1, 1))
    loop = scf.WhileOp(kinds, [*at, zero, moved])
    before = loop.before.blocks.append(*kinds)
    with ir.InsertionPoint(before):
        *_, step, moved = before.arguments
        more = arith.CmpIOp(arith.CmpIPredicate.slt, step, depth).result
        scf.ConditionOp(arith.AndIOp(moved, more).result, list(before.arguments))
    after = loop.after.blocks.append(*kinds)
    with ir.InsertionPoint(after):
        *positions, step, _ = after.arguments
        found = [_stepped(trees, b, row, position) for position in positions]
        changed = [
            arith.CmpIOp(arith.CmpIPredicate.ne, old, new).result
            for old, new in zip(positions, found, strict=True)
        ]
        moved = changed[0]
        for other in changed[1:]:
            moved = arith.OrIOp(moved, other).result
        scf.YieldOp([*found, arith.AddIOp(step, one).result, moved])
    found: list[ir.Value] = [*loop.results]
    return found[: len(at)]


def _stepped(trees: Trees, b: ArithScalars, row: ir.Value, at: ir.Value) -> ir.Value:
    """Return the node after one step."""
    feature = _within(trees.nodes(at, 0), trees.features)
    value = widen(TypedScalar(trees.value(row, feature), trees.dtype))
    border = widen(TypedScalar(trees.split(at), trees.dtype))
    holds = b.cmp("le", value, border)
    if trees.flags:
        flag = arith.CmpIOp(arith.CmpIPredicate.ne, trees.nodes(at, 3), _number(0)).result
        holds = b.or_(holds, b.and_(b.is_nan(value), TypedScalar(flag, dtypes.BOOL)))
    chosen = arith.SelectOp(holds.value, trees.nodes(at, 1), trees.nodes(at, 2)).result
    return _within(chosen, trees.count)


def _within(at: ir.Value, count: ir.Value) -> ir.Value:
    """Return an index clamped to [0, count)."""
    last = arith.SubIOp(count, _number(1)).result
    return arith.MinUIOp(at, last).result


def _number(n: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), n).result
