"""Properties of a gpu program's kernels, read from its code: nothing is timed.

Registers, LDS, spills and scratch come from the metadata of the code; shares count instructions in
the code. A bound is the time that the chip needs for a kernel's bytes or operations at its peak
rates: no kernel is faster. The counts of an emulated call give a second bound, from the
instructions that its workgroups execute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

from mgx_mlir.debug.executed import UNITS, Executed, executed
from mgx_mlir.debug.work import Work
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.targets.assembly import Mix, mixes
from mgx_mlir.targets.kernel_time import matrix_instruction
from mgx_mlir.targets.report import KernelReport, Report, short_name


@dataclass(frozen=True)
class Row:
    """A kernel: its launches in a call, its code, and the work of one launch."""

    kernel: KernelReport
    launches: int
    mix: Mix
    work: Work
    occupancy: int | None
    bound_us: float | None
    executed: Executed | None = None

    @property
    def multiplies_without_matrix(self) -> bool:
        """Return whether it multiplies matrices without matrix instructions.

        Matrix-vector products do not count; IREE's name of the kernel identifies them.
        """
        named = any(w in self.kernel.name for w in ("matmul", "conv", "attention", "contract"))
        busy = (self.work.operations or 0) > 16 * (self.work.bytes or 1)
        return named and busy and not self.mix.matrix

    @property
    def is_one_lane(self) -> bool:
        """Return whether each of its workgroups is a single lane, as a scan's or a scatter's."""
        return prod(self.kernel.workgroup) == 1

    def to_json(self) -> dict[str, Any]:
        """Return all figures as JSON values."""
        return {
            **asdict(self.kernel), "launches": self.launches, **asdict(self.mix),
            "matrix_share": self.mix.matrix_share, "wide_share": self.mix.wide_share,
            "lds_wide_share": self.mix.lds_wide_share, "occupancy": self.occupancy,
            "bytes": self.work.bytes, "operations": self.work.operations,
            "bound_us": self.bound_us,
            **({"executed": self.executed.to_json()} if self.executed is not None else {}),
        }  # fmt: skip


@dataclass(frozen=True)
class GpuKernels:
    """Kernels of a call on one architecture, in code order."""

    arch: str
    rows: tuple[Row, ...]
    report: Report

    def to_json(self) -> dict[str, Any]:
        """Return all figures, and their totals over a call."""
        return {"arch": self.arch, "totals": self.totals(),
                "kernels": [r.to_json() for r in self.rows]}  # fmt: skip

    def totals(self) -> dict[str, Any]:
        """Sum over the launches of one call; unknown values are left out."""
        each = [(r, r.launches) for r in self.rows]
        reads = sum(r.mix.lds_reads * n for r, n in each)
        return {
            "dispatches": self.report.dispatches,
            "kernels": len(self.rows),
            "on_host": self.report.on_host,
            "with_spills": sum(r.kernel.spills for r in self.rows),
            "with_scratch": sum(r.kernel.scratch > 0 for r in self.rows),
            "multiply_without_matrix": [
                r.kernel.name for r in self.rows if r.multiplies_without_matrix
            ],
            "of_one_lane": [r.kernel.name for r in self.rows if r.is_one_lane],
            "lds_wide_share": sum(r.mix.lds_wide * n for r, n in each) / reads if reads else None,
            "bytes": sum((r.work.bytes or 0) * n for r, n in each),
            "operations": sum((r.work.operations or 0) * n for r, n in each),
            "bound_us": sum((r.bound_us or 0.0) * n for r, n in each),
            **self._executed(),
        }

    def _executed(self) -> dict[str, Any]:
        """Return the totals of an emulated call; empty if there was none."""
        ran = [r.executed for r in self.rows if r.executed is not None]
        if not ran:
            return {}
        reads = sum(e.mix.lds_reads for e in ran)
        return {
            "executed": {
                "launches": sum(e.launches for e in ran),
                "instructions": sum(e.instructions for e in ran),
                "matrix_operations": sum(e.operations for e in ran),
                "lds_wide_share": sum(e.mix.lds_wide for e in ran) / reads if reads else None,
                **{f"{unit}_us": sum(e.us[unit] for e in ran) for unit in UNITS},
                "bound_us": sum(e.bound_us for e in ran),
            }
        }

    def text(self) -> str:
        """Return a line for each kernel, then the totals."""
        head = ("n", "vgpr", "agpr", "sgpr", "spill", "scratch", "lds", "waves", "matrix", "wide",
                "ldswide", "MB", "GFLOP", "us", "kernel")  # fmt: skip
        lines = _aligned([head, *map(_cells, self.rows)])
        t = self.totals()
        lines += [
            "",
            f"{self.arch}: {t['dispatches']} dispatches of {t['kernels']} kernels, "
            f"{t['on_host']} not on the GPU",
            f"kernels with spills: {t['with_spills']}, with scratch: {t['with_scratch']}, that "
            f"multiply matrices without matrix instructions: {len(t['multiply_without_matrix'])}",
            *(
                [f"workgroups of one lane: {', '.join(t['of_one_lane'])}"]
                if t["of_one_lane"]
                else ()
            ),
            f"wide share of LDS reads: {_share(t['lds_wide_share'])}",
            self._bound_text(t),
        ]
        return "\n".join([*lines, *self._executed_text(t)])

    def _bound_text(self, totals: dict[str, Any]) -> str:
        """Return the line of the sums of bytes, operations and bounds."""
        if self.rows and all(r.work.bytes is None for r in self.rows):
            return (
                "MB, GFLOP and us are unknown: the launches cannot be matched with the "
                "program's kernels"
            )
        return (
            f"{totals['bytes'] / 1e6:.1f} MB, {totals['operations'] / 1e9:.2f} GFLOP; bound at the "
            f"chip's peaks: {totals['bound_us']:.1f} us (an estimate: nothing was run)"
        )

    def _executed_text(self, totals: dict[str, Any]) -> list[str]:
        """Return a table of what an emulated call executed."""
        if "executed" not in totals:
            return []
        head = ("n", "groups", "fill", "matrix", "vector", "lds", "us", "ldswide", "kernel")
        ran = [(r.kernel.name, r.executed) for r in self.rows if r.executed is not None]
        rows = [
            (str(e.launches), str(e.workgroups // e.launches), f"{e.fill:.2f}",
             *(f"{e.us[unit]:.2f}" for unit in UNITS), f"{e.bound_us:.2f}",
             _share(e.mix.lds_wide_share), name)
            for name, e in ran
        ]  # fmt: skip
        t = totals["executed"]
        return [
            "",
            "executed in an emulated call: us per unit, over all launches of a kernel",
            *_aligned([head, *rows]),
            "",
            f"{t['launches']} launches, {t['instructions'] / 1e6:.1f} M instructions of waves, "
            f"{t['matrix_operations'] / 1e9:.2f} GFLOP in matrix instructions, "
            f"wide share of LDS reads: {_share(t['lds_wide_share'])}",
            f"bound by the busiest unit of each kernel: {t['bound_us']:.1f} us (counted, not "
            "timed: no memory, no waiting, no launches)",
        ]


def _share(x: float | None) -> str:
    return "-" if x is None else f"{x:.2f}"


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines; all columns but the last are aligned on the right."""
    widths = [max(len(r[i]) for r in table) for i in range(len(table[0]) - 1)]
    return [
        "  ".join([*(c.rjust(w) for c, w in zip(r, widths, strict=False)), r[-1]]) for r in table
    ]


def _cells(r: Row) -> tuple[str, ...]:
    k, w = r.kernel, r.work
    return (
        str(r.launches), str(k.vgprs), str(k.agprs), str(k.sgprs),
        str(k.vgpr_spills + k.sgpr_spills), str(k.scratch), str(k.lds),
        "-" if r.occupancy is None else str(r.occupancy),
        _share(r.mix.matrix_share), _share(r.mix.wide_share), _share(r.mix.lds_wide_share),
        "-" if w.bytes is None else f"{w.bytes / 1e6:.2f}",
        "-" if w.operations is None else f"{w.operations / 1e9:.3f}",
        "-" if r.bound_us is None else f"{r.bound_us:.2f}", short_name(k.name),
    )  # fmt: skip


def gpu_kernels(
    report: Report,
    assembly: Sequence[str],
    work: Mapping[str, Work],
    arch: str,
    statistics: Mapping[str, Any] | None = None,
) -> GpuKernels:
    """Join a module's code objects with its assembly and with the work of each launch.

    work: work by launch name, for launches of known kernels. statistics: of an emulated call
    (debug/executed.py).
    """
    found: dict[str, Mix] = {}
    for text in assembly:
        found |= mixes(text.splitlines())
    called = Counter(report.called)
    chip = CHIPS.get(arch)
    ran = executed(statistics, chip) if statistics is not None and chip is not None else {}
    rows = [
        replace(
            _row(k, called[k.name], found.get(k.name, Mix()),
                 work.get(k.name, Work(None, None)), chip),
            executed=ran.get(k.name),
        )
        for k in report.kernels
        if called[k.name]
    ]  # fmt: skip
    return GpuKernels(arch, tuple(rows), report)


def peak_of(mix: Mix, chip: Chip) -> float:
    """Return the operations per second of the kernel's fastest kind of instruction."""
    matrix = [m for m in map(matrix_instruction, mix.kinds) if m is not None]
    if not matrix:
        return chip.vector_peak
    return chip.matrix_peak * max(chip.matrix_rate(m.kind, m.depth) for m in matrix)


def _row(kernel: KernelReport, launches: int, mix: Mix, work: Work, chip: Chip | None) -> Row:
    if chip is None:
        return Row(kernel, launches, mix, work, None, None)
    held = chip.occupancy(kernel.given, kernel.lds, prod(kernel.workgroup))
    bounds = []
    if work.operations is not None:
        bounds.append(work.operations / peak_of(mix, chip))
    if work.bytes is not None:
        bounds.append(work.bytes / (chip.bandwidth * 1e9))
    return Row(kernel, launches, mix, work, held, max(bounds) * 1e6 if bounds else None)
