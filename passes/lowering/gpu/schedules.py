"""Tiles, and clocks of kernels' parts, by architecture: data of `configs/<arch>.json`.

Architectures of one family share a file (`LIKE`).

`benchmarks/gpu_tiles.py` writes the files of AMD, `benchmarks/gpu_schedules.py` those of NVIDIA.
Each states its source and date.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from mgx_mlir.core.records import dataclass

# tile in matrix instructions, waves along its axes, matrix instructions of a k-iteration
MmaTile = tuple[tuple[int, int, int], tuple[int, int, int], int]
Key = tuple[int, int, int]  # waves of a workgroup, keys of a tile, lines of query rows per wave


@dataclass(frozen=True)
class AttentionClocks:
    """Clocks of a wave of an attention."""

    iteration: float  # clocks of an iteration over a tile of keys, alone on its unit
    ends: float  # clocks before the first tile and after the last, alone on its unit
    busy: float  # clocks per iteration in which its SIMD's matrix or vector unit is busy


@dataclass(frozen=True)
class MmaClocks:
    """Clocks of a wave that multiplies by matrix instructions; what a fit leaves out is 0.

    GEMMs on CDNA have their own, since LLVM puts their LDS reads ahead, and those on NVIDIA, whose
    tiles are copied ahead.
    """

    least: float  # fewest clocks of a k-iteration: the latency of a load
    meet: float  # wait in a k-iteration, in addition to its matrix instructions and LDS reads
    ends: float  # clocks before the first iteration and after the last
    near: float  # tiles within this multiple of the least clocks are compared by other properties
    # in each k-iteration
    step: float = 0  # clocks to read the operands of each matrix instruction along the depth
    read: float = 0  # clocks for each LDS read
    alone: float = 0  # clocks saved by a workgroup of one wave
    mask: float = 0  # clocks for each vector masked by row or column
    mask_depth: float = 0  # clocks for each vector masked by depth
    few: float = 0  # clocks if LLVM waits for masked vectors ahead of the first matrix instruction
    few_vectors: int = 0  # most masked vectors of an operand for which LLVM waits so
    # clocks for 0, 1, 2 masked operands, in a loop that is not unrolled
    kept: tuple[float, ...] = (0, 0, 0)
    # once for a wave
    piece: float = 0  # clocks for each 16x16 piece of results
    first: float = 0  # clocks for each vector of a lane's first load
    alone_ends: float = 0  # clocks saved by a workgroup of one wave
    one: float = 0  # clocks saved where there is a single k-iteration
    cut: float = 0  # clocks where rows are stored by a mask
    cut_piece: float = 0  # clocks for each 16x16 piece of results where rows are stored by a mask
    heavy: float = 0  # clocks for each 16x16 piece of results with an epilogue of many instructions
    two: float = 0  # clocks for partial tiles with two k-iterations: the second is not prefetched
    # clocks in place of `two` where a wave has one piece or a lane reads 8 bytes of the LDS at once
    two_of_one: float = 0
    # once for a compute unit, whatever its bound
    late: float = 0  # clocks for tiles of partial rows or columns with two k-iterations


@dataclass(frozen=True)
class TimedTiles:
    """Tiles of GEMMs by matrix instructions that a device's clock judged."""

    tiles: tuple[MmaTile, ...]  # all that were timed
    best: Mapping[tuple[int, ...], MmaTile]  # rows, columns and depth of a GEMM -> its tile


@dataclass(frozen=True)
class GemmCosts:
    """Costs of a GEMM beside its tiles."""

    sum: float  # clocks of the launch that adds up parts of the depth, besides its bytes
    unaligned: float  # multiple of a GEMM's time whose rows do not begin at whole vectors
    unaligned_partial: float  # the same multiple for partial tiles, and on RDNA


@dataclass(frozen=True)
class ThreadTile:
    """A workgroup's tile of a matmul without matrix instructions."""

    size: tuple[int, int]  # rows and columns per workgroup
    thread: tuple[int, int]  # rows and columns per thread
    depth: int  # depth between two barriers

    @property
    def threads(self) -> int:
        """Return the number of threads of a workgroup."""
        return prod(s // t for s, t in zip(self.size, self.thread, strict=True))

    def workgroups(self, rows: int, columns: int) -> int:
        """Return how many workgroups cover a result."""
        return -(-rows // self.size[0]) * -(-columns // self.size[1])


@dataclass(frozen=True)
class ThreadTiles:
    """Tiles of matmuls without matrix instructions."""

    gemm: list[tuple[int, ThreadTile]]  # workgroups per compute unit from which on a tile is best
    few: list[tuple[int, ThreadTile]]  # most rows of a tile of few rows
    windows: list[ThreadTile]  # tiles of convolutions, the large one first


@dataclass(frozen=True)
class LaneTiles:
    """Waves of a workgroup of few rows whose depth lanes share."""

    waves: int  # waves that share the depth where columns are few
    loads: int  # fewest loads of a lane for which waves share the depth
    word_loads: int  # fewest loads of a lane of words of codes for which waves share the depth
    word_waves: int  # waves that share the depth of words of codes
    word_wave_columns: int  # most columns for each SIMD of the chip where they do
    word_columns: int  # most columns of words of codes that a lane reads for one row


# architectures whose schedules are another's: their units do the same in a clock
LIKE = {
    **dict.fromkeys(("gfx1101", "gfx1102", "gfx1103"), "gfx1100"),
    **dict.fromkeys(("gfx1150", "gfx1151", "gfx1152", "gfx1153"), "gfx1100"),
    **dict.fromkeys(("gfx906", *(f"gfx103{n}" for n in range(7))), "gfx1100"),
    "gfx1200": "gfx1201",
}


@cache
def _file(arch: str) -> Mapping[str, Any]:
    arch = LIKE.get(arch, arch)
    return json.loads((Path(__file__).parent / "configs" / f"{arch}.json").read_text())


@cache
def mma(arch: str, *, gemm: bool = False) -> MmaClocks:
    """Return the clocks of matmuls and convolutions; gemm: of GEMMs on CDNA and on NVIDIA."""
    return MmaClocks(**_file(arch)["gemm" if gemm else "matmul"]["clocks"])


@cache
def timed(arch: str) -> TimedTiles | None:
    """Return the tiles of GEMMs that were timed on a device, None of an architecture without."""
    found = _file(arch).get("timed")
    if found is None:
        return None
    rows = {tuple(dims): _mma_tile(*tile) for dims, *tile, _ in found["best"]}
    return TimedTiles(tuple(_mma_tile(*row) for row in found["tiles"]), rows)


def _mma_tile(size: Sequence[int], waves: Sequence[int], steps: int) -> MmaTile:
    lines, along, columns = size
    return (lines, along, columns), (waves[0], waves[1], waves[2]), steps


@cache
def gemm_costs(arch: str) -> GemmCosts:
    """Return the costs of GEMMs beside their tiles."""
    return GemmCosts(**_file(arch)["gemm_costs"]["costs"])


@cache
def _attention(arch: str) -> Mapping[int, Mapping[Key, AttentionClocks]]:
    table = _file(arch)["attention"]["clocks"]
    return {
        int(row): {_key(k): AttentionClocks(*clocks) for k, clocks in found.items()}
        for row, found in table.items()
    }


@cache
def thread_tiles(arch: str) -> ThreadTiles:
    """Return the tiles of matmuls without matrix instructions."""
    found = _file(arch)["threads"]["tiles"]
    gemm, few = ([(n, _thread_tile(t)) for n, t in found[key]] for key in ("gemm", "few"))
    return ThreadTiles(gemm, few, [_thread_tile(t) for t in found["windows"]])


def _thread_tile(row: Sequence[int]) -> ThreadTile:
    rows, columns, own_rows, own_columns, depth = row
    return ThreadTile((rows, columns), (own_rows, own_columns), depth)


@cache
def lane_tiles(arch: str) -> LaneTiles:
    """Return the waves of few rows whose depth lanes share."""
    return LaneTiles(**_file(arch)["lanes"]["tiles"])


def _key(text: str) -> Key:
    waves, keys, lines = map(int, text.split("x"))
    return waves, keys, lines


def attention(arch: str, width: int, depth: int) -> Mapping[Key, AttentionClocks]:
    """Return the schedules of an attention whose rows of keys and values have these elements.

    They are those of the next longer rows of the table, both of one length.
    """
    table = _attention(arch)
    return table[next((n for n in sorted(table) if 2 * n >= width + depth), max(table))]


__all__ = [
    "LIKE", "AttentionClocks", "GemmCosts", "LaneTiles", "MmaClocks", "ThreadTile", "ThreadTiles",
    "TimedTiles", "attention", "gemm_costs", "lane_tiles", "mma", "thread_tiles", "timed",
]  # fmt: skip
