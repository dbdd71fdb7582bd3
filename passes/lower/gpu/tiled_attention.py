"""Attention on GPUs in tiles of our own, with operands in runs along what is summed.

A matrix instruction takes runs along the width of queries and keys, and along the keys of values.
An operand that does not lie so in memory is gathered, element by element, on its way into the LDS:
it is then read from there in whole registers. Keys are filled up to whole tiles, and masked; of
queries the last tile may be cut.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.analysis.access_maps import Reader, Unreadable, reader
from mgx_mlir.passes.analysis.attention_form import AttentionForm
from mgx_mlir.passes.lower import index, views
from mgx_mlir.passes.lower.context import LoweringContext
from mgx_mlir.passes.lower.expr import Expr, Extent, Leaf, View, behind_views
from mgx_mlir.passes.lower.gpu import attention_tiles
from mgx_mlir.passes.lower.iree.linalg_ext import attention
from mgx_mlir.passes.lower.ops.fused_concat import LoopElements
from mgx_mlir.passes.lower.products import pad_tensor
from mgx_mlir.passes.lower.scalar import constant, narrow

_LEAST_QUERIES = 2  # one query is a product with a vector

Operand = tuple[ir.Value, list[int]]  # a tensor, and which of the op's dims its own are


def tiled_attention(
    e: LoweringContext, body: ir.Block, form: AttentionForm, scale: float, mask: ir.Value | None
) -> Expr | None:
    """Return the second product; None where the compiler is to choose the tiles."""
    first, second = form.product.owner, form.output.owner
    t, arch = TensorType.of(form.output), e.options.arch
    kind = attention_tiles.intrinsics_of(arch, t.dtype, form.width, form.depth)
    if kind is None or not e.options.tiles or form.queries < _LEAST_QUERIES:
        return None
    operands = [first.operands[0], first.operands[1], second.operands[1]]
    if any(TensorType.of(v).dtype is not t.dtype for v in operands):
        return None
    if all(extent == 1 for extent in form.lead):
        return None  # without a dim of many, the compiler's tiles read wrong numbers
    a = attention_tiles.AttentionShape(
        prod(form.lead), form.queries, form.keys, form.width, form.depth
    )
    tile = attention_tiles.choose(CHIPS[arch], a)
    if tile is None:
        return None
    try:
        dims = _Dims(e, body, form, tile.keys)
        made = [
            dims.operand(operands[0], (dims.m, dims.k), dims.k),
            dims.operand(operands[1], (dims.k, dims.n), dims.k),
            dims.operand(operands[2], (dims.n, dims.d), dims.n),
        ]
        masks = dims.masks(mask)
    except Unreadable:
        return None
    rank = dims.d + 1
    out = [*dims.lead, dims.m, dims.d]
    small = t.with_dims(dims.extents[i] for i in out)
    found = attention(
        e, made, constant(scale, t.dtype).value, masks, out, rank, small,
        attention_tiles.attributes(arch, kind, tile, rank, a),
    )  # fmt: skip
    return View(t, Leaf(small, found), dims.places, list(t.dims))


@dataclass
class _Dims:
    """The op's dims: those of the product that are longer than 1, then m, k, n, d.

    The compiler drops extents of 1, but not from what it is told of the tiles.
    """

    e: LoweringContext
    body: ir.Block
    form: AttentionForm
    tile: int

    def __post_init__(self) -> None:
        form = self.form
        self.kept = [i for i, extent in enumerate(form.lead) if extent != 1]
        self.lead = list(range(len(self.kept)))
        self.m, self.k, self.n, self.d = range(len(self.kept), len(self.kept) + 4)
        self.filled = -(-form.keys // self.tile) * self.tile
        own = [form.lead[i] for i in self.kept]
        self.extents = [*own, form.queries, form.width, self.filled, form.depth]
        full = len(form.lead)
        # where the axes of a rank that has all of the product's are
        self.places = (*self.kept, full, full + 1)
        self.elements = LoopElements(self.e, {x: self.e.tensor(x) for x in self.body.arguments})

    def operand(self, v: ir.Value, last_two: tuple[int, int], runs: int) -> Operand:
        """Return an operand of a product, whose last two axes are these, with runs along `runs`."""
        full = len(self.form.lead)
        names = dict(zip(self.places, [*self.lead, *last_two], strict=True))
        ragged = self.n in last_two and self.filled != self.form.keys
        found = None if ragged else self._as_it_is(self.e.expr(v), names, runs)
        if found is not None:
            return found
        order = [*self.lead, *(i for i in last_two if i != runs), runs]
        read = self._reader(v)
        t = TensorType.of(v)

        def element(where: list[ir.Value]) -> ir.Value:
            of = dict(zip(order, where, strict=True))
            at: list[Extent] = [0] * full + [of[i] for i in last_two]
            for axis, i in zip(self.kept, self.lead, strict=True):
                at[axis] = of[i]
            # within its bounds, which also keeps the compiler from taking a mere transpose for
            # another order of the op's own dims
            key = full + last_two.index(self.n) if self.n in last_two else full
            most = self.form.keys if self.n in last_two else self.extents[last_two[0]]
            here = self.e.index(at[key])
            at[key] = arith.MinUIOp(here, self.e.index(most - 1)).result
            return narrow(read(self.elements, at, 0), t.dtype).value

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
        names = dict(zip(self.places, [*self.lead, self.m, self.n], strict=True))
        value, order = self._tensor(self.e.expr(mask), names)
        dtype = TensorType.of(mask).dtype
        if dtype.is_bool:
            value, dtype = self.e.cast_tensor(value, dtypes.BOOL, dtypes.INT8), dtypes.INT8
        if more:
            if self.n not in order:
                raise Unreadable("one number masks all keys")
            high: list[Extent] = [more if i == self.n else 0 for i in order]
            sizes = [self.extents[i] for i in order]
            number = 0 if dtype is dtypes.INT8 else float("-inf")
            # ahead of the region: in it, what is cut would go through memory
            with ahead_of_region(self.e, value):
                value = pad_tensor(self.e, value, [0] * len(order), high, sizes, number)
        return [(value, order)]

    def _reader(self, v: ir.Value) -> Reader:
        return reader(v, None, list(self.body.arguments))

    def _as_it_is(self, x: Expr, names: dict[int, int], runs: int) -> Operand | None:
        """Return the tensor that an operand is a view of, if its rows are runs along `runs`."""
        at = behind_views(x)[1]
        if not at or at[-1] is None or names.get(at[-1]) != runs or not {*names} <= {*at}:
            return None
        return self._tensor(x, names)

    def _tensor(self, x: Expr, names: dict[int, int]) -> Operand:
        """Return the tensor that an expression is a view of, with its axes that have names."""
        source, at = behind_views(x)
        value = self.e.tensor(source)
        places = [i for i in at if i in names]
        if len(places) != len(at):
            dims = zip(at, source.type.dims, strict=True)
            small = source.type.with_dims(d for i, d in dims if i in names)
            value = views.reshape_tensor(self.e, value, small, list(small.dims))
        return value, [names[i] for i in places]


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


__all__ = ["tiled_attention"]
