"""Lowerings of decision trees: each element of the result is a walk, or a sum over walks."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, scf
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.trees import TreeLeaves, TreeSums
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, narrow, widen
from mgx_mlir.passes.lowering.tree_walks import Trees, walked


@lowers(TreeLeaves)
def tree_leaves(op: TreeLeaves, ins: tuple[ir.Value, ...], e: LoweringContext) -> ir.Value:
    """Lower to a loop over rows and trees, with a walk from the root to a leaf in it."""
    extents, trees = _trees(op, ins, e)
    if trees is None:
        return index.from_positions(e, extents, dtypes.INT64, lambda *_: index.as_i64(e, 0))

    def body(where: list[ir.Value]) -> ir.Value:
        row, tree = where
        return index.as_i64(e, walked(trees, row, [trees.root(tree)])[0])

    return index.from_positions(e, extents, dtypes.INT64, body)


@lowers(TreeSums)
def tree_sums(op: TreeSums, ins: tuple[ir.Value, ...], e: LoweringContext) -> ir.Value:
    """Lower to a loop over rows and outputs, with a sum over trees in it."""
    (rows, count), trees = _trees(op, ins, e)
    weights, dtype = ins[4], TensorType.of(op.weights).dtype
    groups, outputs = TensorType.of(op.roots).dims[0], TensorType.of(op.weights).dims[1]
    extents = [rows, groups * outputs]
    if trees is None or 0 in extents:
        return e.fill(extents, dtype, 0)
    work = computed(dtype)
    b = ArithScalars(work, work)
    nodes = e.extent(weights, 0)

    def weight(leaf: ir.Value, output: ir.Value) -> TypedScalar:
        return widen(TypedScalar(index.read_safely(e, weights, [leaf, output], [nodes]), dtype))

    def body(where: list[ir.Value]) -> ir.Value:
        row, position = where
        group, output = (e.index(f(position, outputs)) for f in (e.div, e.rem))
        zero = b.const(0, work).value
        loop = scf.ForOp(e.index(0), e.index(count), e.index(1), [zero])
        with ir.InsertionPoint(loop.body):
            root = trees.root(group, loop.induction_variable)
            leaf = walked(trees, row, [root])[0]
            so_far = TypedScalar(loop.inner_iter_args[0], work)
            scf.YieldOp([b.add(so_far, weight(leaf, output)).value])
        return narrow(TypedScalar(loop.results[0], work), dtype).value

    return index.from_positions(e, extents, dtype, body)


def _trees(
    op: TreeLeaves | TreeSums, ins: tuple[ir.Value, ...], e: LoweringContext
) -> tuple[list[Extent], Trees | None]:
    """Return the extents (rows, trees), and the trees; None where there is nothing to walk.

    The trees are those of a group, where there are groups.
    """
    x, roots, nodes, split = ins[:4]
    t = TensorType.of(op.x)
    features, count = e.extent(x, 1), e.extent(split, 0)
    extents = [e.extent(x, 0), e.extents(roots)[-1]]
    if 0 in (*extents, count, features):
        return extents, None
    kinds = [TensorType.of(v).dtype for v in (op.roots, op.nodes)]

    def number(table: ir.Value, where: list[ir.Value], dtype: DType) -> ir.Value:
        return index.to_index(index.read_safely(e, table, where, e.extents(table)), dtype)

    return extents, Trees(
        depth=op.depth,
        dtype=t.dtype,
        flags=TensorType.of(op.nodes).dims[1] == 4,
        count=e.index(count),
        features=e.index(features),
        roots=lambda *at: number(roots, list(at), kinds[0]),
        nodes=lambda at, column: number(nodes, [at, e.index(column)], kinds[1]),
        split=lambda at: index.read_safely(e, split, [at], [count]),
        value=lambda row, at: index.read_safely(e, x, [row, at], [features]),
    )
