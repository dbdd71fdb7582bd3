"""Attention of a few queries, one by one: keys and values are read once, along their rows.

As many keys as a vector has lanes are multiplied with the query along the width, and their sums
made across the lanes together; the weights wait in scratch memory. Then each value's row is added
by its weight. Past the keys whose weights fit there, the sums are rescaled as the maximum grows.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.analysis.attention_form import RowReaders
from mgx_mlir.passes.lower.cpu.attention_site import AttentionSite
from mgx_mlir.passes.lower.cpu.elements import narrow, unrounded
from mgx_mlir.passes.lower.cpu.exponential import exp
from mgx_mlir.passes.lower.cpu.workgroup_builder import Index
from mgx_mlir.passes.lower.scalar import TypedScalar

KEYS = 2048  # whose weights are kept: a quarter of the first cache
CHAINS = 4  # values' rows that are added to sums of their own, which do not wait for each other
INFINITY = float("inf")


def rows_one_by_one(site: AttentionSite, readers: RowReaders, tile: ir.Value) -> ir.Value:
    """Return the result's tile with all queries of the group."""
    if site.count == 1:
        return _Row(site, readers, 0).run(tile)
    k = site.k
    return k.loop(0, site.count, 1, [tile], lambda i, c: [_Row(site, readers, i).run(c[0])])[0]


class _Row:
    """The work for one query."""

    def __init__(self, site: AttentionSite, readers: RowReaders, row: Index) -> None:
        self.site, self.k, self.form, self.readers = site, site.k, site.form, readers
        self.elements, self.lanes, self.row = site.elements, readers.lanes, row
        self.at: list[Index] = [*site.lead, self.k.add(site.first, row)]
        self.query = [
            self.elements.f32(readers.q(self.elements, [*self.at, d], self.lanes), self.lanes)
            for d in range(0, self.form.width, self.lanes)
        ]
        self.parts = self.form.depth // self.lanes

    def run(self, tile: ir.Value) -> ir.Value:
        k, keys, lanes = self.k, self.site.keys, self.lanes
        zero = k.splat(0.0, lanes)
        one_block = isinstance(keys, int) and keys <= KEYS
        room = -(-keys // lanes) * lanes if isinstance(keys, int) and one_block else KEYS
        weights = k.empty((room,))
        state = [k.splat(-INFINITY, lanes), zero, *[zero] * self.parts, weights]
        if isinstance(keys, int) and one_block:
            state = self.block(0, keys, state)
        else:
            state = k.loop(
                0, keys, KEYS, state,
                lambda start, c: self.block(start, k.min(KEYS, k.sub(keys, start)), c),
            )  # fmt: skip
        return self.store(state[2:-1], state[1], tile)

    def block(self, start: Index, count: Index, state: Sequence[ir.Value]) -> list[ir.Value]:
        """Return maximum, total and sums after `count` keys from `start` on, and the scratch."""
        k, lanes = self.k, self.lanes
        old, total, *sums, weights = state

        def scores(at: Index, last: bool, carried: list[ir.Value]) -> list[ir.Value]:
            into, high = carried
            x = self.scores(k.add(start, at), last)
            if last:
                left = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
                inside = vector.CreateMaskOp(left, [k.index(k.sub(count, at))]).result
                x = arith.SelectOp(inside, x, k.splat(-INFINITY, lanes)).result
            above = arith.CmpFOp(2, x, high).result  # ogt: a NaN is in the sum
            return [k.write(x, into, [at]), arith.SelectOp(above, x, high).result]

        weights, high = k.along(count, lanes, [weights, old], scores)
        high = k.broadcast(k.reduce(high, "maxnumf"), lanes)
        # a row with nothing but -inf so far: subtracting that would make NaN of its zeros
        low = arith.CmpFOp(1, high, k.splat(-INFINITY, lanes)).result
        finite = arith.SelectOp(low, k.splat(0.0, lanes), high).result
        shrink = exp(k, arith.SubFOp(old, finite).result)
        total = arith.MulFOp(total, shrink).result
        sums = [arith.MulFOp(s, shrink).result for s in sums]

        def shares(at: Index, _: bool, carried: list[ir.Value]) -> list[ir.Value]:
            into, added = carried
            y = exp(k, arith.SubFOp(k.read(into, [at], lanes), finite).result)
            return [k.write(y, into, [at]), arith.AddFOp(added, y).result]

        weights, total = k.along(count, lanes, [weights, total], shares)
        return [high, total, *self.weighted(weights, start, count, sums), weights]

    def scores(self, key: Index, last: bool) -> ir.Value:
        """Return the scores of as many keys as there are lanes; last: not all of them are keys."""
        k, lanes = self.k, self.lanes
        sums: list[ir.Value] = []
        for i in range(lanes):
            place = k.add(key, i)
            place = k.min(place, k.sub(self.site.keys, 1)) if last else place
            total = k.splat(0.0, lanes)
            for j, q in enumerate(self.query):
                at = [*self.site.lead, j * lanes, place]
                x = self.elements.f32(self.readers.k(self.elements, at, lanes), lanes)
                total = k.fma(x, q, total)
            sums.append(total)
        self.elements.masked = last
        found = self.applied(
            self.form.scores, self.form.product, self.form.weights, across(sums), key
        )
        self.elements.masked = False
        return found

    def weighted(
        self, weights: ir.Value, start: Index, count: Index, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Return the sums with the values of `count` keys by their weights."""
        k, lanes, parts = self.k, self.lanes, self.parts
        chains = max(1, CHAINS // -(-parts // 2))

        def add(at: Index, held: Sequence[ir.Value]) -> list[ir.Value]:
            w = k.broadcast(k.element(weights, [at]), lanes)
            out: list[ir.Value] = []
            for j, total in enumerate(held):
                place = [*self.site.lead, k.add(start, at), j * lanes]
                x = self.elements.f32(self.readers.v(self.elements, place, lanes), lanes)
                out.append(k.fma(x, w, total))
            return out

        def some(at: Index, carried: list[ir.Value]) -> list[ir.Value]:
            out: list[ir.Value] = []
            for i in range(chains):
                out += add(k.add(at, i), carried[i * parts : (i + 1) * parts])
            return out

        zeros = [k.splat(0.0, lanes)] * (parts * (chains - 1))
        whole = k.sub(count, k.rem(count, chains))
        found = k.loop(0, whole, chains, [*sums, *zeros], some)
        totals = found[:parts]
        for i in range(1, chains):
            others = found[i * parts : (i + 1) * parts]
            totals = [arith.AddFOp(a, b).result for a, b in zip(totals, others, strict=True)]
        return k.loop(whole, count, 1, totals, add)

    def applied(
        self,
        ops: Sequence[ir.Operation],
        source: ir.Value,
        wanted: ir.Value,
        x: ir.Value,
        last: Index,
    ) -> ir.Value:
        """Pointwise ops on a vector along the last dim, from its index `last` on."""
        if source == wanted:
            return x
        known = {source: unrounded(x)}
        for op in ops:
            for v in op.operands:
                if v not in known:
                    read = self.readers.operands[v]
                    known[v] = read(self.elements, [*self.at, last], self.lanes)
            known[op.results[0]] = self.elements.pointwise(
                op.opview, [known[v] for v in op.operands]
            )
        return self.elements.f32(known[wanted], self.lanes)

    def store(self, sums: Sequence[ir.Value], totals: ir.Value, tile: ir.Value) -> ir.Value:
        """Return the tile with the row of the sums over their total, after the epilogue."""
        k, form, lanes = self.k, self.form, self.lanes
        total = k.broadcast(k.reduce(totals, "add"), lanes)
        inverse = self.site.inverse(total)
        for j, x in enumerate(sums):
            x = arith.MulFOp(x, inverse).result
            x = self.applied(form.epilogue, form.output, form.final, x, j * lanes)
            at: list[Index] = [0] * self.site.out.rank
            at[form.query_dim], at[form.depth_dim] = self.row, j * lanes
            dtype = self.site.out.dtype
            row = narrow(k, TypedScalar(x, dtypes.FLOAT), dtype, lanes)
            tile = k.write(row.value, tile, at)
        return tile


def across(vectors: Sequence[ir.Value]) -> ir.Value:
    """Return a vector whose lane i is the sum of the lanes of vector i; as many as there are lanes.

    Each step adds halves of two vectors, so that one vector holds the partial sums of both.
    """
    lanes = ir.VectorType(vectors[0].type).shape[0]
    held, distance = list(vectors), 1
    while len(held) > 1:
        made: list[ir.Value] = []
        for a, b in zip(held[::2], held[1::2], strict=True):
            own = [i + lanes * bool(i & distance) for i in range(lanes)]
            other = [(i ^ distance) + lanes * bool(i & distance) for i in range(lanes)]
            halves = (vector.ShuffleOp(a, b, order).result for order in (own, other))
            made.append(arith.AddFOp(*halves).result)
        held, distance = made, distance * 2
    return held[0]
