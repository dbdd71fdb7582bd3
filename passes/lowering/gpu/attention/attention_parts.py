"""Attention of few queries over many keys on GPUs: by parts of the keys, which a kernel adds up.

One token's queries are too few for a chip: a workgroup for each head would walk over all keys. Here
each part of the keys has workgroups of its own, whose rows are the queries of all heads that share
these keys. Each part gives its weighted rows, not divided, with their largest score and the sum of
weights; the kernel that the rest of the program sees adds them up. A dynamic number of keys is a
fixed number of parts, each of as many blocks of keys as the run says: indices behind the last key
read it again, and are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import arith, ir, math
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import reader, varies_along
from mgx_mlir.passes.analysis.shared_heads import Repeated, repeated, shared_heads
from mgx_mlir.passes.analysis.widened_attention import source_type, widening
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Extent,
    Leaf,
    behind_views,
    compose,
)
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention import (
    AttentionKernel,
    around,
    is_inside,
    matched,
    usual,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionIntrinsics,
    AttentionShape,
    AttentionTile,
)
from mgx_mlir.passes.lowering.gpu.products import compilation_info
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import no_keys, online_attention
from mgx_mlir.passes.lowering.scalar import TypedScalar, constant, constant_of, narrow, signless
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_LEAST_KEYS = 256
_MOST_PARTS = 32  # upper bound: the reduction reads one partial result per part
_ENOUGH_PARTS = 16  # where each unit has one of these, memory takes longest, and half is read
_KEYS = 64  # fewest keys of a part
_WAVES = {64: 1, 32: 4}  # waves per SIMD by wave size; RDNA needs four to hide memory latency
_USUAL_KEYS = 2048  # assumed number of keys where it is dynamic

Operand = tuple[ir.Value, list[int]]  # a tensor, and which of the op's dims its own are
At = Mapping[int, ir.Value]  # an index by the op's dims


@dataclass(frozen=True)
class Parts:
    """Parts of the keys, each of which has workgroups of its own."""

    count: int  # number of parts
    keys: int  # keys of a part, in whole tiles
    tile: AttentionTile  # tile of a workgroup


def choose(arch: str, a: AttentionShape) -> Parts | None:
    """Return the parts for rows of queries over keys; None where no tile has all rows.

    As many as there are SIMDs for, each with `_WAVES`, but no more than keep memory busy; fewer,
    down to half of them, where the keys then are whole parts, which are read where they lie.
    """
    waves = next((n for n in (1, 2, 4) if n * SIDE >= a.queries), None)
    if waves is None:
        return None
    chip = CHIPS[arch]
    each = _WAVES[chip.lanes]
    room = each * chip.units * chip.simds // (a.count * waves)
    most = _ENOUGH_PARTS if a.count * _ENOUGH_PARTS >= each * chip.units else _MOST_PARTS
    count = min(most, -(-a.keys // _KEYS), max(2, room))
    if a.count == 1:
        count = max(2, count)  # without a dim of many, IREE's tiles read wrong numbers
    least = min(count, max(count // 2, 2))
    found = [_parts(arch, a, n, waves) for n in range(count, least - 1, -1)]
    first = found[0]
    if first is None:
        return None
    tile = first.tile.keys  # smaller ones wait longer
    near = (p for p in found if p is not None and p.tile.keys >= tile)
    return next((p for p in near if p.count * p.keys == a.keys), first)


def _parts(arch: str, a: AttentionShape, count: int, waves: int) -> Parts | None:
    each = -(-a.keys // count)
    part = AttentionShape(a.count * count, waves * SIDE, each, a.width, a.depth, shared=True)
    tile = attention_tiles.choose(arch, part)
    if tile is None:
        return None
    each = -(-each // tile.keys) * tile.keys
    return Parts(-(-a.keys // each), each, tile)


@dataclass(frozen=True)
class _Plan:
    """An attention whose keys are split into parts."""

    kernel: AttentionKernel
    parts: Parts
    kind: AttentionIntrinsics
    dtype: DType  # type of the operands that are multiplied
    shared: Repeated | None  # keys that several heads share, None where each head has its own


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take an attention of fewer than 16 queries; one that widens its operands as of 16 bits."""
    return matched(e, site, lambda k: _plan(e, k))


def _plan(e: LoweringContext, k: AttentionKernel) -> _Plan | Refusal:
    form, arch = k.form, e.options.arch
    if not e.options.tiles:
        return Refusal("it is lowered without tiles")
    if is_named(form.queries) or form.queries >= SIDE:
        return Refusal(f"its queries are {SIDE} and more, or a dynamic dim")
    if is_named(form.width) or is_named(form.depth):
        return Refusal("its rows are of dynamic length")
    if k.named is not None and not is_named(form.keys):
        return Refusal("its batch is a dynamic dim, its keys are not")
    if form.queries == 1 and not is_named(form.keys) and form.keys < _LEAST_KEYS:
        return Refusal(f"the keys of its one query are fewer than {_LEAST_KEYS}")
    if k.mask is not None and not TensorType.of(k.mask).dtype.is_float:
        return Refusal("its mask is of bools")
    dtype = _multiplied_type(e, k)
    if dtype is None:
        return Refusal("its operands have another type than its matmuls")
    kind = attention_tiles.intrinsics_of(arch, dtype, form.width, form.depth)
    if kind is None:
        return Refusal(f"no matrix instruction of {arch} has rows of {form.width} {dtype}")
    shared = shared_heads(form, converted=True)
    times = 1 if shared is None else shared.times
    if is_named(times) or (shared is not None and is_named(form.lead[shared.axis])):
        return Refusal("a dynamic number of heads shares keys")
    count = prod(usual(d, 1) for d in form.lead) // times
    keys = usual(form.keys, _USUAL_KEYS)
    a = AttentionShape(count, times * form.queries, keys, form.width, form.depth)
    parts = choose(arch, a)
    if parts is None:
        return Refusal("no tile has all rows that share keys")
    k.sizes(e)
    return _Plan(k, parts, kind, dtype, shared)


def _multiplied_type(e: LoweringContext, k: AttentionKernel) -> DType | None:
    """Return the type of what is multiplied: that of 16 bits which all operands are widened from.

    Taken apart, such an attention's scores would stand in memory in 16 bits, and overflow. On RDNA
    IREE's own kernel is as fast or faster for one query, where keys fill its vectors.
    """
    given, form = source_type(k.form), k.form
    if given is not None and widening(form, given) is not None:
        whole = not is_named(form.keys) and form.keys % SIDE == 0
        if not (CHIPS[e.options.arch].lanes == 32 and form.queries == 1 and whole):
            return given
    return k.type.dtype if k.has_one_type() else None


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the parts, and the kernel that adds them up."""
    return around(e, plan.kernel, lambda out: _second(e, plan, out))


RULE = KernelRule("attention_parts", (), match, build)


def _second(e: LoweringContext, plan: _Plan, out: DType) -> Expr:
    """Return the second matmul, of type `out`; its parts are made ahead of its kernel's region."""
    split = _Split(e, plan)
    block, inside = ir.InsertionPoint.current.block, e.in_region
    e.in_region = False
    try:
        with ir.InsertionPoint(block.owner) if inside else nullcontext():
            made = split.parts_alone()
    finally:
        e.in_region = inside
    return split.joined(made, out)


class _Split:
    """Both kernels, over the op's dims: those of the matmul without the heads that share keys,
    parts, m, k, blocks of keys where their number is dynamic, n, d."""

    def __init__(self, e: LoweringContext, plan: _Plan) -> None:
        k, shared, parts = plan.kernel, plan.shared, plan.parts
        form = k.form
        self.e, self.plan, self.kernel, self.form = e, plan, k, form
        self.block = ir.InsertionPoint.current.block
        self.axis = None if shared is None else shared.axis
        self.times = 1 if shared is None else shared.times
        self.leaves = k.leaves
        self.own = [k.size(e, d) for d in form.lead]
        self.keys = k.size(e, form.keys)
        each = [e.div(x, self.times) if i == self.axis else x for i, x in enumerate(self.own)]
        # the op's dim of each axis of the product that is longer than 1
        self.places = {i: j for j, i in enumerate(i for i, x in enumerate(each) if x != 1)}
        lead = [each[i] for i in self.places]
        rank = len(lead)
        self.p, self.m, self.k = range(rank, rank + 3)
        self.rows = self.times * form.queries
        filled = -(-self.rows // parts.tile.rows) * parts.tile.rows
        self.extents: list[Extent] = [*lead, parts.count, filled, form.width]
        # keys of a part, or of a block
        self.b, self.each, self.blocks = None, parts.keys, 1
        if k.named is not None:
            self.b, self.each = rank + 3, parts.tile.keys
            self.blocks: Extent = index.ceil_div(e, self.keys, parts.count * self.each)
            self.extents.append(self.blocks)
        self.n = len(self.extents)
        self.d = self.n + 1
        self.extents += [self.each, form.depth]
        self.sizes: list[Extent] = [*lead, parts.count, filled, form.depth]
        self.is_ragged = k.named is not None or parts.count * parts.keys != form.keys

    def parts_alone(self) -> list[ir.Value]:
        """Return what each part gives: weighted rows, their largest score, the sum of weights."""
        e, form, mask = self.e, self.form, self.kernel.mask
        self.elements = self.kernel.elements(e, whole=False)
        lead = [*range(len(self.places)), self.p]
        own = lead[:-1] or lead  # a product has a batch of its first operand, too, or no layout
        blocks = [] if self.b is None else [self.b]
        dims = attention_tiles.Dims(lead, self.m, self.k, self.n, self.d, blocks)
        told = attention_tiles.attributes(
            e.options.arch, self.plan.kind, self.plan.parts.tile, dims, form.width
        )
        q, k, v = form.multiplied
        # with blocks the compiler fails to distribute the places of rows in the kernel
        many = self.rows > 1 or mask is not None or not all(isinstance(x, int) for x in self.own)
        ahead = [*own, self.m, self.k] if blocks and many else None
        queries = None if ahead is None else self._gathered(q, ahead, ahead=True)
        masks = [] if blocks else self._masks()

        def build() -> list[ir.Value]:
            made = [
                queries or self._gathered(q, [*own, self.m, self.k]),
                self._keys_of(k, [*lead, *blocks, self.n, self.k]),
                self._keys_of(v, [*lead, *blocks, self.d, self.n]),
            ]
            number = constant(self.kernel.scale, self.plan.dtype).value
            return online_attention(
                e, made, number, masks or self._masks(), [*lead, self.m, self.d], self.d + 1,
                no_keys(e, self.sizes), told,
            )  # fmt: skip

        extents = [self.sizes, self.sizes[:-1], self.sizes[:-1]]
        kinds = [ir.RankedTensorType.get(e.static_dims(x), ir.F32Type.get()) for x in extents]
        return index.alone(e, kinds, extents, build)

    # ---- operands ----------------------------------------------------------------------------

    def _keys_of(self, v: ir.Value, order: list[int]) -> Operand:
        """Return keys or values, once for all heads that share them."""
        found = repeated(v, converted=True) if self.axis is not None else None
        if found is not None:
            return self._as_it_is(found.value, found.axes, order) or self._gathered(
                found.value, order, found.axes
            )
        axes = list(range(len(self.form.lead) + 2))
        if self.b is not None:  # what is one for all heads has no dim of them
            same = [j for i, j in self.places.items() if not varies_along(v, i, self.leaves)]
            order = [i for i in order if i not in same]
        return self._as_it_is(v, axes, order) or self._gathered(v, order)

    def _gathered(
        self, v: ir.Value, order: list[int], axes: Sequence[int | None] = (), *, ahead: bool = False
    ) -> Operand:
        """Return an operand of a matmul in this order of the op's dims, made in the loop; along the
        keys for values: otherwise the compiler does not distribute it."""
        axes = axes or list(range(len(self.form.lead) + 2))
        read = reader(v, None, self.leaves)
        pair = self._pair(order)

        def element(where: list[ir.Value]) -> ir.Value:
            at = self._place(dict(zip(order, where, strict=True)), pair)
            own: list[Extent] = [0 if axis is None else at[axis] for axis in axes]
            return narrow(read(self.elements, own, 1), self.plan.dtype).value

        sizes = [self.extents[i] for i in order]
        build = index.from_positions_alone if ahead else index.from_positions
        return build(self.e, sizes, self.plan.dtype, element), order

    def _pair(self, order: Sequence[int]) -> tuple[int, int]:
        """Return the op's dims of the last two axes of a matmul's operand."""
        if self.d in order:
            return self.n, self.d
        return (self.m, self.k) if self.m in order else (self.k, self.n)

    def _as_it_is(
        self, v: ir.Value, axes: Sequence[int | None], order: Sequence[int]
    ) -> Operand | None:
        """Return the tensor that keys or values are a view of; None where the last part has fewer
        of them, or they are made in the kernel."""
        if self.is_ragged:
            return None
        full = len(self.form.lead)
        names = dict(zip((full, full + 1), self._pair(order), strict=True))
        x, at = _given(self.e.expr(v))
        if not isinstance(x, Leaf) or is_inside(x.value, self.block):
            return None
        if x.type.dtype is not self.plan.dtype:
            return None
        own: list[int] = []
        for place, extent in zip(at, x.type.dims, strict=True):
            axis = None if place is None else axes[place]
            if axis is None or extent == 1:
                continue
            if axis in names:
                own += [self.p, self.n] if names[axis] == self.n else [names[axis]]
            else:
                own.append(self.places[axis])
        needed = {*self.places.values(), self.p, *names.values()}
        if {*own} != needed or len(own) != len(needed):
            return None
        return self._reshaped(x, own)

    def _reshaped(self, x: Leaf, order: list[int]) -> Operand:
        sizes = [self.extents[i] for i in order]
        small = x.type.with_dims(self.e.static_dims(sizes))
        return views.reshape_tensor(self.e, x.value, small, sizes), order

    def _begin(self, of: At) -> Extent:
        """Return the first key of a part, or of a block."""
        e, part = self.e, of[self.p]
        if self.b is None:
            return e.mul(part, self.each)
        return e.mul(e.add(e.mul(part, self.blocks), of[self.b]), self.each)

    def _place(self, of: At, pair: Sequence[int]) -> list[Extent]:
        """Return the index in an operand of the matmul's dims, the last two of which are `pair`.

        Without rows, the index of heads is that of those that share keys.
        """
        e, form = self.e, self.form
        head: Extent = 0
        query: Extent = 0
        if self.m in of:
            row: Extent = arith.MinUIOp(of[self.m], e.index(self.rows - 1)).result
            head, query = e.div(row, form.queries), e.rem(row, form.queries)
        at: list[Extent] = []
        for axis in range(len(form.lead)):
            place: Extent = of.get(self.places[axis], 0) if axis in self.places else 0
            if axis == self.axis and self.m in of:
                place = e.add(e.mul(place, self.times), head)
            at.append(place)
        for dim in pair:
            if dim == self.n:
                key = e.add(self._begin(of), of[self.n])
                last = e.index(e.sub(self.keys, 1))
                at.append(arith.MinUIOp(e.index(key), last).result)
            else:
                at.append(query if dim == self.m else of[dim])
        return at

    # ---- masks -------------------------------------------------------------------------------

    def _masks(self) -> list[Operand]:
        """Return what is added to the scores: the mask, and -inf where there is no key.

        Without blocks it is made ahead of the op's dispatch: in it, IREE does not distribute it.
        """
        e, mask, leaves, full = self.e, self.kernel.mask, self.leaves, len(self.form.lead)
        blocks = [] if self.b is None else [self.b]
        if mask is None and not self.is_ragged:
            return []
        if mask is None and not blocks:
            beyond = np.zeros([self.plan.parts.count, self.each], self.plan.dtype.np)
            beyond.reshape(-1)[self.form.keys :] = float("-inf")
            return [(e.parameter(beyond), [self.p, self.n])]
        whole = None if mask is None or self.is_ragged else self._mask_as_it_is(mask)
        if whole is not None:
            return [whole]
        order, dtype, read = [self.p, *blocks, self.n], self.plan.dtype, None
        if mask is not None:
            read, dtype = reader(mask, None, leaves), TensorType.of(mask).dtype
            vary = {i for i in range(full + 1) if not blocks or varies_along(mask, i, leaves)}
            lead = [j for i, j in self.places.items() if i in vary]
            rows = [self.m] if not blocks or (vary & {full, self.axis} and self.rows > 1) else []
            order = [*lead, self.p, *rows, *blocks, self.n]

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            found = constant(0, dtype).value
            if read is not None:
                at = self._place(of, (self.m, self.n))
                found = narrow(read(self.elements, at, 1), dtype).value
            if not self.is_ragged:
                return found
            left = e.sub(self.keys, self._begin(of))
            inside = arith.CmpIOp(arith.CmpIPredicate.slt, of[self.n], e.index(left)).result
            low = constant_of(found.type, ir.FloatAttr.get(found.type, float("-inf")))
            return arith.SelectOp(inside, found, low).result

        sizes = [self.extents[i] for i in order]
        build = index.from_positions if blocks else index.from_positions_alone
        return [(build(e, sizes, dtype, element), order)]

    def _mask_as_it_is(self, mask: ir.Value) -> Operand | None:
        """Return the tensor that a mask is a view of; None where rows of a tile read others of it,
        or it is made in the kernel."""
        full = len(self.form.lead)
        x, at = behind_views(self.e.expr(mask))
        if not isinstance(x, Leaf) or is_inside(x.value, self.block):
            return None
        order: list[int] = []
        for axis, extent in zip(at, x.type.dims, strict=True):
            if extent == 1:
                continue
            if axis == full + 1:
                order += [self.p, self.n]
            elif axis in self.places and axis != self.axis:
                order.append(self.places[axis])
            else:
                return None
        return self._reshaped(x, order) if self.n in order else None

    # ---- the sum of the parts ----------------------------------------------------------------

    def joined(self, made: Sequence[ir.Value], out: DType) -> Leaf:
        """Return the sum of all parts, each by its share."""
        e, form = self.e, self.form
        whole: list[Extent] = [*self.own, form.queries, form.depth]
        dims = e.static_dims(whole)
        element = self._sum_by_share(made, out)

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
        self, made: Sequence[ir.Value], out: DType
    ) -> Callable[[list[ir.Value]], ir.Value]:
        """Return what gives an element of the attention: weighted rows of all parts, each by the
        exponential of its largest score, divided by the sum of weights."""
        e, form, full = self.e, self.form, len(self.form.lead)

        def read(i: int, where: Sequence[Extent]) -> ir.Value:
            return index.read(made[i], [e.index(x) for x in where])

        def element(where: list[ir.Value]) -> ir.Value:
            query, depth = where[full:]
            row: Extent = query
            at: list[Extent] = []
            for i in self.places:
                place: Extent = where[i]
                at.append(e.div(place, self.times) if i == self.axis else place)
            if self.axis is not None:
                head = e.rem(where[self.axis], self.times)
                row = e.add(e.mul(head, form.queries), query)
            parts = range(self.plan.parts.count)
            tops = [read(1, [*at, p, row]) for p in parts]
            top = tops[0]
            for x in tops[1:]:
                top = arith.MaxNumFOp(top, x).result
            total: ir.Value | None = None
            below: ir.Value | None = None
            for p in parts:
                share = math.Exp2Op(arith.SubFOp(tops[p], top).result).result
                x = arith.MulFOp(share, read(0, [*at, p, row, depth])).result
                y = arith.MulFOp(share, read(2, [*at, p, row])).result
                total = x if total is None else arith.AddFOp(total, x).result
                below = y if below is None else arith.AddFOp(below, y).result
            assert total is not None
            assert below is not None
            found = arith.DivFOp(total, below).result
            return narrow(TypedScalar(found, dtypes.FLOAT), out).value

        return element


def _given(x: Expr) -> tuple[Expr, DimMap]:
    """Return what an expression is a view of, also from ahead of a conversion."""
    x, at = behind_views(x)
    while isinstance(x, Compute) and x.cls is Convert:
        x, more = behind_views(x.args[0])
        at = compose(at, more)
    return x, at


__all__ = ["RULE", "Parts", "choose"]
