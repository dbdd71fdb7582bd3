"""The report on a program's kernels: what it says beside their figures."""

from __future__ import annotations

from dataclasses import replace

from mgx_mlir.debug.gpu_kernels import GpuKernels, Row
from mgx_mlir.debug.work import Work
from mgx_mlir.targets.assembly import Mix
from mgx_mlir.targets.report import KernelReport, Report

KERNEL = KernelReport("sum", "gfx942", 8, 0, 8, 0, 0, 0, 0, (64, 1, 1), 64, 8)


def test_kernels_of_one_lane_are_named() -> None:
    rows = [
        Row(replace(KERNEL, name=name, workgroup=size), 1, Mix(), Work(None, None), 8, None)
        for name, size in (("wide", (64, 1, 1)), ("scan", (1, 1, 1)))
    ]
    found = GpuKernels("gfx942", tuple(rows), Report((), 1, (), {"main": ("wide", "scan")}))
    assert found.totals()["of_one_lane"] == ["scan"]
    assert "workgroups of one lane: scan" in found.text().splitlines()
    plain = GpuKernels("gfx942", tuple(rows[:1]), Report((), 1, (), {"main": ("wide",)}))
    assert "one lane" not in plain.text()
