"""Attention on GPUs as IREE's op in tiles of our own, of fixed and of dynamic dims.

A matrix instruction takes runs along the width of queries and keys, and along the keys of values.
An operand that does not lie so in memory is gathered, element by element, on its way into the LDS:
it is then read from there in whole registers. Keys are filled up to whole tiles, and masked; of
fixed queries the last tile may be partial. A dynamic length is two axes: whole tiles, whose number
the run counts, and the rows of one. So each tile has a fixed size. Rows beyond the last are the
last again: their keys are masked, and what their queries give is cut off.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import Reader, reader, varies_along
from mgx_mlir.passes.analysis.shared_heads import Repeated, repeated, shared_heads
from mgx_mlir.passes.analysis.widened_attention import source_type, widening
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View, behind_views
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention import (
    AttentionKernel,
    around,
    drafted,
    matched,
    usual,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionIntrinsics,
    AttentionShape,
    AttentionTile,
)
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import attention
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.products import pad_tensor
from mgx_mlir.passes.lowering.scalar import constant, narrow, signless
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

# assumed extents where they are dynamic; a tile of 128 keys takes 300 registers, and spills
_USUAL_BATCH, _USUAL_QUERIES, _USUAL_KEYS = 1, 128, 64
# with dynamic dims IREE tiles f32 inside of blocks of keys; it fails for rows of other lengths
_BLOCK, _WIDTHS = AttentionTile(4, 64, 0), {8, 16, 32, 64, 128}

Operand = tuple[ir.Value, list[int]]  # a tensor, and which of the op's dims its own are


@dataclass(frozen=True)
class _Plan:
    """An attention in tiles of IREE's attention op."""

    kernel: AttentionKernel
    # matrix instructions, None for f32 of dynamic dims, which IREE tiles
    kind: AttentionIntrinsics | None
    tile: AttentionTile
    dtype: DType  # type of the operands that are multiplied, and of the result
    width: int  # length to which rows of queries and keys are filled up
    shared: Repeated | None = None  # keys that several heads share, None without such heads


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take an attention of 16 queries and more whose types have matrix instructions."""
    return matched(e, site, lambda k: _plan(e, k))


def _plan(e: LoweringContext, k: AttentionKernel) -> _Plan | Refusal:
    form, t, arch = k.form, k.type, e.options.arch
    if not e.options.tiles:
        return Refusal("it is lowered without tiles")
    if is_named(form.width) or is_named(form.depth):
        return Refusal("its rows are of dynamic length")
    if not is_named(form.queries) and form.queries < SIDE:
        # of fixed ones the rows of the one tile go through scratch memory, and are wrong (hazard
        # 39); beside dynamic keys one workgroup would walk over all of them
        return Refusal(f"its queries are fewer than {SIDE}")
    if not k.has_one_type():
        return Refusal("its operands have another type than its matmuls")
    dtype = t.dtype if k.named is None else _narrow_type(k) or t.dtype
    kind = attention_tiles.intrinsics_of(arch, dtype, form.width, form.depth)
    if kind is None and k.named is not None and t.dtype is dtypes.FLOAT:
        if {form.width, form.depth} <= _WIDTHS:
            k.sizes(e)
            return _Plan(k, None, _BLOCK, t.dtype, form.width)
        return Refusal(f"its rows have none of {sorted(_WIDTHS)} elements")
    if kind is None:
        return Refusal(f"no matrix instruction of {arch} has rows of {form.width} {dtype}")
    if all(extent == 1 for extent in form.lead) and k.named is None:
        return Refusal("it has one head of one batch entry")  # IREE's tiles read wrong numbers
    shared = shared_heads(form) if k.named is None else None
    a = AttentionShape(
        prod(usual(d, _USUAL_BATCH) for d in form.lead), usual(form.queries, _USUAL_QUERIES),
        usual(form.keys, _USUAL_KEYS), form.width, form.depth, shared is not None,
    )  # fmt: skip
    tile = attention_tiles.choose(arch, a)
    if tile is None and k.named is None and CHIPS[arch].lanes == 64:  # RDNA has no registers for it
        a = replace(a, width=attention_tiles.filled_width(a.width))
        tile = attention_tiles.choose(arch, a)
    if tile is None:
        return Refusal("no tile fits its sizes")
    if k.named is None and k.mask is not None and form.keys % tile.keys:
        with drafted(e, k):
            if len(form.lead) + 1 not in behind_views(e.expr(k.mask))[1]:
                return Refusal("one number masks all keys, of which the last tile is partial")
    k.sizes(e)
    return _Plan(k, kind, tile, dtype, a.width, shared)


def _narrow_type(k: AttentionKernel) -> DType | None:
    """Return the type of 16 bits that all operands are widened from, and the result rounded to."""
    dtype = source_type(k.form)
    if dtype is None or widening(k.form, dtype) is None:
        return None
    return dtype if k.rounded_type is dtype else None


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build IREE's attention op with tiles."""
    return around(e, plan.kernel, lambda _: _Tiled(e, plan).build())


RULE = KernelRule("attention_tiles", (), match, build)


class _Tiled:
    """The op's dims: those of the matmul that are longer than 1, tiles of queries, m, k, blocks of
    keys, n, d. Tiles and blocks are there where a length is dynamic; blocks, too, where keys of a
    dynamic batch are masked.

    The compiler drops extents of 1, but not from what it is told of the tiles. Heads that share
    keys and values are two dims, of which keys and values have the first.
    """

    def __init__(self, e: LoweringContext, plan: _Plan) -> None:
        k, shared, tile = plan.kernel, plan.shared, plan.tile
        form = k.form
        self.e, self.plan, self.kernel, self.form = e, plan, k, form
        self.is_dynamic = k.named is not None
        self.leaves = k.leaves
        self.type = k.type.with_dtype(plan.dtype)
        self.own = [k.size(e, d) for d in form.lead]
        self.queries, self.keys = k.size(e, form.queries), k.size(e, form.keys)
        self.extents: list[Extent] = []
        # the op's dims that each axis of the matmul is made of, and each of keys and values
        self.parts: dict[int, list[int]] = {}
        self.heads: dict[int, list[int]] = {}
        for i, extent in enumerate(self.own):
            split = shared is not None and shared.axis == i
            each = [e.div(extent, shared.times), shared.times] if shared and split else [extent]
            kept = [j for j, n in enumerate(each) if n != 1]
            if kept:
                self.parts[i] = [self._dim(each[j]) for j in kept]
                self.heads[i] = self.parts[i][: 0 in kept] if split else self.parts[i]
        self.lead = list(range(len(self.extents)))
        self.tiles = None
        if is_named(form.queries):
            self.tiles = self._dim(index.ceil_div(e, self.queries, tile.rows))
        self.m = self._dim(tile.rows if self.tiles is not None else form.queries)
        self.k = self._dim(plan.width)
        self.is_ragged = is_named(form.keys) or form.keys % tile.keys != 0
        self.blocks = None
        # so that what says which keys are masked shares no index with what reads values, which
        # lanes hold in other places: the compiler then fails to distribute
        if self.is_dynamic and (self.is_ragged or k.mask is not None):
            self.blocks = self._dim(index.ceil_div(e, self.keys, tile.keys))
        filled = form.keys if self.is_dynamic else -(-form.keys // tile.keys) * tile.keys
        self.n = self._dim(tile.keys if self.blocks is not None else filled)
        self.d = self._dim(form.depth)
        self.elements = k.elements(e)

    def _dim(self, extent: Extent) -> int:
        self.extents.append(extent)
        return len(self.extents) - 1

    def build(self) -> View:
        """Build the op, and return the second matmul."""
        e, form, plan, dtype = self.e, self.form, self.plan, self.plan.dtype
        places = list(self.parts)
        # rows of dynamic queries lie where the result has them
        ahead = min(form.query_dim, len(places)) if self.is_dynamic else len(places)
        tiles = [] if self.tiles is None else [self.tiles]
        blocks = [] if self.blocks is None else [self.blocks]
        first = [d for i in places[:ahead] for d in self.parts[i]]
        rest = [d for i in places[ahead:] for d in self.parts[i]]
        out = [*first, *tiles, self.m, *rest, self.d]
        sizes = [self.extents[i] for i in out]
        t = TensorType(dtype, tuple(e.static_dims(sizes)))
        told = None
        if plan.kind is not None:
            dims = attention_tiles.Dims(
                [*self.lead, *tiles], self.m, self.k, self.n, self.d, blocks
            )
            told = attention_tiles.attributes(
                e.options.arch, plan.kind, plan.tile, dims, plan.width
            )
        queries, keys, values = form.multiplied
        made_ahead = self._queries(queries, ahead=True) if self.are_queries_ahead else None

        def build() -> list[ir.Value]:
            operands = [
                made_ahead or self._queries(queries),
                self._operand(keys, {0: [self.k], 1: self._of_keys}, [*blocks, self.n, self.k]),
                self._operand(values, {0: self._of_keys, 1: [self.d]}, [*blocks, self.d, self.n]),
            ]
            masks = self._masks_of_blocks() if self.is_dynamic else self._masks()
            scale = constant(self.kernel.scale, dtype).value
            return [attention(e, operands, scale, masks, out, self.d + 1, t, told, sizes)]

        kind = ir.RankedTensorType.get(list(t.dims), signless(dtype))
        found = index.alone(e, [kind], [sizes], build)[0]
        own = [self.own[i] for i in places]
        if self.tiles is not None:
            rows = e.mul(self.extents[self.tiles], plan.tile.rows)
            filled = [*own[:ahead], rows, *own[ahead:], form.depth]
            found = views.reshape_tensor(e, found, t.with_dims(e.static_dims(filled)), filled)
        cut = [*own[:ahead], self.queries, *own[ahead:], form.depth]
        small = t.with_dims(e.static_dims(cut))
        if self.tiles is not None:
            found = extract_slice(e, found, [0] * len(cut), cut)
        elif plan.shared is not None:
            found = views.reshape_tensor(e, found, small, cut)
        whole = [*self.own, self.queries, form.depth]
        full = len(self.own)
        order = (*places[:ahead], full, *places[ahead:], full + 1)
        return View(t.with_dims(e.static_dims(whole)), Leaf(small, found), order, whole)

    # ---- operands ----------------------------------------------------------------------------

    @property
    def _of_keys(self) -> list[int]:
        return [self.n] if self.blocks is None else [self.blocks, self.n]

    @property
    def are_queries_ahead(self) -> bool:
        """Say whether a launch ahead of the kernel lays out the queries.

        In it, lanes hold them along their width otherwise than they hold keys, and the compiler
        hands on places by way of the LDS, or fails to distribute; scalar registers spill.
        """
        dynamic_on_rdna = self.tiles is not None and CHIPS[self.e.options.arch].lanes == 32
        return self.plan.kind is None or dynamic_on_rdna

    def _queries(self, v: ir.Value, *, ahead: bool = False) -> Operand:
        rows = [self.m] if self.tiles is None else [self.tiles, self.m]
        return self._operand(v, {0: rows, 1: [self.k]}, [*rows, self.k], ahead=ahead)

    def _operand(
        self, v: ir.Value, last: Mapping[int, list[int]], order: Sequence[int], *,
        ahead: bool = False,
    ) -> Operand:  # fmt: skip
        """Return an operand of a matmul in an order of the op's dims; `last` are those of its last
        two axes."""
        e, full = self.e, len(self.own)
        names = {**self.parts, **{full + i: dims for i, dims in last.items()}}
        found = repeated(v) if self.plan.shared is not None and self.n in order else None
        if found is not None:
            v, names = found.value, {**names, **self.heads}
            names = {i: names[a] for i, a in enumerate(found.axes) if a in names}
        names = {i: dims for i, dims in names.items() if dims}
        are_keys = self.n in order
        whole = None
        if not self.is_dynamic and not (are_keys and self.is_ragged):
            whole = self._as_it_is(e.expr(v), names, order[-1])
        if whole is not None:
            return whole
        lead = [d for dims in names.values() for d in dims if d in self.lead]
        order = [*lead, *order]
        read, t = reader(v, None, self.leaves), TensorType.of(v)
        axis, most = self._clamped(names, order)
        wide = self.k in order and self.plan.width != self.form.width

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            at: list[Extent] = [0] * t.rank
            for i, dims in names.items():
                for d in dims:
                    at[i] = e.add(e.mul(at[i], self.extents[d]), of[d])
            if axis is not None:
                at[axis] = arith.MinUIOp(e.index(at[axis]), e.index(e.sub(most, 1))).result
            if not wide:
                return narrow(read(self.elements, at, 1), self.plan.dtype).value
            along = next(i for i, dims in names.items() if dims == [self.k])
            inside = index.in_range(e, e.index(at[along]), self.form.width)
            at[along] = index.select(e, inside, at[along], 0)
            value = narrow(read(self.elements, at, 1), self.plan.dtype).value
            return arith.SelectOp(inside, value, index.zero_of(value.type)).result

        sizes = [self.extents[i] for i in order]
        build = index.from_positions_alone if ahead else index.from_positions
        return build(e, sizes, self.plan.dtype, element), order

    def _clamped(
        self, names: Mapping[int, list[int]], order: Sequence[int]
    ) -> tuple[int | None, Extent]:
        """Return the axis of an operand whose index is kept within its bounds, and these.

        That of rows beyond the last, or one whose bounds keep the compiler from taking a mere
        transpose for another order of the op's own dims: of values the depth, where that is enough,
        which is the same in each iteration over the keys.
        """
        dims, most = [self.d], self.form.depth
        if self.n not in order:
            rows = [self.m] if self.tiles is None else [self.tiles, self.m]
            dims, most = rows, self.queries
        elif self.d not in order or self.is_ragged or self.blocks is not None:
            dims, most = self._of_keys, self.keys
        exact = self.is_dynamic and len(dims) == 1 and dims != [self.d]
        return (None if exact else next(i for i, own in names.items() if own == dims)), most

    def _as_it_is(self, x: Expr, names: Mapping[int, list[int]], runs: int) -> Operand | None:
        """Return the tensor that an operand is a view of, if its rows are runs along `runs`."""
        at = behind_views(x)[1]
        if not at or at[-1] is None or names.get(at[-1]) != [runs] or not {*names} <= {*at}:
            return None
        if runs != self.k or self.plan.width == self.form.width:
            return self._tensor(x, names)
        # ahead of the region: in it, each element would be looked at
        with ahead_of_region(self.e, self.e.tensor(behind_views(x)[0])):
            value, order = self._tensor(x, names)
            kind = ir.RankedTensorType(value.type)
            more: list[Extent] = [0] * (len(order) - 1)
            sizes = [*kind.shape[:-1], self.plan.width]
            more.append(self.plan.width - self.form.width)
            return self._filled(value, more, sizes, 0), order

    def _filled(
        self, value: ir.Value, high: list[Extent], sizes: list[int], number: float
    ) -> ir.Value:
        """Fill a tensor up to `sizes`, by a dispatch of its own."""
        made = ir.RankedTensorType.get(sizes, ir.RankedTensorType(value.type).element_type)
        none: list[Extent] = [0] * len(sizes)

        def build() -> list[ir.Value]:
            return [pad_tensor(self.e, value, none, high, sizes, number)]

        inside, self.e.in_region = self.e.in_region, False
        try:
            return index.alone(self.e, [made], [sizes], build)[0]
        finally:
            self.e.in_region = inside

    def _tensor(self, x: Expr, names: Mapping[int, list[int]]) -> Operand:
        """Return the tensor that an expression is a view of, with the op's dims of its axes."""
        source, at = behind_views(x)
        value = self.e.tensor(source)
        order: list[int] = []
        sizes: list[Extent] = []
        for axis, extent in zip(at, source.type.dims, strict=True):
            dims = names.get(axis, []) if axis is not None else []
            order += dims
            sizes += [extent] if len(dims) == 1 else [self.extents[d] for d in dims]
        small = source.type.with_dims(self.e.static_dims(sizes))
        return views.reshape_tensor(self.e, value, small, sizes), order

    # ---- masks -------------------------------------------------------------------------------

    def _masks(self) -> list[Operand]:
        """Return what is added to the scores: the mask, and -inf where there is no key."""
        e, mask, form = self.e, self.kernel.mask, self.form
        filled = self.extents[self.n]
        assert isinstance(filled, int)
        more = filled - form.keys
        if mask is None:
            if not more:
                return []
            beyond = np.zeros(filled, self.plan.dtype.np)
            beyond[form.keys :] = float("-inf")
            return [(e.parameter(beyond), [self.n])]
        full = len(form.lead)
        names = {**self.parts, full: [self.m], full + 1: [self.n]}
        x = e.expr(mask)
        # ahead of the region: in it, what is cut would go through memory
        with ahead_of_region(e, e.tensor(behind_views(x)[0])):
            value, order = self._tensor(x, names)
            dtype = TensorType.of(mask).dtype
            if dtype.is_bool:
                value, dtype = e.cast_tensor(value, dtypes.BOOL, dtypes.INT8), dtypes.INT8
            if more:
                high: list[Extent] = [more if i == self.n else 0 for i in order]
                sizes = e.static_dims([self.extents[i] for i in order])
                number = 0 if dtype is dtypes.INT8 else float("-inf")
                value = self._filled(value, high, sizes, number)
        return [(value, order)]

    def _masks_of_blocks(self) -> list[Operand]:
        """Return the same, made in the kernel by blocks of keys."""
        e, dtype, blocks, mask = self.e, self.plan.dtype, self.blocks, self.kernel.mask
        if blocks is None:
            return []
        order = [blocks, self.n]
        read: Reader | None = None
        if mask is not None:
            read = reader(mask, None, self.leaves)
            kept = [d for i, (d,) in self.parts.items() if varies_along(mask, i, self.leaves)]
            rows = [i for i in (self.tiles, self.m) if i is not None]
            vary = varies_along(mask, len(self.own), self.leaves)
            order = [*kept, *(rows if vary else []), *order]

        def value(where: list[ir.Value]) -> ir.Value:
            at = dict(zip(order, where, strict=True))
            own, begin = at[self.n], e.mul(at[blocks], self.plan.tile.keys)
            left = e.sub(self.keys, begin)
            found = constant(0, dtype).value
            if read is not None:
                lead = [
                    at.get(self.parts[i][0], 0) if i in self.parts else 0
                    for i in range(len(self.own))
                ]
                place = [*lead, self._row(at), e.add(self._within(own, left), begin)]
                found = narrow(read(self.elements, place, 1), dtype).value
            if not self.is_ragged:
                return found
            inside = arith.CmpIOp(arith.CmpIPredicate.slt, own, e.index(left)).result
            return arith.SelectOp(inside, found, constant(float("-inf"), dtype).value).result

        sizes = [self.extents[i] for i in order]
        return [(index.from_positions(e, sizes, dtype, value), order)]

    def _row(self, at: Mapping[int, ir.Value]) -> Extent:
        """Return the row of a mask, by other sums than that of queries: lanes hold masks
        otherwise."""
        e, own = self.e, at.get(self.m, 0)
        if self.tiles is None or self.m not in at:
            return own
        begin = e.mul(at[self.tiles], self.plan.tile.rows)
        return e.add(self._within(own, e.sub(self.queries, begin)), begin)

    def _within(self, row: Extent, count: Extent) -> ir.Value:
        e = self.e
        return arith.MinUIOp(e.index(row), e.index(e.sub(count, 1))).result


@contextmanager
def ahead_of_region(e: LoweringContext, value: ir.Value) -> Generator[None]:
    """Build outside of the region that is being built, if the value is from there."""
    block = ir.InsertionPoint.current.block
    made = value.owner
    if not e.in_region or (not isinstance(made, ir.Block) and made.operation.block == block):
        yield
        return
    with ir.InsertionPoint(block.owner):
        yield


__all__ = ["RULE"]
