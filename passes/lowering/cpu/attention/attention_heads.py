"""Attention of one query for heads that share keys and values, which are read once for all heads.

A group has several such heads. A vector of keys is multiplied with the query of each head while it
is in the L1 cache, and so are some rows of values. A head's maximum, total, sums and weights are in
scratch memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgx_mlir.core.ir import arith, ir
from mgx_mlir.passes.analysis.access_maps import varies_along
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.analysis.shared_heads import shared_heads
from mgx_mlir.passes.lowering.cpu.attention.attention_range import mask_of, visible_keys
from mgx_mlir.passes.lowering.cpu.attention.attention_rows import INFINITY, Row, risen
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.exponential import exp
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, ResultTile

KEYS = 512  # keys whose weights are kept for each head
STEP = 16  # rows of values that are added to one head before the next
TOGETHER = 8  # heads of a group at most
_WIDE_BLOCK = 4  # registers of queries of a block, where there are more than few registers
_FEW_REGISTERS = 16
GROUPS = 4  # least number of groups: workers share them, and a few workers do not saturate memory


def heads_together(form: AttentionForm, groups: Index) -> int:
    """Return the number of heads of a group; 1 where each is computed alone.

    groups: the number of groups with one head each.
    """
    if form.queries != 1:
        return 1
    return next(
        (
            n
            for n in _fitting(form, TOGETHER)
            if not isinstance(groups, int) or groups >= n * GROUPS
        ),
        1,
    )


def heads_of_block(form: AttentionForm, queries: Index, isa: Isa) -> int:
    """Return how many heads a block of queries has, each with a register of queries.

    A block reads keys and values, and finds the visible ones, once for its heads.
    """
    if isinstance(queries, int) and queries < isa.lanes:
        return 1
    most = _WIDE_BLOCK if isa.registers > _FEW_REGISTERS else isa.attention_tile[1]
    return next(_fitting(form, most), 1)


def _fitting(form: AttentionForm, most: int) -> Iterator[int]:
    """Yield how many heads can be computed together, the most first, without 1."""
    rows, found = form.rows, shared_heads(form, converted=True)
    if found is None or rows is None:
        return
    if form.width <= 0 or form.depth <= 0 or form.width % rows.lanes or form.depth % rows.lanes:
        return
    axis, mask = len(form.lead) - 1, mask_of(form)
    if found.axis != axis or form.lead[axis] <= 0:
        return
    if mask is not None and varies_along(mask, axis, form.product.owner.operation.block.arguments):
        return  # heads see different keys
    yield from (n for n in range(min(found.times, most), 1, -1) if not found.times % n)


class SharedHeads:
    """The work for one query of `count` heads, from the first of the group on."""

    def __init__(self, site: AttentionSite, count: int) -> None:
        assert site.form.rows is not None
        assert isinstance(site.depth, int)
        self.site, self.k, self.readers, self.count = site, site.k, site.form.rows, count
        self.lanes, self.depth = site.form.rows.lanes, site.depth
        self.starts = range(0, site.depth, self.lanes)

    def row(self, head: Index) -> Row:
        """Return the work of a head, whose query is read here."""
        return Row(self.site, self.readers, 0, head)

    def store(self) -> None:
        """Compute all heads, and store them in the result."""
        k, lanes = self.k, self.lanes
        low, zero = k.splat(-INFINITY, lanes), k.splat(0.0, lanes)

        def clear(h: Index, carried: list[ir.Value]) -> list[ir.Value]:
            high, peak, total, sums = carried
            for i in self.starts:
                sums = k.write(zero, sums, [h, i])
            high, peak = (k.write(low, v, [h, 0]) for v in (high, peak))
            return [high, peak, k.write(zero, total, [h, 0]), sums]

        made = [k.empty((self.count, n)) for n in (lanes, lanes, lanes, self.depth)]
        state = [*k.loop(0, self.count, 1, made, clear), k.empty((self.count, KEYS))]
        seen = visible_keys(self.site, self.readers, self.site.first, 1)
        first, end = seen.first, seen.end
        state = k.loop(
            first, end, KEYS, state,
            lambda start, c: self.block(start, k.min(KEYS, k.sub(end, start)), c),
        )  # fmt: skip
        _, _, total, sums, _ = state
        for h in range(self.count):
            row = self.row(h)
            found = [k.read(sums, [h, i], lanes) for i in self.starts]
            tile = k.empty(self.site.sizes, self.site.out.dtype)
            tile = row.store(found, k.read(total, [h, 0], lanes), tile)
            at = self.site.form.place(self.site.elements, [*row.at, self.site.first_depth])
            k.store(ResultTile(tile, at, self.site.sizes), 0)

    def block(self, start: Index, count: Index, state: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the state of the heads after `count` keys from `start` on."""
        k = self.k
        high, peak, total, sums, weights = state

        def scores(at: Index, last: bool, carried: list[ir.Value]) -> list[ir.Value]:
            def one(h: Index, carried: list[ir.Value]) -> list[ir.Value]:
                into, highest = carried
                row = self.row(h)
                x = row.scores(k.add(start, at), last)
                if last:
                    x = row.first(x, k.sub(count, at), -INFINITY)
                before = k.read(highest, [h, 0], self.lanes)
                above = arith.CmpFOp(2, x, before).result  # ogt: a NaN is in the sum
                most = arith.SelectOp(above, x, before).result
                return [k.write(x, into, [h, at]), k.write(most, highest, [h, 0])]

            return k.loop(0, self.count, 1, carried, one)

        weights, peak = k.along(count, self.lanes, [weights, peak], scores)
        state = k.loop(
            0, self.count, 1, [high, peak, total, sums, weights],
            lambda h, c: self.shares(h, count, c),
        )  # fmt: skip
        state[3] = self.weighted(start, count, state[4], state[3])
        return state

    def shares(self, h: Index, count: Index, state: Sequence[ir.Value]) -> list[ir.Value]:
        """Convert a head's scores to weights, and rescale its sums to the new maximum."""
        k, lanes = self.k, self.lanes
        high, peak, total, sums, weights = state
        most, finite, shrink = risen(
            k, k.read(high, [h, 0], lanes), k.read(peak, [h, 0], lanes), lanes
        )

        def share(at: Index, _: bool, carried: list[ir.Value]) -> list[ir.Value]:
            into, added = carried
            y = exp(k, arith.SubFOp(k.read(into, [h, at], lanes), finite).result)
            return [k.write(y, into, [h, at]), arith.AddFOp(added, y).result]

        held = arith.MulFOp(k.read(total, [h, 0], lanes), shrink).result
        weights, held = k.along(count, lanes, [weights, held], share)
        for i in self.starts:
            less = arith.MulFOp(k.read(sums, [h, i], lanes), shrink).result
            sums = k.write(less, sums, [h, i])
        high, peak = (k.write(most, v, [h, 0]) for v in (high, peak))
        return [high, peak, k.write(held, total, [h, 0]), sums, weights]

    def weighted(self, start: Index, count: Index, weights: ir.Value, sums: ir.Value) -> ir.Value:
        """Return the sums with the values of `count` keys by the weights of each head."""
        k, site, lanes = self.k, self.site, self.lanes

        def some(at: Index, n: int, carried: list[ir.Value]) -> list[ir.Value]:
            def one(h: Index, carried: list[ir.Value]) -> list[ir.Value]:
                row, into = self.row(h), carried[0]
                held = [k.read(into, [h, i], lanes) for i in self.starts]
                for i in range(n):
                    w = k.broadcast(k.element(weights, [h, k.add(at, i)]), lanes)
                    for j, d in enumerate(self.starts):
                        position = [*site.lead, k.add(start, at, i), k.add(site.first_depth, d)]
                        held[j] = k.fma(row.part(self.readers.v, position), w, held[j])
                for i, v in zip(self.starts, held, strict=True):
                    into = k.write(v, into, [h, i])
                return [into]

            return k.loop(0, self.count, 1, carried, one)

        whole = k.sub(count, k.rem(count, STEP))
        made = k.loop(0, whole, STEP, [sums], lambda i, c: some(i, STEP, list(c)))
        return k.loop(whole, count, 1, made, lambda i, c: some(i, 1, list(c)))[0]
