"""Attention of a few queries, one by one: keys and values are read once, along their rows.

A group of keys, one per lane, is multiplied with the query along the width, and the products are
summed across lanes. The weights are kept in scratch memory; then each row of values is added by its
weight. Where not all weights fit there, the sums are rescaled as the maximum grows. The query and
the sums stay in registers if both have static sizes. Else the sums are in scratch memory, and the
query is read again for each group of keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.analysis.access_maps import Reader
from mgx_mlir.passes.analysis.attention_form import RowReaders
from mgx_mlir.passes.lowering.cpu.attention.attention_range import visible_keys
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow, unrounded
from mgx_mlir.passes.lowering.cpu.frame.exponential import exp
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import TypedScalar

KEYS = 2048  # keys whose weights are kept: a quarter of the L1 cache
WIDE = 4  # registers of sums that are added to together, where their number is dynamic
CHAINS = 4  # independent sums for rows of values, so that additions do not wait for each other
INFINITY = float("inf")


def rows_one_by_one(site: AttentionSite, readers: RowReaders, tile: ir.Value) -> ir.Value:
    """Return the result's tile with all queries of the group."""
    if site.count == 1:
        return Row(site, readers, 0).run(tile)
    k = site.k
    return k.loop(0, site.count, 1, [tile], lambda i, c: [Row(site, readers, i).run(c[0])])[0]


def risen(
    k: WorkgroupBuilder, old: ir.Value, peaks: ir.Value, lanes: int
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return the maximum of all lanes, the number to subtract from scores, and the factor for
    sums made with the old maximum.
    """
    high = k.broadcast(k.reduce(peaks, "maxnumf"), lanes)
    # a row with nothing but -inf so far: subtracting that would make NaN of its zeros
    low = arith.CmpFOp(1, high, k.splat(-INFINITY, lanes)).result
    finite = arith.SelectOp(low, k.splat(0.0, lanes), high).result
    return high, finite, exp(k, arith.SubFOp(old, finite).result)


class Row:
    """The work for one query, of the group's first head or a later one with the same keys."""

    def __init__(
        self, site: AttentionSite, readers: RowReaders, row: Index, head: Index = 0
    ) -> None:
        self.site, self.k, self.form, self.readers = site, site.k, site.form, readers
        self.elements, self.lanes, self.row = site.elements, readers.lanes, row
        lead = [*site.lead[:-1], *(self.k.add(i, head) for i in site.lead[-1:])]
        self.at: list[Index] = [*lead, self.k.add(site.first, row)]
        width, depth = site.width, site.depth
        self.query: list[ir.Value] | None = None
        if isinstance(width, int) and width % self.lanes == 0:
            self.query = [self.part(readers.q, [*self.at, d]) for d in range(0, width, self.lanes)]
        self.parts: int | None = None
        if isinstance(depth, int) and depth % self.lanes == 0:
            self.parts = depth // self.lanes

    def part(
        self, read: Reader, at: Sequence[Index], left: Index | None = None, *, ragged: bool = False
    ) -> ir.Value:
        """Return a vector of an operand; if `ragged`, `left` elements and then zeros."""
        self.elements.masked = ragged
        x = self.elements.f32(read(self.elements, list(at), self.lanes), self.lanes)
        self.elements.masked = False
        return x if not ragged or left is None else self.first(x, left, 0.0)

    def first(self, x: ir.Value, count: Index, other: float) -> ir.Value:
        """Return the first `count` lanes of a vector, and then a number."""
        kind = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(1))
        inside = vector.CreateMaskOp(kind, [self.k.index(count)]).result
        return arith.SelectOp(inside, x, self.k.splat(other, self.lanes)).result

    def run(self, tile: ir.Value) -> ir.Value:
        k, keys, lanes = self.k, self.site.keys, self.lanes
        zero = k.splat(0.0, lanes)
        one_block = isinstance(keys, int) and keys <= KEYS
        room = -(-keys // lanes) * lanes if isinstance(keys, int) and one_block else KEYS
        weights = k.empty((room,))
        sums = [zero] * self.parts if self.parts is not None else [self.cleared()]
        state = [k.splat(-INFINITY, lanes), zero, *sums, weights]
        seen = visible_keys(self.site, self.readers, k.add(self.site.first, self.row), 1)
        first, end = seen.first, seen.end
        if isinstance(keys, int) and one_block:
            state = self.block(first, k.sub(end, first), state)
        else:
            state = k.loop(
                first, end, KEYS, state,
                lambda start, c: self.block(start, k.min(KEYS, k.sub(end, start)), c),
            )  # fmt: skip
        return self.store(state[2:-1], state[1], tile)

    def cleared(self) -> ir.Value:
        """Return scratch memory for the sums, all 0."""
        k, lanes, depth = self.k, self.lanes, self.site.depth
        room = -(-depth // lanes) * lanes if isinstance(depth, int) else self.site.room + lanes
        zero = k.splat(0.0, lanes)
        return k.loop(0, depth, lanes, [k.empty((room,))], lambda i, c: [k.write(zero, c[0], [i])])[
            0
        ]

    def block(self, start: Index, count: Index, state: Sequence[ir.Value]) -> list[ir.Value]:
        """Return maximum, total and sums after `count` keys from `start` on, and the scratch."""
        k, lanes = self.k, self.lanes
        old, total, *sums, weights = state

        def scores(at: Index, last: bool, carried: list[ir.Value]) -> list[ir.Value]:
            into, high = carried
            x = self.scores(k.add(start, at), last)
            if last:
                x = self.first(x, k.sub(count, at), -INFINITY)
            above = arith.CmpFOp(2, x, high).result  # ogt: a NaN is in the sum
            return [k.write(x, into, [at]), arith.SelectOp(above, x, high).result]

        weights, high = k.along(count, lanes, [weights, old], scores)
        high, finite, shrink = risen(k, old, high, lanes)
        total = arith.MulFOp(total, shrink).result

        def shares(at: Index, _: bool, carried: list[ir.Value]) -> list[ir.Value]:
            into, added = carried
            y = exp(k, arith.SubFOp(k.read(into, [at], lanes), finite).result)
            return [k.write(y, into, [at]), arith.AddFOp(added, y).result]

        weights, total = k.along(count, lanes, [weights, total], shares)
        return [high, total, *self.weighted(weights, start, count, sums, shrink), weights]

    def scores(self, key: Index, last: bool) -> ir.Value:
        """Return the scores of one key per lane; last: some lanes are past the last key."""
        k = self.k
        positions = [k.add(key, i) for i in range(self.lanes)]
        if last:
            positions = [k.min(position, k.sub(self.site.keys, 1)) for position in positions]
        sums = self.products(positions)
        self.elements.masked = last
        found = self.applied(
            self.form.scores, self.form.product, self.form.weights, across(sums), key
        )
        self.elements.masked = False
        return found

    def products(self, positions: Sequence[Index]) -> list[ir.Value]:
        """Return the elementwise products of the query and some keys, to be summed across lanes."""
        k, lanes, read = self.k, self.lanes, self.readers.k
        zero, lead, width = k.splat(0.0, lanes), self.site.lead, self.site.width
        if self.query is not None:
            sums: list[ir.Value] = []
            for position in positions:
                total = zero
                for j, q in enumerate(self.query):
                    total = k.fma(self.part(read, [*lead, j * lanes, position]), q, total)
                sums.append(total)
            return sums

        def some(d: Index, ragged: bool, carried: list[ir.Value]) -> list[ir.Value]:
            left = k.sub(width, d)
            q = self.part(self.readers.q, [*self.at, d], left, ragged=ragged)
            out: list[ir.Value] = []
            for position, total in zip(positions, carried, strict=True):
                x = self.part(read, [*lead, d, position], left, ragged=ragged)
                out.append(k.fma(x, q, total))
            return out

        return k.along(width, lanes, [zero] * len(positions), some)

    def weighted(
        self,
        weights: ir.Value,
        start: Index,
        count: Index,
        sums: Sequence[ir.Value],
        shrink: ir.Value,
    ) -> list[ir.Value]:
        """Return the shrunk sums with the values of `count` keys by their weights."""
        k, lanes = self.k, self.lanes
        if self.parts is not None:
            sums = [arith.MulFOp(s, shrink).result for s in sums]
            return self.over_keys(weights, start, count, sums, 0)

        def some(depth: Index, parts: int, ragged: bool, into: ir.Value) -> list[ir.Value]:
            positions = [k.add(depth, j * lanes) for j in range(parts)]
            held = [arith.MulFOp(k.read(into, [i], lanes), shrink).result for i in positions]
            held = self.over_keys(weights, start, count, held, depth, ragged=ragged)
            for i, x in zip(positions, held, strict=True):
                into = k.write(x, into, [i])
            return [into]

        depth, wide = self.site.depth, WIDE * lanes
        whole = k.sub(depth, k.rem(depth, wide))
        made = k.loop(0, whole, wide, sums, lambda i, c: some(i, WIDE, False, c[0]))
        return k.along(
            k.sub(depth, whole), lanes, made, lambda i, r, c: some(k.add(whole, i), 1, r, c[0])
        )

    def over_keys(
        self,
        weights: ir.Value,
        start: Index,
        count: Index,
        sums: Sequence[ir.Value],
        depth: Index,
        *,
        ragged: bool = False,
    ) -> list[ir.Value]:
        """Return sums, of neighbours from `depth` on, with the values of keys by their weights."""
        k, lanes, parts = self.k, self.lanes, len(sums)
        chains = max(1, CHAINS // -(-parts // 2))
        depth = k.add(self.site.first_depth, depth)

        def add(at: Index, held: Sequence[ir.Value]) -> list[ir.Value]:
            w = k.broadcast(k.element(weights, [at]), lanes)
            out: list[ir.Value] = []
            for j, total in enumerate(held):
                position = [*self.site.lead, k.add(start, at), k.add(depth, j * lanes)]
                x = self.part(self.readers.v, position, ragged=ragged)
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
            known[op.results[0]] = self.elements.unrounded(
                op.opview, [known[v] for v in op.operands]
            )
        return self.elements.f32(known[wanted], self.lanes)

    def store(self, sums: Sequence[ir.Value], totals: ir.Value, tile: ir.Value) -> ir.Value:
        """Return the tile with the row of sums divided by their total, after the epilogue."""
        k, form, lanes = self.k, self.form, self.lanes
        total = k.broadcast(k.reduce(totals, "add"), lanes)
        inverse = self.site.inverse(total)

        def stored(x: ir.Value, depth: Index, ragged: bool, tile: ir.Value) -> ir.Value:
            x = arith.MulFOp(x, inverse).result
            self.elements.masked = ragged
            position = k.add(self.site.first_depth, depth)
            x = self.applied(form.epilogue, form.output, form.final, x, position)
            self.elements.masked = False
            at: list[Index] = [0] * self.site.out.rank
            at[form.query_dim], at[form.depth_dim] = self.row, depth
            row = narrow(k, TypedScalar(x, dtypes.FLOAT), self.site.out.dtype, lanes)
            return k.write(row.value, tile, at, masked=ragged)

        if self.parts is not None:
            for j, x in enumerate(sums):
                tile = stored(x, j * lanes, False, tile)
            return tile
        return k.along(
            self.site.depth, lanes, [tile],
            lambda i, ragged, c: [stored(k.read(sums[0], [i], lanes), i, ragged, c[0])],
        )[0]  # fmt: skip


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
