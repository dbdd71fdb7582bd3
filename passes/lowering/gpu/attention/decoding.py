"""Attention of few queries over many keys on GPUs: by parts of the keys, joined by a second kernel.

One token's queries are too few for a chip: a workgroup for each head would walk over all keys. Here
each part of the keys has workgroups of its own, whose rows are the queries of all heads that share
these keys. Each part gives its weighted rows, not divided, with their largest score and the sum of
weights; the kernel that the rest of the program sees adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math
from mgx_mlir.core.op import OPS
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.passes.analysis.access_maps import reader
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.analysis.kernel_ops import make_kernel
from mgx_mlir.passes.analysis.shared_heads import Repeated, repeated, shared_heads
from mgx_mlir.passes.analysis.widened_attention import narrowed, source_type, widening
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, behind_views
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention import (
    AttentionKernel,
    around,
    read,
    read_site,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import AttentionShape, AttentionTile
from mgx_mlir.passes.lowering.gpu.products import compilation_info
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import no_keys, online_attention
from mgx_mlir.passes.lowering.ops.fused_concat import LoopElements
from mgx_mlir.passes.lowering.scalar import TypedScalar, constant, constant_of, narrow, widen
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_LEAST_KEYS = 256
_MOST_PARTS = 32  # each element of the result reads one of each
_ENOUGH_PARTS = 16  # where each unit has one of these, memory takes longest, and half is read
_KEYS = 64  # of a part at the least
_WAVES = {64: 1, 32: 4}  # of a SIMD, by lanes: on RDNA one waits for memory longer than it is read


@dataclass(frozen=True)
class Parts:
    """count: of the keys. keys: of each, whole tiles. tile: of each workgroup."""

    count: int
    keys: int
    tile: AttentionTile


def choose(chip: Chip, a: AttentionShape) -> Parts | None:
    """Return the parts for rows of queries over keys; None where there is one kernel.

    As many as there are SIMDs for, each with `_WAVES`, but no more than keep memory busy; fewer,
    down to half of them, where the keys then are whole parts, which are read where they lie.
    """
    waves = next((n for n in (1, 2, 4) if n * SIDE >= a.queries), None)
    if waves is None:
        return None
    each = _WAVES[chip.lanes]
    room = each * chip.units * chip.simds // (a.count * waves)
    most = _ENOUGH_PARTS if a.count * _ENOUGH_PARTS >= each * chip.units else _MOST_PARTS
    count = min(most, -(-a.keys // _KEYS), max(2, room))
    if a.count == 1:
        count = max(2, count)  # without a dim of many, the compiler's tiles read wrong numbers
    least = min(count, max(count // 2, 2))
    found = [_parts(chip, a, n, waves) for n in range(count, least - 1, -1)]
    first = found[0]
    if first is None:
        return None
    tile = first.tile.keys  # smaller ones wait longer
    near = (p for p in found if p is not None and p.tile.keys >= tile)
    return next((p for p in near if p.count * p.keys == a.keys), first)


def _parts(chip: Chip, a: AttentionShape, count: int, waves: int) -> Parts | None:
    each = -(-a.keys // count)
    part = AttentionShape(a.count * count, waves * SIDE, each, a.width, a.depth, shared=True)
    tile = attention_tiles.choose(chip, part)
    if tile is None:
        return None
    each = -(-each // tile.keys) * tile.keys
    return Parts(-(-a.keys // each), each, tile)


def parts_of(e: LoweringContext, form: AttentionForm, mask: ir.Value | None) -> Parts | None:
    """Return the parts that an attention of few queries is taken in; None for others."""
    t, arch = TensorType.of(form.output), e.options.arch
    kind = attention_tiles.intrinsics_of(arch, t.dtype, form.width, form.depth)
    operands = [*form.product.owner.operands, form.output.owner.operands[1]]
    if kind is None or not e.options.tiles or form.queries >= SIDE or not t.is_static:
        return None
    if any(TensorType.of(v).dtype is not t.dtype for v in operands):
        return None
    if mask is not None and not TensorType.of(mask).dtype.is_float:
        return None
    if form.queries == 1 and form.keys < _LEAST_KEYS:
        return None
    return choose(CHIPS[arch], _shape(form))


def _shape(form: AttentionForm) -> AttentionShape:
    shared = shared_heads(form)
    times = shared.times if shared is not None else 1
    return AttentionShape(
        prod(form.lead) // times, times * form.queries, form.keys, form.width, form.depth
    )


@dataclass(frozen=True)
class _Plan:
    """An attention by parts; draft: what holds it where it is not the kernel as it is given, with
    the operands of that."""

    kernel: AttentionKernel
    parts: Parts
    draft: ir.Module | None = None


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take an attention of fewer than 16 queries; one that widens its operands as of 16 bits."""
    k = read_site(site)
    if isinstance(k, Refusal):
        return k
    if not e.options.tiles:
        return Refusal("it is lowered without tiles")
    if k.form.queries >= SIDE:
        return Refusal(f"its queries are {SIDE} and more")
    given = _as_given(e, k)
    if given is not None:
        return given
    parts = parts_of(e, k.form, k.mask)
    return _Plan(k, parts) if parts is not None else Refusal(_reason(e, k))


def _reason(e: LoweringContext, k: AttentionKernel) -> str:
    """Return why an attention of few queries is not taken by parts."""
    form, t, arch = k.form, k.type, e.options.arch
    if attention_tiles.intrinsics_of(arch, t.dtype, form.width, form.depth) is None:
        return f"no matrix instruction of {arch} has rows of {form.width} {t.dtype}"
    if not k.has_one_type():
        return "its operands have another type than its matmuls"
    if form.queries == 1 and form.keys < _LEAST_KEYS:
        return f"the keys of its one query are fewer than {_LEAST_KEYS}"
    return "its mask is of bools, or no tile has all rows that share keys"


def _as_given(e: LoweringContext, k: AttentionKernel) -> _Plan | None:
    """Return an attention that widens its operands as one of what is widened, a draft.

    None for others, and where it would not be taken by parts: taken apart, its scores would stand
    in memory in 16 bits, and overflow. On RDNA the compiler's own kernel is as fast or faster for
    one query, where keys fill its vectors.
    """
    op, body, form = k.op, k.body, k.form
    dtype = source_type(form)
    narrow = widening(form, dtype) if dtype is not None else None
    if dtype is None or narrow is None or e.options.arch not in CHIPS:
        return None
    out = TensorType.of(op.results[0])
    if CHIPS[e.options.arch].lanes == 32 and form.queries == 1 and form.keys % SIDE == 0:
        return None

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        made = narrowed(body, form, narrow, arguments, dtype)
        if TensorType.of(made).dtype is out.dtype:
            return [made]
        return [OPS["convert"](made, target_type=out.dtype).operation.results[0]]

    types = [v.type for v in op.operands]
    module = ir.Module.create(op.location)
    with ir.InsertionPoint(module.body):
        draft = ir.Operation.create("mgx.draft", regions=1)
    outside = draft.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    with ir.InsertionPoint(outside):
        new = make_kernel("group", list(outside.arguments), [out.mlir()], build, tag=op.opview.tag)
    found = read(new, new.regions[0].blocks[0])
    if isinstance(found, Refusal):
        return None
    parts = parts_of(e, found.form, found.mask)
    return None if parts is None else _Plan(found, parts, module)


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the parts, and the kernel that adds them up."""
    k = plan.kernel
    if plan.draft is not None:
        e.drafts.append(plan.draft)
        outside = plan.draft.body.operations[0].regions[0].blocks[0]
        for old, arg in zip(site.op.operands, outside.arguments, strict=True):
            e.bind(arg, e.expr(old))
        e.bind_operands(k.op)
    return around(e, k, lambda: _second(e, k, plan.parts))


RULE = KernelRule("attention_parts", (), match, build)


def _second(e: LoweringContext, k: AttentionKernel, parts: Parts) -> Expr:
    """Return the second matmul."""
    t, arch, form = k.type, e.options.arch, k.form
    kind = attention_tiles.intrinsics_of(arch, t.dtype, form.width, form.depth)
    assert kind is not None
    split = _Split(e, k.body, form, parts, shared_heads(form))
    m = split.d - 3
    dims = attention_tiles.Dims(range(m), m, m + 1, m + 2, split.d)
    told = attention_tiles.attributes(arch, kind, parts.tile, dims, form.width)
    # ahead of the region of this kernel
    block, inside = ir.InsertionPoint.current.block, e.in_region
    e.in_region = False
    try:
        with ir.InsertionPoint(block.owner) if inside else nullcontext():
            made = split.parts_alone(constant(k.scale, t.dtype).value, k.mask, told)
    finally:
        e.in_region = inside
    return Leaf(t, split.joined(made, t))


class _Elements(LoopElements):
    """Of tensors without their extents of 1: a loop that reads at a constant is not vectorized."""

    def __init__(self, e: LoweringContext, arguments: Iterable[ir.Value]) -> None:
        super().__init__(e, {x: _narrow(e, x) for x in arguments})

    def leaf(self, value: ir.Value, at: Sequence[Extent], lanes: int, along: bool) -> TypedScalar:
        dims = TensorType.of(value).dims
        kept = [i for i, n in zip(at, dims, strict=True) if n != 1]
        source = self.operands[value]
        assert isinstance(source, Leaf)
        found = index.read(source.value, [self.e.index(i) for i in kept])
        return widen(TypedScalar(found, TensorType.of(value).dtype))


def is_inside(value: ir.Value, block: ir.Block) -> bool:
    """Return whether a value is made in a block."""
    made = value.owner
    return not isinstance(made, ir.Block) and made.operation.block == block


def _narrow(e: LoweringContext, x: ir.Value) -> ir.Value:
    t = TensorType.of(x)
    dims = [n for n in t.dims if n != 1]
    return views.reshape_tensor(e, e.tensor(x), t.with_dims(dims), dims)


@dataclass
class _Split:
    """The op's dims: those of the product without the heads that share keys, parts, m, k, n, d."""

    e: LoweringContext
    body: ir.Block
    form: AttentionForm
    parts: Parts
    shared: Repeated | None

    def __post_init__(self) -> None:
        form, shared = self.form, self.shared
        self.block = ir.InsertionPoint.current.block
        self.axis = shared.axis if shared is not None else None
        self.times = shared.times if shared is not None else 1
        each = [n // self.times if i == self.axis else n for i, n in enumerate(form.lead)]
        # the op's dim of each axis of the product that is longer than 1
        self.places = {i: j for j, i in enumerate(i for i, n in enumerate(each) if n != 1)}
        self.lead = [each[i] for i in self.places]
        rank = len(self.lead)
        self.p, self.m, self.k, self.n, self.d = range(rank, rank + 5)
        self.rows = self.times * form.queries
        filled = -(-self.rows // self.parts.tile.rows) * self.parts.tile.rows
        self.extents = [
            *self.lead, self.parts.count, filled, form.width, self.parts.keys, form.depth,
        ]  # fmt: skip
        self.sizes = [*self.lead, self.parts.count, filled, form.depth]

    def parts_alone(
        self, scale: ir.Value, mask: ir.Value | None, told: Mapping[str, ir.Attribute]
    ) -> list[ir.Value]:
        """Return what each part gives: weighted rows, their largest score, the sum of weights."""
        self.elements = _Elements(self.e, self.body.arguments)
        first, second = self.form.product.owner, self.form.output.owner
        lead = [*range(len(self.lead)), self.p]
        own = lead[:-1] or lead  # a product has a batch of its first operand, too, or no layout
        masks = self._masks(mask, lead)

        def build() -> list[ir.Value]:
            made = [
                self._gathered(first.operands[0], [*own, self.m, self.k]),
                self._gathered(first.operands[1], [*lead, self.n, self.k]),
                self._gathered(second.operands[1], [*lead, self.n, self.d]),
            ]
            return online_attention(
                self.e, made, scale, masks, [*lead, self.m, self.d], self.d + 1,
                no_keys(self.e, self.sizes), told,
            )  # fmt: skip

        extents = [self.sizes, self.sizes[:-1], self.sizes[:-1]]
        kinds = [ir.RankedTensorType.get(dims, ir.F32Type.get()) for dims in extents]
        return index.alone(self.e, kinds, extents, build)

    def _gathered(self, v: ir.Value, order: list[int]) -> tuple[ir.Value, list[int]]:
        """Return an operand of a product in this order of the op's dims, made in the loop."""
        found = repeated(v) if self.shared is not None and self.n in order else None
        full = len(self.form.lead)
        axes = list(range(full + 2)) if found is None else list(found.axes)
        v = v if found is None else found.value
        pair = (self.m, self.k) if self.m in order else (self.k, self.n)
        pair = (self.n, self.d) if self.d in order else pair
        names = dict(zip((full, full + 1), pair, strict=True))
        whole = self._as_it_is(v, axes, names) if self.n in order else None
        if whole is not None:
            return whole
        if self.d in order:  # along the keys: otherwise the compiler does not distribute it
            order = [*order[:-2], self.d, self.n]
        read, t = reader(v, None, list(self.body.arguments)), TensorType.of(v)

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            at = self._place(of, names)
            own: list[Extent] = [0 if axis is None else at[axis] for axis in axes]
            return narrow(read(self.elements, own, 0), t.dtype).value

        sizes = [self.extents[i] for i in order]
        return index.from_positions(self.e, sizes, t.dtype, element), order

    def _as_it_is(
        self, v: ir.Value, axes: Sequence[int | None], names: Mapping[int, int]
    ) -> tuple[ir.Value, list[int]] | None:
        """Return the tensor that keys or values are a view of; None where the last part has fewer
        of them, or they are made in the kernel."""
        if self.parts.count * self.parts.keys != self.form.keys:
            return None
        x, at = behind_views(self.e.expr(v))
        if not isinstance(x, Leaf) or is_inside(x.value, self.block):
            return None
        order: list[int] = []
        for place, extent in zip(at, x.type.dims, strict=True):
            axis = None if place is None else axes[place]
            if axis is None or extent == 1:
                continue
            if axis in names:
                order += [self.p, self.n] if names[axis] == self.n else [names[axis]]
            else:
                order.append(self.places[axis])
        needed = {*self.places.values(), self.p, *names.values()}
        if {*order} != needed or len(order) != len(needed):
            return None
        sizes = [self.extents[i] for i in order]
        return views.reshape_tensor(self.e, x.value, x.type.with_dims(sizes), sizes), order

    def _place(self, of: Mapping[int, ir.Value], names: Mapping[int, int]) -> list[Extent]:
        """Return where a place in the op's dims is in an operand of the product's dims; without
        rows, the one of heads is that of those that share keys."""
        e, form = self.e, self.form
        head: Extent = 0
        query: Extent = 0
        if self.m in of:
            row: Extent = arith.MinUIOp(of[self.m], e.index(self.rows - 1)).result
            head, query = e.div(row, form.queries), e.rem(row, form.queries)
        at: list[Extent] = []
        for axis in range(len(form.lead)):
            place: Extent = of[self.places[axis]] if axis in self.places else 0
            if axis == self.axis and self.m in of:
                place = e.add(e.mul(place, self.times), head)
            at.append(place)
        for axis in sorted(names):
            if names[axis] == self.n:
                key = e.add(e.mul(of[self.p], self.parts.keys), of[self.n])
                at.append(arith.MinUIOp(e.index(key), e.index(form.keys - 1)).result)
            else:
                at.append(query if names[axis] == self.m else of[names[axis]])
        return at

    def _masks(self, mask: ir.Value | None, lead: list[int]) -> list[tuple[ir.Value, list[int]]]:
        """Return what is added to the scores: the mask, and -inf where there is no key. It is made
        ahead of the op's dispatch: in it, the compiler does not distribute it."""
        e, form, each = self.e, self.form, self.parts.keys
        ragged = self.parts.count * each != form.keys
        if mask is None and not ragged:
            return []
        if mask is None:
            beyond = np.zeros([self.parts.count, each], TensorType.of(form.output).dtype.np)
            beyond.reshape(-1)[form.keys :] = float("-inf")
            return [(e.parameter(beyond), [self.p, self.n])]
        full, leaves = len(form.lead), list(self.body.arguments)
        whole = None if ragged else self._mask_as_it_is(mask)
        if whole is not None:
            return [whole]
        order = [*lead, self.m, self.n]
        read, t = reader(mask, None, leaves), TensorType.of(mask)

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            at = self._place(of, {full: self.m, full + 1: self.n})
            value = narrow(read(self.elements, at, 0), t.dtype).value
            if not ragged:
                return value
            key = e.index(e.add(e.mul(of[self.p], each), of[self.n]))
            low = ir.FloatAttr.get(value.type, float("-inf"))
            none = constant_of(value.type, low)
            return arith.SelectOp(index.in_range(e, key, form.keys), value, none).result

        sizes = [self.extents[i] for i in order]
        return [(index.from_positions_alone(e, sizes, t.dtype, element), order)]

    def _mask_as_it_is(self, mask: ir.Value) -> tuple[ir.Value, list[int]] | None:
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
        if self.n not in order:
            return None
        sizes = [self.extents[i] for i in order]
        return views.reshape_tensor(self.e, x.value, x.type.with_dims(sizes), sizes), order

    def joined(self, made: Sequence[ir.Value], t: TensorType) -> ir.Value:
        """Return the sum of all parts, each by its share."""
        e, out = self.e, list(t.dims)
        element = sum_by_share(
            e, made, self.form, self.parts.count, self.places, self.axis, self.times, t.dtype
        )
        found = index.from_positions(e, out, t.dtype, element)
        compilation_info.give(e, found, lambda arch: compilation_info.element_info(arch, out))
        return found


def sum_by_share(
    e: LoweringContext,
    made: Sequence[ir.Value],
    form: AttentionForm,
    count: int,
    places: Iterable[int],
    axis: int | None,
    times: int,
    dtype: DType,
) -> Callable[[list[ir.Value]], ir.Value]:
    """Return what gives an element of an attention: the sum of all parts, each by its share.

    made: by part, weighted rows, their largest score and the sum of weights, over the product's
    dims `places`; `times` heads of dim `axis` share keys, so they are rows.
    """
    full = len(form.lead)

    def read(i: int, where: Sequence[Extent]) -> ir.Value:
        return index.read(made[i], [e.index(x) for x in where])

    def element(where: list[ir.Value]) -> ir.Value:
        query, depth = where[full:]
        row: Extent = query
        at: list[Extent] = []
        for i in places:
            place: Extent = where[i]
            at.append(e.div(place, times) if i == axis else place)
        if axis is not None:
            head = e.rem(where[axis], times)
            row = e.add(e.mul(head, form.queries), query)
        parts = range(count)
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
        return narrow(TypedScalar(found, dtypes.FLOAT), dtype).value

    return element


__all__ = ["RULE", "Parts", "choose", "is_inside", "parts_of", "sum_by_share"]
