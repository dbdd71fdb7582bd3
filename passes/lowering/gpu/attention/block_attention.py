"""Attention on GPUs by a hand-written loop, which ends at the last keys that a tile of queries
sees.

A workgroup takes a tile of queries of one head and walks over blocks of keys up to the last that
its queries see: first those that all of them see, then, with a mask, those on the diagonal. IREE
prefetches only in loops with a static trip count. So here each iteration loads the next block into
registers: words carried by the loop, which IREE does not recognise as a copy through the LDS. Tiles
with most blocks come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir, math, scf, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.analysis.shared_heads import repeated, shared_heads
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent, Leaf, behind_views, identity
from mgx_mlir.passes.lowering.gpu.attention import attention_lanes as lanes
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention import (
    AttentionKernel,
    drafted,
    in_region,
    is_inside,
    lower_operands,
    read_site,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import AttentionShape, BlockTile
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE, MmaIntrinsic
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree import iree_ops, workgroup_loops
from mgx_mlir.passes.lowering.scalar import constant, constant_of, signless
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

# highest number of a mask that hides a key; a finite one would matter only beside scores as low
_HIDDEN = -65504.0
_LOWEST = -3.4028234663852886e38  # finite, as infinity minus itself is NaN
_WORD = 4  # bytes of a word that the loop carries


def first_hidden(form: AttentionForm, mask: ir.Value | None, body: ir.Block) -> int | None:
    """Return s where a constant mask lets query i see its first i + s keys, or all; else None."""
    if mask is None:
        return None
    if is_a(mask.owner, Multibroadcast):
        mask = mask.owner.operands[0]
    if not isinstance(mask, ir.BlockArgument) or mask.owner != body:
        return None
    given = body.owner.operation.operands[mask.arg_number]
    if not literals.is_literal(given):
        return None
    array = literals.array_of(given.owner)
    rows = (form.queries, form.keys)
    if array.shape[-2:] != rows or array.size != prod(rows) or array.dtype == bool:
        return None
    array = array.reshape(rows)
    seen = array == 0
    count = int(seen[0].sum())
    causal = np.arange(form.keys)[None, :] < np.arange(form.queries)[:, None] + count
    if count == 0 or not np.array_equal(seen, causal) or not np.all(array[~causal] <= _HIDDEN):
        return None
    return count


@dataclass(frozen=True)
class _Plan:
    """An attention in blocks of keys."""

    kernel: AttentionKernel
    kind: MmaIntrinsic
    tile: BlockTile
    seen: int  # keys that the first query sees; all keys without a mask


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take an attention of whole blocks of keys, causal or without a mask, on CDNA."""
    k = read_site(site)
    if isinstance(k, Refusal):
        return k
    form, t, arch = k.form, k.type, e.options.arch
    if not e.options.tiles:
        return Refusal("it is lowered without tiles")
    kind = attention_tiles.block_intrinsic(arch, t.dtype, form.width, form.depth)
    if kind is None:
        return Refusal(f"no matrix instruction of {arch} has rows of {form.width} {t.dtype}")
    if k.scale <= 0 or form.epilogue or form.query_dim > form.depth_dim:
        return Refusal("its scale is negative, or its result is computed with or transposed")
    if not k.has_one_type() or form.out.dtype != t.dtype:
        return Refusal("its operands or its result have another type than its matmuls")
    seen = form.keys if k.mask is None else first_hidden(form, k.mask, k.body)
    if seen is None:
        return Refusal("its mask is not a constant causal mask")
    a = AttentionShape(prod(form.lead), form.queries, form.keys, form.width, form.depth)
    tile = attention_tiles.blocks(CHIPS[arch], a, causal=seen < form.keys)
    if tile is None:
        return Refusal("no block of keys fits its sizes")
    with drafted(e, k):
        found = [_source(e, form, x, n) for n, x in enumerate(form.multiplied)]
    if any(s is None for s in found):
        return Refusal("its operands are computed in the kernel")
    if found[0] is not None and found[0].rows > found[0].columns:
        return Refusal("rows of its queries are not adjacent in memory")
    return _Plan(k, kind, tile, seen)


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loop over blocks of keys."""
    k = plan.kernel

    def results() -> list[ir.Value]:
        lower_operands(e, k)
        q, keys, v = (_source(e, k.form, x, n) for n, x in enumerate(k.form.multiplied))
        assert q is not None
        assert keys is not None
        assert v is not None
        blocks = _Blocks(e, k.form, plan.kind, plan.tile, plan.seen, q, keys, v)
        return [blocks.build(k.scale)]

    return in_region(e, k, results)


RULE = KernelRule("attention_blocks", (), match, build)


@dataclass(frozen=True)
class _Source:
    """A tensor that an operand is a view of."""

    value: ir.Value
    axes: tuple[int | None, ...]  # operand's axis for each axis of `value`, None for extent 1
    rows: int  # axis of `value` that counts the operand's rows: queries or keys
    columns: int  # axis of `value` along a row of the operand
    starts: tuple[int, ...]  # index in `value` at which the operand begins
    shared: int | None = None  # operand's axis of heads that share rows, None without such heads
    times: int = 1  # neighbouring heads of axis `shared` that read the same rows


def _source(e: LoweringContext, form: AttentionForm, v: ir.Value, which: int) -> _Source | None:
    """Return the tensor that an operand reads: queries (0), keys (1) or values (2)."""
    full = len(form.lead)
    found = repeated(v) if which and shared_heads(form) is not None else None
    own: Sequence[int | None] = identity(full + 2) if found is None else found.axes
    x, at = behind_views(e.expr(v if found is None else found.value))
    if not isinstance(x, Leaf):
        return None
    whole, starts = _uncut(x.value)
    if is_inside(_unreshaped(whole), ir.InsertionPoint.current.block):
        return None
    axes = tuple(None if place is None else own[place] for place in at)
    rows, columns = (full + 1, full) if which == 1 else (full, full + 1)
    extents = zip(axes, x.type.dims, strict=True)
    if any(axis is None and extent != 1 for axis, extent in extents):
        return None
    if rows not in axes or columns not in axes:
        return None
    return _Source(
        whole, axes, axes.index(rows), axes.index(columns), starts,
        None if found is None else found.axis, 1 if found is None else found.times,
    )  # fmt: skip


def _uncut(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]]:
    """Return the tensor of a slice of neighbouring elements, and the index at which it begins."""
    none = (0,) * TensorType.of(value).rank
    if isinstance(value.owner, ir.Block) or value.owner.name != "tensor.extract_slice":
        return value, none
    cut = value.owner.opview
    starts = tuple(cut.static_offsets)
    fits = len(cut.operands) == 1 and len(starts) == len(none) and set(cut.static_strides) == {1}
    return (cut.source, starts) if fits else (value, none)


def _unreshaped(value: ir.Value) -> ir.Value:
    """Return the tensor that this one is a reshape of; IREE hoists the reshape."""
    while not isinstance(value.owner, ir.Block) and value.owner.name == "tensor.expand_shape":
        value = value.owner.operands[0]
    return value


@dataclass
class _Blocks:
    """Builder of the kernel: a loop over tiles of queries and heads, in it one over blocks of keys.

    The inner loop carries a lane's words of the next block, and the largest score of each query.
    It also carries each lane's sums of weights and of weighted values.
    """

    e: LoweringContext
    form: AttentionForm
    kind: MmaIntrinsic
    tile: BlockTile
    seen: int  # keys that the first query sees; all keys without a mask
    q: _Source
    k: _Source
    v: _Source

    def __post_init__(self) -> None:
        form, tile = self.form, self.tile
        self.type = TensorType.of(form.output)
        self.element = signless(self.type.dtype)
        chip = CHIPS[self.e.options.arch]
        self.lanes = tile.waves * chip.lanes
        loaded = attention_tiles.load_layouts(tile, chip.lanes, form.width, form.depth)
        assert loaded is not None
        self.loaded = loaded
        rows, waves = tile.rows, tile.waves
        # layouts of the result of each matmul, and of one number for each row
        self.scores = lanes.result_layout(rows, tile.keys, waves)
        self.sums = lanes.result_layout(rows, form.depth, waves)
        self.row = lanes.row_layout(rows, waves)
        self.lines = tile.lines

    def build(self, scale: float) -> ir.Value:
        """Build all, and return the result."""
        e, form, tile = self.e, self.form, self.tile
        out = form.out
        tiles, heads = form.queries // tile.rows, prod(form.lead)
        every = scf.ForallOp([0, 0], [tiles, heads], [1, 1], [e.empty(list(out.dims), out.dtype)])
        workgroup_loops.mark(every)
        block = every.body
        late, head = block.arguments[:2]
        with ir.InsertionPoint(block):
            lead: list[Extent] = []
            for extent in reversed(form.lead):
                lead.insert(0, e.rem(head, extent) if extent != heads else head)
                head = e.div(head, extent)
            row = e.mul(arith.SubIOp(e.index(tiles - 1), late).result, tile.rows)
            done = self._tile(lead, e.index(row), scale / float(np.log(2)))
            at = [e.index(i) for i in form.place(e, [*lead, row, 0])]
            sizes = [1] * out.rank
            sizes[form.query_dim], sizes[form.depth_dim] = tile.rows, form.depth
            ends = scf.InParallelOp()
        with ir.InsertionPoint(ends.region.blocks[0]):
            _insert(done, block.arguments[2], at, sizes)
        return every.results[0]

    def _tile(self, lead: Sequence[Extent], row: ir.Value, scale: float) -> ir.Value:
        """Return the result of a tile of queries, the first of which is `row`."""
        e, form, tile = self.e, self.form, self.tile
        queries = self._operand(
            self._read(self.q, [*self._at(self.q, lead, row)], [tile.rows, form.width]), tile.waves
        )
        # number of keys that its first query sees, and its last
        first = e.add(row, self.seen)
        last = e.min(e.add(first, tile.rows - 1), form.keys)
        full, end = e.div(first, tile.keys), e.div(e.add(last, tile.keys - 1), tile.keys)
        full = e.min(full, form.keys // tile.keys)
        causal = self.seen < form.keys
        if not causal:
            end = form.keys // tile.keys
        most = lanes.splat(_LOWEST, [tile.lines, 1])
        weights = lanes.splat(0, [tile.lines, 2])
        total = lanes.splat(0, [tile.lines, self._held(self.sums)])
        state = [total, most, weights, *self._load(lead, 0)]
        loop = scf.ForOp(e.index(0), e.index(end), e.index(1), state)
        with ir.InsertionPoint(loop.body):
            state = list(loop.inner_iter_args)
            block = loop.induction_variable
            ahead = e.min(e.add(block, 1), e.add(end, -1))
            more = self._load(lead, e.mul(ahead, tile.keys))
            hidden = None
            if causal:
                late = arith.CmpIOp(arith.CmpIPredicate.uge, block, e.index(full)).result
                hidden = late, e.index(e.sub(e.add(row, self.seen), e.mul(block, tile.keys)))
            scf.YieldOp([*self._block(queries, state, scale, hidden), *more])
        return self._divided(loop.results[0], loop.results[2])

    def _at(self, s: _Source, lead: Sequence[Extent], row: Extent) -> list[ir.Value]:
        """Return the index in a tensor at which a tile begins."""
        e = self.e
        places: list[Extent] = []
        for i, axis in enumerate(s.axes):
            place: Extent = 0 if axis is None or i == s.columns else row
            if axis is not None and axis < len(lead):
                place = lead[axis]
                if axis == s.shared:
                    place = e.div(place, s.times)
            places.append(e.add(place, s.starts[i]))
        return [e.index(i) for i in places]

    def _read(self, s: _Source, at: Sequence[ir.Value], dims: Sequence[int]) -> ir.Value:
        """Return rows of a tensor as a vector."""
        own = (s.rows, s.columns)
        return vector.TransferReadOp(
            ir.VectorType.get(list(dims), self.element), s.value, at,
            ir.AffineMap.get(len(s.axes), 0, [ir.AffineDimExpr.get(i) for i in own]),
            constant(0, self.type.dtype).value, [True, True],
        ).result  # fmt: skip

    def _load(self, lead: Sequence[Extent], at: Extent) -> list[ir.Value]:
        """Return a lane's words of a block of keys, and of one of values."""
        words: list[ir.Value] = []
        for s, layout in zip((self.k, self.v), (self.loaded.keys, self.loaded.values), strict=True):
            read = self._read(s, self._at(s, lead, at), layout.dims)
            lane = lanes.simt(read, layout, layout.lane)
            if s is self.v:
                lane = self.loaded.turn(lane)
            count = prod(layout.lane) * self.type.dtype.size // _WORD
            packed = ir.VectorType.get([count], ir.IntegerType.get_signless(8 * _WORD))
            lane = vector.BitCastOp(packed, lanes.shaped(lane, [prod(layout.lane)])).result
            words += vector.ToElementsOp(lane).results
        return words

    def _unpacked(self, words: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the blocks of keys and of values as operands of the matmuls."""
        made: list[tuple[ir.Value, lanes.Layout]] = []
        for layout in (self.loaded.keys, self.loaded.turned):
            held = prod(layout.lane)
            count = held * self.type.dtype.size // _WORD
            own, words = words[:count], words[count:]
            packed = ir.VectorType.get([count], own[0].type)
            flat = ir.VectorType.get([held], self.element)
            lane = vector.BitCastOp(flat, vector.FromElementsOp(packed, own).result).result
            made.append((lanes.simd(lane, layout), lanes.operand_layout(*layout.dims)))
        return [self._operand(x) for x in lanes.through_lds(made)]

    def _operand(self, x: ir.Value, waves: int = 0) -> ir.Value:
        """Return an operand of a matmul, as its instruction takes it."""
        rows, length = ir.VectorType(x.type).shape
        deep = lanes.operand_layout(rows, length, waves=waves)
        if self.kind.depth == lanes.DEEP:
            return lanes.laid(x, deep)
        plain = lanes.operand_layout(rows, length, lanes.RUN // 2, waves)
        return lanes.simd(lanes.simt(x, deep, plain.lane), plain)

    def _held(self, layout: lanes.Layout) -> int:
        """Return the elements of a lane's share of each line."""
        return prod(layout.lane) // self.lines

    def _hidden(self, scores: ir.Value, limit: ir.Value) -> ir.Value:
        """Return the scores of a lane, -inf where a query does not see a key of the block.

        limit: number of its keys that the first query of the tile sees.
        """
        word = ir.IntegerType.get_signless(32)
        parts = lanes.part_layout(self.tile.rows, self.tile.waves)
        first = lanes.simt(lanes.first_places(self.tile.rows), parts, [self.lines, 1])
        first = arith.IndexCastOp(ir.VectorType.get([self.lines, 1], word), first).result
        kind = ir.VectorType.get(ir.VectorType(scores.type).shape, word)
        # keys of a lane, from its first on: four of each 16
        own = [i // 4 * SIDE + i % 4 for i in range(kind.shape[1])] * self.lines
        each = [ir.IntegerAttr.get(word, n) for n in own]
        places = constant_of(kind, ir.DenseElementsAttr.get(each, kind))
        end = arith.IndexCastOp(word, limit).result
        left = arith.SubIOp(vector.BroadcastOp(kind, end).result, places).result
        first = lanes.along(first, kind.shape[1])
        sees = arith.CmpIOp(arith.CmpIPredicate.slt, first, left).result
        low = lanes.splat(float("-inf"), kind.shape)
        return arith.SelectOp(sees, scores, low).result

    def _block(
        self, queries: ir.Value, state: Sequence[ir.Value], scale: float,
        hidden: tuple[ir.Value, ir.Value] | None,
    ) -> list[ir.Value]:  # fmt: skip
        """Return the state after a block of keys.

        hidden: a condition, which holds where some are hidden, and the number of keys that the
        first query sees.
        """
        tile = self.tile
        keys, values = self._unpacked(state[3:])
        total, most, weights = state[:3]
        none = lanes.splat(0, [tile.rows, tile.keys])
        none = lanes.laid(none, self.scores)
        found = lanes.matmul(queries, keys, none, self.kind.name, self.kind.depth)
        scores = lanes.simt(found, self.scores, [tile.lines, self._held(self.scores)])
        if hidden is not None:
            late, limit = hidden
            either = scf.IfOp(late, [scores.type], has_else=True)
            with ir.InsertionPoint(either.then_block):
                scf.YieldOp([self._hidden(scores, limit)])
            assert either.else_block is not None
            with ir.InsertionPoint(either.else_block):
                scf.YieldOp([scores])
            scores = either.results[0]
        largest = lanes.row_maxima(lanes.simd(scores, self.scores), lanes.simd(most, self.row))
        largest = lanes.simt(largest, self.row, [tile.lines, 1])
        by = lanes.splat(scale, [tile.lines, 1])
        keep = math.Exp2Op(arith.MulFOp(arith.SubFOp(most, largest).result, by).result).result
        low = arith.MulFOp(largest, lanes.splat(-scale, [tile.lines, 1])).result
        share = math.Exp2Op(
            math.FmaOp(scores, lanes.splat(scale, ir.VectorType(scores.type).shape),
                       lanes.along(low, self._held(self.scores))).result
        ).result  # fmt: skip
        weights = math.FmaOp(weights, lanes.along(keep, 2), lanes.pair_sums(share)).result
        total = arith.MulFOp(total, lanes.along(keep, self._held(self.sums))).result
        narrow = ir.VectorType.get(ir.VectorType(share.type).shape, self.element)
        share = arith.TruncFOp(narrow, share).result
        operand = lanes.operand_layout(tile.rows, tile.keys, self.kind.depth // 4, tile.waves)
        total = lanes.matmul(
            lanes.simd(share, operand), values, lanes.simd(total, self.sums),
            self.kind.name, self.kind.depth,
        )  # fmt: skip
        total = lanes.simt(total, self.sums, [tile.lines, self._held(self.sums)])
        return [total, largest, weights]

    def _divided(self, total: ir.Value, weights: ir.Value) -> ir.Value:
        """Return the weighted rows, divided by the sum of weights."""
        e, tile, form = self.e, self.tile, self.form
        parts = lanes.part_layout(tile.rows, tile.waves)
        below = lanes.simd(lanes.sums_of_pairs(weights), parts)
        below = lanes.row_sums(below)
        zero = e.index(0)

        def stored(x: ir.Value, dims: list[int]) -> ir.Value:
            into = e.empty(dims, dtypes.FLOAT)
            same = ir.AffineMap.get_identity(len(dims))
            return vector.TransferWriteOp(
                into.type, x, into, [zero] * len(dims), same, [True] * len(dims)
            ).result

        def element(x: ir.Value, y: ir.Value, _: ir.Value) -> ir.Value:
            one = constant(1, dtypes.FLOAT).value
            found = arith.MulFOp(x, arith.DivFOp(one, y).result).result
            return arith.TruncFOp(self.element, found).result  # gfx950 has an instruction for bf16

        init = e.empty([tile.rows, form.depth], self.type.dtype)
        maps = [e.dim_map(2, (0, 1)), e.dim_map(2, (0,)), e.dim_map(2, (0, 1))]
        total = stored(lanes.simd(total, self.sums), [tile.rows, form.depth])
        below = stored(below, [tile.rows])
        found = e.generic([total, below], [init], maps, [index.PARALLEL] * 2, element)[0]
        info = attention_tiles.block_info(self.e.options.arch, tile)
        found.owner.attributes["compilation_info"] = info
        return found


def _insert(x: ir.Value, into: ir.Value, at: Sequence[ir.Value], sizes: Sequence[int]) -> None:
    segments = 1, 1, len(at), 0, 0
    slice_ = iree_ops.slice_attributes(at, sizes)
    name = "tensor.parallel_insert_slice"
    iree_ops.build(name, [x, into, *at], segments=segments, attributes=slice_)


__all__ = ["RULE", "first_hidden"]
