"""Attention on GPUs as IREE's op with our tiles, over all keys or over parts of them.

One token's queries are too few for a chip: a workgroup for each head would walk over all keys. So
each part of the keys has its own workgroups, whose rows are the queries of all heads that share
these keys. A part returns unnormalised weighted rows, their largest score and the sum of weights. A
second kernel combines the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import arith, ir, math
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS, amd_chip
from mgx_mlir.passes.analysis.shared_heads import shared_heads
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
from mgx_mlir.passes.lowering.gpu.attention.tiled_operands import (
    TiledOperands,
    TiledPlan,
    ahead_of_region,
)
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import attention, no_keys, online_attention
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.scalar import TypedScalar, constant, narrow, signless
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

# assumed extents where they are dynamic; a tile of 128 keys takes 300 registers, and spills
_USUAL_BATCH, _USUAL_QUERIES, _USUAL_KEYS, _USUAL_KEYS_OF_PARTS = 1, 128, 64, 2048
_LEAST_KEYS = 256  # fewest fixed keys of one query that are split into parts
# widths for which IREE tiles f32 inside of blocks of keys, with dynamic dims; others fail
_BLOCK, _WIDTHS = AttentionTile(4, 64, 0), {8, 16, 32, 64, 128}


def match_tiles(e: LoweringContext, site: GpuKernelSite) -> TiledPlan | Refusal:
    """Take an attention of 16 queries and more whose types have matrix instructions."""
    return matched(e, site, lambda k: _plan(e, k, few=False))


def match_parts(e: LoweringContext, site: GpuKernelSite) -> TiledPlan | Refusal:
    """Take an attention of fewer than 16 queries; widened 16-bit operands are read unwidened."""
    return matched(e, site, lambda k: _plan(e, k, few=True))


def _plan(e: LoweringContext, k: AttentionKernel, *, few: bool) -> TiledPlan | Refusal:
    """Return the plan of both rules; few: for fewer queries than a matrix instruction has rows.

    A single partial tile of few static queries gives wrong results (hazard 39). With dynamic keys,
    one workgroup would iterate over all of them.
    """
    form, t, arch = k.form, k.type, e.options.arch
    if not e.options.tiles:
        return Refusal("it is lowered without tiles")
    if few != (not is_named(form.queries) and form.queries < SIDE):
        named = ", or a dynamic dim" if few else ""
        return Refusal(
            f"its queries are {f'{SIDE} and more' if few else f'fewer than {SIDE}'}{named}"
        )
    if is_named(form.width) or is_named(form.depth):
        return Refusal("its rows are of dynamic length")
    dtype = _multiplied_type(e, k, few=few)
    if dtype is None:
        return Refusal("its operands have another type than its matmuls")
    kind = attention_tiles.intrinsics_of(arch, dtype, form.width, form.depth)
    if not few and kind is None and k.named is not None and t.dtype is dtypes.FLOAT:
        if {form.width, form.depth} <= _WIDTHS:
            k.sizes(e)
            return TiledPlan(k, None, _BLOCK, t.dtype, form.width)
        return Refusal(f"its rows have none of {sorted(_WIDTHS)} elements")
    if kind is None:
        return Refusal(f"no matrix instruction of {arch} has rows of {form.width} {dtype}")
    plan = (_by_parts if few else _whole)(e, k, kind, dtype)
    if isinstance(plan, TiledPlan):
        k.sizes(e)
    return plan


def _multiplied_type(e: LoweringContext, k: AttentionKernel, *, few: bool) -> DType | None:
    """Return the type that is multiplied: the 16-bit type that all operands are widened from.

    As separate kernels, such an attention's scores would be stored in 16 bits, and overflow. On
    RDNA IREE's kernel is as fast or faster for one query, if keys fill its vectors.
    """
    given, form = source_type(k.form), k.form
    if given is not None and widening(form, given) is not None:
        whole = not is_named(form.keys) and form.keys % SIDE == 0
        alone = amd_chip(e.options.arch) and CHIPS[e.options.arch].lanes == 32
        alone = alone and form.queries == 1 and whole
        if not alone if few else k.named is not None and k.rounded_type is given:
            return given
    return k.type.dtype if k.has_one_type() else None


def _by_parts(
    e: LoweringContext, k: AttentionKernel, kind: AttentionIntrinsics, dtype: DType
) -> TiledPlan | Refusal:
    form = k.form
    if k.named is not None and not is_named(form.keys):
        return Refusal("its batch is a dynamic dim, its keys are not")
    if form.queries == 1 and not is_named(form.keys) and form.keys < _LEAST_KEYS:
        return Refusal(f"the keys of its one query are fewer than {_LEAST_KEYS}")
    if k.mask is not None and not TensorType.of(k.mask).dtype.is_float:
        return Refusal("its mask is of bools")
    shared = shared_heads(form, converted=True)
    times = 1 if shared is None else shared.times
    if is_named(times) or (shared is not None and is_named(form.lead[shared.axis])):
        return Refusal("a dynamic number of heads shares keys")
    count = prod(usual(d, _USUAL_BATCH) for d in form.lead) // times
    keys = usual(form.keys, _USUAL_KEYS_OF_PARTS)
    a = AttentionShape(
        count, times * form.queries, keys, form.width, form.depth, masked=is_named(form.keys)
    )
    parts = attention_tiles.choose_parts(e.options.arch, a)
    if parts is None:
        return Refusal("no tile has all rows that share keys")
    return TiledPlan(k, kind, parts.tile, dtype, form.width, shared, parts)


def _whole(
    e: LoweringContext, k: AttentionKernel, kind: AttentionIntrinsics, dtype: DType
) -> TiledPlan | Refusal:
    form, arch = k.form, e.options.arch
    if all(extent == 1 for extent in form.lead) and k.named is None:
        return Refusal("it has one head of one batch entry")  # IREE's tiles read wrong numbers
    shared = shared_heads(form) if k.named is None else None
    a = AttentionShape(
        prod(usual(d, _USUAL_BATCH) for d in form.lead), usual(form.queries, _USUAL_QUERIES),
        usual(form.keys, _USUAL_KEYS), form.width, form.depth, shared is not None,
        k.named is not None,
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
    return TiledPlan(k, kind, tile, dtype, a.width, shared)


def build(e: LoweringContext, site: GpuKernelSite, plan: TiledPlan) -> list[ir.Value]:
    """Build IREE's attention op with tiles; of parts, the kernel that adds them up, too."""

    def second(out: DType) -> Expr:
        made = _Tiled(e, plan)
        if plan.parts is None:
            return made.attention()
        with ahead_of_region(e):
            found = made.of_parts()
        return made.joined(found, out)

    return around(e, plan.kernel, second)


PARTS = KernelRule("attention_parts", (), match_parts, build)
TILES = KernelRule("attention_tiles", (), match_tiles, build)


class _Tiled(TiledOperands):
    """Builder of the op: over all keys, or over each part and the sum of these."""

    def attention(self) -> View:
        """Build the op over all keys, and return the second matmul."""
        e, form, plan = self.e, self.form, self.plan
        places = list(self.axes)
        # dynamic queries have the layout of the result
        ahead = min(form.query_dim, len(places)) if self.is_dynamic else len(places)
        first = [d for i in places[:ahead] for d in self.axes[i]]
        rest = [d for i in places[ahead:] for d in self.axes[i]]
        out = [*first, *self.tiles, self.m, *rest, self.d]
        sizes = self._sizes(out)
        t = TensorType(plan.dtype, tuple(e.static_dims(sizes)))
        # lanes hold queries in another layout than keys, so IREE passes indices through the LDS or
        # fails to distribute, and scalar registers spill
        dynamic_on_rdna = bool(self.tiles) and CHIPS[e.options.arch].lanes == 32
        alone = plan.kind is None or dynamic_on_rdna
        queries = self._queries(ahead=True) if alone else None

        def build() -> list[ir.Value]:
            operands, masks = self._operands(queries), self._masks()
            scale = constant(self.kernel.scale, plan.dtype).value
            return [attention(e, operands, scale, masks, out, self.d + 1, t, self.info, sizes)]

        kind = ir.RankedTensorType.get(list(t.dims), signless(plan.dtype))
        found = index.alone(e, [kind], [sizes], build)[0]
        own = [self.own[i] for i in places]
        if self.tiles:
            rows = e.mul(self.extents[self.tiles[0]], plan.tile.rows)
            filled = [*own[:ahead], rows, *own[ahead:], form.depth]
            found = views.reshape_tensor(e, found, t.with_dims(e.static_dims(filled)), filled)
        cut = [*own[:ahead], self.queries, *own[ahead:], form.depth]
        small = t.with_dims(e.static_dims(cut))
        if self.tiles:
            found = extract_slice(e, found, [0] * len(cut), cut)
        elif plan.shared is not None:
            found = views.reshape_tensor(e, found, small, cut)
        if is_named(form.keys) and form.keys != form.queries:  # without keys there may be queries
            found = self._without_keys(found, cut)
        whole = [*self.own, self.queries, form.depth]
        full = len(self.own)
        order = (*places[:ahead], full, *places[ahead:], full + 1)
        return View(t.with_dims(e.static_dims(whole)), Leaf(small, found), order, whole)

    def _without_keys(self, found: ir.Value, extents: Sequence[Extent]) -> ir.Value:
        """Return the second matmul, 0 where there is no key: IREE's op divides by a sum of 0."""
        e, empty = self.e, self._has_no_key()

        def body(x: ir.Value, _: ir.Value) -> ir.Value:
            return arith.SelectOp(empty, index.zero_of(x.type), x).result

        maps = [e.dim_map(len(extents), tuple(range(len(extents))))] * 2
        init = e.empty(extents, self.plan.dtype)
        return e.generic([found], [init], maps, [index.PARALLEL] * len(extents), body)[0]

    def _has_no_key(self) -> ir.Value:
        e = self.e
        return arith.CmpIOp(arith.CmpIPredicate.eq, e.index(self.keys), e.index(0)).result

    def of_parts(self) -> list[ir.Value]:
        """Build the op over each part of the keys; return weighted rows, their largest score and
        the sum of weights."""
        e, mask = self.e, self.kernel.mask
        # with blocks IREE fails to distribute the rows' indices in the kernel
        many = self.rows > 1 or mask is not None or not all(isinstance(x, int) for x in self.own)
        queries = self._queries(ahead=True) if self.blocks and many else None
        masks = None if self.blocks else self._masks()  # in the op's dispatch, not distributed

        def build() -> list[ir.Value]:
            operands = self._operands(queries)
            added = self._masks() if masks is None else masks
            scale = constant(self.kernel.scale, self.plan.dtype).value
            return online_attention(
                e, operands, scale, added, out, self.d + 1, no_keys(e, sizes), self.info
            )

        out = [*self.lead, *self.p, self.m, self.d]
        sizes = self._sizes(out)
        extents = [sizes, sizes[:-1], sizes[:-1]]
        kinds = [ir.RankedTensorType.get(e.static_dims(x), ir.F32Type.get()) for x in extents]
        return index.alone(e, kinds, extents, build)

    def joined(self, made: Sequence[ir.Value], out: DType) -> Leaf:
        """Return the combination of all parts."""
        e, form = self.e, self.form
        whole: list[Extent] = [*self.own, form.queries, form.depth]
        dims = e.static_dims(whole)
        empty = self._has_no_key() if is_named(form.keys) else None
        element = self._sum_by_share(made, out, empty)

        def build() -> list[ir.Value]:
            found = index.from_positions(e, whole, out, element)
            known = [x for x in whole if isinstance(x, int)]
            if len(known) == len(whole):
                compilation_info.give(
                    e, found, lambda arch: compilation_info.element_info(arch, known)
                )
            return [found]

        kind = ir.RankedTensorType.get(dims, signless(out))
        return Leaf(TensorType(out, tuple(dims)), index.alone(e, [kind], [whole], build)[0])

    def _sum_by_share(
        self, made: Sequence[ir.Value], out: DType, empty: ir.Value | None
    ) -> Callable[[list[ir.Value]], ir.Value]:
        """Return the loop body that computes an element of the attention.

        It sums weighted rows of all parts, scaled by the exponential of their largest score, and
        divides by the sum of weights. empty: a condition, true if there is no key.
        """
        e, form, full = self.e, self.form, len(self.own)

        def read(i: int, where: Sequence[Extent]) -> ir.Value:
            return index.read(made[i], [e.index(x) for x in where])

        def element(where: list[ir.Value]) -> ir.Value:
            query, depth = where[full:]
            at = [e.div(where[i], self.times) if i == self.axis else where[i] for i in self.axes]
            row: Extent = query
            if self.axis is not None:
                head = e.rem(where[self.axis], self.times)
                row = e.add(e.mul(head, form.queries), query)
            parts = range(0 if self.plan.parts is None else self.plan.parts.count)
            tops = [read(1, [*at, p, row]) for p in parts]
            top = _reduced(arith.MaxNumFOp, tops)
            weighted: list[ir.Value] = []
            weights: list[ir.Value] = []
            for p in parts:
                share = math.Exp2Op(arith.SubFOp(tops[p], top).result).result
                weighted.append(arith.MulFOp(share, read(0, [*at, p, row, depth])).result)
                weights.append(arith.MulFOp(share, read(2, [*at, p, row])).result)
            found = arith.DivFOp(
                _reduced(arith.AddFOp, weighted), _reduced(arith.AddFOp, weights)
            ).result
            if empty is not None:
                found = arith.SelectOp(empty, index.zero_of(found.type), found).result
            return narrow(TypedScalar(found, dtypes.FLOAT), out).value

        return element


def _reduced(op: Callable[[ir.Value, ir.Value], ir.OpView], xs: Sequence[ir.Value]) -> ir.Value:
    found = xs[0]
    for x in xs[1:]:
        found = op(found, x).results[0]
    return found


__all__ = ["PARTS", "TILES"]
