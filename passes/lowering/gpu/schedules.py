"""Clocks of the schedules that an architecture's kernels may have: data of `configs/<arch>.json`.

`benchmarks/gpu_tiles.py` writes the files, and says in each what judged it, and when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Key = tuple[int, int, int]  # waves of a workgroup, keys of a tile, lines of query rows per wave


@dataclass(frozen=True)
class AttentionClocks:
    """Clocks of a wave of an attention.

    iteration: over a tile of keys, alone. ends: before the first tile and after the last, alone.
    busy: of its SIMD's matrix or vector unit, in an iteration.
    """

    iteration: float
    ends: float
    busy: float


@cache
def _attention(arch: str) -> Mapping[int, Mapping[Key, AttentionClocks]]:
    file = Path(__file__).parent / "configs" / f"{arch}.json"
    table = json.loads(file.read_text())["attention"]["clocks"]
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


__all__ = ["AttentionClocks", "attention"]
