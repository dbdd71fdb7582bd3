"""Position of a workgroup of an attention kernel: its head, its queries, its tile."""

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


def most_head_elements(rows: int) -> int:
    """Return the most elements of a query and of a value that are kept for each of `rows`
    queries where these sizes are dynamic: two thirds of the scratch hold both.
    """
    return SCRATCH_BYTES * 2 // 3 // (8 * rows) // 16 * 16


class AttentionSite:
    """The extents of an attention inside its kernel, and the part that a group computes.

    first: its first query; rows: most queries of a group; sizes: those of its tile of the result.
    heads: neighbouring heads with the same keys and values that a block of queries has; `lead` is
    the first of them.
    depth: its number of value elements, from `first_depth` on; room: their most, if dynamic.
    cached: keys and values that are masked for all queries may be NaN.
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
        heads: int = 1,
    ) -> None:
        self.heads = heads
        self.k, self.form, self.out, self.rows, self.cached = k, form, out, rows, cached

        def extent(d: Index) -> Index:
            return body.index(k, d, k.inner) if isinstance(d, int) else d

        self.elements = Elements(k, inputs, extent)
        self.queries, self.keys = extent(form.queries), extent(form.keys)
        self.width, self.depth = extent(form.width), extent(form.depth)
        self.first_depth: Index = 0
        self.room = most_head_elements(rows)
        if not isinstance(self.depth, int):
            self.first_depth = k.at[2]
            self.depth = k.min(k.sub(self.depth, self.first_depth), self.room)
        self.lead: list[Index] = []
        flat = k.at[0]
        for d in reversed(form.lead[1:]):
            self.lead.insert(0, k.rem(flat, extent(d)))
            flat = k.div(flat, extent(d))
        self.lead[:0] = [flat] if form.lead else []
        # the last group may overlap the one before it, with equal results
        self.first = k.min(k.at[1], k.sub(self.queries, rows))
        self.count: Index = rows
        if not isinstance(self.queries, int):
            self.first = k.max(self.first, 0)
            self.count = k.min(rows, self.queries)
        self.sizes: list[Index] = [1] * out.rank
        self.sizes[form.query_dim], self.sizes[form.depth_dim] = self.count, self.depth

    def row(self, i: int) -> Index:
        """Return a query's row of the tile; past the last query, that of the last."""
        if isinstance(self.count, int):
            return i
        return self.k.min(i, self.k.sub(self.count, 1))

    def lead_of(self, head: int) -> list[Index]:
        """Return the index of one of the heads, by its number in the group."""
        if not head:
            return self.lead
        return [*self.lead[:-1], self.k.add(self.lead[-1], head)]

    def inverse(self, total: ir.Value) -> ir.Value:
        """Return 1 / (sum of weights); 1 for no keys, where all sums are 0."""
        k = self.k
        one = k.splat(1.0, ir.VectorType(total.type).shape[0])
        if not isinstance(self.keys, int):
            total = arith.SelectOp(k.is_equal(self.keys, 0), one, total).result
        return arith.DivFOp(one, total).result

    def result(self, tile: ir.Value, head: int = 0) -> ResultTile:
        """Return the tile of a head with its index in the result."""
        at = [*self.lead_of(head), self.first, self.first_depth]
        offsets = self.form.place(self.elements, at)
        return ResultTile(tile, offsets, self.sizes)
