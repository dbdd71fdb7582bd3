"""Attention on GPUs in tiles of our own, with operands in runs along what is summed.

A matrix instruction takes runs along the width of queries and keys, and along the keys of values.
An operand that does not lie so in memory is gathered, element by element, on its way into the LDS:
it is then read from there in whole registers. Keys are filled up to whole tiles, and masked; of
queries the last tile may be cut.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import Reader, reader
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.analysis.shared_heads import Repeated, repeated, shared_heads
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View, behind_views
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention import (
    AttentionKernel,
    around,
    drafted,
    read_site,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionIntrinsics,
    AttentionShape,
    AttentionTile,
)
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import attention
from mgx_mlir.passes.lowering.ops.fused_concat import LoopElements
from mgx_mlir.passes.lowering.products import pad_tensor
from mgx_mlir.passes.lowering.scalar import constant, narrow
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

# fewer are cut in the one tile that they are: its rows go through scratch memory, and were seen to
# be wrong
_LEAST_QUERIES = SIDE

Operand = tuple[ir.Value, list[int]]  # a tensor, and which of the op's dims its own are


@dataclass(frozen=True)
class _Plan:
    """An attention in tiles; width: that rows of queries and keys are filled up to."""

    kernel: AttentionKernel
    kind: AttentionIntrinsics
    tile: AttentionTile
    width: int


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take an attention of 16 queries and more whose types have matrix instructions."""
    k = read_site(site)
    if isinstance(k, Refusal):
        return k
    form, t, arch = k.form, k.type, e.options.arch
    if not e.options.tiles:
        return Refusal("it is lowered without tiles")
    kind = attention_tiles.intrinsics_of(arch, t.dtype, form.width, form.depth)
    if kind is None:
        return Refusal(f"no matrix instruction of {arch} has rows of {form.width} {t.dtype}")
    if form.queries < _LEAST_QUERIES:
        return Refusal(f"its queries are fewer than {_LEAST_QUERIES}")
    if not k.has_one_type():
        return Refusal("its operands have another type than its matmuls")
    if all(extent == 1 for extent in form.lead):
        # the compiler's tiles read wrong numbers
        return Refusal("it has one head of one batch entry")
    a = AttentionShape(
        prod(form.lead), form.queries, form.keys, form.width, form.depth,
        shared_heads(form) is not None,
    )  # fmt: skip
    tile = attention_tiles.choose(CHIPS[arch], a)
    if tile is None and CHIPS[arch].lanes == 64:  # RDNA has no registers for it
        a = replace(a, width=attention_tiles.filled_width(a.width))
        tile = attention_tiles.choose(CHIPS[arch], a)
    if tile is None:
        return Refusal("no tile fits its sizes")
    if k.mask is not None and form.keys % tile.keys:
        with drafted(e, k):
            if len(form.lead) + 1 not in behind_views(e.expr(k.mask))[1]:
                return Refusal("one number masks all keys, of which the last tile is partial")
    return _Plan(k, kind, tile, a.width)


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build IREE's attention op with tiles."""
    return around(e, plan.kernel, lambda: _second(e, plan))


RULE = KernelRule("attention_tiles", (), match, build)


def _second(e: LoweringContext, plan: _Plan) -> Expr:
    """Return the second matmul."""
    k, form, t = plan.kernel, plan.kernel.form, plan.kernel.type
    dims = _Dims(e, k.body, form, plan.tile.keys, plan.width, shared_heads(form))
    queries, keys, values = form.multiplied
    made = [
        dims.operand(queries, (dims.m, dims.k), dims.k),
        dims.operand(keys, (dims.k, dims.n), dims.k),
        dims.operand(values, (dims.n, dims.d), dims.n),
    ]
    masks = dims.masks(k.mask)
    out = [*dims.lead, dims.m, dims.d]
    small = t.with_dims(dims.extents[i] for i in out)
    own = [*form.lead, form.queries, form.depth]
    joined = t.with_dims(own[i] for i in dims.places)
    found = attention(
        e, made, constant(k.scale, t.dtype).value, masks, out, dims.d + 1, small,
        attention_tiles.attributes(
            e.options.arch, plan.kind, plan.tile,
            attention_tiles.Dims(dims.lead, dims.m, dims.k, dims.n, dims.d), plan.width,
        ),
    )  # fmt: skip
    found = views.reshape_tensor(e, found, joined, list(joined.dims))
    return View(t, Leaf(joined, found), dims.places, list(t.dims))


@dataclass
class _Dims:
    """The op's dims: those of the product that are longer than 1, then m, k, n, d.

    The compiler drops extents of 1, but not from what it is told of the tiles. Heads that share
    keys and values are two dims, of which keys and values have the first.
    """

    e: LoweringContext
    body: ir.Block
    form: AttentionForm
    tile: int
    width: int  # that rows of queries and keys are filled up to, with zeros
    shared: Repeated | None

    def __post_init__(self) -> None:
        form, shared, full = self.form, self.shared, len(self.form.lead)
        own: list[int] = []
        # the op's dims that each axis of the product is made of, and each of keys and values
        self.parts: dict[int, list[int]] = {}
        self.heads: dict[int, list[int]] = {}
        for i, extent in enumerate(form.lead):
            split = shared is not None and shared.axis == i
            each = [extent // shared.times, shared.times] if shared and split else [extent]
            kept = [j for j, n in enumerate(each) if n != 1]
            if kept:
                self.parts[i] = [len(own) + j for j in range(len(kept))]
                self.heads[i] = self.parts[i][: 0 in kept] if split else self.parts[i]
                own += [each[j] for j in kept]
        self.lead = list(range(len(own)))
        self.m, self.k, self.n, self.d = range(len(own), len(own) + 4)
        self.filled = -(-form.keys // self.tile) * self.tile
        self.extents = [*own, form.queries, self.width, self.filled, form.depth]
        # where the axes of a rank that has all of the product's are
        self.places = (*self.parts, full, full + 1)
        self.elements = LoopElements(self.e, {x: self.e.tensor(x) for x in self.body.arguments})

    def operand(self, v: ir.Value, last_two: tuple[int, int], runs: int) -> Operand:
        """Return an operand of a product, whose last two axes are these, with runs along `runs`."""
        full = len(self.form.lead)
        names = {**self.parts, full: [last_two[0]], full + 1: [last_two[1]]}
        found = repeated(v) if self.shared is not None and self.n in last_two else None
        if found is not None:
            v, names = found.value, {**names, **self.heads}
            names = {i: names[a] for i, a in enumerate(found.axes) if a in names}
        names = {i: dims for i, dims in names.items() if dims}
        ragged = self.n in last_two and self.filled != self.form.keys
        whole = None if ragged else self._as_it_is(self.e.expr(v), names, runs)
        if whole is not None:
            return whole
        lead = [d for dims in names.values() for d in dims if d < self.m]
        order = [*lead, *(i for i in last_two if i != runs), runs]
        read = self._reader(v)
        t = TensorType.of(v)
        # of values the depth, where that is enough: it is the same in each turn over the keys
        turned = runs == self.n and not ragged
        bounded = self.n if self.n in last_two and not turned else last_two[0]
        bounded = self.d if turned else bounded
        place = next(axis for axis, dims in names.items() if dims == [bounded])
        wide = self.k in last_two and self.width != self.form.width

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            at: list[Extent] = [0] * t.rank
            for axis, dims in names.items():
                for d in dims:
                    at[axis] = self.e.add(self.e.mul(at[axis], self.extents[d]), of[d])
            # within its bounds, which also keeps the compiler from taking a mere transpose for
            # another order of the op's own dims
            most = self.form.keys if bounded == self.n else self.extents[bounded]
            at[place] = arith.MinUIOp(self.e.index(at[place]), self.e.index(most - 1)).result
            if not wide:
                return narrow(read(self.elements, at, 0), t.dtype).value
            along = next(axis for axis, dims in names.items() if dims == [self.k])
            inside = index.in_range(self.e, self.e.index(at[along]), self.form.width)
            at[along] = index.select(self.e, inside, at[along], 0)
            value = narrow(read(self.elements, at, 0), t.dtype).value
            return arith.SelectOp(inside, value, index.zero_of(value.type)).result

        sizes = [self.extents[i] for i in order]
        return index.from_positions(self.e, sizes, t.dtype, element), order

    def masks(self, mask: ir.Value | None) -> list[Operand]:
        """Return what is added to the scores: the mask, and -inf where there is no key."""
        more = self.filled - self.form.keys
        if mask is None:
            if not more:
                return []
            beyond = np.zeros(self.filled, TensorType.of(self.form.output).dtype.np)
            beyond[self.form.keys :] = float("-inf")
            return [(self.e.parameter(beyond), [self.n])]
        full = len(self.form.lead)
        names = {**self.parts, full: [self.m], full + 1: [self.n]}
        x = self.e.expr(mask)
        # ahead of the region: in it, what is cut would go through memory
        with ahead_of_region(self.e, self.e.tensor(behind_views(x)[0])):
            value, order = self._tensor(x, names)
            dtype = TensorType.of(mask).dtype
            if dtype.is_bool:
                value, dtype = self.e.cast_tensor(value, dtypes.BOOL, dtypes.INT8), dtypes.INT8
            if more:
                high: list[Extent] = [more if i == self.n else 0 for i in order]
                sizes = [self.extents[i] for i in order]
                number = 0 if dtype is dtypes.INT8 else float("-inf")
                value = self._filled(value, high, sizes, number)
        return [(value, order)]

    def _reader(self, v: ir.Value) -> Reader:
        return reader(v, None, list(self.body.arguments))

    def _as_it_is(self, x: Expr, names: Mapping[int, list[int]], runs: int) -> Operand | None:
        """Return the tensor that an operand is a view of, if its rows are runs along `runs`."""
        at = behind_views(x)[1]
        if not at or at[-1] is None or names.get(at[-1]) != [runs] or not {*names} <= {*at}:
            return None
        if runs != self.k or self.width == self.form.width:
            return self._tensor(x, names)
        # ahead of the region: in it, each element would be looked at
        with ahead_of_region(self.e, self.e.tensor(behind_views(x)[0])):
            value, order = self._tensor(x, names)
            kind = ir.RankedTensorType(value.type)
            more: list[Extent] = [0] * (len(order) - 1)
            sizes = [*kind.shape[:-1], self.width]
            return self._filled(value, [*more, self.width - self.form.width], sizes, 0), order

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
        sizes: list[int] = []
        for axis, extent in zip(at, source.type.dims, strict=True):
            dims = names.get(axis, []) if axis is not None else []
            order += dims
            sizes += [extent] if len(dims) == 1 else [self.extents[d] for d in dims]
        small = source.type.with_dims(sizes)
        return views.reshape_tensor(self.e, value, small, sizes), order


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
