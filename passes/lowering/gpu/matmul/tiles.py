"""Tiles of matmuls by matrix instructions on GPUs, chosen by a lower bound of their time.

IREE's tiles are made for large matmuls: at batch 1 most of a chip has no work. Here each matmul
gets the tile with the least bound: matrix cycles, LDS cycles and bytes from the cache of the
workgroups that a compute unit gets, and waits of a wave between two barriers. The bound is an
estimate; nothing was timed. The peaks are those of AMD's public data sheets and instruction set
guides, the clocks of a wave are data of `gpu/configs`. `targets/kernel_time.py` bounds compiled
code in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.chips import Chip
from mgx_mlir.passes.lowering.gpu import schedules
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE, MmaIntrinsic
from mgx_mlir.passes.lowering.gpu.schedules import MmaClocks

# registers of a lane that a tile may take, by lanes and copies of an operand: with more, kernels
# with a partial last tile spill (test_gpu_drawn_matmuls)
_REGISTERS = {(64, 1): 160, (32, 2): 80, (32, 1): 64}
# k-steps per iteration whose operands are live in registers (GEMM on CDNA)
_READ_STEPS = 4
# registers of a thread of NVIDIA, which has 255 at most
_REGISTERS_OF_NVIDIA = 208
_REGISTERS_OF_MORE = 136  # for more than `_WAVES` waves, where a lane has 256 registers at most
_SIZES = (1, 2, 4, 8)  # extents of a tile's axes, in matrix instructions
# extents for GEMMs on CDNA, if all lanes load equally and more than `_WAVES` waves share a tile;
# with fewer waves and a residual, kernels use up to 413 registers (test_tiles_of_three_and_six)
_MORE_SIZES = (1, 2, 3, 4, 6, 8)
# extent of whole tiles on chips whose cache cannot feed tiles of 8 at full rate, and registers of a
# lane beside 16 results of each of eight waves
_LARGEST, _REGISTERS_OF_LARGEST = 16, 152
_STORED = 2  # rows of a wave's results, in matrix instructions, that LLVM stores without a loop
_STEPS = (16, 8, 4, 2, 1)  # matrix instructions along the depth between two barriers
# LLVM unrolls k-loops of 13 to 63 MFMAs per wave on RDNA, and of 64 in convolutions; they spill
_FITS, _STAYS, _STAYS_OF_LINES = 12, 64, 65
_DEEP = 32  # most steps between two barriers, where a matrix instruction is shallow
_WAVES = 4  # most waves of a workgroup: one for each SIMD of a unit
_MORE_WAVES = 8  # most waves of a workgroup of a GEMM on CDNA: two for each SIMD
_LDS = 128  # bytes that a unit gives to the LDS a clock
# fewest matrix instructions of a wave in a k-iteration for which LDS reads are put ahead of them,
# where a lane reads as much at once as it can
_AHEAD = 8
_LARGE = 16  # fewest results of a wave, in matrix instructions, that hide its waits
_EARLY = 6  # fewest k-iterations for which loads start two iterations ahead (CDNA)
_HELD = {64: 4 / 5, 32: 3 / 4}  # share of the LDS that a tile may take, by lanes
_TILES = 3  # tiles of a loop in shared memory on NVIDIA: two are copied ahead
_VECTOR = 16  # bytes that a lane loads at once


@dataclass(frozen=True)
class MmaSchedule:
    """A workgroup's tile of a matmul by matrix instructions, and its division among waves."""

    tiles: tuple[int, int, int]  # lines, then MMA units along each line and along the columns
    subgroups: tuple[int, int, int]  # waves that share each axis of `tiles`
    k_tiles: int  # matrix instructions along the depth between two barriers

    @property
    def subgroup(self) -> tuple[int, ...]:
        """Return the part of one wave."""
        return tuple(n // w for n, w in zip(self.tiles, self.subgroups, strict=True))

    @property
    def rows(self) -> int:
        """Return the rows of the workgroup tile, in MMA units."""
        return self.tiles[0] * self.tiles[1]

    def busy(self, chip: Chip, mma: MmaIntrinsic, depth: int, each: int = 1) -> float:
        """Return the clocks for which a unit with `each` workgroups multiplies, or uses its LDS
        or the cache.
        """
        columns, count = self.tiles[2], prod(self.subgroups)
        wave_rows, wave_columns = prod(self.subgroup[:2]), self.subgroup[2]
        matrix = wave_rows * wave_columns * mma.clocks(chip) * -(-count * each // chip.simds)
        read = count * (wave_rows * mma.rows_bytes + wave_columns * mma.columns_bytes)
        loaded = self.rows * mma.rows_bytes + columns * mma.columns_bytes
        lds = each * (read / chip.lds_read + loaded / _LDS)
        step = max(matrix, lds, each * loaded / chip.cache)
        return -(-depth // (mma.depth * self.k_tiles)) * self.k_tiles * step

    def resident(self, chip: Chip, mma: MmaIntrinsic) -> int:
        """Return the workgroups that a unit holds."""
        # on NVIDIA the operands of one step are live at once, within 10 % of ptxas's count
        given = (
            self.registers(chip, mma, 1) + 8 if chip.is_nvidia else self.registers(chip, mma) + 32
        )
        waves = chip.occupancy(given, self.held(mma), prod(self.subgroups) * chip.lanes)
        return max(1, waves * chip.simds // prod(self.subgroups))

    def held(self, mma: MmaIntrinsic) -> int:
        """Return the bytes of the LDS of an iteration; rows are padded, so that columns lie in
        different banks."""
        row = mma.depth * self.k_tiles * mma.bytes + mma.padding
        return (self.rows * mma.rows + self.tiles[2] * mma.columns) * row

    def stages(self, chip: Chip, mma: MmaIntrinsic, depth: int, *, cut: bool = False) -> int:
        """Return the number of k-iterations in flight.

        cut: tiles of a GEMM are partial, so loads are masked. Iterations are compiled in pairs. For
        an odd count the loop exits inside of a pair: LLVM hoists the masks of the last loads before
        that, and waits for them. Two stages peel one iteration, three stages two.
        On NVIDIA copies are asynchronous, as many as shared memory holds.
        """
        trips = -(-depth // (mma.depth * self.k_tiles))
        if chip.is_nvidia:
            return max(1, min(_TILES, trips, chip.workgroup_lds // self.held(mma)))
        if cut and trips % 2:
            return 2  # an even number of iterations is left
        early = chip.lanes == 64 and trips >= _EARLY and self.loads_evenly(chip, mma)
        # prefetching beside many results and their epilogue takes 370 registers
        full = self.is_large and self.reads_ahead(chip, mma, depth)
        return 3 if early and not full else 2

    @property
    def is_large(self) -> bool:
        """Return whether a wave has enough results to hide its waits."""
        return prod(self.subgroup) >= _LARGE

    def reads_ahead(self, chip: Chip, mma: MmaIntrinsic, depth: int) -> bool:
        """Return whether LLVM should schedule LDS reads far ahead of their use: on CDNA, in loops.

        LLVM assumes a latency of 5 clocks, and leaves most reads just before their use.
        """
        own = prod(self.subgroup) * self.k_tiles
        wide = mma.rows_bytes >= _VECTOR * chip.lanes
        trips = -(-depth // (mma.depth * self.k_tiles))
        if self.is_large and chip.depth == SIDE:
            return False
        return chip.lanes == 64 and trips > 1 and (not wide or own >= _AHEAD)

    def keeps_loop(self, mma: MmaIntrinsic, depth: int, *, several: bool) -> bool:
        """Return whether LLVM should not unroll the loop over the depth of a GEMM on CDNA.

        LLVM unrolls a short loop fully, and hoists loads of the epilogue. That spills if lanes have
        half of the registers, or a unit holds several workgroups that read a residual.
        """
        shared = several or prod(self.subgroups) > _WAVES
        return shared and depth > mma.depth * self.k_tiles

    def loads_evenly(self, chip: Chip, mma: MmaIntrinsic) -> bool:
        """Return whether all lanes load equally many vectors of each operand, or each vector is
        loaded twice.

        Otherwise a lane's share is kept in memory, as three stages pass it between iterations
        (hazard 40).
        """
        once = prod(self.subgroups) * chip.lanes * _VECTOR
        steps = self.k_tiles
        sizes = (self.rows * mma.rows_bytes * steps, self.tiles[2] * mma.columns_bytes * steps)
        return all(n % once == 0 or (once % n == 0 and once // n % 3) for n in sizes)

    def registers(self, chip: Chip, mma: MmaIntrinsic, steps: int = 0) -> int:
        """Return the registers of a lane: operands of all steps, or of this number, sums, and loads
        under way.
        """
        wave_rows, wave_columns = prod(self.subgroup[:2]), self.subgroup[2]
        pieces = (mma.rows_bytes // 4, mma.columns_bytes // 4)
        rows, columns = (-(-n // chip.lanes) * chip.copies for n in pieces)
        sums = wave_rows * wave_columns * mma.rows * mma.columns // chip.lanes
        words = (self.rows * pieces[0] + self.tiles[2] * pieces[1]) * self.k_tiles
        loaded = words // (prod(self.subgroups) * chip.lanes)
        held = wave_rows * rows + wave_columns * columns
        return (steps or self.k_tiles) * held + sums + loaded

    def is_cut(self, mma: MmaIntrinsic, of: Extents) -> bool:
        """Return whether some tiles of a matmul are partial, so their loads are masked."""
        own = (self.tiles[1] * mma.rows, self.tiles[2] * mma.columns, self.k_tiles * mma.depth)
        return any(n % t for n, t in zip((of.along, of.columns, of.depth), own, strict=True))

    def workgroups(self, mma: MmaIntrinsic, of: Extents) -> int:
        """Return how many workgroups cover a result."""
        own = (self.tiles[0], self.tiles[1] * mma.rows, self.tiles[2] * mma.columns)
        return prod(-(-n // t) for n, t in zip((of.lines, of.along, of.columns), own, strict=True))


@dataclass(frozen=True)
class Extents:
    """Extents of a matmul or convolution, as matrix instructions see it."""

    lines: int  # lines of pixels; for a dot, batch entries
    along: int  # rows along each line
    columns: int
    depth: int
    apart: bool = False  # no tile spans lines
    gathered: bool = False  # each workgroup gathers its rows, element by element
    vectors: int = 0  # most masked vectors of rows for each wave in a k-iteration, 0: no bound
    heavy: bool = False  # kernel has an epilogue of many instructions


@lru_cache(maxsize=1024)
def choose(chip: Chip, mma: MmaIntrinsic, of: Extents) -> MmaSchedule:
    """Return the tile for a whole matmul.

    Among tiles near the lowest bound it is the one that keeps a unit least busy, as more units
    share the work. If rows are gathered, it is the one with fewest reads. Among tiles that differ
    only in waves it has the lowest bound.
    """
    tiles = bounds(chip, mma, of)
    least = min(tiles.values())
    fastest: dict[tuple[object, int], MmaSchedule] = {}

    # with partial tiles, waves split rows, as a wave then loads adjacent columns at once; they
    # split columns if only rows of a GEMM on CDNA are partial
    def wide(t: MmaSchedule) -> int:
        whole = of.columns % (t.tiles[2] * mma.columns) == 0
        rows = _is_rows(chip, of) and whole and of.along % (t.tiles[1] * mma.rows) != 0
        return t.subgroup[2] if rows else -t.subgroup[2]

    order = {t: (tiles[t], t.busy(chip, mma, of.depth), wide(t)) for t in tiles}
    for t in sorted(tiles, key=lambda t: order[t]):
        fastest.setdefault((t.tiles, t.k_tiles), t)

    def rank(tile: MmaSchedule) -> tuple[float, tuple[int, int]]:
        busy = tile.busy(chip, mma, of.depth, _each(chip, mma, tile, of))
        return 0 if of.gathered else busy, _read(mma, tile, of)

    near = schedules.mma(chip.arch, gemm=_has_own_clocks(chip, of)).near
    return min((t for t in fastest.values() if tiles[t] <= near * least), key=rank)


def candidates(chip: Chip, mma: MmaIntrinsic, of: Extents, count: int) -> list[MmaSchedule]:
    """Return the tiles to compare, best first.

    The chosen one comes first, then those with the lowest bounds, then tiles that differ from one
    of these only in waves.
    """
    tiles = bounds(chip, mma, of, every=True)
    ranked = sorted(tiles, key=lambda t: (tiles[t], _read(mma, t, of)))
    first: dict[tuple[object, int], MmaSchedule] = {}
    for t in [choose(chip, mma, of), *ranked]:
        first.setdefault((t.tiles, t.k_tiles), t)
    return list(dict.fromkeys([*first.values(), *ranked]))[:count]


def bounds(
    chip: Chip, mma: MmaIntrinsic, of: Extents, *, every: bool = False
) -> dict[MmaSchedule, float]:
    """Return the possible tiles of a matmul, with the lower bound of each in clocks.

    every: include others where a device timed the best one.
    """
    timed = _timed(chip, mma, of, every=every)
    if timed:
        return {t: clocks(chip, mma, t, of) for t in timed}
    rows = _is_rows(chip, of)
    axes = (
        (1,) if of.apart else _fitting(of.lines, 1, range(1, 9)),
        _fitting(of.along, mma.rows),
        _fitting(of.columns, mma.columns, _column_sizes(mma)),
    )
    if rows:
        covered = tuple(axes[1]) == _SIZES[-1:]
        more = (_fitting(n, SIDE, _MORE_SIZES) for n in (of.along, of.columns))
        along, columns = ({*a, *b} for a, b in zip(axes[1:], more, strict=True))
        # rows of a partial last tile of a GEMM on CDNA do not go through memory
        axes = (axes[0], _MORE_SIZES[1:] if covered else sorted(along), sorted(columns))
        if chip.depth > SIDE:
            large = (
                [_LARGEST] if n % (_LARGEST * SIDE) == 0 else [] for n in (of.along, of.columns)
            )
            axes = (axes[0], *([*a, *b] for a, b in zip(axes[1:], large, strict=True)))
    # a GEMM whose depth is not a multiple of a step may have one padded iteration, without a loop
    depth = _covering(mma, of.depth) if of.apart and not of.gathered else of.depth
    found = list(_tiles(chip, mma, axes, depth, rows=rows))
    found = found or list(_tiles(chip, mma, ((1,), _SIZES, _column_sizes(mma)), depth, rows=rows))
    kept = [t for t in found if not _is_unrolled(chip, mma, t, of)]
    if rows:
        kept = [t for t in kept if not _stores_in_loop(t, of)] or kept
    if of.vectors:
        kept = [t for t in kept if _masks(mma, t, of) <= of.vectors] or kept
    return {t: clocks(chip, mma, t, of) for t in kept or found}


def _timed(chip: Chip, mma: MmaIntrinsic, of: Extents, *, every: bool) -> list[MmaSchedule]:
    """Return the tiles for a GEMM among those that a device timed, none where none was.

    If its sizes were timed, only the best tile is returned. Else the tiles that do not exceed the
    result, and divide the depth, if any does.
    """
    known = schedules.timed(chip.arch) if chip.is_nvidia and of.apart and not of.gathered else None
    if known is None:
        return []
    best = known.best.get((of.along, of.columns, of.depth))
    if best is not None and of.lines == 1 and not every:
        return [MmaSchedule(*best)]
    found = [MmaSchedule(*row) for row in known.tiles]
    held = [t for t in found if t.held(mma) <= chip.workgroup_lds]
    near = [
        t
        for t in held
        if t.rows * mma.rows < 2 * of.along + mma.rows and t.tiles[2] * mma.columns < 2 * of.columns
    ]
    whole = [t for t in near if of.depth % (mma.depth * t.k_tiles) == 0]
    return whole or near


def _column_sizes(mma: MmaIntrinsic) -> Sequence[int]:
    """Return the extents of a tile along the columns, in matrix instructions."""
    return tuple(n * SIDE // mma.columns for n in _SIZES)


def _covering(mma: MmaIntrinsic, depth: int) -> int:
    """Round the depth up to one k-iteration; return it unchanged if none is deep enough."""
    covering = [n * mma.depth for n in _STEPS if n * mma.depth >= depth]
    return min(covering, default=depth)


def _is_unrolled(chip: Chip, mma: MmaIntrinsic, tile: MmaSchedule, of: Extents) -> bool:
    """Return whether LLVM fully unrolls the loop over the depth, with more sums and operands
    than registers: on gfx11 and gfx12, by the matrix instructions of a wave.
    """
    instructions = prod(tile.subgroup) * -(-of.depth // mma.depth)
    stays = _STAYS if of.lines == 1 else _STAYS_OF_LINES
    return chip.lanes == 32 and not chip.is_nvidia and _FITS < instructions < stays


def _stores_in_loop(tile: MmaSchedule, of: Extents) -> bool:
    """Return whether a wave stores results of partial rows in a loop on CDNA; LLVM unrolls it where
    it is short."""
    return of.along % (tile.rows * SIDE) != 0 and prod(tile.subgroup[:2]) > _STORED


def _masks(mma: MmaIntrinsic, tile: MmaSchedule, of: Extents) -> float:
    """Return the masked vectors that each wave reads in a k-iteration: all for gathered
    windows; for a GEMM's rows, if the depth is not a multiple of an iteration.
    """
    if of.apart and of.depth % (mma.depth * tile.k_tiles) == 0:
        return 0
    return tile.rows * tile.k_tiles * mma.rows_bytes / _VECTOR / prod(tile.subgroups)


def clocks(chip: Chip, mma: MmaIntrinsic, tile: MmaSchedule, of: Extents) -> float:
    """Return the lower bound of a matmul's time with a tile, in clocks."""
    known = schedules.mma(chip.arch, gemm=_has_own_clocks(chip, of))
    each = _each(chip, mma, tile, of)
    rounds = -(-each // tile.resident(chip, mma))
    alone = rounds * _alone(chip, mma, tile, of, known)
    partial = of.along % (tile.tiles[1] * mma.rows) or of.columns % (tile.tiles[2] * mma.columns)
    two = -(-of.depth // (mma.depth * tile.k_tiles)) == 2
    late = known.late if partial and two and not _reads_narrowly(chip, mma) else 0
    return max(tile.busy(chip, mma, of.depth, each), alone) + late


def _has_own_clocks(chip: Chip, of: Extents) -> bool:
    """Return whether a GEMM has other clocks than windows do: on CDNA, and on NVIDIA, where its
    tiles are copied ahead."""
    return _is_rows(chip, of) or (chip.is_nvidia and of.apart and not of.gathered)


def _is_rows(chip: Chip, of: Extents) -> bool:
    """Return whether a matmul is a GEMM on CDNA, whose rows are read in place."""
    return chip.lanes == 64 and of.apart and not of.gathered


def _alone(
    chip: Chip, mma: MmaIntrinsic, tile: MmaSchedule, of: Extents, known: MmaClocks
) -> float:
    """Return the clocks of a workgroup alone on a compute unit."""
    wave_rows, wave_columns = prod(tile.subgroup[:2]), tile.subgroup[2]
    pieces, waves = wave_rows * wave_columns, prod(tile.subgroups)
    narrow = _reads_narrowly(chip, mma)
    # on CDNA two reads of 8 bytes are one of 16
    own = tile.k_tiles * (pieces * mma.clocks(chip) + known.step / (2 if narrow else 1))
    at_once = chip.lanes * _VECTOR
    reads = tile.k_tiles * (
        wave_rows * max(1, mma.rows_bytes / at_once)
        + wave_columns * max(1, mma.columns_bytes / at_once)
    )
    alone = waves == 1
    iteration = max(known.least, known.meet - known.alone * alone + own + known.read * reads)
    loaded = (tile.rows * mma.rows_bytes, tile.tiles[2] * mma.columns_bytes)
    vectors = [n * tile.k_tiles / (waves * at_once) for n in loaded]
    trips = -(-of.depth // (mma.depth * tile.k_tiles))
    ends = known.ends + known.piece * pieces + known.first * sum(vectors)
    ends -= known.one * (trips == 1) + known.alone_ends * alone
    extents = (of.along, of.columns)
    own_sizes = (tile.tiles[1] * mma.rows, tile.tiles[2] * mma.columns)
    cut = [n % t != 0 for n, t in zip(extents, own_sizes, strict=True)]
    masked = [n for n, is_cut in zip(vectors, cut, strict=True) if is_cut]
    is_deep = of.depth % (mma.depth * tile.k_tiles) != 0
    iteration += known.mask_depth * sum(vectors) if is_deep else known.mask * sum(masked)
    iteration += known.few * any(n <= known.few_vectors for n in masked)
    if waves > _WAVES:
        iteration += known.kept[len(masked)]
    ends += known.heavy * pieces * of.heavy
    if cut[0]:
        ends += known.cut + known.cut_piece * pieces
    if trips == 2 and tile.is_cut(mma, of):
        one = pieces == 1 and waves <= _WAVES
        ends += known.two_of_one if one or narrow else known.two
    return trips * iteration + ends


def _reads_narrowly(chip: Chip, mma: MmaIntrinsic) -> bool:
    """Return whether a lane reads 8 bytes of the LDS for a 16-bit matrix instruction, on CDNA."""
    return chip.lanes == 64 and mma.bytes == 2 and mma.depth == SIDE


def _each(chip: Chip, mma: MmaIntrinsic, tile: MmaSchedule, of: Extents) -> int:
    """Return the number of workgroups on the busiest unit."""
    return -(-tile.workgroups(mma, of) // chip.units)


def _read(mma: MmaIntrinsic, tile: MmaSchedule, of: Extents) -> tuple[int, int]:
    loaded = tile.rows * mma.rows + tile.tiles[2] * mma.columns
    return tile.workgroups(mma, of) * loaded, -prod(tile.subgroups)


def _tiles(
    chip: Chip, mma: MmaIntrinsic, axes: Sequence[Sequence[int]], depth: int, *, rows: bool
) -> Iterator[MmaSchedule]:
    """Make the tiles that a chip holds; rows: of a GEMM on CDNA."""
    most = _MORE_WAVES if rows or chip.is_nvidia else _WAVES
    least = max(1, SIDE // mma.depth)  # steps: as deep as a 16-bit instruction
    for size in product(axes[0], axes[1], axes[2]):
        lines_by, along_by, columns_by = (
            [w for w in range(1, most + 1) if n % w == 0] for n in size
        )
        for waves in product(lines_by, along_by, columns_by):
            if prod(waves) > most:
                continue
            for steps in _STEPS:
                tile = MmaSchedule(size, waves, min(steps * least, _DEEP))
                if _fits(chip, mma, tile, rows=rows) and (
                    steps == 1 or mma.depth * tile.k_tiles <= max(depth, mma.depth)
                ):
                    yield tile


def _fits(chip: Chip, mma: MmaIntrinsic, tile: MmaSchedule, *, rows: bool) -> bool:
    if chip.is_nvidia:
        held = tile.held(mma) <= chip.workgroup_lds
        return held and tile.registers(chip, mma, 1) <= _REGISTERS_OF_NVIDIA
    limit = _REGISTERS[chip.lanes, chip.copies]
    few = prod(tile.subgroups) <= _WAVES
    if not few:
        limit = _REGISTERS_OF_MORE
    odd = rows and any(n not in _SIZES for n in tile.tiles)
    if odd and (few or not tile.loads_evenly(chip, mma)):
        return False
    if rows and _LARGEST in tile.tiles:
        limit = _REGISTERS_OF_LARGEST
    registers = tile.registers(chip, mma, min(_READ_STEPS, tile.k_tiles) if rows else 0)
    return tile.held(mma) <= _HELD[chip.lanes] * chip.lds and registers <= limit


def _fitting(extent: int, unit: int, sizes: Sequence[int] = _SIZES) -> Sequence[int]:
    """Return the sizes that divide an axis into whole tiles, and the smallest that covers it.

    Return all sizes where there is neither: the last tile is then partial, and operands of the
    epilogue go through memory.
    """
    covering = [n for n in sizes if n * unit >= extent]
    whole = [n for n in sizes if extent % (n * unit) == 0 and n not in covering]
    return [*whole, *covering[:1]] or sizes


__all__ = ["Extents", "MmaSchedule", "bounds", "candidates", "choose", "clocks"]
