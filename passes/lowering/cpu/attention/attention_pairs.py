"""Attention of bf16 by the instruction that multiplies pairs: 32 queries by some keys at a time.

Pairs are neighbours of a row in the scores, and two keys in the weighted sums. Weights are rounded
to bf16. Values of two keys are interleaved in scratch memory, a block of keys at a time. Scores,
maxima and sums are in f32. Operands in f32 are rounded where the options allow that: the keys of a
block to scratch memory, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.passes.analysis.access_maps import Reader
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.lowering.cpu.attention.attention_block import Block
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow, transposed
from mgx_mlir.passes.lowering.cpu.frame.exponential import exp
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.matmul.instructions import PAIR, pair_products

_KEYS = 128  # keys of a block: their scores, weights and values fit in the L1 cache
_ROUNDED_KEYS = 64  # the same for keys in f32, whose rounded form is there, too


def takes(form: AttentionForm, isa: Isa, *, rounds: bool = False) -> bool:
    """Return whether pairs of bf16 are multiplied in this attention.

    rounds: operands in f32 may be rounded; with tile registers they are not.
    """
    if not isa.bf16_dot or form.rows is None or form.rows.lanes != isa.lanes:
        return False
    rounds = rounds and not isa.tile_dot
    if not all(_is_bf16(v) or (rounds and _is_f32(v)) for v in form.multiplied):
        return False
    chunk = PAIR * isa.lanes
    fixed = form.width > 0 and form.depth > 0 and form.queries >= 0
    return fixed and form.width % chunk == 0 and form.depth % isa.lanes == 0


def _is_bf16(v: ir.Value) -> bool:
    """Return whether an operand is of bf16, or is widened from it (find_softmax_dot_fp32)."""
    widened = TensorType.of(v).dtype is dtypes.FLOAT and is_a(v.owner, Convert)
    return TensorType.of(v.owner.operands[0] if widened else v).dtype is dtypes.BF16


def _is_f32(v: ir.Value) -> bool:
    return TensorType.of(v).dtype is dtypes.FLOAT


class PairedBlock(Block):
    """The work of one group."""

    rounded_keys: tuple[ir.Value, Index] | None = None  # scratch with a block's keys, and its first

    def __init__(self, site: AttentionSite, isa: Isa) -> None:
        super().__init__(site, isa)
        assert self.form.rows is not None
        assert isinstance(site.width, int)
        assert isinstance(site.depth, int)
        self.isa, self.readers = isa, self.form.rows
        self.pairs, self.depth = site.width // PAIR, site.depth
        self.size = PAIR * isa.lanes  # elements of a register
        self.rounds = not _is_bf16(self.form.multiplied[1])
        self.block = min(self.block, _ROUNDED_KEYS if self.rounds else _KEYS)

    def bf16(self, read: Reader, at: Sequence[Index], count: int) -> ir.Value:
        """Return neighbours of a row."""
        found = read(self.elements, list(at), count)
        return narrow(self.k, found, dtypes.BF16, count).value

    def turned_queries(self) -> ir.Value:
        """q of the block as [pair of the width, register, query, 2]."""
        k, lanes = self.k, self.lanes
        words, whole = k.vector_type(lanes, dtypes.INT32), k.vector_type(self.size, dtypes.BF16)

        def row(query: Sequence[Index], d: Index) -> ir.Value:
            low, high = (
                self.bf16(self.readers.q, [*query, k.add(d, i)], lanes) for i in (0, lanes)
            )
            both = vector.ShuffleOp(low, high, list(range(self.size))).result
            return vector.BitCastOp(words, both).result

        def chunk(c: Index, carried: list[ir.Value]) -> list[ir.Value]:
            found = carried[0]
            for v in range(self.vectors):
                rows = [row(self.query(v, i), k.mul(c, self.size)) for i in range(lanes)]
                for p, column in enumerate(transposed(rows)):
                    own = vector.BitCastOp(whole, column).result
                    found = k.write(own, found, [k.add(k.mul(c, lanes), p), v * self.size])
            return [found]

        made = k.empty((self.pairs, self.vectors * self.size), dtypes.BF16)
        return k.each(0, self.pairs // lanes, 1, [made], chunk)[0]

    def products(self, queries: ir.Value, keys: Sequence[Index]) -> list[list[ir.Value]]:
        """q k^T of some keys."""
        k, n = self.k, self.vectors
        multiply = pair_products(k, self.isa)

        def one(p: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            q = [k.read(queries, [p, v * self.size], self.size) for v in range(n)]
            out: list[ir.Value] = []
            for i, key in enumerate(keys):
                pair = self.pair_of_key(key, p)
                out += multiply(pair, q, carried[i * n : (i + 1) * n])
            return out

        zeros = [k.splat(0.0, self.lanes)] * (len(keys) * n)
        found = k.loop(0, self.pairs, 1, zeros, one)
        return [found[i * n : (i + 1) * n] for i in range(len(keys))]

    def scores(
        self, queries: ir.Value, start: Index, count: Index, high: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """Return the scores as (keys, lanes), and their maxima."""
        if self.rounds:
            self.rounded_keys = self.keys_in_bf16(start, count), start
        return super().scores(queries, start, count, high)

    def keys_in_bf16(self, start: Index, count: Index) -> ir.Value:
        """Return the keys of a block as [key, width], rounded."""
        k = self.k

        def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            into = carried[0]
            for d in range(0, self.pairs * PAIR, self.lanes):
                at = [*self.lead, d, k.add(start, i)]
                into = k.write(self.bf16(self.readers.k, at, self.lanes), into, [i, d])
            return [into]

        made = k.empty((self.block, self.pairs * PAIR), dtypes.BF16)
        return k.loop(0, count, 1, [made], row)[0]

    def pair_of_key(self, key: Index, p: Index) -> ir.Value:
        """Return a pair of a key's elements."""
        k = self.k
        first = k.mul(p, PAIR)
        if self.rounded_keys is None:
            return self.bf16(self.readers.k, [*self.lead, first, key], PAIR)
        held, start = self.rounded_keys
        return k.read(held, [k.sub(key, start), first], PAIR)

    def exponentials(
        self, scores: ir.Value, count: Index, high: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """exp(score - max) as [pair of keys, register, query, 2], rounded, and their sums.

        Rounding that all weights of a query share cancels, since it is in their sum as well.
        """
        k, lanes = self.k, self.lanes
        kind = k.vector_type(lanes, dtypes.BF16)
        ones = k.splat(1.0, self.size, dtypes.BF16)

        def pair(p: Index, carried: list[ir.Value], *, ends: bool = False) -> list[ir.Value]:
            into, totals = carried[0], carried[1:]
            for v in range(self.vectors):
                own: list[ir.Value] = []
                for i in range(1 if ends else PAIR):
                    x = k.read(scores, [k.add(k.mul(p, PAIR), i), v * lanes], lanes)
                    y = exp(k, arith.SubFOp(x, high[v]).result)
                    own.append(k.intrinsic(self.isa.bf16_round, kind, y))
                both = self.joined(own)
                into = k.write(both, into, [p, v * self.size])
                totals[v] = k.intrinsic(self.isa.bf16_dot, totals[v].type, totals[v], both, ones)
            return [into, *totals]

        made = k.empty((self.most_pairs, self.vectors * self.size), dtypes.BF16)
        made, *totals = self.over_pairs(count, [made, *[k.splat(0.0, lanes)] * self.vectors], pair)
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
        k, n = self.k, self.vectors
        values = self.values(start, count)
        multiply = pair_products(k, self.isa)
        pairs = k.div(k.add(count, PAIR - 1), PAIR)

        def some(depth: Index, step: int, _: bool, carried: list[ir.Value]) -> list[ir.Value]:
            into = carried[0]
            spots = [(k.add(depth, i), v * self.lanes) for i in range(step) for v in range(n)]
            begin = [k.splat(0.0, self.lanes)] * len(spots)
            if shrink is not None:
                held = [k.read(into, at, self.lanes) for at in spots]
                begin = [arith.MulFOp(x, shrink[j % n]).result for j, x in enumerate(held)]

            def one(p: ir.Value, acc: list[ir.Value]) -> list[ir.Value]:
                w = [k.read(weights, [p, v * self.size], self.size) for v in range(n)]
                out: list[ir.Value] = []
                for i in range(step):
                    pair = k.read(values, [p, k.mul(k.add(depth, i), PAIR)], PAIR)
                    out += multiply(pair, w, acc[i * n : (i + 1) * n])
                return out

            for at, x in zip(spots, k.loop(0, pairs, 1, begin, one), strict=True):
                into = k.write(x, into, at)
            return [into]

        return self.in_steps(self.depth, [sums], some, self.step)[0]

    def values(self, start: Index, count: Index) -> ir.Value:
        """Return the values of some keys as [pair of keys, depth, 2]."""
        k, lanes = self.k, self.lanes

        def pair(p: Index, carried: list[ir.Value], *, ends: bool = False) -> list[ir.Value]:
            into = carried[0]
            for d in range(0, self.depth, lanes):
                depth = k.add(self.site.first_depth, d)
                keys = [k.add(start, k.mul(p, PAIR), i) for i in range(1 if ends else PAIR)]
                own = [self.bf16(self.readers.v, [*self.lead, i, depth], lanes) for i in keys]
                into = k.write(self.joined(own), into, [p, PAIR * d])
            return [into]

        made = k.empty((self.most_pairs, PAIR * self.depth), dtypes.BF16)
        return self.over_pairs(count, [made], pair)[0]

    @property
    def most_pairs(self) -> int:
        """Return the pairs of keys of a block."""
        return -(-self.block // PAIR)

    def joined(self, rows: Sequence[ir.Value]) -> ir.Value:
        """Return two rows whose elements are side by side; 0 beside those of one."""
        lanes = self.lanes
        second = rows[1] if len(rows) > 1 else self.k.splat(0.0, lanes, dtypes.BF16)
        order = [i // PAIR + i % PAIR * lanes for i in range(self.size)]
        return vector.ShuffleOp(rows[0], second, order).result

    def over_pairs(
        self, count: Index, carried: list[ir.Value], pair: Callable[..., list[ir.Value]]
    ) -> list[ir.Value]:
        """`pair(p, carried)` over pairs of keys; the last one `ends` with a single key."""
        k = self.k
        whole, rest = k.div(count, PAIR), k.rem(count, PAIR)
        made = k.each(0, whole, 1, carried, pair)
        if isinstance(rest, int):
            return pair(whole, made, ends=True) if rest else made
        return k.when(
            k.is_less(0, rest),
            lambda: pair(whole, made, ends=True),
            lambda: made,
            [v.type for v in made],
        )
