"""Time bounds of a module's launches, by `kernel_time`.

The compile keeps IREE's files: the assembly, LLVM IR with the workgroup counts, and MLIR with each
kernel's reads and writes.
Launches of dynamic sizes have no bound.
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
_SOURCE = re.compile(r"module_.*(?<!_benchmark)\.mlir")  # a kernel's MLIR at IREE's input
_BODY = re.compile(r"^\s*func\.func (?:\w+ )?@\"?([\w.$-]+)\"?\(")
_READ = re.compile(
    r"(%\w+) = iree_tensor_ext\.dispatch\.tensor\.load (.*) -> tensor<([\dx]*)(\w+)>"
)
_WRITTEN = re.compile(r"dispatch\.tensor\.store %\w+, (.*) : tensor<([\dx]*)(\w+)> ->")
# reads at computed indices, or partial reads
_IN_PART = re.compile(r"(?:tensor\.extract(?:_slice)?|iree_linalg_ext\.gather\b.*? ins\()\s*(%\w+)")
_BITS = re.compile(r"(?:f|bf|i)(\d+)")


@dataclass(frozen=True)
class Launch:
    """One launch: its kernel, of how many workgroups (None: known at run time only), its bound."""

    kernel: KernelReport
    workgroups: int | None
    time: KernelTime | None


def time_us(launches: Sequence[Launch]) -> float | None:
    """Return the bound of sequential launches, with the overhead of each launch after the first.

    None where a bound is unknown.
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
        bytes_of: dict[str, int] = {}
        for path in Path(folder).rglob("*"):
            if path.suffix == ".rocmasm":
                code |= functions(path.read_text(errors="replace").splitlines())
            elif path.name.endswith(".optimized.ll"):
                grids |= workgroups(path.read_text(errors="replace").splitlines())
            elif _SOURCE.fullmatch(path.name):
                bytes_of |= moved(path.read_text(errors="replace").splitlines())
    return out.vmfb, launches(out.vmfb, arch, parse_dispatches(out.reports.get("statistics", "")),
                              code, grids, bytes_of)  # fmt: skip


def launches(
    vmfb: bytes,
    arch: str,
    dispatches: Mapping[str, Sequence[str]],
    code: Mapping[str, Code],
    grids: Mapping[str, int | None],
    bytes_of: Mapping[str, int],
) -> dict[str, list[Launch]]:
    """Return each function's launches: kernels joined by name with code, grids and moved bytes."""
    chip = CHIPS[arch]
    known: dict[str, Launch] = {}
    for kernel in gpu_report(vmfb).kernels:
        grid = grids.get(kernel.name)
        found = code.get(kernel.name)
        time = None
        if grid is not None and found is not None:
            time = kernel_time(kernel, found, chip, grid, bytes_of.get(kernel.name, 0))
        known[kernel.name] = Launch(kernel, grid, time)
    return {
        function: [known[n] for n in names if n in known]
        for function, names in dispatches.items()
        if function != "initializer"
    }


def workgroups(lines: Iterable[str]) -> dict[str, int | None]:
    """Read the number of workgroups of each kernel's launch from LLVM's text.

    None where it depends on dynamic sizes.
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


def moved(lines: Iterable[str]) -> dict[str, int]:
    """Read from IREE's MLIR a lower bound of the bytes that each kernel reads and writes.

    Memory that is read twice counts once. An operand that is read in part, or of dynamic size, does
    not count.
    """
    found: dict[str, dict[str, tuple[str, int]]] = {}
    current: dict[str, tuple[str, int]] = {}
    for line in lines:
        if (m := _BODY.match(line)) is not None:
            current = found[m[1]] = {}
        elif (m := _READ.search(line)) is not None:
            current[m[1]] = (m[2], _size(m[3], m[4]))
        elif (m := _WRITTEN.search(line)) is not None:
            current[m[1]] = (m[1], _size(m[2], m[3]))
        for m in _IN_PART.finditer(line):
            current.pop(m[1], None)
    return {name: sum(dict(places.values()).values()) for name, places in found.items()}


def _size(dims: str, element: str) -> int:
    """Return the bytes of a tensor of static dims."""
    m = _BITS.match(element)
    bits = int(m[1]) if m is not None else 0
    return prod(int(d) for d in dims.split("x") if d) * max(bits, 8 if bits else 0) // 8


__all__ = ["Launch", "compile_with_bounds", "launches", "moved", "time_us", "workgroups"]
