"""The kernels of a module with bounds on their times: what `kernel_time` says of each launch.

Compiled with the compiler's own files kept: the assembly, and LLVM's text, which says of how many
workgroups each launch is. Launches of run-time sizes have no bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from mgx_mlir.core.errors import TargetError
from mgx_mlir.core.files import temporary_folder
from mgx_mlir.hardware.chips import CHIPS, LAUNCH_US
from mgx_mlir.targets.base import parse_dispatches
from mgx_mlir.targets.child import IreeCompiler, shared_compiler
from mgx_mlir.targets.flags import DUMP_FILES, gpu_ladder
from mgx_mlir.targets.kernel_time import KernelTime, kernel_time
from mgx_mlir.targets.kernel_walk import Code, functions
from mgx_mlir.targets.report import KernelReport, gpu_report

_KERNEL = re.compile(r'^define .*amdgpu_kernel void @"?([\w.$-]+)"?\(')
_GRID = re.compile(
    r"call (?:noundef )?(range\(i32 0, (\d+)\) )?i32 @llvm\.amdgcn\.workgroup\.id\.([xyz])"
)


@dataclass(frozen=True)
class Launch:
    """One launch: its kernel, of how many workgroups (None: known at run time only), its bound."""

    kernel: KernelReport
    workgroups: int | None
    time: KernelTime | None


def time_us(launches: Sequence[Launch]) -> float | None:
    """Return the bound of launches in a row, each beyond the first at the cost of a launch.

    None where a part is not known.
    """
    times = [launch.time for launch in launches]
    known = [t.us for t in times if t is not None]
    if not known or len(known) < len(times):
        return None
    return sum(known) + LAUNCH_US * (len(known) - 1)


def compile_with_bounds(
    bytecode: bytes,
    arch: str,
    *,
    opt_level: str = "O2",
    timeout: float | None = None,
    compiler: IreeCompiler | None = None,
) -> tuple[bytes, dict[str, list[Launch]]]:
    """Compile a module for an architecture; return it and each function's launches, in order.

    Errors: CompileFailed, and TargetError for an architecture whose figures are not known.
    """
    if arch not in CHIPS:
        raise TargetError(f"the figures of {arch} are not known", notes=[f"known: {list(CHIPS)}"])
    with temporary_folder("mgx-bounds-") as folder:
        flags = (*gpu_ladder(arch, opt_level=opt_level)[0].flags, f"{DUMP_FILES}={folder}")
        out = (compiler or shared_compiler()).run(
            bytecode, flags, timeout=timeout, reproducer=False, statistics=True
        )
        code: dict[str, Code] = {}
        grids: dict[str, int | None] = {}
        for path in Path(folder).rglob("*"):
            if path.suffix == ".rocmasm":
                code |= functions(path.read_text(errors="replace").splitlines())
            elif path.name.endswith(".optimized.ll"):
                grids |= workgroups(path.read_text(errors="replace").splitlines())
    return out.vmfb, launches(out.vmfb, arch, parse_dispatches(out.reports.get("statistics", "")),
                              code, grids)  # fmt: skip


def launches(
    vmfb: bytes,
    arch: str,
    dispatches: Mapping[str, Sequence[str]],
    code: Mapping[str, Code],
    grids: Mapping[str, int | None],
) -> dict[str, list[Launch]]:
    """Return what each function launches, its kernels joined with their code and grids by name."""
    chip = CHIPS[arch]
    known: dict[str, Launch] = {}
    for kernel in gpu_report(vmfb).kernels:
        grid = grids.get(kernel.name)
        found = code.get(kernel.name)
        time = None if grid is None or found is None else kernel_time(kernel, found, chip, grid)
        known[kernel.name] = Launch(kernel, grid, time)
    return {
        function: [known[n] for n in names if n in known]
        for function, names in dispatches.items()
        if function != "initializer"
    }


def workgroups(lines: Iterable[str]) -> dict[str, int | None]:
    """Read the number of workgroups of each kernel's launch from LLVM's text.

    None where it is known at run time only.
    """
    found: dict[str, dict[str, int | None]] = {}
    current: dict[str, int | None] | None = None
    for line in lines:
        m = _KERNEL.match(line)
        if m is not None:
            current = found.setdefault(m[1], {})
        elif current is not None and (g := _GRID.search(line)) is not None:
            current[g[3]] = int(g[2]) if g[1] else None
    out: dict[str, int | None] = {}
    for name, axes in found.items():
        known = [n for n in axes.values() if n is not None]
        out[name] = prod(known) if len(known) == len(axes) else None
    return out


__all__ = ["Launch", "compile_with_bounds", "launches", "time_us", "workgroups"]
