"""Tiles of matrix products on AMD GPUs: sizes by a bound on their time, said to the compiler.

What the compiler chooses by itself is made for large products: at batch 1 most of a chip has no
work. Here a tile is chosen for each product by what bounds it: matrix cycles, LDS cycles and bytes
from the cache, of one workgroup, times the rounds in which all workgroups run on the chip's
compute units. It is an estimate; nothing was timed. The peaks are those of AMD's public data
sheets and instruction set guides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.chips import CHIPS, Chip
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir

_F16, _BF16 = dtypes.HALF, dtypes.BF16
_CDNA3 = {_F16: "MFMA_F32_16x16x16_F16", _BF16: "MFMA_F32_16x16x16_BF16"}
_RDNA3 = {_F16: "WMMAR3_F32_16x16x16_F16", _BF16: "WMMAR3_F32_16x16x16_BF16"}
_RDNA4 = {_F16: "WMMAR4_F32_16x16x16_F16", _BF16: "WMMAR4_F32_16x16x16_BF16"}
# the matrix instruction of each element type, 16x16x16
KINDS: dict[str, dict[DType, str]] = {
    "gfx90a": {_F16: "MFMA_F32_16x16x16_F16"},
    "gfx942": _CDNA3,
    "gfx950": _CDNA3,
    "gfx1100": _RDNA3,
    "gfx1101": _RDNA3,
    "gfx1151": _RDNA3,
    "gfx1200": _RDNA4,
    "gfx1201": _RDNA4,
}
# registers of a lane that a tile may take, by lanes and copies of an operand: with more, kernels
# were seen to spill whose last tile is cut
_REGISTERS = {(64, 1): 112, (32, 2): 80, (32, 1): 64}
_SIDE = 16  # rows, columns and depth of a matrix instruction
_SIZES = (1, 2, 4, 8)  # of a tile's axes, in matrix instructions
_STEPS = (8, 4, 2, 1)  # matrix instructions along the depth between two barriers
_WAVES = 4  # of a workgroup at the most: one for each of a unit's four units of arithmetic
_CACHE = 64  # bytes that a unit gets from the cache a clock
_LDS = 128  # bytes that a unit gets from the LDS a clock
_LEAST = 400  # clocks between two barriers at the least: what a load takes to come
_BYTES = 2  # of an element
_HELD = 32768  # bytes of the LDS that a tile may take: two workgroups share a unit
_LEAST_ROWS = 2  # a product with a vector reads its matrix once: the compiler's reductions do that


@dataclass(frozen=True)
class Tile:
    """A workgroup's tile: lines, then matrix instructions along each line, along the columns and
    in depth; and how many waves share each of the first three axes."""

    size: tuple[int, int, int]
    waves: tuple[int, int, int]
    steps: int

    @property
    def wave(self) -> tuple[int, ...]:
        """The part of one wave."""
        return tuple(n // w for n, w in zip(self.size, self.waves, strict=True))

    def clocks(self, chip: Chip, depth: int) -> float:
        """What bounds a workgroup's time."""
        lines, along, columns = self.size
        rows, count = lines * along, prod(self.waves)
        _, _, wave_columns = self.wave
        wave_rows = prod(self.wave[:2])
        piece = _SIDE * _SIDE * _BYTES
        matrix = wave_rows * wave_columns * 2 * _SIDE**3 / (chip.matrix / _WAVES)
        read = count * (wave_rows + wave_columns) * piece
        loaded = (rows + columns) * piece
        step = max(matrix, (read + loaded) / _LDS, loaded / _CACHE)
        return -(-depth // (_SIDE * self.steps)) * max(self.steps * step, _LEAST)

    def registers(self, chip: Chip) -> int:
        """Of a lane: operands of all steps, sums, and what is on its way from memory."""
        wave_rows, wave_columns = prod(self.wave[:2]), self.wave[2]
        piece = _SIDE * _SIDE * _BYTES // 4
        operand = piece // chip.lanes * chip.copies
        sums = wave_rows * wave_columns * _SIDE * _SIDE // chip.lanes
        pieces = (self.size[0] * self.size[1] + self.size[2]) * self.steps
        loaded = pieces * piece // (prod(self.waves) * chip.lanes)
        return self.steps * (wave_rows + wave_columns) * operand + sums + loaded

    def workgroups(self, lines: int, along: int, columns: int) -> int:
        own = (self.size[0], self.size[1] * _SIDE, self.size[2] * _SIDE)
        return prod(-(-n // t) for n, t in zip((lines, along, columns), own, strict=True))


def matmul_info(arch: str, dtype: DType, m: int, n: int, k: int) -> ir.Attribute | None:
    """The compiler's attribute for a product [m, k] x [n, k]; None where it is to choose."""
    kind = KINDS.get(arch, {}).get(dtype)
    if kind is None or min(m, n) < _LEAST_ROWS:
        return None
    chip = CHIPS[arch]
    tile = choose(chip, 1, m, n, k)
    sizes = [n * _SIDE for n in tile.size[1:]]
    return _info(chip, kind, tile, sizes, tile.wave[1:], [0, 0], "")


def convolution_info(
    arch: str, dtype: DType, out: Sequence[int], kernel: Sequence[int], channels: int
) -> ir.Attribute | None:
    """For a convolution with result [n, oh, ow, f], weights [f, kh, kw, c]; as matmul_info."""
    kind = KINDS.get(arch, {}).get(dtype)
    if kind is None or channels % _SIDE:
        return None
    chip = CHIPS[arch]
    n, lines, along, columns = out
    tile = choose(chip, n * lines, along, columns, prod(kernel) * channels)
    sizes = [1, tile.size[0], *(n * _SIDE for n in tile.size[1:])]
    whole = f"padding_conv = {_list([*sizes, 0, 0, 0])}, "
    return _info(chip, kind, tile, sizes, [1, *tile.wave], [0] * 4, whole)


def window_info(arch: str, out: Sequence[int], spatial: int) -> ir.Attribute | None:
    """For windows of channels-last images that are reduced, results [n, .., c]; as matmul_info.

    A thread takes neighbouring channels and one element of the window at a time: what a window is
    cut from at the border would else lie in memory.
    """
    chip = CHIPS.get(arch)
    channels = out[-1]
    run = next(n for n in (4, 2, 1) if channels % n == 0)
    if chip is None or channels < run * _SIDE:
        return None
    across = max(n for n in range(1, chip.lanes + 1) if (channels // run) % n == 0)
    images = max(n for n in range(1, chip.lanes // across + 1) if out[-2] % n == 0)
    lead = [1] * (len(out) - 2)
    none = [0] * spatial
    return _attribute(
        f"reduction = {_list([0] * len(out) + [1] * spatial)}, "
        f"thread = {_list([*lead, 1, run, *none])}, "
        f"workgroup = {_list([*lead, images, across * run, *none])}",
        across * images,
        chip,
    )


def give(e: Any, found: ir.Value, info: Callable[[str], ir.Attribute | None]) -> None:
    """Put what `info` says for the target's chip on the op that makes a value of static dims."""
    if not e.options.tiles or not ir.RankedTensorType(found.type).has_static_shape:
        return
    chosen = info(e.options.arch)
    if chosen is not None:
        found.owner.attributes["compilation_info"] = chosen


@lru_cache(maxsize=1024)
def choose(chip: Chip, lines: int, along: int, columns: int, depth: int) -> Tile:
    """The tile for a whole product: of those within a tenth of the lowest bound that which reads
    least, of equal ones that with the most waves."""

    def clocks(tile: Tile) -> float:
        rounds = -(-tile.workgroups(lines, along, columns) // chip.units)
        return rounds * tile.clocks(chip, depth)

    def read(tile: Tile) -> tuple[int, int]:
        count = tile.workgroups(lines, along, columns)
        return count * (tile.size[0] * tile.size[1] + tile.size[2]), -prod(tile.waves)

    axes = _fitting(lines, 1, range(1, 9)), _fitting(along, _SIDE), _fitting(columns, _SIDE)
    found = list(_tiles(chip, axes, depth)) or list(_tiles(chip, ((1,), _SIZES, _SIZES), depth))
    tiles = {t: clocks(t) for t in found}
    least = min(tiles.values())
    return min((t for t, n in tiles.items() if n <= 1.1 * least), key=read)


def _tiles(chip: Chip, axes: Sequence[Sequence[int]], depth: int) -> Iterator[Tile]:
    for size in product(axes[0], axes[1], axes[2]):
        lines_by, along_by, columns_by = (
            [w for w in range(1, _WAVES + 1) if n % w == 0] for n in size
        )
        for waves in product(lines_by, along_by, columns_by):
            if prod(waves) > _WAVES:
                continue
            for steps in _STEPS:
                deep = _SIDE * steps
                held = (size[0] * size[1] + size[2]) * _SIDE * deep * _BYTES
                tile = Tile(size, waves, steps)
                fits = held <= _HELD and tile.registers(chip) <= _REGISTERS[chip.lanes, chip.copies]
                if fits and (steps == 1 or deep <= depth):
                    yield tile


def _fitting(extent: int, unit: int, sizes: Sequence[int] = _SIZES) -> Sequence[int]:
    """The sizes of an axis whose tiles are all whole, or the one that covers it; else all sizes.
    What a kernel reads besides its operands goes through memory where the last tile is cut."""
    covering = [n for n in sizes if n * unit >= extent]
    whole = [n for n in sizes if extent % (n * unit) == 0 and n not in covering]
    return [*whole, *covering[:1]] or sizes


def _info(
    chip: Chip,
    kind: str,
    tile: Tile,
    sizes: Sequence[int],
    wave: Sequence[int],
    parallel: Sequence[int],
    convolution: str,
) -> ir.Attribute:
    """The attribute, with sizes in elements and a wave's share in matrix instructions."""
    igemm = ", use_igemm_convolution = true" if convolution else ""
    return _attribute(
        f"mma_kind = #iree_gpu.mma_layout<{kind}>, "
        f"padding = {_list([*sizes, tile.steps * _SIDE])}, {convolution}"
        f"promote_operands = [0, 1], reduction = {_list([*parallel, tile.steps])}, "
        f"subgroup = {_list([*wave, 0])}, workgroup = {_list([*sizes, 0])}",
        prod(tile.waves) * chip.lanes,
        chip,
        ", {gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2, "
        f"no_reduce_shared_memory_bank_conflicts = false{igemm}>}}",
    )


def _attribute(config: str, threads: int, chip: Chip, options: str = "") -> ir.Attribute:
    return ir.Attribute.parse(
        "#iree_codegen.compilation_info<"
        f"lowering_config = #iree_gpu.lowering_config<{{{config}}}>, "
        "translation_info = <pipeline = #iree_gpu.pipeline<TileAndFuse> "
        f"workgroup_size = [{threads}, 1, 1] subgroup_size = {chip.lanes}{options}>>"
    )


def _list(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"
