"""Attention on GPUs whose batch or lengths only the run knows, in the tiles of fixed sizes.

An open length is two axes: whole tiles, whose number the run counts, and the rows of one. So each
tile has a fixed size. Rows beyond the last are the last again: their keys are masked, and what
their queries give is cut off. An open batch is a dim of the launch alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.open_dims import UndecidedError, is_named
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import Reader, Unreadable, reader, varies_along
from mgx_mlir.passes.analysis.attention_form import AttentionForm, attention_form, scale_and_mask
from mgx_mlir.passes.analysis.widened_attention import source_type, widening
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionIntrinsics,
    AttentionShape,
    AttentionTile,
)
from mgx_mlir.passes.lowering.gpu.attention.open_decoding import OpenParts, open_parts
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.products.open_elements import OpenElements
from mgx_mlir.passes.lowering.gpu.sites import GpuKernelSite
from mgx_mlir.passes.lowering.iree.linalg_ext import attention
from mgx_mlir.passes.lowering.named_body import NamedBody
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.scalar import constant, narrow, signless
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

# where the run counts them. Of keys more were seen to spill: a tile of 128 took 300 registers
_USUAL_BATCH, _USUAL_QUERIES, _USUAL_KEYS = 1, 128, 64
# of f32 the compiler chooses the tiles inside of blocks; of other rows it was seen to fail
_BLOCK, _WIDTHS = AttentionTile(4, 64, 0), {8, 16, 32, 64, 128}

Operand = tuple[ir.Value, list[int]]  # a tensor, and which of the op's dims its own are
At = Mapping[int, ir.Value]  # a place, by the op's dims


@dataclass(frozen=True)
class _Plan:
    """An attention of dynamic dims, read from a body with named dims, and how it is tiled."""

    named: NamedBody
    tiled: OpenParts | _Tiled
    output: ir.Value


def match(e: LoweringContext, site: GpuKernelSite) -> _Plan | Refusal:
    """Take an attention whose batch or lengths are dynamic dims."""
    if not e.options.tiles or e.in_kernel:
        return Refusal("it is lowered without tiles")
    dots = [o.operation for o in site.body.operations if is_a(o, Dot)]
    if all(TensorType.of(v).is_static for o in dots for v in (*o.operands, *o.results)):
        return Refusal("its dims are fixed")
    with e.kernel():
        named = NamedBody(e, site.op, site.body, {a: e.tensor(a) for a in site.body.arguments})
        try:
            form = attention_form(named.block)
            tiled = open_parts(e, named, form) or _tiled(e, named, form)
            if tiled is not None:
                named.check_sizes()
                return _Plan(named, tiled, dots[-1].results[0])
            reason = "no tile fits its sizes and types"
        except (Unreadable, UndecidedError) as error:
            reason = str(error) or "its operands are not read by index maps"
    named.forget()
    return Refusal(reason)


def build(e: LoweringContext, site: GpuKernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the tiles, and the ops behind the second matmul."""
    output = plan.output
    with e.kernel():
        try:
            if isinstance(plan.tiled, OpenParts):
                output = _rounded(output)
                found = plan.tiled.build(TensorType.of(output).dtype)
            else:
                found = plan.tiled.build()
                if found.type.dtype is not TensorType.of(output).dtype:
                    output = _rounded(output)
        finally:
            plan.named.forget()
        return _behind(e, site.body, output, found)


RULE = KernelRule("dynamic_attention", (), match, build)


def _rounded(output: ir.Value) -> ir.Value:
    """Return what the second product is converted to at once, or itself."""
    readers = [use.owner for use in output.uses]
    return readers[0].results[0] if len(readers) == 1 and is_a(readers[0], Convert) else output


def _behind(e: LoweringContext, body: ir.Block, output: ir.Value, found: Expr) -> list[ir.Value]:
    """Return a kernel's results, given its second product."""
    e.bind(output, found)
    made = {output}
    *ops, end = (view.operation for view in body.operations)
    for o in ops:
        if not made.isdisjoint(o.operands):
            e.operation(o)
            made.update(o.results)
    return e.tensors(list(end.operands))


def _tiled(e: LoweringContext, named: NamedBody, form: AttentionForm) -> _Tiled | None:
    """Return how an attention is tiled; None where its products are to be kernels."""
    found = scale_and_mask(form)
    t, arch = TensorType.of(form.output), e.options.arch
    if found is None or is_named(form.width) or is_named(form.depth):
        return None
    if any(TensorType.of(x).dtype is not t.dtype for x in form.multiplied):
        return None
    if not is_named(form.queries) and form.queries < SIDE:
        return None  # a token by many keys: one workgroup would walk over all of them
    dtype = _narrow_type(form) or t.dtype
    kind = attention_tiles.intrinsics_of(arch, dtype, form.width, form.depth)
    if kind is None:
        known = t.dtype is dtypes.FLOAT and {form.width, form.depth} <= _WIDTHS
        return _Tiled(e, named, form, t.dtype, kind, _BLOCK, *found) if known else None
    a = AttentionShape(
        prod(_usual(d, _USUAL_BATCH) for d in form.lead), _usual(form.queries, _USUAL_QUERIES),
        _usual(form.keys, _USUAL_KEYS), form.width, form.depth,
    )  # fmt: skip
    tile = attention_tiles.choose(CHIPS[arch], a)
    return None if tile is None else _Tiled(e, named, form, dtype, kind, tile, *found)


def _narrow_type(form: AttentionForm) -> DType | None:
    """Return the type of 16 bits that all operands are widened from, and the result rounded to."""
    dtype = source_type(form)
    if dtype is None or widening(form, dtype) is None:
        return None
    return dtype if TensorType.of(_rounded(form.output)).dtype is dtype else None


def _usual(d: int, number: int) -> int:
    return number if is_named(d) else d


@dataclass
class _Tiled:
    """The op's dims: those of the product that are longer than 1, tiles of queries, m, k, blocks of
    keys, n, d. Tiles and blocks are there where a length is open; blocks, too, where keys are
    masked."""

    e: LoweringContext
    named: NamedBody
    form: AttentionForm
    dtype: DType  # of what is multiplied, and of the result
    kind: AttentionIntrinsics | None  # None: of f32, whose tiles the compiler chooses
    tile: AttentionTile
    scale: float
    mask: ir.Value | None

    def __post_init__(self) -> None:
        e, form, tile = self.e, self.form, self.tile
        self.type = TensorType.of(form.output).with_dtype(self.dtype)
        self.own = [self._size(d) for d in form.lead]
        self.queries, self.keys = self._size(form.queries), self._size(form.keys)
        self.ragged = is_named(form.keys) or form.keys % tile.keys != 0
        # the op's dims by their extents
        self.extents: list[Extent] = []
        self.kept = {i: self._dim(x) for i, x in enumerate(self.own) if x != 1}
        self.tiles = None
        if is_named(form.queries):
            self.tiles = self._dim(index.ceil_div(e, self.queries, tile.rows))
        self.m = self._dim(tile.rows if self.tiles is not None else form.queries)
        self.k = self._dim(form.width)
        self.blocks = None
        # so that what says which keys are masked shares no index with what reads values, which
        # lanes hold in other places: the compiler then fails to distribute
        if self.ragged or self.mask is not None:
            self.blocks = self._dim(index.ceil_div(e, self.keys, tile.keys))
        self.n = self._dim(tile.keys if self.blocks is not None else form.keys)
        self.d = self._dim(form.depth)

    def _size(self, d: int) -> Extent:
        return self.named.index(self.e, d)

    def _dim(self, extent: Extent) -> int:
        self.extents.append(extent)
        return len(self.extents) - 1

    def build(self) -> View:
        """Build the kernel, and return the product."""
        e, form, dtype = self.e, self.form, self.type.dtype
        # rows of the queries lie where the result has them
        lead, places = list(self.kept.values()), list(self.kept)
        ahead = min(form.query_dim, len(lead))
        tiles = [] if self.tiles is None else [self.tiles]
        out = [*lead[:ahead], *tiles, self.m, *lead[ahead:], self.d]
        sizes = [self.extents[i] for i in out]
        t = TensorType(dtype, tuple(e.static_dims(sizes)))

        elements = OpenElements(e, self.named)
        queries = self._queries(elements, ahead=True) if self.are_queries_ahead else None

        told = None
        if self.kind is not None:
            blocks = [] if self.blocks is None else [self.blocks]
            dims = attention_tiles.Dims([*lead, *tiles], self.m, self.k, self.n, self.d, blocks)
            arch = e.options.arch
            told = attention_tiles.attributes(arch, self.kind, self.tile, dims, form.width)

        def build() -> list[ir.Value]:
            operands = [
                queries or self._queries(elements), self._keys(elements), self._values(elements),
            ]  # fmt: skip
            scale, masks = constant(self.scale, dtype).value, self._masks(elements)
            rank = len(self.extents)
            return [attention(e, operands, scale, masks, out, rank, t, told, sizes)]

        kind = ir.RankedTensorType.get(list(t.dims), signless(dtype))
        found = index.alone(e, [kind], [sizes], build)[0]
        own = [self.extents[i] for i in lead]
        if self.tiles is not None:
            rows = e.mul(self.extents[self.tiles], self.tile.rows)
            filled = [*own[:ahead], rows, *own[ahead:], form.depth]
            kind = t.with_dims(e.static_dims(filled))
            found = views.reshape_tensor(e, found, kind, filled)
        cut = [*own[:ahead], self.queries, *own[ahead:], form.depth]
        if self.tiles is not None:
            found = extract_slice(e, found, [0] * len(cut), cut)
        small = t.with_dims(e.static_dims(cut))
        whole = [*self.own, self.queries, form.depth]
        order = (*places[:ahead], len(self.own), *places[ahead:], len(self.own) + 1)
        return View(t.with_dims(e.static_dims(whole)), Leaf(small, found), order, whole)

    # ---- operands ----------------------------------------------------------------------------

    def _lead(self, at: At) -> list[Extent]:
        """Return where a place is along the dims ahead of the last two."""
        return [at.get(self.kept[i], 0) if i in self.kept else 0 for i in range(len(self.own))]

    def _query(self, at: At) -> Extent:
        if self.tiles is None:
            return at[self.m]
        e = self.e
        row = e.add(e.mul(at[self.tiles], self.tile.rows), at[self.m])
        return self._within(row, self.queries)

    def _key(self, at: At) -> ir.Value:
        """Return the key, or the last one."""
        e, own = self.e, at[self.n]
        if self.blocks is None:
            return own
        return self._within(e.add(e.mul(at[self.blocks], self.tile.keys), own), self.keys)

    def _row(self, at: At) -> Extent:
        """Return the row of a mask: as `_query`, by other sums, as lanes hold masks otherwise."""
        e, own = self.e, at.get(self.m, 0)
        if self.tiles is None or self.m not in at:
            return own
        begin = e.mul(at[self.tiles], self.tile.rows)
        return e.add(self._within(own, e.sub(self.queries, begin)), begin)

    def _within(self, row: Extent, count: Extent) -> ir.Value:
        e = self.e
        return arith.MinUIOp(e.index(row), e.index(e.sub(count, 1))).result

    def _read(
        self, order: list[int], element: Callable[[At], Any], *, ahead: bool = False
    ) -> Operand:
        """Return a tensor over some of the dims of what `element` gives."""

        def value(where: list[ir.Value]) -> ir.Value:
            return narrow(element(dict(zip(order, where, strict=True))), self.type.dtype).value

        sizes = [self.extents[i] for i in order]
        build = index.from_positions_alone if ahead else index.from_positions
        return build(self.e, sizes, self.type.dtype, value), order

    def _dims(self, *last: int | None) -> list[int]:
        return [*self.kept.values(), *(i for i in last if i is not None)]

    @property
    def are_queries_ahead(self) -> bool:
        """Whether queries are laid out by a launch ahead of the kernel.

        In it, lanes hold them along their width otherwise than they hold keys, and the compiler
        hands on places by way of the LDS, or fails to distribute; scalar registers spill.
        """
        open_on_rdna = self.tiles is not None and CHIPS[self.e.options.arch].lanes == 32
        return self.kind is None or open_on_rdna

    def _queries(self, elements: OpenElements, *, ahead: bool = False) -> Operand:
        return self._read(
            self._dims(self.tiles, self.m, self.k),
            lambda at: self.form.q(elements, [*self._lead(at), self._query(at), at[self.k]], 1),
            ahead=ahead,
        )

    def _keys(self, elements: OpenElements) -> Operand:
        return self._read(
            self._dims(self.blocks, self.n, self.k),
            lambda at: self.form.k(elements, [*self._lead(at), at[self.k], self._key(at)], 1),
        )

    def _values(self, elements: OpenElements) -> Operand:
        """Return the values with runs along the keys; an index within its bounds keeps the compiler
        from taking a mere transpose for another order of the op's dims."""

        def element(at: At) -> Any:
            along = at[self.d]
            if self.blocks is None:
                along = self._within(along, self.form.depth)
            return self.form.v(elements, [*self._lead(at), self._key(at), along], 1)

        return self._read(self._dims(self.blocks, self.d, self.n), element)

    def _masks(self, elements: OpenElements) -> list[Operand]:
        """Return what is added to the scores: the mask, and -inf where there is no key."""
        e, dtype, blocks = self.e, self.type.dtype, self.blocks
        if blocks is None:
            return []
        order = [blocks, self.n]
        read: Reader | None = None
        if self.mask is not None:
            leaves = list(self.named.block.arguments)
            read = reader(self.mask, None, leaves)
            kept = [d for i, d in self.kept.items() if varies_along(self.mask, i, leaves)]
            rows = [i for i in (self.tiles, self.m) if i is not None]
            vary = varies_along(self.mask, len(self.own), leaves)
            order = [*kept, *(rows if vary else []), *order]

        def value(where: list[ir.Value]) -> ir.Value:
            at = dict(zip(order, where, strict=True))
            own, begin = at[self.n], e.mul(at[blocks], self.tile.keys)
            left = e.sub(self.keys, begin)
            found = constant(0, dtype).value
            if read is not None:
                key = e.add(self._within(own, left), begin)
                place = [*self._lead(at), self._row(at), key]
                found = narrow(read(elements, place, 1), dtype).value
            if not self.ragged:
                return found
            inside = arith.CmpIOp(arith.CmpIPredicate.slt, own, e.index(left)).result
            return arith.SelectOp(inside, found, constant(float("-inf"), dtype).value).result

        sizes = [self.extents[i] for i in order]
        return [(index.from_positions(e, sizes, dtype, value), order)]
