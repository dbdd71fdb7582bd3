"""A tensor as (outer, along, inner) around one axis, for kernels of ops that work along it."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.expr import Extent

GROUP_ELEMENTS = 16384  # elements of a workgroup; fewer do not pay for its start
UNKNOWN = 256  # assumed elements along a dynamic dim, where a tile is chosen


@dataclass(frozen=True)
class AxisView:
    """tensor: of rank 3. extents: of the tensor as it was, with `axis` among them."""

    tensor: ir.Value
    extents: tuple[Extent, ...]
    axis: int
    dims: tuple[Extent, Extent, Extent]

    @staticmethod
    def of(e: LoweringContext, value: ir.Value, t: TensorType, axis: int) -> AxisView:
        """Reshape a tensor, ahead of the kernel."""
        own = e.extents(value)
        dims = (e.product(own[:axis]), own[axis], e.product(own[axis + 1 :]))
        flat = t.with_dims(e.static_dims(dims))
        return AxisView(views.reshape_tensor(e, value, flat, dims), tuple(own), axis, dims)

    @property
    def is_last(self) -> bool:
        """Return whether elements along the axis are next to each other in memory."""
        return isinstance(self.dims[2], int) and self.dims[2] == 1

    def restored(
        self, e: LoweringContext, value: ir.Value, t: TensorType, along: Extent
    ) -> ir.Value:
        """Return a result of the kernel with the dims of `t`; along: its extent at the axis."""
        own = [*self.extents[: self.axis], along, *self.extents[self.axis + 1 :]]
        found = views.reshape_tensor(e, value, t.with_dims(e.static_dims(own)), own)
        return e.refine(found, t)

    def grid(self, columns: int) -> list[tuple[Extent, int]]:
        """Return a grid over outer and inner: few rows where they are long, some `columns`."""
        room = GROUP_ELEMENTS // _known(self.dims[1])
        if self.is_last:
            return [(self.dims[0], _step(self.dims[0], room))]
        inner = self.dims[2]
        if isinstance(inner, int):
            columns = max(1, min(columns, inner))
        return [(self.dims[0], _step(self.dims[0], room // columns)), (inner, columns)]


def _known(extent: Extent) -> int:
    return max(1, extent) if isinstance(extent, int) else UNKNOWN


def _step(extent: Extent, wanted: int) -> int:
    return max(1, min(wanted, extent) if isinstance(extent, int) else wanted)


def line_step(lines: Extent, length: Extent) -> int:
    """Return how many lines of a length pay for the start of a workgroup."""
    return _step(lines, GROUP_ELEMENTS // _known(length))


def sizes_of(k: WorkgroupBuilder, grid: Sequence[tuple[Extent, int]]) -> list[Index]:
    """Return the extents of a workgroup along the dims of a grid."""
    pairs = zip(k.at, grid, strict=True)
    return [k.covered(at, step, k.inner(extent)) for at, (extent, step) in pairs]
