"""Clocks of what an architecture's kernels do: data of `configs/<arch>.json`.

`benchmarks/gpu_tiles.py` writes the files, and says in each what judged it, and when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Key = tuple[int, int, int]  # waves of a workgroup, keys of a tile, lines of query rows per wave


@dataclass(frozen=True)
class AttentionClocks:
    """Clocks of a wave of an attention."""

    iteration: float  # over a tile of keys, alone
    ends: float  # before the first tile and after the last, alone
    busy: float  # of its SIMD's matrix or vector unit, in an iteration


@dataclass(frozen=True)
class MatmulClocks:
    """Clocks of a wave that multiplies by matrix instructions, except GEMMs on CDNA."""

    least: float  # of a k-iteration at the least: what a load takes to come
    meet: float  # that it waits in one
    step: float  # for each matrix instruction in depth, to read its operands
    ends: float  # before the first iteration and after the last
    piece: float  # more, for each 16x16 piece of its results
    # more, for partial tiles of two iterations on CDNA, the second of which is not prefetched
    two: float


@dataclass(frozen=True)
class GemmClocks:
    """Clocks of a wave of a GEMM on CDNA, where LDS reads are put ahead."""

    # a k-iteration takes `least`, or `meet`, its matrix instructions and `read` for each LDS read
    least: float
    meet: float
    read: float
    # alone, alone_ends: less in an iteration, and once, for a workgroup of one wave
    alone: float
    # ends, first, one: once, for each vector of a lane's first load, and less for a single
    # iteration
    ends: float
    first: float
    alone_ends: float
    one: float
    # in an iteration for each vector that is masked by row or column, or by depth
    mask: float
    mask_depth: float
    # more where so few vectors are masked that LLVM waits for them ahead of the first matrix
    # instruction
    few: float
    few_vectors: int
    kept: tuple[float, ...]  # by the number of masked operands, in a loop that is not unrolled
    # once, and for each 16x16 piece, where rows are stored by a mask
    cut: float
    cut_piece: float
    heavy: float  # for each piece, with an epilogue of many instructions
    # for partial tiles of two iterations, and where a wave has one piece or reads 8 bytes of the
    # LDS at once
    two: float
    two_of_one: float


@cache
def _file(arch: str) -> Mapping[str, Any]:
    return json.loads((Path(__file__).parent / "configs" / f"{arch}.json").read_text())


@cache
def matmul(arch: str) -> MatmulClocks:
    """Return the clocks of matmuls and convolutions."""
    return MatmulClocks(**_file(arch)["matmul"]["clocks"])


@cache
def gemm(arch: str) -> GemmClocks:
    """Return the clocks of GEMMs on CDNA."""
    return GemmClocks(**_file(arch)["gemm"]["clocks"])


@cache
def _attention(arch: str) -> Mapping[int, Mapping[Key, AttentionClocks]]:
    table = _file(arch)["attention"]["clocks"]
    return {
        int(row): {_key(k): AttentionClocks(*clocks) for k, clocks in found.items()}
        for row, found in table.items()
    }


def _key(text: str) -> Key:
    waves, keys, lines = map(int, text.split("x"))
    return waves, keys, lines


def attention(arch: str, width: int, depth: int) -> Mapping[Key, AttentionClocks]:
    """Return the schedules of an attention whose rows of keys and values have these elements.

    They are those of the next longer rows of the table, both of one length.
    """
    table = _attention(arch)
    return table[next((n for n in sorted(table) if 2 * n >= width + depth), max(table))]


__all__ = ["AttentionClocks", "GemmClocks", "MatmulClocks", "attention", "gemm", "matmul"]
