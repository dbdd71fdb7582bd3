"""Lowering of decision trees: each element of the result is a walk of its own."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, scf
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.trees import TreeLeaves
from mgx_mlir.passes.lower import index
from mgx_mlir.passes.lower.context import LoweringContext
from mgx_mlir.passes.lower.expr import Extent
from mgx_mlir.passes.lower.registry import lowers
from mgx_mlir.passes.lower.scalar import TypedScalar, computed, widen


@lowers(TreeLeaves)
def tree_leaves(op: TreeLeaves, ins: tuple[ir.Value, ...], e: LoweringContext) -> ir.Value:
    """Lower to a loop over rows and trees, with a walk from the root to a leaf in it."""
    x, roots, feature, split, yes, no, missing = ins
    t = TensorType.of(op.x)
    kinds = {v: TensorType.of(o).dtype for v, o in (
        (roots, op.roots), (feature, op.feature), (yes, op.yes), (no, op.no))}  # fmt: skip
    features, nodes = e.extent(x, 1), e.extent(split, 0)
    extents = [e.extent(x, 0), e.extent(roots, 0)]
    if 0 in (*extents, nodes, features):
        return index.from_positions(e, extents, dtypes.INT64, lambda *_: index.as_i64(e, 0))
    work = computed(t.dtype)
    b = e.scalars(work, work)

    def entry(table: ir.Value, at: ir.Value) -> ir.Value:
        return index.read_safely(e, table, [at], [e.extent(table, 0)])

    def held(table: ir.Value, at: ir.Value, count: Extent = nodes) -> ir.Value:
        """Return an entry of a table as a place among `count`."""
        found = index.to_index(entry(table, at), kinds[table])
        return e.index(index.clamp(e, found, 0, index.last_of(e, count)))

    def body(where: list[ir.Value]) -> ir.Value:
        row, tree = where
        kind = ir.IndexType.get()
        loop = scf.WhileOp([kind, kind], [held(roots, tree), e.index(0)])
        before = loop.before.blocks.append(kind, kind)
        with ir.InsertionPoint(before):
            at, step = before.arguments
            inner = index.compare(e, index.NE, held(yes, at), at)
            more = index.compare(e, index.SLT, step, op.depth)
            scf.ConditionOp(arith.AndIOp(inner, more).result, [at, step])
        after = loop.after.blocks.append(kind, kind)
        with ir.InsertionPoint(after):
            at, step = after.arguments
            place = [row, held(feature, at, features)]
            value = widen(TypedScalar(index.read_safely(e, x, place, [features]), t.dtype))
            border = widen(TypedScalar(entry(split, at), t.dtype))
            holds = b.cmp(op.mode, value, border)
            if op.missing is not None:
                known = TypedScalar(entry(missing, at), dtypes.BOOL)
                holds = b.or_(holds, b.and_(b.is_nan(value), known))
            found = arith.SelectOp(holds.value, held(yes, at), held(no, at)).result
            scf.YieldOp([found, e.index(e.add(step, 1))])
        return index.as_i64(e, loop.results[0])

    return index.from_positions(e, extents, dtypes.INT64, body)
