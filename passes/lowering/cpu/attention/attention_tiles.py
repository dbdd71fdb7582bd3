"""Attention of bf16 in tile registers: 64 queries by some keys at a time.

Scores are 16 keys by 16 queries of a register, so that a vector is still along the queries. Weights
are rounded to bf16 and are stored in pairs of keys; values are transposed, 16 of the depth by 32
keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.access_maps import Reader
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.lowering.cpu.attention.attention_block import Block
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow, transposed
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import (
    CHUNK,
    COLUMNS,
    PAIRS,
    ROWS,
    SUMS,
    TILE,
    multiplied,
    register_of,
    sums_of,
    zeros,
)

QUERIES = 64  # queries of a group: four registers of sums
_KEYS = 256  # keys whose scores are in scratch memory
_PAIR = 2


def takes(form: AttentionForm, isa: Isa, *, cached: bool) -> bool:
    """Return whether tile registers multiply this attention's operands.

    Rows that a mask hides may be no numbers in a cache, and would be multiplied by 0.
    """
    if not isa.tile_dot or cached or form.rows is None or form.rows.lanes != COLUMNS:
        return False
    if any(TensorType.of(v).dtype is not dtypes.BF16 for v in form.multiplied):
        return False
    fixed = form.width > 0 and form.depth > 0 and form.queries >= 0
    return fixed and form.width % CHUNK == 0 and form.depth % ROWS == 0 and form.queries >= ROWS


class TiledBlock(Block):
    """The work of one group."""

    def __init__(self, site: AttentionSite, isa: Isa) -> None:
        super().__init__(site, isa)
        assert self.form.rows is not None
        assert isinstance(site.width, int)
        assert isinstance(site.depth, int)
        self.isa, self.readers, self.key_step = isa, self.form.rows, ROWS
        self.chunks, self.registers = PAIRS.chunks_of(site.width), site.depth // ROWS
        keys = self.keys_count
        self.block = keys if isinstance(keys, int) and keys <= _KEYS else _KEYS

    def bf16(self, read: Reader, at: Sequence[Index]) -> ir.Value:
        """Return neighbours of a row, 16 of them."""
        found = read(self.elements, list(at), COLUMNS)
        return narrow(self.k, found, dtypes.BF16, COLUMNS).value

    def words(self, v: ir.Value) -> ir.Value:
        """Return 32 elements as 16 words."""
        return vector.BitCastOp(self.k.vector_type(COLUMNS, dtypes.INT32), v).result

    def pairs(self, words: ir.Value) -> ir.Value:
        """Return 16 words as 32 elements."""
        return vector.BitCastOp(self.k.vector_type(CHUNK, dtypes.BF16), words).result

    def chunk_of(self, read: Reader, at: Sequence[Index], d: Index) -> ir.Value:
        """Return 32 neighbours of a row."""
        low, high = (self.bf16(read, [*at, self.k.add(d, i)]) for i in (0, COLUMNS))
        return vector.ShuffleOp(low, high, list(range(CHUNK))).result

    def turned_queries(self) -> ir.Value:
        """q of the block as [chunk, register, pair of the width, query, 2]."""
        k = self.k

        def chunk(c: Index, carried: list[ir.Value]) -> list[ir.Value]:
            found = carried[0]
            for v in range(self.vectors):
                rows = [
                    self.words(self.chunk_of(self.readers.q, self.query(v, i), k.mul(c, CHUNK)))
                    for i in range(self.lanes)
                ]
                for p, column in enumerate(transposed(rows)):
                    found = k.write(self.pairs(column), found, [c, v, p * CHUNK])
            return [found]

        made = k.empty((self.chunks, self.vectors, TILE), dtypes.BF16)
        return k.each(0, self.chunks, 1, [made], chunk)[0]

    def products(self, queries: ir.Value, keys: Sequence[Index]) -> list[list[ir.Value]]:
        """q k^T of up to 16 keys; those beyond the last are it once more."""
        k, n = self.k, len(keys)
        positions = [*keys, *[keys[-1]] * (ROWS - n)]
        left = k.empty((self.chunks, TILE), dtypes.BF16)
        read = self.readers.k
        for c in range(self.chunks):
            for i, key in enumerate(positions):
                for d in (0, COLUMNS):
                    own = self.bf16(read, [*self.lead, c * CHUNK + d, key])
                    left = k.write(own, left, [c, i * CHUNK + d])
        sums = zeros(k, self.vectors)
        for c in range(self.chunks):
            rows = register_of(k, k.read(left, [c, 0], TILE))
            sums = [
                multiplied(
                    k, self.isa, total, rows, register_of(k, k.read(queries, [c, v, 0], TILE))
                )
                for v, total in enumerate(sums)
            ]
        held = k.empty((self.vectors, SUMS))
        for v, total in enumerate(sums):
            held = k.write(sums_of(k, total), held, [v, 0])
        return [
            [k.read(held, [v, i * COLUMNS], COLUMNS) for v in range(self.vectors)] for i in range(n)
        ]

    def weighted(
        self,
        weights: ir.Value,
        start: Index,
        count: Index,
        sums: ir.Value,
        shrink: list[ir.Value] | None,
    ) -> ir.Value:
        """Return the values' sums by weight as (depth, lanes), on top of the shrunk ones."""
        k, vectors = self.k, range(self.vectors)
        chunks = k.div(k.add(count, CHUNK - 1), CHUNK)
        right = self.rounded(weights, count)

        def register(t: Index, carried: list[ir.Value]) -> list[ir.Value]:
            into, depth = carried[0], k.mul(t, ROWS)

            def chunk(c: Index, totals: list[ir.Value]) -> list[ir.Value]:
                values = register_of(k, k.read(self.turned(start, c, depth), [0], TILE))
                return [
                    multiplied(
                        k, self.isa, totals[v], values,
                        register_of(k, k.read(right, [c, v, 0], TILE)),
                    )
                    for v in vectors
                ]  # fmt: skip

            held = k.empty((self.vectors, SUMS))
            for v, total in enumerate(k.each(0, chunks, 1, zeros(k, self.vectors), chunk)):
                held = k.write(sums_of(k, total), held, [v, 0])

            def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
                into = carried[0]
                for v in vectors:
                    at = [k.add(depth, i), v * self.lanes]
                    total = k.read(held, [v, k.mul(i, COLUMNS)], COLUMNS)
                    if shrink is not None:
                        total = k.fma(k.read(into, at, COLUMNS), shrink[v], total)
                    into = k.write(total, into, at)
                return [into]

            return k.loop(0, ROWS, 1, [into], row)

        return k.each(0, self.registers, 1, [sums], register)[0]

    def rounded(self, weights: ir.Value, count: Index) -> ir.Value:
        """Return the weights as [chunk of keys, register, pair of keys, query, 2], then 0."""
        k, lanes = self.k, self.lanes
        both = [i // 2 + i % 2 * lanes for i in range(2 * lanes)]
        last = k.sub(count, 1)

        def chunk(c: Index, carried: list[ir.Value], *, ragged: bool) -> list[ir.Value]:
            def pair(p: Index, carried: list[ir.Value]) -> list[ir.Value]:
                into = carried[0]
                for v in range(self.vectors):
                    rows: list[ir.Value] = []
                    for i in range(_PAIR):
                        key = k.add(k.mul(c, CHUNK), k.mul(p, _PAIR), i)
                        at = k.min(key, last) if ragged else key
                        x = k.read(weights, [at, v * lanes], lanes)
                        if ragged:
                            x = arith.SelectOp(k.is_less(key, count), x, k.splat(0.0, lanes)).result
                        rows.append(k.intrinsic(
                            self.isa.bf16_round, k.vector_type(lanes, dtypes.BF16), x
                        ))  # fmt: skip
                    own = vector.ShuffleOp(rows[0], rows[1], both).result
                    into = k.write(own, into, [c, v, k.mul(p, CHUNK)])
                return [into]

            return k.loop(0, CHUNK // _PAIR, 1, carried, pair)

        most = PAIRS.chunks_of(self.block)
        made = [k.empty((most, self.vectors, TILE), dtypes.BF16)]
        whole, chunks = k.div(count, CHUNK), k.div(k.add(count, CHUNK - 1), CHUNK)
        made = k.each(0, whole, 1, made, lambda c, m: chunk(c, m, ragged=False))
        return k.each(whole, chunks, 1, made, lambda c, m: chunk(c, m, ragged=True))[0]

    def turned(self, start: Index, chunk: Index, depth: Index) -> ir.Value:
        """Return 16 of the depth by 32 keys; past the last key that is read again."""
        k, last = self.k, self.k.sub(self.keys_count, 1)
        both = [i // 2 + i % 2 * COLUMNS for i in range(CHUNK)]
        words: list[ir.Value] = []
        for p in range(CHUNK // _PAIR):
            rows: list[ir.Value] = []
            for i in range(_PAIR):
                key = k.min(k.add(start, k.mul(chunk, CHUNK), p * _PAIR + i), last)
                at = [*self.lead, key, k.add(self.site.first_depth, depth)]
                rows.append(self.bf16(self.readers.v, at))
            words.append(self.words(vector.ShuffleOp(rows[0], rows[1], both).result))
        tile = k.empty((TILE,), dtypes.BF16)
        for i, row in enumerate(transposed(words)):
            tile = k.write(self.pairs(row), tile, [i * CHUNK])
        return tile
