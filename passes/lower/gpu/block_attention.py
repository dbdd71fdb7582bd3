"""Attention on GPUs by a loop of our own, which ends at the last keys that a tile of queries sees.

A workgroup takes a tile of queries of one head and walks over blocks of keys up to the last that
its queries see: first those that all of them see, then, with a mask, those on the diagonal. Each
block is the compiler's `online_attention`. The compiler loads ahead only in loops of a known count,
so the next block is on its way in registers here: words that the loop hands on, which it cannot
take for another copy by way of the LDS. Tiles with most blocks come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir, scf, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.analysis.shared_heads import repeated, shared_heads
from mgx_mlir.passes.lower import index
from mgx_mlir.passes.lower.context import LoweringContext
from mgx_mlir.passes.lower.expr import Extent, Leaf, behind_views, identity
from mgx_mlir.passes.lower.gpu import attention_tiles
from mgx_mlir.passes.lower.gpu.attention_tiles import AttentionIntrinsics, AttentionShape, BlockTile
from mgx_mlir.passes.lower.gpu.decoding import is_inside
from mgx_mlir.passes.lower.iree import workgroup_loops
from mgx_mlir.passes.lower.iree.linalg_ext import no_keys, online_attention, segments
from mgx_mlir.passes.lower.scalar import constant, signless

# what hides a key: a finite one counts only beside scores that are as low
_HIDDEN = -65504.0
_WORD = 4  # bytes of what the loop hands on


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


def block_attention(
    e: LoweringContext, body: ir.Block, form: AttentionForm, scale: float, mask: ir.Value | None
) -> ir.Value | None:
    """Return the result of an attention kernel, causal or without a mask; None for others."""
    t, arch = TensorType.of(form.output), e.options.arch
    kind = attention_tiles.intrinsics_of(arch, t.dtype, form.width, form.depth)
    if kind is None or not e.options.tiles or not t.is_static or form.epilogue:
        return None
    if (
        any(TensorType.of(v).dtype is not t.dtype for v in form.multiplied)
        or form.out.dtype != t.dtype
    ):
        return None
    if form.query_dim > form.depth_dim:
        return None
    seen = form.keys if mask is None else first_hidden(form, mask, body)
    if seen is None:
        return None
    a = AttentionShape(prod(form.lead), form.queries, form.keys, form.width, form.depth)
    tile = attention_tiles.blocks(CHIPS[arch], a, causal=seen < form.keys)
    if tile is None:
        return None
    q, k, v = (_source(e, form, x, n) for n, x in enumerate(form.multiplied))
    if q is None or k is None or v is None or q.rows > q.columns:
        return None
    return _Blocks(e, form, kind, tile, seen, q, k, v).build(scale)


@dataclass(frozen=True)
class _Source:
    """A tensor that an operand is a view of. axes: for each of its own, the operand's, or None.

    rows, columns: its axes of the operand's rows (queries or keys), and of what lies along them.
    starts: where the operand begins. times: heads in a row of axis `shared` that read the same.
    """

    value: ir.Value
    axes: tuple[int | None, ...]
    rows: int
    columns: int
    starts: tuple[int, ...]
    shared: int | None = None
    times: int = 1


def _source(e: LoweringContext, form: AttentionForm, v: ir.Value, which: int) -> _Source | None:
    """Return what an operand of the products reads: queries (0), keys (1) or values (2)."""
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
    """Return the tensor that a slice of neighbouring elements is of, and where it begins."""
    none = (0,) * TensorType.of(value).rank
    if isinstance(value.owner, ir.Block) or value.owner.name != "tensor.extract_slice":
        return value, none
    cut = value.owner.opview
    starts = tuple(cut.static_offsets)
    fits = len(cut.operands) == 1 and len(starts) == len(none) and set(cut.static_strides) == {1}
    return (cut.source, starts) if fits else (value, none)


def _unreshaped(value: ir.Value) -> ir.Value:
    """Return the tensor of which this one is another shape, as the compiler moves it ahead."""
    while not isinstance(value.owner, ir.Block) and value.owner.name == "tensor.expand_shape":
        value = value.owner.operands[0]
    return value


@dataclass
class _Blocks:
    """The kernel: a loop over tiles of queries and heads, in it one over blocks of keys."""

    e: LoweringContext
    form: AttentionForm
    kind: AttentionIntrinsics
    tile: BlockTile
    seen: int  # keys that the first query sees
    q: _Source
    k: _Source
    v: _Source

    def __post_init__(self) -> None:
        form, tile = self.form, self.tile
        self.type = TensorType.of(form.output)
        self.element = signless(self.type.dtype)
        self.loaded = ((tile.keys, form.width), (form.depth, tile.keys))  # values are turned
        self.lanes = tile.waves * CHIPS[self.e.options.arch].lanes
        arch = self.e.options.arch
        self.told = attention_tiles.block_attributes(arch, self.kind, tile, form.width)

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
            done = self._tile(lead, e.index(row), constant(scale, self.type.dtype).value)
            at = [e.index(i) for i in form.place(e, [*lead, row, 0])]
            sizes = [1] * out.rank
            sizes[form.query_dim], sizes[form.depth_dim] = tile.rows, form.depth
            ends = scf.InParallelOp()
        with ir.InsertionPoint(ends.region.blocks[0]):
            _insert(done, block.arguments[2], at, sizes)
        return every.results[0]

    def _tile(self, lead: Sequence[Extent], row: ir.Value, scale: ir.Value) -> ir.Value:
        """Return the result of a tile of queries, the first of which is `row`."""
        e, form, tile = self.e, self.form, self.tile
        sizes = [1] * len(self.q.axes)
        sizes[self.q.rows], sizes[self.q.columns] = tile.rows, form.width
        queries = _slice(self.q.value, self._at(self.q, lead, row), sizes, [tile.rows, form.width])
        # of the keys that its first query sees, and its last
        first = e.add(row, self.seen)
        last = e.min(e.add(first, tile.rows - 1), form.keys)
        full, end = e.div(first, tile.keys), e.div(e.add(last, tile.keys - 1), tile.keys)
        full = e.min(full, form.keys // tile.keys)
        state = [
            *no_keys(e, [tile.rows, form.depth]),
            *self._load(lead, 0),
        ]
        steps = [(0, full, False), (full, end, True)]
        if self.seen >= form.keys:
            steps, end = [(0, form.keys // tile.keys, False)], form.keys // tile.keys
        for start, stop, masked in steps:
            loop = scf.ForOp(e.index(start), e.index(stop), e.index(1), state)
            with ir.InsertionPoint(loop.body):
                state = list(loop.inner_iter_args)
                at = e.mul(loop.induction_variable, tile.keys)
                ahead = e.min(e.add(loop.induction_variable, 1), e.add(end, -1))
                more = self._load(lead, e.mul(ahead, tile.keys))
                mask = [(self._mask(row, at), [0, 2])] if masked else []
                made = self._block(queries, state, scale, mask, first=not masked)
                scf.YieldOp([*made, *more])
            state = list(loop.results)
        return self._divided(state[0], state[2])

    def _at(self, s: _Source, lead: Sequence[Extent], row: Extent) -> list[ir.Value]:
        """Return where a tile begins in a tensor."""
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

    def _layout(self, rows: int, length: int) -> tuple[str, int, int]:
        """Return how the lanes share a block: the layout, and a lane's elements, in runs."""
        run = attention_tiles.run_of(rows, length, self.lanes)
        across = length // run
        down = self.lanes // across
        layout = (
            "#iree_vector_ext.nested_layout<subgroup_tile = [1, 1], "
            f"batch_tile = [{rows // down}, 1], outer_tile = [1, 1], "
            f"thread_tile = [{down}, {across}], element_tile = [1, {run}], "
            f"subgroup_strides = [0, 0], thread_strides = [{across}, 1]>"
        )
        return layout, rows // down, run

    def _load(self, lead: Sequence[Extent], at: Extent) -> list[ir.Value]:
        """Return the words of a lane of a block of keys, and of one of values."""
        words: list[ir.Value] = []
        for s, dims, axes in zip((self.k, self.v), self.loaded, ((0, 1), (1, 0)), strict=True):
            layout, batch, run = self._layout(*dims)
            kind = ir.VectorType.get(list(dims), self.element)
            own = (s.rows, s.columns)
            places = [ir.AffineDimExpr.get(own[i]) for i in axes]
            read = vector.TransferReadOp(
                kind, s.value, self._at(s, lead, at),
                ir.AffineMap.get(len(s.axes), 0, places),
                constant(0, self.type.dtype).value, [True, True],
            ).result  # fmt: skip
            lane = _op("to_simt", _laid(read, layout), _lanes(batch, run, self.element))
            flat = ir.VectorType.get([batch * run], self.element)
            count = batch * run * self.type.dtype.size // _WORD
            packed = ir.VectorType.get([count], ir.IntegerType.get_signless(8 * _WORD))
            lane = vector.BitCastOp(packed, vector.ShapeCastOp(flat, lane).result).result
            words += vector.ToElementsOp(lane).results
        return words

    def _unpacked(self, words: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the blocks of keys and of values as tensors."""
        made: list[ir.Value] = []
        for dims in self.loaded:
            layout, batch, run = self._layout(*dims)
            count = batch * run * self.type.dtype.size // _WORD
            own, words = words[:count], words[count:]
            packed = ir.VectorType.get([count], own[0].type)
            flat = ir.VectorType.get([batch * run], self.element)
            lane = vector.BitCastOp(flat, vector.FromElementsOp(packed, own).result).result
            lane = vector.ShapeCastOp(_lanes(batch, run, self.element), lane).result
            whole = _laid(_op("to_simd", lane, ir.VectorType.get(list(dims), self.element)), layout)
            into = self.e.empty(list(dims), self.type.dtype)
            zero = self.e.index(0)
            same = ir.AffineMap.get_identity(2)
            write = vector.TransferWriteOp(
                into.type, whole, into, [zero, zero], same, [True, True]
            )  # fmt: skip
            made.append(write.result)
        return made

    def _mask(self, row: ir.Value, at: Extent) -> ir.Value:
        """Return 0, or -inf where a query does not see a key of the block."""
        e = self.e

        def element(where: list[ir.Value]) -> ir.Value:
            query, key = where
            end = e.index(e.add(query, row, self.seen))
            sees = arith.CmpIOp(arith.CmpIPredicate.ult, e.index(e.add(key, at)), end).result
            low = constant(float("-inf"), dtypes.FLOAT).value
            return arith.SelectOp(sees, constant(0, dtypes.FLOAT).value, low).result

        sizes: list[Extent] = [self.tile.rows, self.tile.keys]
        return index.from_positions(e, sizes, dtypes.FLOAT, element)

    def _block(
        self, queries: ir.Value, state: Sequence[ir.Value], scale: ir.Value,
        mask: Sequence[tuple[ir.Value, Sequence[int]]], *, first: bool,
    ) -> list[ir.Value]:  # fmt: skip
        """Return the state after a block of keys."""
        keys, values = self._unpacked(state[3:])
        told: Mapping[str, ir.Attribute] = self.told[0 if first else 1]
        operands = [(queries, [0, 1]), (keys, [2, 1]), (values, [3, 2])]
        return online_attention(
            self.e, operands, scale, mask, [0, 3], 4, state[:3], told
        )  # fmt: skip

    def _divided(self, total: ir.Value, below: ir.Value) -> ir.Value:
        """Return the weighted rows, divided by the sum of weights."""
        e, tile, form = self.e, self.tile, self.form

        def element(x: ir.Value, y: ir.Value, _: ir.Value) -> ir.Value:
            one = constant(1, dtypes.FLOAT).value
            found = arith.MulFOp(x, arith.DivFOp(one, y).result).result
            return arith.TruncFOp(self.element, found).result  # gfx950 has an instruction for bf16

        init = e.empty([tile.rows, form.depth], self.type.dtype)
        maps = [e.dim_map(2, (0, 1)), e.dim_map(2, (0,)), e.dim_map(2, (0, 1))]
        return e.generic([total, below], [init], maps, [index.PARALLEL] * 2, element)[0]


def _laid(x: ir.Value, layout: str) -> ir.Value:
    return _op("to_layout", x, x.type, layout=ir.Attribute.parse(layout))


def _op(name: str, x: ir.Value, kind: ir.Type, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        f"iree_vector_ext.{name}", results=[kind], operands=[x], attributes=attributes
    ).result


def _lanes(batch: int, run: int, element: ir.Type) -> ir.Type:
    return ir.VectorType.get([batch, 1, 1, 1, 1, run], element)


def _places(sizes: Sequence[int]) -> dict[str, ir.Attribute]:
    rank = len(sizes)
    return {
        "static_offsets": ir.DenseI64ArrayAttr.get([DYN] * rank),
        "static_sizes": ir.DenseI64ArrayAttr.get(list(sizes)),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
    }


def _slice(
    x: ir.Value, at: Sequence[ir.Value], sizes: Sequence[int], dims: Sequence[int]
) -> ir.Value:
    """Return a part of a tensor without its extents of 1."""
    kind = ir.RankedTensorType.get(list(dims), ir.RankedTensorType(x.type).element_type)
    return ir.Operation.create(
        "tensor.extract_slice",
        results=[kind],
        operands=[x, *at],
        attributes={"operandSegmentSizes": segments(1, len(at), 0, 0), **_places(sizes)},
    ).result


def _insert(x: ir.Value, into: ir.Value, at: Sequence[ir.Value], sizes: Sequence[int]) -> None:
    ir.Operation.create(
        "tensor.parallel_insert_slice",
        operands=[x, into, *at],
        attributes={"operandSegmentSizes": segments(1, 1, len(at), 0, 0), **_places(sizes)},
    )


__all__ = ["block_attention", "first_hidden"]
