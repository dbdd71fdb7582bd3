"""Position of a work-group of an attention kernel: its head, its queries, its tile."""

from __future__ import annotations

from collections.abc import Mapping

from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.lowering.cpu.frame.elements import Elements
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
)
from mgx_mlir.passes.lowering.named_body import NamedBody


def room_of_heads(rows: int) -> int:
    """Return the elements of a query and of a value that are kept for each of `rows` queries where
    only a run knows how many there are: two thirds of the scratch are for both."""
    return SCRATCH_BYTES * 2 // 3 // (8 * rows) // 16 * 16


class AttentionSite:
    """The extents of an attention as the body of its kernel knows them, and what a group has of it.

    first: its first query; rows: the queries of a group at most; sizes: of its tile of the result.
    depth: the elements of a value that it has, from `first_depth` on; room: of a dynamic one at
    most. cached: keys and values that a mask hides from all queries need not be numbers.
    """

    def __init__(
        self,
        k: WorkgroupBuilder,
        inputs: Mapping[ir.Value, ir.Value],
        form: AttentionForm,
        body: NamedBody,
        out: TensorType,
        rows: int,
        *,
        cached: bool,
    ) -> None:
        self.k, self.form, self.out, self.rows, self.cached = k, form, out, rows, cached

        def extent(d: Index) -> Index:
            return body.index(k, d, k.inner) if isinstance(d, int) else d

        self.elements = Elements(k, inputs, extent)
        self.queries, self.keys = extent(form.queries), extent(form.keys)
        self.width, self.depth = extent(form.width), extent(form.depth)
        self.first_depth: Index = 0
        self.room = room_of_heads(rows)
        if not isinstance(self.depth, int):
            self.first_depth = k.at[2]
            self.depth = k.min(k.sub(self.depth, self.first_depth), self.room)
        self.lead: list[Index] = []
        flat = k.at[0]
        for d in reversed(form.lead[1:]):
            self.lead.insert(0, k.rem(flat, extent(d)))
            flat = k.div(flat, extent(d))
        self.lead[:0] = [flat] if form.lead else []
        # the last group may take up rows of the one before it: they come out the same
        self.first = k.min(k.at[1], k.sub(self.queries, rows))
        self.count: Index = rows
        if not isinstance(self.queries, int):
            self.first = k.max(self.first, 0)
            self.count = k.min(rows, self.queries)
        self.sizes: list[Index] = [1] * out.rank
        self.sizes[form.query_dim], self.sizes[form.depth_dim] = self.count, self.depth

    def row(self, i: int) -> Index:
        """Return which row of the tile a query is, for one past the last that of the last one."""
        if isinstance(self.count, int):
            return i
        return self.k.min(i, self.k.sub(self.count, 1))

    def inverse(self, total: ir.Value) -> ir.Value:
        """Return one over a sum of weights; over no keys at all, where all sums are 0, it is 1."""
        k = self.k
        one = k.splat(1.0, ir.VectorType(total.type).shape[0])
        if not isinstance(self.keys, int):
            total = arith.SelectOp(k.is_equal(self.keys, 0), one, total).result
        return arith.DivFOp(one, total).result

    def result(self, tile: ir.Value) -> ResultTile:
        """Return the tile with its index in the result."""
        offsets = self.form.place(self.elements, [*self.lead, self.first, self.first_depth])
        return ResultTile(tile, offsets, self.sizes)
