"""A broadcast whose extents only the run knows as a CPU kernel: rows are copied or repeated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS, UNKNOWN, tile_size
from mgx_mlir.passes.lowering.cpu.frame.epilogue import STORED
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent


def lower(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    wanted: Sequence[Extent],
    unsure: Collection[int],
    isa: Isa,
) -> ir.Value | None:
    """Return a tensor at `wanted` extents, of which those at `unsure` may be 1 in `x`.

    None: the type is none that vectors hold. The extents are the result's, or 1, as the caller
    has checked.
    """
    have = e.extents(x)
    if dtype not in STORED or not have:
        return None
    flat = TensorType(dtype, tuple(e.static_dims([e.product(have)])))
    source = views.reshape_tensor(e, x, flat, [e.product(have)])
    rows, last = e.product(wanted[:-1]), wanted[-1]
    step = max(1, GROUP_ELEMENTS // (last if isinstance(last, int) and last else UNKNOWN))
    if isinstance(rows, int):
        step = max(1, min(step, rows))

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        size = tile_size(k, k.at[0], step, rows)
        copy = _Rows(k, have, wanted, unsure, isa.lanes)
        tile = k.empty([size, copy.last], dtype)

        def rows_by(
            row: Callable[[Index, Index, list[ir.Value]], list[ir.Value]],
        ) -> list[ir.Value]:
            return k.loop(0, size, 1, [tile], lambda i, c: row(k.add(k.at[0], i), i, c))

        made = k.when(
            copy.is_same, lambda: rows_by(copy.same_row), lambda: rows_by(copy.row), [tile.type]
        )
        return [ResultTile(made[0], [k.at[0], 0], [size, copy.last])]

    found = dispatch([source], [([rows, last], dtype)], [(rows, step)], body, [*have, *wanted])[0]
    kind = TensorType(dtype, tuple(e.static_dims(wanted)))
    return views.reshape_tensor(e, found, kind, list(wanted))


class _Rows:
    """Builds the copy of one row of the result."""

    def __init__(
        self,
        k: WorkgroupBuilder,
        have: Sequence[Extent],
        wanted: Sequence[Extent],
        unsure: Collection[int],
        lanes: int,
    ) -> None:
        self.k, self.lanes = k, lanes
        own = [k.inner(d) for d in have]
        self.wanted = [k.inner(d) for d in wanted]
        self.last = self.wanted[-1]
        self.source = k.inputs[0]
        self.steps: list[Index] = []
        for i, d in enumerate(own[:-1]):
            step = k.product(own[i + 1 :])
            if i in unsure:
                chosen = arith.SelectOp(k.is_equal(d, 1), k.index(0), k.index(step))
                step = chosen.result
            self.steps.append(0 if d == 1 else step)
        self.is_one = k.is_equal(own[-1], 1) if len(own) - 1 in unsure else None
        # an extent is the result's or 1: as many elements are the same extents
        self.is_same = k.is_equal(k.product(own), k.product(self.wanted))

    def same_row(self, at: Index, local: Index, carried: list[ir.Value]) -> list[ir.Value]:
        """Copy the row at `at` of the result, which has the source's extents."""
        return self.copied(self.k.mul(at, self.last), local, carried)

    def row(self, at: Index, local: Index, carried: list[ir.Value]) -> list[ir.Value]:
        """Copy the row at `at` of the result, or repeat the one element that it is of."""
        k, offset = self.k, 0
        for i in reversed(range(len(self.steps))):
            index = at if i == 0 else k.rem(at, self.wanted[i])
            at = k.div(at, self.wanted[i])
            offset = k.add(offset, k.mul(index, self.steps[i]))
        if self.is_one is None:
            return self.copied(offset, local, carried)
        return k.when(
            self.is_one,
            lambda: self.repeated(offset, local, carried),
            lambda: self.copied(offset, local, carried),
            [v.type for v in carried],
        )

    def copied(self, offset: Index, local: Index, carried: list[ir.Value]) -> list[ir.Value]:
        """Copy a row of the source."""
        k = self.k

        def some(j: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            kept = 0.0 if masked else None
            found = k.read(self.source, [k.add(offset, j)], self.lanes, masked=kept)
            return [k.write(found, c[0], [local, j], masked=masked)]

        return k.along(self.last, self.lanes, carried, some)

    def repeated(self, offset: Index, local: Index, carried: list[ir.Value]) -> list[ir.Value]:
        """Fill a row with one element of the source."""
        k = self.k
        value = k.broadcast(k.element(self.source, [offset]), self.lanes)
        return k.along(
            self.last,
            self.lanes,
            carried,
            lambda j, masked, c: [k.write(value, c[0], [local, j], masked=masked)],
        )
