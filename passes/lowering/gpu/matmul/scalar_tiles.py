"""Tiles of matmuls without matrix instructions: a thread has its own sums, or lanes share one.

IREE's own kernels of f32 on RDNA and of i32 read both operands from the cache, element by element,
and some keep what they read in scratch memory. Here a workgroup keeps its part of both in the LDS.
IREE's kernels of few rows leave most units without work, or use padded tiles in scratch memory.
Here lanes take adjacent elements of the depth, and a wave sums all rows of a column. The tiles are
data of `gpu/configs`.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import CONVOLUTION, DOT, ROWS, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.mma import INTRINSICS, SIDE
from mgx_mlir.passes.lowering.gpu.schedules import ThreadTile

_LEAST = (16, 16)  # rows and columns; smaller matmuls are left to IREE's reductions
_SHALLOW = 64  # least depth for sums over lanes
_LINES = (1, 2, 4, 7, 8)  # lines of an image in a tile
_ALONG = (8, 16, 32, 64)  # pixels of a line
_LOADED = 16  # bytes that a lane loads at once
_MOST_ROWS = 15  # most rows of a wave, each a sum in each lane


def thread_tile(arch: str, gemm: GemmShape) -> ThreadTile | None:
    """Return the tile of a GEMM that no matrix instruction multiplies; None: IREE chooses.

    The depth takes several iterations, of fewer elements where it is short: in a single one IREE
    3.13 lets threads past the last row write. So it does where a thread has one row: such a tile
    has all rows.
    """
    chip = _chip(arch, gemm)
    if chip is None or gemm.op != DOT:
        return None
    rows, columns, depth = gemm.dims
    if rows < 2 or depth < 2 or (columns < _LEAST[1] and (rows >= _LEAST[0] or depth >= _SHALLOW)):
        return None
    known, count = schedules.thread_tiles(arch), prod(gemm.batch)
    few, units = rows < _LEAST[0], chip.units
    for least, tile in known.few if few else known.gemm:
        fits = rows <= least if few else count * tile.workgroups(rows, columns) >= least * units
        if fits:
            size = (
                (rows, tile.size[1]) if tile.thread[0] == 1 and rows % tile.size[0] else tile.size
            )
            return replace(
                tile, size=size, depth=min(tile.depth, 1 << (depth - 1).bit_length() - 1)
            )
    return None


def thread_windows(arch: str, gemm: GemmShape) -> tuple[ThreadTile, int] | None:
    """Return the tile of a convolution as `thread_tile`, and how many of its pixels lie on a line.

    Lines of a tile divide those of an image, as a thread has one, and IREE would let threads past
    the last line write. A large tile is better if half of the units have work.
    """
    chip = _chip(arch, gemm)
    if chip is None or gemm.op != CONVOLUTION:
        return None
    images, lines, along, filters = gemm.dims[:4]
    found = None
    for tile in schedules.thread_tiles(arch).windows:
        if prod(gemm.dims[4:7]) <= tile.depth:
            return None  # a single iteration, as in `thread_tile`
        shapes = [(n, a) for n in _LINES if lines % n == 0 for a in _ALONG if n * a <= tile.size[0]]
        n, each = min(shapes, key=lambda s: (-(-along // s[1]) * s[1], -s[0] * s[1]))
        found = replace(tile, size=(n * each, tile.size[1])), each
        count = images * (lines // n) * -(-along // each) * -(-filters // tile.size[1])
        if 2 * count >= chip.units:
            break
    return found


def _chip(arch: str, gemm: GemmShape) -> Chip | None:
    """Return the chip if it multiplies a GEMM without matrix instructions, else None."""
    chip = CHIPS.get(arch)
    if chip is None or gemm.dtype == dtypes.INT32.name:
        return chip
    dtype = dtypes.from_name(gemm.dtype)
    if dtype in (dtypes.HALF, dtypes.BF16):
        return None if INTRINSICS.get(arch) else chip
    if dtype is dtypes.INT8 and gemm.op == CONVOLUTION:
        return chip if _exceeds_lds(chip, gemm) and gemm.intrinsic(arch) is None else None
    return None if chip.single or gemm.dtype != dtypes.FLOAT.name else chip


def _exceeds_lds(chip: Chip, gemm: GemmShape) -> bool:
    """Return whether IREE's own tile of bytes may be larger than the LDS: all windows of an image,
    in whole matrix instructions, where filters leave one partial.
    """
    _, lines, along, filters, *window = gemm.dims[:7]
    rows = -(-lines // SIDE) * -(-along // SIDE) * SIDE * SIDE
    return not chip.is_nvidia and filters % SIDE != 0 and rows * prod(window) > chip.lds


@dataclass(frozen=True)
class LaneTile:
    """Tile of few rows whose depth the lanes of a wave share."""

    rows: int  # rows per workgroup
    columns: int  # columns per workgroup
    waves: int  # waves that share the depth
    run: int  # elements that a lane loads at once


def lane_tile(arch: str, gemm: GemmShape) -> LaneTile | None:
    """Return the tile of few rows of floats by weights; None leaves the choice to IREE."""
    chip = CHIPS.get(arch)
    if chip is None or not _is_few(arch, gemm) or gemm.dims[2] < _SHALLOW:
        return None
    dtype, (rows, columns, depth) = dtypes.from_name(gemm.dtype), gemm.dims
    run = _LOADED // dtype.size
    while run > 1 and chip.lanes * run > depth:
        run //= 2
    # a partial last step is read element by element
    run = next((n for n in (8, 4, 2) if n <= run and depth % (chip.lanes * n) == 0), run)
    # IREE distributes no tile of several rows and columns
    pairs = rows == 1 and columns % 2 == 0 and columns // 2 >= chip.units * chip.simds
    known = schedules.lane_tiles(arch)
    several = columns <= chip.units and depth >= known.loads * known.waves * chip.lanes * run
    return LaneTile(rows, 2 if pairs else 1, known.waves if several else 1, run)


def is_short_row(arch: str, gemm: GemmShape) -> bool:
    """Return whether a GEMM is one short row of floats or bytes, for which each lane sums a whole
    column. IREE's kernel would use a matrix tile in scratch memory.

    Few weights are constants in the kernel, by column.
    """
    dtype, by_row = dtypes.from_name(gemm.dtype), replace(gemm, layout=ROWS)
    if arch not in CHIPS or gemm.dims[0] != 1 or gemm.dims[2] >= _SHALLOW:
        return False
    bytes_ = dtype.is_integer and dtype.size == 1 and gemm.op == DOT and not gemm.batch
    return bytes_ or _is_few(arch, by_row)


def _is_few(arch: str, gemm: GemmShape) -> bool:
    """Return whether a GEMM is one row of floats, by weights, or few of them that no matrix
    instruction multiplies."""
    dtype, rows = dtypes.from_name(gemm.dtype), gemm.dims[0]
    one = gemm.op == DOT and gemm.layout == ROWS and not gemm.batch
    if not one or not dtype.is_float or dtype.size not in (2, 4):
        return False
    return rows == 1 or (1 < rows <= _MOST_ROWS and gemm.intrinsic(arch) is None)


__all__ = ["LaneTile", "is_short_row", "lane_tile", "thread_tile", "thread_windows"]
