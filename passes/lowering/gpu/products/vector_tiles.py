"""Products of one row, or of few, with weights stored by row: which columns a wave sums, and how.

The compiler's own kernels leave most units of arithmetic without work, or are matrix tiles of
padded rows that lie in scratch memory. The sizes are those that `targets/kernel_time.py` finds best
in compiled code on gfx942: 1.4 us in place of 5.2 for 4096 x 4096 in f16. Of few rows that no
matrix instruction multiplies a wave has all: 12 x 768 x 3072 in f32 on gfx1100 takes 10 us in place
of 835.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.gpu.products.gemm_shape import DOT, ROWS, GemmShape

_LOADED = 16  # bytes: what a lane loads at once
_LEAST = 64  # of the depth: for less, lanes have nothing to sum
_WAVES = 4  # of a workgroup, where columns are few
_DEEP = 8  # loads of each lane, from which on that is worth meeting
MOST_ROWS = 15  # of a wave, each a sum in each lane


@dataclass(frozen=True)
class VectorTile:
    """rows, columns: of a workgroup. waves: that share the depth. run: elements that a lane
    loads."""

    rows: int
    columns: int
    waves: int
    run: int


def vector_tile(arch: str, product: GemmShape) -> VectorTile | None:
    """Return the tile of few rows of floats by weights; None leaves the choice to the compiler."""
    chip = CHIPS.get(arch)
    if chip is None or not _is_few(arch, product) or product.dims[2] < _LEAST:
        return None
    dtype, (rows, columns, depth) = dtypes.from_name(product.dtype), product.dims
    run = _LOADED // dtype.size
    while run > 1 and chip.lanes * run > depth:
        run //= 2
    # a last step that is cut is read element by element
    run = next((n for n in (8, 4, 2) if n <= run and depth % (chip.lanes * n) == 0), run)
    # of several rows and columns the compiler distributes none
    pairs = rows == 1 and columns % 2 == 0 and columns // 2 >= chip.units * chip.simds
    alone = columns <= chip.units and depth >= _DEEP * _WAVES * chip.lanes * run
    return VectorTile(rows, 2 if pairs else 1, _WAVES if alone else 1, run)


def is_short_row(arch: str, product: GemmShape) -> bool:
    """Return whether a product is a row of so few floats that each lane sums a column whole: the
    compiler's own kernel is a matrix tile in scratch memory."""
    one = product.dims[0] == 1
    return arch in CHIPS and one and _is_few(arch, product) and product.dims[2] < _LEAST


def _is_few(arch: str, product: GemmShape) -> bool:
    """Return whether a product is one row of floats, by weights, or few of them that no matrix
    instruction multiplies."""
    dtype, rows = dtypes.from_name(product.dtype), product.dims[0]
    one = product.op == DOT and product.layout == ROWS and not product.batch
    if not one or not dtype.is_float or dtype.size not in (2, 4):
        return False
    return rows == 1 or (1 < rows <= MOST_ROWS and product.intrinsic(arch) is None)


__all__ = ["MOST_ROWS", "VectorTile", "is_short_row", "vector_tile"]
