"""Operands and masks of IREE's attention op with our tiles, over the op's dims.

A matrix instruction reads runs along the width of queries and keys, and along the keys of values.
An operand with another layout in memory is gathered element by element when it is copied to the
LDS, and read from there in whole registers. Keys are padded to whole tiles, and masked; with static
queries the last tile may be partial. A dynamic length is two dims: the number of tiles, which is
dynamic, and the rows of a tile. So each tile has a static size. Rows past the last repeat it: their
keys are masked, and results of their queries are cut off.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import reader, varies_along
from mgx_mlir.passes.analysis.shared_heads import Repeated, repeated
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.contraction import pad_tensor
from mgx_mlir.passes.lowering.expr import Compute, DimMap, Expr, Extent, Leaf, behind_views, compose
from mgx_mlir.passes.lowering.gpu.attention import attention_tiles
from mgx_mlir.passes.lowering.gpu.attention.attention import (
    AttentionKernel,
    bounded,
    bounded_mask,
    bounds_masks,
    is_inside,
)
from mgx_mlir.passes.lowering.gpu.attention.attention_tiles import (
    AttentionIntrinsics,
    AttentionTile,
    Parts,
)
from mgx_mlir.passes.lowering.scalar import ArithScalars, constant, narrow

Operand = tuple[ir.Value, list[int]]  # a tensor, and the op's dim of each of its dims
At = Mapping[int, ir.Value]  # an index by the op's dims
Names = Mapping[int, Sequence[int]]  # the op's dims that an axis is made of, outermost first


@dataclass(frozen=True)
class TiledPlan:
    """An attention in tiles of IREE's attention op."""

    kernel: AttentionKernel
    # matrix instructions, None for f32 of dynamic dims, which IREE tiles
    kind: AttentionIntrinsics | None
    tile: AttentionTile
    dtype: DType  # type of the operands that are multiplied, and of the result
    width: int  # length to which rows of queries and keys are filled up
    shared: Repeated | None = None  # keys that several heads share, None without such heads
    parts: Parts | None = None  # None where a workgroup walks over all keys


class TiledOperands:
    """Builder of the op's operands.

    The op's dims: those of the matmul that are longer than 1, parts, tiles of queries, m, k, blocks
    of keys, n, d. Dims of tiles and blocks exist where a length is dynamic; blocks also where keys
    of a dynamic batch are masked. IREE drops extents of 1, but not in the attributes of tiles.
    Heads
    that share keys are two dims, of which keys and values have the first. By parts they are one
    dim, and the heads of each are rows of a tile.
    """

    def __init__(self, e: LoweringContext, plan: TiledPlan) -> None:
        k, shared, parts, tile = plan.kernel, plan.shared, plan.parts, plan.tile
        form = k.form
        self.e, self.plan, self.kernel, self.form = e, plan, k, form
        self.block = ir.InsertionPoint.current.block
        self.is_dynamic = k.named is not None
        self.leaves = k.leaves
        self.type = k.type.with_dtype(plan.dtype)
        self.own = [k.size(e, d) for d in form.lead]
        self.queries, self.keys = k.size(e, form.queries), k.size(e, form.keys)
        # for parts of the keys: axis of the heads whose queries are rows of one tile, their number
        together = shared if parts is not None else None
        self.axis, self.times = (None, 1) if together is None else (together.axis, together.times)
        self.extents: list[Extent] = []
        # the op's dims of each axis of the matmul, and of each axis of keys and values
        self.axes: dict[int, list[int]] = {}
        self.heads: dict[int, list[int]] = {}
        for i, extent in enumerate(self.own):
            each = [extent]
            split = shared is not None and shared.axis == i
            if shared is not None and split:
                each = [e.div(extent, shared.times), *([shared.times] if parts is None else [])]
            kept = [j for j, n in enumerate(each) if n != 1]
            if kept:
                self.axes[i] = [self._dim(each[j]) for j in kept]
                self.heads[i] = self.axes[i][: 0 in kept] if split else self.axes[i]
        self.lead = list(range(len(self.extents)))
        self.p = [] if parts is None else [self._dim(parts.count)]
        self.tiles: list[int] = []
        if is_named(form.queries):
            self.tiles = [self._dim(index.ceil_div(e, self.queries, tile.rows))]
        # rows of all tiles; those of parts are a whole number of tiles
        self.rows = tile.rows if self.tiles else self.times * form.queries
        whole = -(-self.rows // tile.rows) * tile.rows
        self.m = self._dim(self.rows if parts is None else whole)
        self.k = self._dim(plan.width)
        count = 1 if parts is None else parts.count
        fixed = 0 if is_named(form.keys) else -(-form.keys // tile.keys) * tile.keys
        filled = fixed if parts is None else count * parts.keys
        self.is_ragged = is_named(form.keys) or filled != form.keys
        self.blocks: list[int] = []
        # masks and reads of values must share no index, as lanes hold them in different layouts,
        # which IREE fails to distribute
        if self.is_dynamic and (self.is_ragged or k.mask is not None):
            self.blocks = [self._dim(index.ceil_div(e, self.keys, count * tile.keys))]
        self.n = self._dim(tile.keys if self.blocks else filled // count)
        self.d = self._dim(form.depth)
        # the op's dims that count keys
        self.of_keys = [*self.p, *self.blocks, self.n]
        self.info: dict[str, ir.Attribute] | None = None
        if plan.kind is not None:
            dims = attention_tiles.Dims(
                [*self.lead, *self.p, *self.tiles], self.m, self.k, self.n, self.d, self.blocks
            )
            self.info = attention_tiles.attributes(
                e.options.arch, plan.kind, tile, dims, plan.width
            )
        with nullcontext() if parts is None else ahead_of_region(e):
            self.elements = k.elements(e, whole=parts is None)

    def _dim(self, extent: Extent) -> int:
        self.extents.append(extent)
        return len(self.extents) - 1

    def _sizes(self, dims: Sequence[int]) -> list[Extent]:
        return [self.extents[d] for d in dims]

    # ---- operands ----------------------------------------------------------------------------

    def _operands(self, queries: Operand | None) -> list[Operand]:
        """Return queries, unless they are given, keys and values."""
        _, keys, values = self.form.multiplied
        ahead = [*self.p, *self.blocks]
        return [
            queries or self._queries(),
            self._operand(keys, {0: [self.k], 1: self.of_keys}, [*ahead, self.n, self.k]),
            self._operand(
                values,
                {0: self.of_keys, 1: [self.d]},
                [*ahead, self.n, self.d]
                if CHIPS[self.e.options.arch].is_nvidia
                else [*ahead, self.d, self.n],
            ),
        ]

    def _queries(self, *, ahead: bool = False) -> Operand:
        """Return the queries; ahead: laid out by a launch ahead of the kernel."""
        rows = [*self.tiles, self.m]
        # the first operand needs the batch dim too, else the matmul has no layout
        batch = self.p if not self.lead else []
        last = {0: rows, 1: [self.k]}
        return self._operand(self.form.multiplied[0], last, [*batch, *rows, self.k], ahead=ahead)

    def _operand(
        self, v: ir.Value, last: Names, order: Sequence[int], *, ahead: bool = False
    ) -> Operand:
        """Return an operand of a matmul in an order of the op's dims; `last` are those of its last
        two axes."""
        e, full, are_keys = self.e, len(self.own), self.n in order
        names: Names = {**self.axes, **{full + i: dims for i, dims in last.items()}}
        shared = self.plan.shared is not None and are_keys
        found = repeated(v, converted=bool(self.p)) if shared else None
        if found is not None:
            v, names = found.value, {**names, **self.heads}
            names = {i: names[a] for i, a in enumerate(found.axes) if a in names}
        names = {i: dims for i, dims in names.items() if dims}
        whole = are_keys and not self.is_ragged
        in_place = whole if self.p else not self.is_dynamic and (whole or not are_keys)
        tensor = self._as_it_is(v, names, order[-1]) if in_place else None
        if tensor is not None:
            return tensor
        lead = [d for dims in names.values() for d in dims if d in self.lead]
        if self.p and self.blocks and are_keys and found is None:
            # an operand that heads share has no dim of theirs
            one = [i for i in self.axes if not varies_along(v, i, self.leaves)]
            lead = [d for d in lead if not any(d in self.axes[i] for i in one)]
        order = [*lead, *order]
        read, t = reader(v, None, self.leaves), TensorType.of(v)
        axis, most = self._clamped(names, order)
        wide = self.k in order and self.plan.width != self.form.width

        def element(where: list[ir.Value]) -> ir.Value:
            at = self._index(names, dict(zip(order, where, strict=True)), t.rank)
            if axis is not None:
                at[axis] = self._least(at[axis], most, signed=order[-1] == self.d)
            if not wide:
                return narrow(read(self.elements, at, 1), self.plan.dtype).value
            along = next(i for i, dims in names.items() if dims == [self.k])
            inside = index.in_range(e, e.index(at[along]), self.form.width)
            at[along] = index.select(e, inside, at[along], 0)
            value = narrow(read(self.elements, at, 1), self.plan.dtype).value
            return arith.SelectOp(inside, value, index.zero_of(value.type)).result

        build = index.from_positions_alone if ahead else index.from_positions
        return build(e, self._sizes(order), self.plan.dtype, element), order

    def _index(self, names: Names, of: At, rank: int) -> list[Extent]:
        """Return the index in a tensor of this rank; a dim that is not in `of` is at 0.

        By parts, rows of a tile are the queries of heads that share keys, head by head. Without
        rows, the index of heads is that of those that share keys.
        """
        e, full = self.e, len(self.own)
        at: list[Extent] = [0] * rank
        for i, dims in names.items():
            at[i] = self._flat(dims, of)
        if self.p and self.m in of:
            row = self._least(at[full], self.rows)
            at[full] = e.rem(row, self.form.queries)
            if self.axis is not None:
                head = e.div(row, self.form.queries)
                at[self.axis] = e.add(e.mul(at[self.axis], self.times), head)
        return at

    def _flat(self, dims: Sequence[int], of: At) -> Extent:
        """Return the linear index over several dims."""
        at: Extent = 0
        for d in dims:
            at = self.e.add(self.e.mul(at, self.extents[d]), of.get(d, 0))
        return at

    def _least(self, place: Extent, count: Extent, *, signed: bool = False) -> ir.Value:
        """Return an index, or the last of `count`."""
        e = self.e
        op = arith.MinSIOp if signed else arith.MinUIOp
        return op(e.index(place), e.index(e.sub(count, 1))).result

    def _clamped(self, names: Names, order: Sequence[int]) -> tuple[int | None, Extent]:
        """Return the axis of an operand whose index is clamped, and its bounds.

        It is that of rows past the last. Or it is one whose clamp keeps IREE from folding a
        transpose into another order of the op's dims: for values the depth, if that is enough, as
        it does not change over the keys.
        """
        dims, most = [self.d], self.form.depth
        if self.n not in order:
            dims, most = [*self.tiles, self.m], self.queries
        elif self.p or self.d not in order or self.is_ragged or self.blocks:
            dims, most = self.of_keys, self.keys
        exact = self.is_dynamic and len(dims) == 1 and dims != [self.d]
        if exact or (self.p and self.n not in order):
            return None, most
        return next(i for i, own in names.items() if own == dims), most

    def _as_it_is(self, v: ir.Value, names: Names, runs: int) -> Operand | None:
        """Return the tensor that an operand is a view of.

        None where its rows are not contiguous along `runs`. By parts: also where it is computed in
        the kernel, or has another type than the multiplication.
        """
        x, at = behind_views(self.e.expr(v))
        if self.p:
            x, at = _given(x, at)
            if not self._is_outside(x) or x.type.dtype is not self.plan.dtype:
                return None
        elif not at or at[-1] is None or names.get(at[-1]) != [runs]:
            return None
        if not {*names} <= {*at}:
            return None
        if runs != self.k or self.plan.width == self.form.width:
            return self._tensor(x, at, names)
        # before the region: inside, each element would be tested
        with ahead_of_region(self.e, self.e.tensor(x)):
            value, order = self._tensor(x, at, names)
            kind = ir.RankedTensorType(value.type)
            sizes = [*kind.shape[:-1], self.plan.width]
            more: list[Extent] = [0] * (len(order) - 1)
            return self._filled(value, [*more, sizes[-1] - self.form.width], sizes, 0), order

    def _is_outside(self, x: Expr) -> bool:
        return isinstance(x, Leaf) and not is_inside(x.value, self.block)

    def _filled(
        self, value: ir.Value, high: list[Extent], sizes: list[int], number: float
    ) -> ir.Value:
        """Pad a tensor to `sizes`, in a separate dispatch."""
        made = ir.RankedTensorType.get(sizes, ir.RankedTensorType(value.type).element_type)
        none: list[Extent] = [0] * len(sizes)

        def build() -> list[ir.Value]:
            return [pad_tensor(self.e, value, none, high, sizes, number)]

        return index.alone(self.e, [made], [sizes], build)[0]

    def _tensor(self, x: Expr, at: DimMap, names: Names) -> Operand:
        """Return the tensor of an expression that is read at `at`, with the op's dims of its
        axes."""
        value = self.e.tensor(x)
        order: list[int] = []
        sizes: list[Extent] = []
        for axis, extent in zip(at, x.type.dims, strict=True):
            dims: Sequence[int] = () if axis is None else names.get(axis, ())
            order += dims
            sizes += [extent] if len(dims) == 1 else self._sizes(dims)
        small = x.type.with_dims(self.e.static_dims(sizes))
        return views.reshape_tensor(self.e, value, small, sizes), order

    # ---- masks -------------------------------------------------------------------------------

    def _masks(self) -> list[Operand]:
        """Return the summands of the scores: the mask, and -inf where there is no key."""
        mask = self.kernel.mask
        if mask is None and not self.is_ragged:
            return []
        if self.blocks:
            return [self._mask_by_index(mask)]
        if mask is None:
            sizes = self.e.static_dims(self._sizes(self.of_keys))
            beyond = np.zeros(sizes, self.plan.dtype.np)
            beyond.reshape(-1)[self.form.keys :] = float("-inf")
            return [(self.e.parameter(beyond), self.of_keys)]
        if not self.p:
            return [self._filled_mask(mask)]
        whole = None if self.is_ragged else self._mask_as_it_is(mask)
        return [whole or self._mask_by_index(mask)]

    def _filled_mask(self, mask: ir.Value) -> Operand:
        """Return a mask of static dims, -inf past the keys, made before the region: inside, a
        partial tile would go through memory.
        """
        e, full = self.e, len(self.own)
        x, at = behind_views(e.expr(mask))
        with ahead_of_region(e, e.tensor(x)):
            value, order = self._tensor(x, at, {**self.axes, full: [self.m], full + 1: [self.n]})
            dtype = TensorType.of(mask).dtype
            if dtype.is_bool:
                value, dtype = e.cast_tensor(value, dtypes.BOOL, dtypes.INT8), dtypes.INT8
            value = bounded_mask(e, value, dtype)
            if self.is_ragged:
                more = e.sub(self.extents[self.n], self.keys)
                high: list[Extent] = [more if i == self.n else 0 for i in order]
                sizes = e.static_dims(self._sizes(order))
                number = 0 if dtype is dtypes.INT8 else float("-inf")
                value = self._filled(value, high, sizes, number)
        return value, order

    def _mask_as_it_is(self, mask: ir.Value) -> Operand | None:
        """Return the tensor that a mask of parts is a view of; None where rows of a tile read
        others of it, or it is made in the kernel."""
        x, at = behind_views(self.e.expr(mask))
        last = len(self.own) + 1
        names: Names = {**self.axes, last: self.of_keys}
        names = {i: dims for i, dims in names.items() if i != self.axis}
        known = zip(at, x.type.dims, strict=True)
        if not self._is_outside(x) or any(n != 1 and i not in names for i, n in known):
            return None
        if last not in at:
            return None
        with ahead_of_region(self.e, self.e.tensor(x)):
            value, order = self._tensor(x, at, names)
            return bounded_mask(self.e, value, x.type.dtype), order

    def _mask_by_index(self, mask: ir.Value | None) -> Operand:
        """Return a mask, -inf beyond the keys, made by index: of blocks of keys in the kernel, else
        ahead of it, where IREE does not distribute it."""
        e, full, blocks = self.e, len(self.own), self.blocks
        dtype, read, order = self.plan.dtype, None, self.of_keys
        if mask is not None:
            read = reader(mask, None, self.leaves)
            dtype = TensorType.of(mask).dtype if self.p else dtype
            axes = range(full + 1)
            vary = {i for i in axes if not blocks or varies_along(mask, i, self.leaves)}
            kept = [d for i, dims in self.axes.items() if i in vary for d in dims]
            many = bool(vary & {full, self.axis}) and (not self.p or self.rows > 1)
            rows = [*self.tiles, self.m] if many or not blocks else []
            order = [*kept, *self.p, *rows, *blocks, self.n]
        names: Names = {**self.axes, full: [*self.tiles, self.m], full + 1: self.of_keys}

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            begin = e.mul(self._flat(self.of_keys[:-1], of), self.extents[self.n])
            left = e.sub(self.keys, begin)
            found = constant(0, dtype).value
            if read is not None:
                at = self._index(names, of, full + 2)
                if self.p:
                    at[-1] = self._least(at[-1], self.keys)
                else:
                    at[full] = self._row(of)
                    at[-1] = e.add(self._least(of[self.n], left), begin)
                found = narrow(read(self.elements, at, 1), dtype)
                if bounds_masks(e, dtype):
                    found = bounded(ArithScalars(dtype, dtype), found)
                found = found.value
            if not self.is_ragged:
                return found
            inside = arith.CmpIOp(arith.CmpIPredicate.slt, of[self.n], e.index(left)).result
            return arith.SelectOp(inside, found, constant(float("-inf"), dtype).value).result

        build = index.from_positions if blocks else index.from_positions_alone
        return build(e, self._sizes(order), dtype, element), order

    def _row(self, of: At) -> Extent:
        """Return the row of a mask by other index expressions than that of queries, as lanes
        hold masks in another layout.
        """
        own = of.get(self.m, 0)
        if not self.tiles or self.m not in of:
            return own
        begin = self.e.mul(of[self.tiles[0]], self.plan.tile.rows)
        return self.e.add(self._least(own, self.e.sub(self.queries, begin)), begin)


def _given(x: Expr, at: DimMap) -> tuple[Expr, DimMap]:
    """Return what an expression is a view of, also from ahead of a conversion."""
    while isinstance(x, Compute) and x.cls is Convert:
        x, more = behind_views(x.args[0])
        at = compose(at, more)
    return x, at


@contextmanager
def ahead_of_region(e: LoweringContext, value: ir.Value | None = None) -> Generator[None]:
    """Build outside of the region that is being built, unless `value` is made in it."""
    block, inside = ir.InsertionPoint.current.block, e.in_region
    stays = not inside or (value is not None and is_inside(value, block))
    e.in_region = False
    try:
        with nullcontext() if stays else ir.InsertionPoint(block.owner):
            yield
    finally:
        e.in_region = inside


__all__ = ["TiledOperands", "TiledPlan", "ahead_of_region"]
