"""The sizes of a convolution for its vector loops: numbers, dynamic extents, and its tiling."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    WorkgroupBuilder,
)

Pair = tuple[Index, Index]


@dataclass(frozen=True)
class ConvShape:
    """The sizes and types of a convolution of images [N, H, W, C]; pairs are (height, width)."""

    batch: int  # images, DYN if dynamic
    size: tuple[int, int]  # extents of the image, DYN where dynamic
    inputs: int  # input channels of a group
    outputs: int  # output channels of all groups
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    low: tuple[int, int]  # padding ahead of the image
    counts: tuple[int, int]  # extents of the result, DYN where dynamic
    planar: bool = False  # input has the order [N, C, H, W]
    high: tuple[int, int] = (0, 0)  # padding behind the image
    narrow: bool = False  # input is f16 or bf16; where `unit` is 0, the copy to scratch widens it
    # channels that one instruction multiplies together: several of 8-bit integers, two of bf16
    # where the CPU multiplies pairs, 0 for other floats
    unit: int = 0
    signed: bool = False  # input is i8
    border: int = 0  # padding value of 8-bit integers

    @property
    def filled(self) -> int:
        """The input channels, padded to whole groups."""
        unit = max(1, self.unit)
        return -(-self.inputs // unit) * unit

    @property
    def is_bytes(self) -> bool:
        """Return whether the convolution multiplies 8-bit integers."""
        return self.unit > 0 and not self.narrow

    @property
    def multiplied(self) -> DType:
        """The element type of the multiplication."""
        if not self.unit:
            return dtypes.FLOAT
        if self.narrow:
            return dtypes.BF16
        return dtypes.INT8 if self.signed else dtypes.UINT8

    @property
    def room(self) -> int:
        """Return the elements of the image that the scratch holds."""
        if self.is_bytes:
            return SCRATCH_BYTES
        return SCRATCH_BYTES // (2 if self.unit else 4)

    def span(self, axis: int, count: int) -> int:
        """Return how much of the padded image `count` windows next to each other take."""
        return (count - 1) * self.stride[axis] + (self.kernel[axis] - 1) * self.dilation[axis] + 1

    @property
    def reach(self) -> tuple[int, int]:
        """Return the elements of the padded image that the windows span, of known sizes."""
        return self.span(0, self.counts[0]), self.span(1, self.counts[1])

    @property
    def in_place(self) -> bool:
        """No window leaves the image."""
        widened = self.narrow and not self.unit
        if self.planar or widened or any(self.low) or self.filled != self.inputs:
            return False
        return all(self._inside(axis) for axis in (0, 1))

    def _inside(self, axis: int) -> bool:
        if DYN in (self.size[axis], self.counts[axis]):
            return self.high[axis] == 0
        return self.reach[axis] <= self.size[axis]


@dataclass(frozen=True)
class Extents:
    """Extents of images and results, any of which may be dynamic."""

    batch: Index
    size: Pair  # height and width of an image
    counts: Pair  # height and width of a result
    channels: Index = 0  # 0 where a shape has them

    @staticmethod
    def of(shape: ConvShape) -> Extents:
        return Extents(shape.batch, shape.size, shape.counts)

    @property
    def all(self) -> list[Index]:
        return [self.batch, *self.size, *self.counts, self.channels]

    def inside(self, k: WorkgroupBuilder) -> Extents:
        """Return the extents inside of the dispatch."""
        batch, h, w, rows, columns, channels = map(k.inner, self.all)
        return Extents(batch, (h, w), (rows, columns), channels)


@dataclass(frozen=True)
class ConvPlan:
    """The tiling of a convolution."""

    rows: int  # rows of pixels of a workgroup
    columns: int  # columns of pixels of a workgroup
    panels: int  # panels of output channels of a workgroup
    width: int  # output channels of a panel
    pixels: int  # pixels of a tile, which is one panel wide
    block: int  # input channels that are read at a time
    across: bool = False  # tiles continue across rows
