"""A lower bound of a GPU kernel's time from its compiled code, without running it.

The bound is the largest of three. Units: clocks for which all workgroups keep the matrix units, the
vector units, the LDS or the cache path busy. Latency: a wave issues in order and waits for its
loads, and the other resident waves of its compute unit (by registers and LDS) fill the gaps.
Memory: the bytes of operands and results, and where published times give the rate, all workgroups'
cache traffic. The latencies are rounded from published microbenchmarks. A bound compares kernels of
one matmul, and does not predict times.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod
from typing import NamedTuple

from mgx_mlir.hardware.chips import Chip
from mgx_mlir.targets.kernel_walk import AsmInstruction, Code, Walk, walk
from mgx_mlir.targets.report import KernelReport

FROM_CACHE = 500  # clocks of latency of a load from the chip's caches
FROM_LDS = 64
_BARRIER = 20  # clocks of a workgroup barrier
_LDS_WRITTEN, _CACHE_BYTES = 128, 64  # bytes per clock of a compute unit: LDS writes, cache reads

_MATRIX = re.compile(r"v_(?:mfma|wmma|smfmac|swmmac)_(\w+?)_(\d+)x(\d+)x(\d+)_?(?:(\d+)b_)?(\w*)")
_SIZES = {"x4": 16, "x3": 12, "x2": 8, "b128": 16, "b96": 12, "b64": 8, "b32": 4, "b16": 2,
          "b8": 1, "u16": 2, "i16": 2, "u8": 1, "i8": 1, "short": 2, "ushort": 2, "sshort": 2,
          "ubyte": 1, "sbyte": 1, "byte": 1, "dword": 4, "d16": 2}  # fmt: skip
_SLOW = ("v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin", "v_cos")
_COUNT = re.compile(r"(vmcnt|lgkmcnt|vscnt|expcnt)\((\d+)\)")
_NO_WAIT = 99
_SIDE = 16  # rows of the matrix instructions that a chip's `depth` is given for
_FOLLOWED = 33  # workgroups simulated in a launch whose workgroups differ


@dataclass(frozen=True)
class Cost:
    """The cost of a wave's instruction: the unit that it keeps busy, and the clocks."""

    unit: str  # "matrix", "vector", "lds", "cache", or ""
    clocks: float
    # waits until at most this number of loads, LDS accesses are outstanding
    waits: tuple[int, int] = (_NO_WAIT, _NO_WAIT)
    loads: str = ""  # "memory" or "lds": the counter that it raises
    barrier: bool = False


@dataclass(frozen=True)
class KernelTime:
    """A bound on the time of a kernel's launch, and the figures behind it."""

    us: float  # microseconds of the launch
    busy: dict[str, float]  # clocks for which a workgroup keeps each unit busy
    alone: float  # clocks of a wave alone on a compute unit
    resident: int  # workgroups that a compute unit holds
    instructions: int  # instructions that a wave runs
    exact: bool  # trip counts of all loops were known
    # microseconds of memory traffic of the launch's operands and results; 0: unknown
    memory_us: float = 0.0
    # microseconds of cache traffic of all workgroups; 0: unknown
    traffic_us: float = 0.0

    @property
    def bound_by(self) -> str:
        """The unit that the launch keeps busiest, "memory", or "waiting"."""
        if self.memory_us and self.us <= self.memory_us:
            return "memory"
        if self.traffic_us and self.us <= self.traffic_us:
            return "cache"
        unit = max(self.busy, key=lambda u: self.busy[u])
        return unit if self.busy[unit] * self.resident >= self.alone else "waiting"


def kernel_time(
    kernel: KernelReport, code: Code, chip: Chip, workgroups: int, moved: int = 0
) -> KernelTime:
    """Bound the time of a launch of `workgroups`; infinite for a kernel that spills or needs too
    much LDS.

    moved: lower bound of the bytes that it reads and writes. Where trip counts depend on the
    workgroup's index, some workgroups are simulated and the others interpolated.
    """
    memory_us = moved / (chip.bandwidth * 1e3)
    fits = not kernel.spills and not kernel.scratch and kernel.lds <= chip.lds
    least = memory_us if fits else inf
    waves = -(-prod(kernel.workgroup) // chip.lanes)
    resident = max(1, chip.occupancy(kernel.given, kernel.lds,
                                     prod(kernel.workgroup)) * chip.simds // waves)  # fmt: skip
    costs = [cost(i, chip) for i in code.instructions]
    way = walk(code)
    if not way.exact and workgroups > 1 and code.workgroup is not None:
        several = _several(code, costs, workgroups)
        if several is not None:
            return _uneven(several, waves, resident, chip, workgroups, least=least,
                           memory_us=memory_us)  # fmt: skip
    one = _figures(way, costs)
    each = -(-workgroups // chip.units)  # workgroups on the busiest compute unit
    # matrix and vector units are per SIMD, LDS and cache path per compute unit
    own = -(-each * waves // chip.simds)
    together = {u: c * (own if u in ("matrix", "vector") else each * waves)
                for u, c in one.busy.items()}  # fmt: skip
    rounds = -(-each // resident)
    clocks = max(*together.values(), rounds * one.alone)
    found = {u: c / each for u, c in together.items()}
    traffic_us = 0.0
    if chip.together:
        moves = chip.units * chip.together * chip.ghz * 1e3
        traffic_us = found["cache"] * _CACHE_BYTES * workgroups / moves
    us = max(clocks / chip.ghz / 1e3, least, traffic_us)
    return KernelTime(
        us, found, one.alone, resident, len(way.places), way.exact, memory_us, traffic_us
    )  # fmt: skip


class _Figures(NamedTuple):
    """Costs of a wave: clocks alone, clocks per unit, and number of instructions."""

    alone: float
    busy: dict[str, float]
    instructions: float

    def between(self, other: _Figures, share: float) -> _Figures:
        """Interpolate linearly to another wave."""
        a, b = self, other
        busy = {u: c + share * (b.busy[u] - c) for u, c in a.busy.items()}
        more = share * (b.instructions - a.instructions)
        return _Figures(a.alone + share * (b.alone - a.alone), busy, a.instructions + more)


def _figures(way: Walk, costs: list[Cost]) -> _Figures:
    busy: dict[str, float] = dict.fromkeys(("matrix", "vector", "lds", "cache"), 0.0)
    for place in way.places:
        c = costs[place]
        if c.unit:
            busy[c.unit] += c.clocks
    return _Figures(_alone(way, costs), busy, len(way.places))


def _several(code: Code, costs: list[Cost], workgroups: int) -> list[_Figures] | None:
    """Return the figures of each workgroup; None where trip counts are still unknown."""
    followed = sorted({i * (workgroups - 1) // (_FOLLOWED - 1) for i in range(_FOLLOWED)})
    known: list[_Figures] = []
    for place in followed:
        way = walk(code, {code.workgroup or "": place})
        if not way.exact:
            return None
        known.append(_figures(way, costs))
    out = [known[0]]
    for i in range(1, len(followed)):
        first, last = followed[i - 1 : i + 1]
        out += [
            known[i - 1].between(known[i], (n - first) / (last - first))
            for n in range(first + 1, last + 1)
        ]
    return out


def _uneven(
    each: list[_Figures],
    waves: int,
    resident: int,
    chip: Chip,
    workgroups: int,
    *,
    least: float,
    memory_us: float,
) -> KernelTime:
    """Bound workgroups of different lengths, scheduled in order onto the first free slot."""
    places = [(0.0, turn, unit) for turn in range(resident) for unit in range(chip.units)]
    heapq.heapify(places)
    units = [dict.fromkeys(each[0].busy, 0.0) for _ in range(chip.units)]
    end = 0.0
    for one in each:
        begin, turn, unit = heapq.heappop(places)
        end = max(end, begin + one.alone)
        heapq.heappush(places, (begin + one.alone, turn, unit))
        for u, c in one.busy.items():
            units[unit][u] += c * (waves / chip.simds if u in ("matrix", "vector") else waves)
    clocks = max(end, *(c for unit in units for c in unit.values()))
    mean = {u: sum(unit[u] for unit in units) / workgroups for u in each[0].busy}
    return KernelTime(
        max(least, clocks / chip.ghz / 1e3),
        mean,
        max(one.alone for one in each),
        resident,
        round(max(one.instructions for one in each)),
        exact=True,
        memory_us=memory_us,
    )


def _alone(way: Walk, costs: list[Cost]) -> float:
    """Count the clocks of a wave alone on a compute unit."""
    now = 0.0
    under_way: dict[str, deque[float]] = {"memory": deque(), "lds": deque()}
    for place in way.places:
        c = costs[place]
        for queue, left in zip(under_way.values(), c.waits, strict=True):
            while len(queue) > left:
                now = max(now, queue.popleft())
        now += c.clocks if c.unit in ("matrix", "vector") else 1
        if c.loads:
            late = FROM_CACHE if c.loads == "memory" else FROM_LDS
            queue = under_way[c.loads]
            queue.append(max(now + late, queue[-1] + c.clocks if queue else 0))
        elif c.barrier:
            now += _BARRIER
    return now


class MatrixInstruction(NamedTuple):
    """kind: of its elements, in the assembler's name. depth: that of a 16x16 instruction of the
    same rate. operations: their number.
    """

    kind: str
    depth: int
    operations: int


def matrix_instruction(mnemonic: str) -> MatrixInstruction | None:
    """Return what a matrix instruction of a wave does; None for other instructions.

    A sparse one multiplies half of the depth that its name has. A 32x32 one has four times the
    results of a 16x16 one and takes twice as long, so half the depth counts. With several blocks,
    the depth of a block counts.
    """
    m = _MATRIX.match(mnemonic)
    if m is None:
        return None
    rows, columns, depth = (int(n) for n in m.groups()[1:4])
    if mnemonic.startswith(("v_smfmac", "v_swmmac")):
        depth //= 2
    operations = 2 * rows * columns * depth * int(m[5] or 1)
    return MatrixInstruction(m[6] or m[1], depth * max(rows // _SIDE, 1), operations)


@lru_cache(maxsize=4096)
def cost(i: AsmInstruction, chip: Chip) -> Cost:
    """Return the cost of an instruction of one wave on a chip."""
    name = i.name
    if name.startswith("s_wait"):
        return Cost("", 1, waits=_waits(i))
    if name in ("s_barrier", "s_barrier_wait"):
        return Cost("", 1, barrier=True)
    matrix = matrix_instruction(name)
    if matrix is not None:
        rate = chip.matrix * chip.matrix_rate(matrix.kind, matrix.depth)
        return Cost("matrix", matrix.operations / (rate / chip.simds))
    if name.startswith("ds_"):
        twice = 2 if re.search(r"read2|write2|2addr", name) else 1
        moved = twice * chip.lanes * _bytes(name)
        width = chip.lds_read if name.startswith(("ds_read", "ds_load")) else _LDS_WRITTEN
        return Cost("lds", max(moved / width, 1), loads="lds")
    if name.startswith(("buffer_", "global_", "flat_", "scratch_")):
        moved = chip.lanes * _bytes(name)
        reads = "load" in name or "atomic" in name
        return Cost("cache", max(moved / _CACHE_BYTES, 1), loads="memory" if reads else "")
    if name.startswith("v_"):
        # a SIMD has 16 lanes on CDNA and 32 on RDNA
        passes = 4 if chip.lanes == 64 else 1
        return Cost("vector", passes * (4 if name.startswith(_SLOW) else 1))
    return Cost("", 1)


def _bytes(name: str) -> int:
    """Return the bytes that a lane moves."""
    found = [_SIZES[p] for p in re.sub(r"dwordx", "x", name).split("_") if p in _SIZES]
    return max(found, default=4)


def _waits(i: AsmInstruction) -> tuple[int, int]:
    loads = lds = _NO_WAIT
    if i.name in ("s_wait_loadcnt", "s_wait_dscnt", "s_wait_loadcnt_dscnt"):
        count = int(i.operands[0], 0)
        if i.name == "s_wait_loadcnt":
            loads = count
        elif i.name == "s_wait_dscnt":
            lds = count
        else:
            loads, lds = count >> 8, count & 0xFF
    for counter, number in _COUNT.findall(" ".join(i.operands)):
        if counter == "vmcnt":
            loads = int(number)
        elif counter == "lgkmcnt":
            lds = int(number)
    return loads, lds


__all__ = ["Cost", "KernelTime", "MatrixInstruction", "cost", "kernel_time", "matrix_instruction"]
