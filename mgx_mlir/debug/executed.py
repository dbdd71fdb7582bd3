"""Instructions that an emulated call executed, and the lower bound on its time.

The emulator counts each instruction of each kernel. `targets/kernel_time.cost` gives the unit of
the chip that an instruction of one wave occupies, and its clocks. A launch takes at least the time
that its busiest compute unit needs for its workgroups. Memory, waits and launch overhead are not
included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mgx_mlir.hardware.chips import Chip
from mgx_mlir.targets.assembly import Mix
from mgx_mlir.targets.kernel_time import cost, matrix_instruction
from mgx_mlir.targets.kernel_walk import AsmInstruction

UNITS = ("matrix", "vector", "lds")


@dataclass
class Executed:
    """Counts of one kernel in a call, over all its launches."""

    launches: int = 0
    workgroups: int = 0
    waves: int = 0
    instructions: int = 0  # executed instructions, counted per wave
    mix: Mix = field(default_factory=Mix)  # executed instructions by class
    operations: int = 0  # multiplications and additions of matrix instructions
    fill: float = 0.0  # mean share of compute units that a launch has work for
    # microseconds of all launches, by unit
    us: dict[str, float] = field(default_factory=lambda: dict.fromkeys(UNITS, 0.0))

    @property
    def bound_us(self) -> float:
        """Microseconds of the busiest unit."""
        return max(self.us.values())

    def to_json(self) -> dict[str, Any]:
        """Return all figures as JSON values."""
        return {
            "launches": self.launches, "workgroups": self.workgroups,
            "instructions": self.instructions, "matrix_operations": self.operations,
            "matrix_share": self.mix.matrix_share, "lds_wide_share": self.mix.lds_wide_share,
            "fill": self.fill, **{f"{unit}_us": us for unit, us in self.us.items()},
            "bound_us": self.bound_us,
        }  # fmt: skip


def executed(statistics: Mapping[str, Any], chip: Chip) -> dict[str, Executed]:
    """Read the counts of MGX_EMULATE_STATS by kernel, in the order of first launches."""
    found: dict[str, Executed] = {}
    launches: dict[str, list[tuple[int, int]]] = {}
    for one in statistics["launches"]:
        e = found.setdefault(one["kernel"], Executed())
        e.launches += 1
        e.workgroups += one["groups"]
        e.waves += one["waves"]
        e.instructions += one["instructions"]
        launches.setdefault(one["kernel"], []).append((one["groups"], one["waves"]))
    clocks = {name: dict.fromkeys(UNITS, 0.0) for name in found}
    for one in statistics["executed"]:
        name, count = one["function"], one["count"]
        if name not in found:
            continue
        # both halves of a dual-issued pair run as one, and take the first one's clocks
        mnemonic, _, operands = one["text"].partition(" ")
        found[name].mix.count(mnemonic, count)
        matrix = matrix_instruction(mnemonic)
        found[name].operations += count * matrix.operations if matrix is not None else 0
        c = cost(AsmInstruction(mnemonic, tuple(operands.split(", "))), chip)
        if c.unit in UNITS:
            clocks[name][c.unit] += count * c.clocks
    for name, e in found.items():
        for groups, waves in launches[name]:
            each = -(-groups // chip.units)  # workgroups on the busiest compute unit
            own = -(-each * waves // (groups * chip.simds))  # waves on its busiest SIMD
            for unit in UNITS:
                busy = own if unit != "lds" else each * waves / groups
                e.us[unit] += clocks[name][unit] / e.waves * busy / (chip.ghz * 1e3)
            e.fill += min(1.0, groups / chip.units) / e.launches
    return found


__all__ = ["UNITS", "Executed", "executed"]
