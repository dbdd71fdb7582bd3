"""The rotary embedding of grouped-query attention as one CPU kernel, along the pairs of a head."""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core.ir import ir, vector
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.attention import GqaRotaryEmbedding
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import tile_size
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.sites import OpSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

ROWS = 64  # of a head, that a work-group turns


@dataclass(frozen=True)
class _Plan:
    """Extents: of qkv, of a head, and of the tables of cosines."""

    own: list[Extent]
    size: int
    positions: int
    half: int


def match(e: LoweringContext, site: OpSite) -> _Plan | Refusal:
    """Take embeddings of heads and tables of known sizes; tensors: qkv, seqlens, cos, sin."""
    x, _, cos, _ = site.tensors
    own = e.extents(x)
    positions, half = e.extents(cos)
    size = own[3]
    if not (isinstance(positions, int) and isinstance(half, int) and isinstance(size, int)):
        return Refusal("the size of a head, or of the tables, is a dynamic dim")
    if 0 in (*own, positions, half):
        return Refusal("it has no elements")
    return _Plan(own, size, positions, half)


def build(e: LoweringContext, site: OpSite, plan: _Plan) -> list[ir.Value]:
    """Build the rotated heads, some rows in each work-group."""
    op, isa, tensors = site.op, site.isa, site.tensors
    own, size, positions, half = plan.own, plan.size, plan.positions, plan.half
    lanes = next(n for n in (isa.lanes, 8, 4, 2, 1) if not half % n and not size % n)
    grid: list[tuple[Extent, int]] = [(own[0], 1), (own[1], 1), (own[2], ROWS)]
    t = TensorType.of(op.input)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        rows = tile_size(k, k.at[2], ROWS, own[2])
        tile = k.empty((1, 1, rows, size), t.dtype)
        made = _Rows(k, op, lanes, positions, half).run(tile, rows, k.inner(own[2]))
        return [ResultTile(made, [*k.at, 0], (1, 1, rows, size))]

    inner = [d for d in own if not isinstance(d, int)]
    return dispatch(list(tensors), [(own, t.dtype)], grid, body, inner)


RULE = KernelRule("rotary", (GqaRotaryEmbedding,), match, build)


class _Rows:
    """Builds the loops of one work-group."""

    def __init__(
        self, k: WorkgroupBuilder, op: GqaRotaryEmbedding, lanes: int, positions: int, half: int
    ) -> None:
        self.k, self.op, self.lanes, self.positions, self.half = k, op, lanes, positions, half
        self.stored = TensorType.of(op.input).dtype
        dtype = computed(self.stored)
        self.b = StoredScalars(k, lanes, dtype, dtype)
        self.size = TensorType.of(op.input).dims[3]
        self.batch, self.head, self.start = k.at

    def run(self, tile: ir.Value, rows: Index, count: Index) -> ir.Value:
        """Return the tile with all rows. count: the rows of a head."""
        k, counts = self.k, TensorType.of(self.op.seqlens_k)
        first = index.first_new_row(k, k.inputs[1], counts, self.batch, count)
        first = k.add(first, self.start)

        def turned() -> list[ir.Value]:
            def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
                place = k.min(k.max(k.add(first, i), 0), self.positions - 1)
                made = carried[0]
                for j in range(0, self.half, self.lanes):
                    made = self.pairs(made, i, j, place)
                return [self.copied(made, i, 2 * self.half)]

            return k.loop(0, rows, 1, [tile], row)

        def kept() -> list[ir.Value]:
            return k.loop(0, rows, 1, [tile], lambda i, c: [self.copied(c[0], i, 0)])

        heads = self.op.num_heads + self.op.kv_num_heads
        return k.when(k.is_less(self.head, heads), turned, kept, [tile.type])[0]

    def copied(self, tile: ir.Value, row: Index, column: int) -> ir.Value:
        """Return the tile with a row from a column on as it was."""
        for j in range(column, self.size, self.lanes):
            found = self.k.read(self.k.inputs[0], self.place(row, j), self.lanes)
            tile = self.k.write(found, tile, [0, 0, row, j])
        return tile

    def place(self, row: Index, column: int) -> list[Index]:
        """Return where an element of the tile is in the input."""
        return [self.batch, self.head, self.k.add(self.start, row), column]

    def pairs(self, tile: ir.Value, row: Index, j: int, place: Index) -> ir.Value:
        """Return the tile with the pairs from `j` on of a row turned."""
        k, b, n = self.k, self.b, self.lanes
        c, s = (self.wide(k.read(k.inputs[i], [place, j], n)) for i in (2, 3))
        if self.op.interleaved:
            both = k.read(k.inputs[0], self.place(row, 2 * j), 2 * n)
            parts = [vector.ShuffleOp(both, both, list(range(i, 2 * n, 2))).result for i in (0, 1)]
        else:
            parts = [k.read(k.inputs[0], self.place(row, j + i * self.half), n) for i in (0, 1)]
        one, two = map(self.wide, parts)
        low = self.narrow(b.add(b.mul(one, c), b.neg(b.mul(two, s))))
        high = self.narrow(b.add(b.mul(two, c), b.mul(one, s)))
        if self.op.interleaved:
            order = [i // 2 + n * (i % 2) for i in range(2 * n)]
            both = vector.ShuffleOp(low, high, order).result
            return k.write(both, tile, [0, 0, row, 2 * j])
        tile = k.write(low, tile, [0, 0, row, j])
        return k.write(high, tile, [0, 0, row, j + self.half])

    def wide(self, x: ir.Value) -> TypedScalar:
        return widen(self.k, TypedScalar(x, self.stored), self.lanes)

    def narrow(self, x: TypedScalar) -> ir.Value:
        return narrow(self.k, x, self.stored, self.lanes).value
