"""argmax and argmin as one CPU kernel: each lane holds its best element and the place of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.reduce import ArgMax, ArgMin
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import AxisView, sizes_of
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed, constant_of
from mgx_mlir.passes.lowering.select import KernelRule

_TYPES = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.INT32)
Held = list[ir.Value]  # elements and places


def refusal(op: ArgMax | ArgMin) -> str | None:
    """Return why no vector kernel computes an argmax or argmin, None if one does."""
    t = TensorType.of(op.input)
    if t.dtype not in _TYPES:
        return f"it compares {t.dtype}"
    return "it has no elements" if 0 in t.dims else None


def build(e: LoweringContext, op: ArgMax | ArgMin, x: ir.Value, isa: Isa) -> list[ir.Value]:
    """Build the search for the best element of each row or column."""
    t, out = TensorType.of(op.input), TensorType.of(op.out)
    view = AxisView.of(e, x, t, axis_of(op.axis, t.rank))
    rows, _, columns = view.dims
    lanes = isa.lanes
    grid = view.grid(4 * lanes)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        search = _Search(k, t, largest=is_a(op.operation, ArgMax), last=op.select_last_index)
        (source,), sizes = k.inputs, sizes_of(k, grid)
        count = k.inner(view.dims[1])
        made = k.empty(sizes, dtypes.INT64)
        if view.is_last:
            made = k.loop(
                0,
                sizes[0],
                1,
                [made],
                lambda i, c: [
                    k.put(search.row(source, k.add(k.at[0], i), count, lanes), c[0], [i])
                ],
            )[0]
            return [ResultTile(made, [k.at[0]], sizes)]

        def row(i: ir.Value, carried: Held) -> Held:
            def some(j: Index, masked: bool, c: Held) -> Held:
                at = (k.add(k.at[0], i), k.add(k.at[1], j))
                found = search.columns(source, at, count, lanes, masked=masked)
                return [k.write(found, c[0], [i, j], masked=masked)]

            return k.along(sizes[1], lanes, carried, some)

        made = k.loop(0, sizes[0], 1, [made], row)[0]
        return [ResultTile(made, list(k.at), sizes)]

    dims = [rows] if view.is_last else [rows, columns]
    found = dispatch([view.tensor], [(dims, dtypes.INT64)], grid, body, view.dims)[0]
    return [view.restored(e, found, out, 1)]


RULE = KernelRule(
    "arg_extreme", (ArgMax, ArgMin), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.first, site.isa),
)  # fmt: skip


class _Search:
    """Keeps the best of what it is shown, in each lane: NaN is better than any number."""

    def __init__(self, k: WorkgroupBuilder, t: TensorType, *, largest: bool, last: bool) -> None:
        self.k, self.dtype, self.last = k, computed(t.dtype), last
        self.stored = t.dtype
        self.better = "gt" if largest else "lt"
        self.worst = self.dtype.lowest() if largest else self.dtype.highest()
        self.nowhere = -1 if last else int(dtypes.INT32.highest())

    def start(self, lanes: int) -> Held:
        k = self.k
        return [
            k.splat(self.worst, lanes, self.dtype),
            k.splat(self.nowhere, lanes, dtypes.INT32),
        ]

    def read(self, source: ir.Value, at: Sequence[Index], lanes: int, *, masked: bool) -> ir.Value:
        """Return elements; beyond the end they are the worst."""
        k = self.k
        found = k.read(source, at, lanes, masked=0.0 if masked else None)
        return widen(k, TypedScalar(found, self.stored), lanes).value

    def shown(self, held: Held, x: ir.Value, places: ir.Value, mask: ir.Value | None) -> Held:
        """Return what is held after elements that all come later than those before."""
        lanes = ir.VectorType(x.type).shape[0]
        b = StoredScalars(self.k, lanes, self.dtype, self.dtype)
        new, old = TypedScalar(x, self.dtype), TypedScalar(held[0], self.dtype)
        take = b.cmp(self.better, new, old)
        if self.last:
            take = b.or_(take, b.cmp("eq", new, old))
        if self.dtype.is_float:
            nan, had = b.is_nan(new), b.is_nan(old)
            take = b.or_(take, nan if self.last else b.and_(nan, b.not_(had)))
        chosen = take.value if mask is None else arith.AndIOp(take.value, mask).result
        return [
            arith.SelectOp(chosen, x, held[0]).result,
            arith.SelectOp(chosen, places, held[1]).result,
        ]

    def joined(self, a: Held, c: Held) -> Held:
        """Return the better of two of which neither comes later as a whole."""
        lanes = ir.VectorType(a[0].type).shape[0]
        b = StoredScalars(self.k, lanes, self.dtype, self.dtype)
        old, new = TypedScalar(a[0], self.dtype), TypedScalar(c[0], self.dtype)
        at, here = (TypedScalar(v[1], dtypes.INT32) for v in (a, c))
        equal, take = b.cmp("eq", new, old), b.cmp(self.better, new, old)
        if self.dtype.is_float:
            nan, had = b.is_nan(new), b.is_nan(old)
            take = b.or_(take, b.and_(nan, b.not_(had)))
            equal = b.or_(equal, b.and_(nan, had))
        sooner = b.cmp("gt" if self.last else "lt", here, at)
        take = b.or_(take, b.and_(equal, sooner))
        return [
            arith.SelectOp(take.value, c[0], a[0]).result,
            arith.SelectOp(take.value, c[1], a[1]).result,
        ]

    # ---- along a row -------------------------------------------------------------------------

    def row(self, source: ir.Value, i: Index, count: Index, lanes: int) -> ir.Value:
        """Return the place of the best of a row, as an i64."""
        k, wide = self.k, 4 * lanes
        most = k.sub(count, k.rem(count, wide))
        held = self.start(wide)

        def step(j: Index, c: Held, n: int, masked: bool) -> Held:
            places = self.places(j, n)
            mask = self.mask(k.sub(count, j), n) if masked else None
            x = self.line(source, i, j, n, masked=masked)
            return self.shown(c, x, places, mask)

        if most != 0:
            held = k.loop(0, most, wide, held, lambda j, c: step(j, list(c), wide, False))
        held = self.folded(list(held), lanes)
        rest = k.along(
            k.sub(count, most),
            lanes,
            self.start(lanes),
            lambda j, masked, c: step(k.add(most, j), list(c), lanes, masked),
        )
        place = vector.ExtractOp(self.folded(self.joined(held, rest), 1)[1], [], [0]).result
        missing = self.k.number(self.nowhere, dtypes.INT32)
        lost = arith.CmpIOp(arith.CmpIPredicate.eq, place, missing).result
        place = arith.SelectOp(lost, k.number(0, dtypes.INT32), place).result
        return arith.ExtSIOp(ir.IntegerType.get_signless(64), place).result

    def line(self, source: ir.Value, i: Index, j: Index, lanes: int, *, masked: bool) -> ir.Value:
        """Return neighbours along a row."""
        return self.read(self.k.collapse(source, [[0], [1, 2]]), [i, j], lanes, masked=masked)

    def places(self, j: Index, lanes: int) -> ir.Value:
        kind = self.k.vector_type(lanes, dtypes.INT32)
        numbers: Any = np.arange(lanes, dtype=np.int32)
        count = constant_of(kind, ir.DenseElementsAttr.get(numbers, type=kind))
        i32 = ir.IntegerType.get_signless(32)
        first = arith.IndexCastOp(i32, self.k.index(j)).result
        return arith.AddIOp(self.k.broadcast(first, lanes), count).result

    def mask(self, left: Index, lanes: int) -> ir.Value:
        kind = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
        return vector.CreateMaskOp(kind, [self.k.index(left)]).result

    def folded(self, held: Held, lanes: int) -> Held:
        while (width := ir.VectorType(held[0].type).shape[0]) > lanes:
            half = width // 2
            low, high = ([_part(v, at, half) for v in held] for at in (0, half))
            held = self.joined(low, high)
        return held

    # ---- neighbouring rows -------------------------------------------------------------------

    def columns(
        self, source: ir.Value, at: tuple[Index, Index], count: Index, lanes: int, *, masked: bool
    ) -> ir.Value:
        """Return the places of the best along the middle dim, for `lanes` columns, as i64."""
        k = self.k
        i32 = ir.IntegerType.get_signless(32)

        def step(j: ir.Value, c: Held) -> Held:
            x = self.read(source, [at[0], j, at[1]], lanes, masked=masked)
            here = k.broadcast(arith.IndexCastOp(i32, j).result, lanes)
            return self.shown(list(c), x, here, None)

        place = k.loop(0, count, 1, self.start(lanes), step)[1]
        missing = k.splat(self.nowhere, lanes, dtypes.INT32)
        lost = arith.CmpIOp(arith.CmpIPredicate.eq, place, missing).result
        place = arith.SelectOp(lost, k.splat(0, lanes, dtypes.INT32), place).result
        return arith.ExtSIOp(k.vector_type(lanes, dtypes.INT64), place).result


def _part(v: ir.Value, at: int, lanes: int) -> ir.Value:
    kind = ir.VectorType.get([lanes], ir.VectorType(v.type).element_type)
    return vector.ExtractStridedSliceOp(kind, v, [at], [lanes], [1]).result
