"""Tiles of products without matrix instructions, f32 on RDNA and i32: each thread's own sums.

The compiler's own kernels read both operands from the cache, element by element, and some keep what
they read in scratch memory; here a workgroup keeps its part of them in the LDS. The sizes are those
that `targets/kernel_time.py` finds best in compiled code on gfx1100: a tenth of the time for
128x768x768, a fifth for 1024x1024x1024.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.passes.lowering.gpu.products.gemm_shape import CONVOLUTION, DOT, GemmShape

_LEAST = (16, 16)  # rows and columns: fewer are read once, by the compiler's reductions
_SHALLOW = 64  # less depth has nothing for those to share


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
# of few rows, by how many: the compiler's own of cut columns lie in scratch memory
_FEW = ((4, PlainTile((4, 32), (1, 1), 32)), (15, PlainTile((8, 32), (1, 2), 32)))


# of convolutions: at most so many pixels, by filters
_LARGE = PlainTile((64, 64), (4, 4), 16)
_SMALL = PlainTile((16, 32), (2, 2), 32)
_LINES = (1, 2, 4, 7, 8)  # of an image in a tile
_ALONG = (8, 16, 32, 64)  # pixels of a line


def plain_tile(arch: str, product: GemmShape) -> PlainTile | None:
    """Return the tile of a dot that no matrix instruction multiplies.

    None leaves the choice to the compiler.
    """
    chip = _chip(arch, product)
    if chip is None or product.op != DOT:
        return None
    rows, columns, depth = product.dims
    if rows < 2 or (columns < _LEAST[1] and (rows >= _LEAST[0] or depth >= _SHALLOW)):
        return None
    if rows < _LEAST[0]:
        return next(t for n, t in _FEW if rows <= n)
    count = prod(product.batch)
    return next(t for t, n in _TILES if count * t.workgroups(rows, columns) >= n * chip.units)


def plain_windows(arch: str, product: GemmShape) -> tuple[PlainTile, int] | None:
    """Return the tile of a convolution as `plain_tile`, and how many of its pixels lie on a line.

    Lines of a tile divide those of an image: a thread has one, and the compiler lets threads write
    whose line lies beyond the last one. A large tile is better from half of the units with work on.
    """
    chip = _chip(arch, product)
    if chip is None or product.op != CONVOLUTION:
        return None
    images, lines, along, filters = product.dims[:4]
    found = None
    for tile in (_LARGE, _SMALL):
        shapes = [(n, a) for n in _LINES if lines % n == 0 for a in _ALONG if n * a <= tile.size[0]]
        n, each = min(shapes, key=lambda s: (-(-along // s[1]) * s[1], -s[0] * s[1]))
        found = replace(tile, size=(n * each, tile.size[1])), each
        count = images * (lines // n) * -(-along // each) * -(-filters // tile.size[1])
        if 2 * count >= chip.units:
            break
    return found


def _chip(arch: str, product: GemmShape) -> Chip | None:
    """Return the chip that multiplies a product without matrix instructions, else None."""
    chip = CHIPS.get(arch)
    if chip is None or product.dtype == dtypes.INT32.name:
        return chip
    return None if chip.single or product.dtype != dtypes.FLOAT.name else chip


__all__ = ["PlainTile", "plain_tile", "plain_windows"]
