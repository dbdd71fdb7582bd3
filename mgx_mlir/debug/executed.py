"""Instructions that an emulated call executed, and the bound on its time that follows.

The emulator counts each instruction of each kernel. `targets/kernel_time.cost` says which unit of
the chip an instruction of one wave keeps busy, and for how many clocks. A launch takes at the
least what its busiest compute unit needs for the workgroups that it gets; memory, waiting and the
launches themselves are not in it.
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
    instructions: int = 0  # instructions of waves
    mix: Mix = field(default_factory=Mix)  # executed instructions by class
    operations: int = 0  # multiplications and additions of matrix instructions
    fill: float = 0.0  # mean share of compute units that a launch has work for
    # microseconds of all launches, by unit
    us: dict[str, float] = field(default_factory=lambda: dict.fromkeys(UNITS, 0.0))

    @property
    def bound_us(self) -> float:
        """The microseconds of the busiest unit."""
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
        # the halves of a pair run as one, and take what the first one takes
        mnemonic, _, operands = one["text"].partition(" ")
        found[name].mix.count(mnemonic, count)
        matrix = matrix_instruction(mnemonic)
        found[name].operations += count * matrix.operations if matrix is not None else 0
        c = cost(AsmInstruction(mnemonic, tuple(operands.split(", "))), chip)
        if c.unit in UNITS:
            clocks[name][c.unit] += count * c.clocks
    for name, e in found.items():
        for groups, waves in launches[name]:
            each = -(-groups // chip.units)  # workgroups that the busiest unit gets
            own = -(-each * waves // (groups * chip.simds))  # waves of its busiest SIMD
            for unit in UNITS:
                busy = own if unit != "lds" else each * waves / groups
                e.us[unit] += clocks[name][unit] / e.waves * busy / (chip.ghz * 1e3)
            e.fill += min(1.0, groups / chip.units) / e.launches
    return found


__all__ = ["UNITS", "Executed", "executed"]
