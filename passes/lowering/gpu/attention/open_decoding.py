"""Attention of few queries over keys that only the run counts, on GPUs: by parts of the keys.

As `decoding.py` does it for known lengths: a number of parts that is fixed, each of as many blocks
of keys as the run says, and a second kernel that adds the parts up. Parts, or ends of them, behind
the last key read it again, and are masked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.open_dims import is_named
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import reader, varies_along
from mgx_mlir.passes.analysis.attention_form import AttentionForm, scale_and_mask
from mgx_mlir.passes.analysis.shared_heads import repeated, shared_heads
from mgx_mlir.passes.analysis.widened_attention import source_type, widening
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent, Leaf
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionIntrinsics,
    AttentionShape,
)
from mgx_mlir.passes.lowering.gpu.attention.decoding import Parts, choose, sum_by_share
from mgx_mlir.passes.lowering.gpu.products import compilation_info
from mgx_mlir.passes.lowering.gpu.products.mma import SIDE
from mgx_mlir.passes.lowering.gpu.products.open_elements import OpenElements
from mgx_mlir.passes.lowering.iree.linalg_ext import no_keys, online_attention
from mgx_mlir.passes.lowering.named_body import NamedBody
from mgx_mlir.passes.lowering.scalar import constant, narrow, signless

_USUAL_BATCH, _USUAL_KEYS = 1, 2048  # where the run counts them

Operand = tuple[ir.Value, list[int]]  # a tensor, and which of the op's dims its own are
At = Mapping[int, ir.Value]  # a place, by the op's dims


def open_parts(e: LoweringContext, named: NamedBody, form: AttentionForm) -> OpenParts | None:
    """Return how an attention is taken by parts; None for others."""
    arch, t = e.options.arch, TensorType.of(form.output)
    found = scale_and_mask(form)
    if found is None:
        return None
    scale, mask = found
    if is_named(form.queries) or form.queries >= SIDE or not is_named(form.keys):
        return None
    if is_named(form.width) or is_named(form.depth):
        return None
    if mask is not None and not TensorType.of(mask).dtype.is_float:
        return None
    given = source_type(form)
    wide = given is not None and widening(form, given) is not None
    dtype = given if given is not None and wide else t.dtype
    if not wide and any(TensorType.of(x).dtype is not t.dtype for x in form.multiplied):
        return None
    kind = attention_tiles.intrinsics_of(arch, dtype, form.width, form.depth)
    if kind is None:
        return None
    shared = shared_heads(form, converted=True)
    times = shared.times if shared is not None else 1
    if is_named(times):
        return None
    own = [1 if shared is not None and i == shared.axis else d for i, d in enumerate(form.lead)]
    heads = 1 if shared is None else form.lead[shared.axis]
    if is_named(heads):
        return None
    count = prod(_USUAL_BATCH if is_named(d) else d for d in own) * (heads // times)
    a = AttentionShape(count, times * form.queries, _USUAL_KEYS, form.width, form.depth)
    parts = choose(CHIPS[arch], a)
    if parts is None:
        return None
    axis = None if shared is None else shared.axis
    return OpenParts(e, named, form, kind, dtype, parts, axis, times, scale, mask)


@dataclass
class OpenParts:
    """The op's dims: those of the product without the heads that share keys, parts, m, k, blocks of
    keys, n, d."""

    e: LoweringContext
    named: NamedBody
    form: AttentionForm
    kind: AttentionIntrinsics
    dtype: DType  # of what is multiplied
    parts: Parts
    axis: int | None  # of heads that share keys
    times: int
    scale: float
    mask: ir.Value | None

    def __post_init__(self) -> None:
        e, form, tile = self.e, self.form, self.parts.tile
        self.own = [self.named.index(e, d) for d in form.lead]
        self.keys = self.named.index(e, form.keys)
        each = [e.div(x, self.times) if i == self.axis else x for i, x in enumerate(self.own)]
        self.places = {i: j for j, i in enumerate(i for i, x in enumerate(each) if x != 1)}
        lead = [each[i] for i in self.places]
        rank = len(lead)
        self.p, self.m, self.k, self.b, self.n, self.d = range(rank, rank + 6)
        self.rows = self.times * form.queries
        filled = -(-self.rows // tile.rows) * tile.rows
        # of a part, and of those as many as all keys need
        self.blocks = index.ceil_div(e, self.keys, self.parts.count * tile.keys)
        self.extents: list[Extent] = [
            *lead, self.parts.count, filled, form.width, self.blocks, tile.keys, form.depth,
        ]  # fmt: skip
        self.sizes: list[Extent] = [*lead, self.parts.count, filled, form.depth]
        self.elements = OpenElements(e, self.named, whole=False)
        self.leaves = list(self.named.block.arguments)

    def build(self, out: DType) -> Leaf:
        """Build both kernels, and return the second product, of type `out`."""
        return self._joined(self._parts(), out)

    def _parts(self) -> list[ir.Value]:
        """Return what each part gives: weighted rows, their largest score, the sum of weights."""
        e, form = self.e, self.form
        lead = [*range(len(self.places)), self.p]
        own = lead[:-1] or lead  # a product has a batch of its first operand, too, or no layout
        dims = attention_tiles.Dims(lead, self.m, self.k, self.n, self.d, [self.b])
        arch, tile = e.options.arch, self.parts.tile
        told = attention_tiles.attributes(arch, self.kind, tile, dims, form.width)
        q, k, v = form.multiplied
        # in the kernel the compiler fails to distribute the places of rows
        ahead = (
            self.rows > 1 or self.mask is not None or not all(isinstance(x, int) for x in self.own)
        )
        queries = self._read(q, [*own, self.m, self.k], ahead=True) if ahead else None

        def build() -> list[ir.Value]:
            made = [
                queries or self._read(q, [*own, self.m, self.k]),
                self._read(k, [*lead, self.b, self.n, self.k]),
                self._read(v, [*lead, self.b, self.d, self.n]),
            ]
            number, masks = constant(self.scale, self.dtype).value, [self._mask(self.mask)]
            return online_attention(
                e, made, number, masks, [*lead, self.m, self.d], self.d + 1,
                no_keys(e, self.sizes), told,
            )  # fmt: skip

        extents = [self.sizes, self.sizes[:-1], self.sizes[:-1]]
        kinds = [ir.RankedTensorType.get(e.static_dims(x), ir.F32Type.get()) for x in extents]
        return index.alone(e, kinds, extents, build)

    def _read(self, v: ir.Value, order: list[int], *, ahead: bool = False) -> Operand:
        """Return an operand of a product in this order of the op's dims, made in the loop."""
        full = len(self.form.lead)
        found = repeated(v, converted=True) if self.axis is not None and self.n in order else None
        axes = list(range(full + 2)) if found is None else list(found.axes)
        pair = (self.m, self.k) if self.m in order else (self.k, self.n)
        pair = (self.n, self.d) if self.d in order else pair
        read = reader(v if found is None else found.value, None, self.leaves)
        if self.n in order and found is None:  # one for all heads has no dim of them
            of_all = [j for i, j in self.places.items() if not varies_along(v, i, self.leaves)]
            order = [i for i in order if i not in of_all]

        def element(where: list[ir.Value]) -> ir.Value:
            known = {i: self.e.index(0) for i in self.places.values()}
            at = self._place({**known, **dict(zip(order, where, strict=True))}, pair)
            own: list[Extent] = [0 if axis is None else at[axis] for axis in axes]
            return narrow(read(self.elements, own, 1), self.dtype).value

        sizes = [self.extents[i] for i in order]
        build = index.from_positions_alone if ahead else index.from_positions
        return build(self.e, sizes, self.dtype, element), order

    def _begin(self, of: At) -> Extent:
        """Return the first key of a block."""
        e = self.e
        return e.mul(e.add(e.mul(of[self.p], self.blocks), of[self.b]), self.parts.tile.keys)

    def _place(self, of: At, pair: Sequence[int]) -> list[Extent]:
        """Return where a place in the op's dims is in an operand of the product's dims, of which
        the last two are `pair`; without rows the one of heads is that of those that share keys."""
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
        for dim in pair:
            if dim == self.n:
                at.append(self._within(e.add(self._begin(of), of[self.n])))
            else:
                at.append(query if dim == self.m else of[dim])
        return at

    def _within(self, key: Extent) -> ir.Value:
        e = self.e
        return arith.MinUIOp(e.index(key), e.index(e.sub(self.keys, 1))).result

    def _mask(self, mask: ir.Value | None) -> Operand:
        """Return what is added to the scores: the mask, and -inf where there is no key."""
        e, full = self.e, len(self.form.lead)
        order, dtype = [self.p, self.b, self.n], self.dtype
        read = None
        if mask is not None:
            read, dtype = reader(mask, None, self.leaves), TensorType.of(mask).dtype
            vary = {i for i in range(full + 1) if varies_along(mask, i, self.leaves)}
            lead = [j for i, j in self.places.items() if i in vary]
            rows = [self.m] if vary & {full, self.axis} and self.rows > 1 else []
            order = [*lead, self.p, *rows, self.b, self.n]

        def value(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            found = constant(0, dtype).value
            if read is not None:
                known = {i: e.index(0) for i in self.places.values()}
                at = self._place({**known, **of}, (self.m, self.n) if self.m in of else (self.n,))
                if self.m not in of:
                    at.insert(full, 0)
                found = narrow(read(self.elements, at, 1), dtype).value
            left = e.sub(self.keys, self._begin(of))
            inside = arith.CmpIOp(arith.CmpIPredicate.slt, of[self.n], e.index(left)).result
            return arith.SelectOp(inside, found, constant(float("-inf"), dtype).value).result

        sizes = [self.extents[i] for i in order]
        return index.from_positions(e, sizes, dtype, value), order

    def _joined(self, made: Sequence[ir.Value], out: DType) -> Leaf:
        """Return the sum of all parts, each by its share."""
        e, form = self.e, self.form
        element = sum_by_share(
            e, made, form, self.parts.count, self.places, self.axis, self.times, out
        )
        whole: list[Extent] = [*self.own, form.queries, form.depth]
        dims = e.static_dims(whole)
        t = TensorType(out, tuple(dims))

        def build() -> list[ir.Value]:
            found = index.from_positions(e, whole, out, element)
            known = [x for x in whole if isinstance(x, int)]
            if len(known) == len(whole):
                compilation_info.give(
                    e, found, lambda arch: compilation_info.element_info(arch, known)
                )
            return [found]

        kind = ir.RankedTensorType.get(dims, signless(out))
        return Leaf(t, index.alone(e, [kind], [whole], build)[0])


__all__ = ["OpenParts", "open_parts"]
