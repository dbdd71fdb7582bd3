"""Attention of a block of queries: scores, softmax and weighted sum along vectors of queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import is_a
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.passes.analysis.attention_form import KEY_BLOCK, Tile
from mgx_mlir.passes.lowering.cpu.attention.attention_range import visible_keys
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow, unrounded
from mgx_mlir.passes.lowering.cpu.frame.exponential import exp
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
)
from mgx_mlir.passes.lowering.scalar import TypedScalar

INFINITY = float("inf")
_SPARE = 4  # registers that hold neither sums nor queries


class Block:
    """The work of one group, with vectors along the queries, one query per lane."""

    def __init__(self, site: AttentionSite, isa: Isa) -> None:
        self.site, self.k, self.elements, self.form = site, site.k, site.elements, site.form
        form = self.form
        self.lead, self.first, self.rows = site.lead, site.first, site.rows
        self.out, self.keys_count = site.out, site.keys
        self.lanes = isa.lanes
        self.own = -(-self.rows // self.lanes)  # registers of queries of a head
        self.vectors = self.own * site.heads
        self.width = self.vectors * self.lanes
        # keys, or elements of a value, by the registers of queries
        self.step = isa.attention_tile[0]
        keys_step = self.step
        if self.vectors > isa.attention_tile[1]:
            self.step = min(self.step, (isa.registers - _SPARE) // self.vectors - 1)
            keys_step = math.prod(isa.attention_tile) // self.vectors
        # vectors along the keys have a length that divides KEY_BLOCK
        turned = any(tile.turned for tile in form.operands.values())
        steps = (n for n in range(keys_step, 0, -1) if not turned or KEY_BLOCK % n == 0)
        self.key_step = next(steps)
        # for a dynamic width and depth the size that a group handles; the last step may reach
        # beyond
        room = site.room
        self.query_rows = site.width if isinstance(site.width, int) else room
        self.sum_rows = site.depth if isinstance(site.depth, int) else room + self.lanes
        sums = (self.query_rows + self.sum_rows) * self.width * 4
        step = self.key_step
        fitting = (SCRATCH_BYTES - sums) // (self.width * 4) // step * step
        keys = self.keys_count
        whole = isinstance(keys, int) and keys <= fitting
        self.block = keys if isinstance(keys, int) and whole else max(fitting, step)
        self.full: Index = 0  # keys ahead of it are seen by all queries of the group

    def query(self, vector_index: int, i: int) -> list[Index]:
        """Return the head and query of a lane; lanes past the last query read that one again."""
        k, queries, head = self.k, self.site.queries, self.site.lead_of(vector_index // self.own)
        own = vector_index % self.own * self.lanes + i
        if isinstance(queries, int):
            return [*head, k.add(self.first, min(own, self.rows - 1))]
        return [*head, k.min(k.add(self.first, own), k.sub(queries, 1))]

    def run(self, tiles: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the result's tile of each head with the block's rows."""
        k, count = self.k, self.keys_count
        queries = self.turned_queries()
        low = k.splat(-INFINITY, self.lanes)
        zero = k.splat(0.0, self.lanes)
        state: list[ir.Value] = [low] * self.vectors + [zero] * self.vectors
        sums = k.empty((self.sum_rows, self.width))
        seen = visible_keys(self.site, self.form.rows, self.first, self.site.count)
        first, end, self.full = seen.first, seen.end, seen.full
        if isinstance(end, int) and isinstance(count, int) and self.block == count:
            state, sums = self.keys(queries, 0, count, state, sums, whole=True)
            return self.stored(sums, state[self.vectors :], tiles)
        sums = self.cleared(sums)

        def step(start: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            here: Index = self.block
            if not isinstance(end, int):
                here = k.min(self.block, k.sub(end, start))
            found, total = self.keys(queries, start, here, carried[:-1], carried[-1])
            return [*found, total]

        full = end // self.block * self.block if isinstance(end, int) else end
        *state, sums = k.loop(first, full, self.block, [*state, sums], step)
        if isinstance(end, int) and isinstance(full, int) and full < end:
            state, sums = self.keys(queries, full, end - full, state, sums)
        return self.stored(sums, state[self.vectors :], tiles)

    def turned_queries(self) -> ir.Value:
        """q of the block as (width, lanes)."""
        k, form, elements = self.k, self.form, self.elements

        def some(d: Index, n: int, ragged: bool, carried: list[ir.Value]) -> list[ir.Value]:
            found = carried[0]
            elements.masked = ragged
            for v in range(self.vectors):
                rows = [
                    elements.f32(form.q(elements, [*self.query(v, i), d], n), n)
                    for i in range(self.lanes)
                ]
                for j, column in enumerate(elements.rows(rows)):
                    found = k.write(column, found, [k.add(d, j), v * self.lanes])
            elements.masked = False
            return [found]

        step = min(form.q_run, self.lanes)
        made = k.empty((self.query_rows, self.width))
        return self.in_steps(self.site.width, [made], some, step)[0]

    def cleared(self, sums: ir.Value) -> ir.Value:
        k = self.k

        def row(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            made = carried[0]
            for v in range(self.vectors):
                made = k.write(k.splat(0.0, self.lanes), made, [i, v * self.lanes])
            return [made]

        return k.loop(0, self.site.depth, 1, [sums], row)[0]

    # ---- one block of keys -------------------------------------------------------------------

    def keys(
        self,
        queries: ir.Value,
        start: Index,
        count: Index,
        state: Sequence[ir.Value],
        sums: ir.Value,
        *,
        whole: bool = False,
    ) -> tuple[list[ir.Value], ir.Value]:
        """Maxima and totals, and the weighted sums, after `count` keys from `start` on."""
        k, n = self.k, self.vectors
        old, totals = list(state[:n]), list(state[n:])
        scores, high = self.scores(queries, start, count, old)
        # a row with only -inf so far: subtracting -inf would give NaN
        finite = [self.unless_low(h) for h in high]
        weights, added = self.exponentials(scores, count, finite)
        if whole:
            return [*high, *added], self.weighted(weights, start, count, sums, None)
        shrink = [exp(k, arith.SubFOp(o, f).result) for o, f in zip(old, finite, strict=True)]
        totals = [k.fma(t, s, a) for t, s, a in zip(totals, shrink, added, strict=True)]
        return [*high, *totals], self.weighted(weights, start, count, sums, shrink)

    def unless_low(self, high: ir.Value) -> ir.Value:
        k = self.k
        low = arith.CmpFOp(1, high, k.splat(-INFINITY, self.lanes)).result
        return arith.SelectOp(low, k.splat(0.0, self.lanes), high).result

    def scores(
        self, queries: ir.Value, start: Index, count: Index, high: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Return the scores as (keys, lanes), and their maxima."""
        k = self.k
        made = k.empty((count if isinstance(count, int) else self.block, self.width))

        def some(
            at: Index, n: int, ragged: bool, carried: list[ir.Value], *, hides: bool = True
        ) -> list[ir.Value]:
            into, maxima = carried[0], carried[1:]
            key = k.add(start, at)
            # past the last key it is read again, and its scores are masked
            positions = [k.add(key, i) for i in range(n)]
            if ragged:
                positions = [k.min(i, k.sub(self.keys_count, 1)) for i in positions]
            tile = self.products(queries, positions)
            ops, wanted = self.form.scores, self.form.weights
            if not hides:
                *ops, last = ops
                wanted = last.operands[1]
            for v in range(self.vectors):
                self.elements.masked = ragged
                column = self.applied(
                    ops, self.form.product, wanted, [tile[i][v] for i in range(n)], v, key
                )
                self.elements.masked = False
                if ragged:
                    column = [
                        self.unless_past(x, k.add(at, i), count) for i, x in enumerate(column)
                    ]
                for i, x in enumerate(column):
                    into = k.write(x, into, [k.add(at, i), v * self.lanes])
                    above = arith.CmpFOp(2, x, maxima[v]).result  # ogt: a NaN is in the sum
                    maxima[v] = arith.SelectOp(above, x, maxima[v]).result
            return [into, *maxima]

        step, found = self.key_step, [made, *high]
        if isinstance(self.full, int) or not self.hides_last:
            made, *high = self.in_steps(count, found, some, step)
            return made, high
        seen = k.max(k.min(k.sub(self.full, start), count), 0)
        seen = k.sub(seen, k.rem(seen, step))
        found = k.loop(
            0, seen, step, found, lambda i, c: some(i, step, False, list(c), hides=False)
        )
        made, *high = self.in_steps(
            k.sub(count, seen), found, lambda i, n, ragged, c: some(k.add(seen, i), n, ragged, c),
            step,
        )  # fmt: skip
        return made, high

    @property
    def hides_last(self) -> bool:
        """Return whether the last op on the scores is the mask that hides keys."""
        return bool(self.form.scores) and is_a(self.form.scores[-1], Where)

    def unless_past(self, x: ir.Value, at: Index, count: Index) -> ir.Value:
        """Return scores, or -inf from the key `count` on."""
        k = self.k
        return arith.SelectOp(k.is_less(at, count), x, k.splat(-INFINITY, self.lanes)).result

    def in_steps(
        self,
        count: Index,
        carried: Sequence[ir.Value],
        some: Callable[[Index, int, bool, list[ir.Value]], list[ir.Value]],
        step: int,
    ) -> list[ir.Value]:
        """`some(at, n, ragged, carried)` over [0, count) in steps of `step`.

        The last one is shorter; with a dynamic count it has full length, and is `ragged`.
        """
        if not isinstance(count, int):
            return self.k.along(count, step, carried, lambda i, last, c: some(i, step, last, c))
        full = count // step * step
        found = list(carried)
        if full > step:
            found = self.k.loop(0, full, step, found, lambda i, c: some(i, step, False, list(c)))
        elif full:
            found = some(0, step, False, found)
        return some(full, count - full, False, found) if full < count else found

    def products(self, queries: ir.Value, keys: Sequence[Index]) -> list[list[ir.Value]]:
        """q k^T of some keys."""
        k, form, n = self.k, self.form, len(keys)

        def one(d: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            q = [k.read(queries, [d, v * self.lanes], self.lanes) for v in range(self.vectors)]
            out: list[ir.Value] = []
            for i in range(n):
                element = form.k(self.elements, [*self.lead, d, keys[i]], 0)
                x = k.broadcast(element.value, self.lanes)
                out += [k.fma(x, q[v], carried[i * self.vectors + v]) for v in range(self.vectors)]
            return out

        zeros = [k.splat(0.0, self.lanes)] * (n * self.vectors)
        found = k.loop(0, self.site.width, 1, zeros, one)
        return [found[i * self.vectors : (i + 1) * self.vectors] for i in range(n)]

    def applied(
        self,
        ops: Sequence[ir.Operation],
        source: ir.Value,
        wanted: ir.Value,
        column: list[ir.Value],
        v: int,
        at: Index,
    ) -> list[ir.Value]:
        """Pointwise ops on vectors along the queries, at indices `at`, `at` + 1, ... of dim -1."""
        if source == wanted:
            return column
        n = len(column)
        tiles: dict[ir.Value, list[TypedScalar]] = {
            x: self.operand(tile, v, at, n)
            for x, tile in self.form.operands.items()
            if any(x == y for op in ops for y in op.operands)
        }
        out: list[ir.Value] = []
        for i in range(n):
            known = {source: unrounded(column[i])}
            known.update({x: rows[i] for x, rows in tiles.items()})
            for op in ops:
                known[op.results[0]] = self.elements.unrounded(
                    op.opview, [known[x] for x in op.operands]
                )
            out.append(self.elements.f32(known[wanted], self.lanes))
        return out

    def operand(self, tile: Tile, v: int, at: Index, n: int) -> list[TypedScalar]:
        """Return a further operand as `n` vectors along the queries."""
        k = self.k
        if not tile.turned:
            lead, own = self.site.lead_of(v // self.own), v % self.own
            first = self.k.add(self.first, own * self.lanes)
            full = isinstance(self.site.queries, int) and (own + 1) * self.lanes <= self.rows
            if full or tile.uniform:
                return [
                    tile.read(self.elements, [*lead, first, k.add(at, i)], self.lanes)
                    for i in range(n)
                ]
            return [self.short(tile, v, k.add(at, i)) for i in range(n)]
        rows = [tile.read(self.elements, [*self.query(v, i), at], n) for i in range(self.lanes)]
        dtype = rows[0].dtype
        columns = self.elements.rows([r.value for r in rows])
        return [TypedScalar(c, dtype) for c in columns]

    def short(self, tile: Tile, v: int, at: Index) -> TypedScalar:
        """Return a vector along fewer queries than lanes: element by element."""
        found = [tile.read(self.elements, [*self.query(v, i), at], 1) for i in range(self.lanes)]
        dtype = found[0].dtype
        return TypedScalar(self.elements.rows([f.value for f in found])[0], dtype)

    def exponentials(
        self, scores: ir.Value, count: Index, high: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """exp(score - max) in place of the scores, and the sums over the keys."""
        k = self.k

        def one(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            into, totals = carried[0], carried[1:]
            for v in range(self.vectors):
                x = k.read(into, [i, v * self.lanes], self.lanes)
                y = exp(k, arith.SubFOp(x, high[v]).result)
                into = k.write(y, into, [i, v * self.lanes])
                totals[v] = arith.AddFOp(totals[v], y).result
            return [into, *totals]

        zeros = [k.splat(0.0, self.lanes)] * self.vectors
        made, *totals = k.loop(0, count, 1, [scores, *zeros], one)
        return made, totals

    def weighted(
        self,
        weights: ir.Value,
        start: Index,
        count: Index,
        sums: ir.Value,
        shrink: list[ir.Value] | None,
    ) -> ir.Value:
        """Return the values' sums by weight as (depth, lanes), on top of the shrunk ones."""
        k, form = self.k, self.form

        def some(depth: Index, n: int, ragged: bool, carried: list[ir.Value]) -> list[ir.Value]:
            # past the last element that one is read again, and its sums are not stored
            positions = [k.add(depth, i) for i in range(n)]
            if ragged:
                positions = [k.min(i, k.sub(self.site.depth, 1)) for i in positions]
            positions = [k.add(self.site.first_depth, i) for i in positions]
            begin = [k.splat(0.0, self.lanes)] * (n * self.vectors)
            if shrink is not None:
                begin = [
                    arith.MulFOp(
                        k.read(carried[0], [k.add(depth, i), v * self.lanes], self.lanes), shrink[v]
                    ).result
                    for i in range(n)
                    for v in range(self.vectors)
                ]

            def one(key: ir.Value, acc: list[ir.Value]) -> list[ir.Value]:
                w = [
                    k.read(weights, [key, v * self.lanes], self.lanes) for v in range(self.vectors)
                ]
                out: list[ir.Value] = []
                for i in range(n):
                    at = [*self.lead, k.add(start, key), positions[i]]
                    x = k.broadcast(form.v(self.elements, at, 0).value, self.lanes)
                    out += [k.fma(x, w[v], acc[i * self.vectors + v]) for v in range(self.vectors)]
                return out

            found = k.loop(0, count, 1, begin, one)
            into = carried[0]
            for i in range(n):
                for v in range(self.vectors):
                    at = [k.add(depth, i), v * self.lanes]
                    into = k.write(found[i * self.vectors + v], into, at)
            return [into]

        return self.in_steps(self.site.depth, [sums], some, self.step)[0]

    # ---- the result --------------------------------------------------------------------------

    def stored(
        self, sums: ir.Value, totals: list[ir.Value], tiles: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Divide the sums by their totals, apply the epilogue, and store the rows of the result."""
        k, form, out = self.k, self.form, self.out
        inverse = [self.site.inverse(t) for t in totals]

        def some(depth: Index, n: int, ragged: bool, carried: list[ir.Value]) -> list[ir.Value]:
            tiles = list(carried)
            for v in range(self.vectors):
                head, own = divmod(v, self.own)
                column: list[ir.Value] = []
                for i in range(n):
                    x = k.read(sums, [k.add(depth, i), v * self.lanes], self.lanes)
                    column.append(arith.MulFOp(x, inverse[v]).result)
                done: list[ir.Value] = []
                self.elements.masked = ragged
                for i in range(0, n, KEY_BLOCK):
                    done += self.applied(
                        form.epilogue, form.output, form.final,
                        column[i : i + KEY_BLOCK], v, k.add(self.site.first_depth, depth, i),
                    )  # fmt: skip
                self.elements.masked = False
                rows = self.elements.rows(done)
                for i in range(min(self.lanes, self.rows - own * self.lanes)):
                    at: list[Index] = [0] * out.rank
                    at[form.query_dim] = self.site.row(own * self.lanes + i)
                    at[form.depth_dim] = depth
                    row = narrow(k, TypedScalar(rows[i], dtypes.FLOAT), out.dtype, n)
                    tiles[head] = k.write(row.value, tiles[head], at, masked=ragged)
            return tiles

        return self.in_steps(self.site.depth, tiles, some, self.lanes)
