"""Tiles of products without matrix instructions, f32 on RDNA and i32: each thread's own sums.

The compiler's own kernels read both operands from the cache, element by element; here a workgroup
keeps its part of them in the LDS. The sizes are those that `targets/kernel_time.py` finds best in
compiled code on gfx1100: a tenth of the time for 128x768x768, a fifth for 1024x1024x1024.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lower.gpu.gemm_shape import DOT, GemmShape

_LEAST = (16, 32)  # rows and columns: fewer are read once, by the compiler's reductions


@dataclass(frozen=True)
class PlainTile:
    """A workgroup's rows and columns, those of a thread, and the depth between two barriers."""

    size: tuple[int, int]
    thread: tuple[int, int]
    depth: int

    @property
    def threads(self) -> int:
        """Return the number of threads of a workgroup."""
        return prod(s // t for s, t in zip(self.size, self.thread, strict=True))

    def workgroups(self, rows: int, columns: int) -> int:
        """Return how many workgroups cover a result."""
        return -(-rows // self.size[0]) * -(-columns // self.size[1])


# each with the workgroups for each compute unit from which on it is best
_TILES = (
    (PlainTile((64, 64), (4, 8), 16), 2),
    (PlainTile((64, 64), (4, 4), 16), 1),
    (PlainTile((32, 32), (2, 4), 16), 1),
    (PlainTile((16, 32), (2, 2), 32), 0),
)


def plain_tile(arch: str, product: GemmShape) -> PlainTile | None:
    """Return the tile of a product that no matrix instruction multiplies.

    None leaves the choice to the compiler.
    """
    chip = CHIPS.get(arch)
    if chip is None or product.op != DOT:
        return None
    if product.dtype != dtypes.INT32.name and (chip.single or product.dtype != dtypes.FLOAT.name):
        return None
    rows, columns, _ = product.dims
    if rows < _LEAST[0] or columns < _LEAST[1]:
        return None
    count = prod(product.batch)
    return next(t for t, n in _TILES if count * t.workgroups(rows, columns) >= n * chip.units)


__all__ = ["PlainTile", "plain_tile"]
