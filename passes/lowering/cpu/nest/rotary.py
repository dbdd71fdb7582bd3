"""The rotary embedding of grouped-query attention as one CPU kernel, along the pairs of a head."""

from __future__ import annotations

from mgx_mlir.core.ir import ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.attention import GqaRotaryEmbedding
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.sites import OpSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Nest, Tile
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

ROWS = 64  # rows of a head that a workgroup rotates


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
    """Build the rotated heads, some rows in each workgroup."""
    op, isa, tensors = site.op, site.isa, site.tensors
    own, size, positions, half = plan.own, plan.size, plan.positions, plan.half
    lanes = next(n for n in (isa.lanes, 8, 4, 2, 1) if not half % n and not size % n)
    t, counts = TensorType.of(op.input), TensorType.of(op.seqlens_k)

    def body(tile: Tile) -> list[ir.Value]:
        k, (batch, head, start, _) = tile.k, tile.start
        first = index.first_new_row(k, k.inputs[1], counts, batch, k.inner(own[2]))
        first = k.add(first, start)

        def rotated(line: Line) -> list[ir.Value]:
            row = _Row(k, op, lanes, half, line)
            place = k.min(k.max(k.add(first, line.local[2]), 0), positions - 1)
            made = line.made[0]
            for j in range(0, half, lanes):
                made = row.pairs(made, j, place)
            return [row.copied(made, 2 * half)]

        def kept(line: Line) -> list[ir.Value]:
            return [_Row(k, op, lanes, half, line).copied(line.made[0], 0)]

        is_rotated = k.is_less(head, op.num_heads + op.kv_num_heads)
        kinds = [v.type for v in tile.made]
        return k.when(is_rotated, lambda: tile.lines(rotated), lambda: tile.lines(kept), kinds)

    return Nest(tensors, own, [t.dtype], (1, 1, ROWS), lanes).run(body)


RULE = KernelRule("rotary", (GqaRotaryEmbedding,), match, build)


class _Row:
    """Builds one row of a head."""

    def __init__(
        self, k: WorkgroupBuilder, op: GqaRotaryEmbedding, lanes: int, half: int, line: Line
    ) -> None:
        self.k, self.op, self.lanes, self.half, self.line = k, op, lanes, half, line
        self.stored = TensorType.of(op.input).dtype
        dtype = computed(self.stored)
        self.b = StoredScalars(k, lanes, dtype, dtype)
        self.size = TensorType.of(op.input).dims[3]

    def read(self, column: int, lanes: int) -> ir.Value:
        return self.k.read(self.k.inputs[0], [*self.line.at, column], lanes)

    def write(self, value: ir.Value, tile: ir.Value, column: int) -> ir.Value:
        return self.k.write(value, tile, [*self.line.local, column])

    def copied(self, tile: ir.Value, column: int) -> ir.Value:
        """Return the tile with the row from a column on as it was."""
        for j in range(column, self.size, self.lanes):
            tile = self.write(self.read(j, self.lanes), tile, j)
        return tile

    def pairs(self, tile: ir.Value, j: int, place: Index) -> ir.Value:
        """Return the tile with the row's pairs from `j` on rotated by the angles of a position."""
        k, b, n = self.k, self.b, self.lanes
        c, s = (self.wide(k.read(k.inputs[i], [place, j], n)) for i in (2, 3))
        if self.op.interleaved:
            both = self.read(2 * j, 2 * n)
            parts = [vector.ShuffleOp(both, both, list(range(i, 2 * n, 2))).result for i in (0, 1)]
        else:
            parts = [self.read(j + i * self.half, n) for i in (0, 1)]
        one, two = map(self.wide, parts)
        low = self.narrow(b.add(b.mul(one, c), b.neg(b.mul(two, s))))
        high = self.narrow(b.add(b.mul(two, c), b.mul(one, s)))
        if self.op.interleaved:
            order = [i // 2 + n * (i % 2) for i in range(2 * n)]
            both = vector.ShuffleOp(low, high, order).result
            return self.write(both, tile, 2 * j)
        return self.write(high, self.write(low, tile, j), j + self.half)

    def wide(self, x: ir.Value) -> TypedScalar:
        return widen(self.k, TypedScalar(x, self.stored), self.lanes)

    def narrow(self, x: TypedScalar) -> ir.Value:
        return narrow(self.k, x, self.stored, self.lanes).value
