"""The flags given to iree-compile: one ladder of flag sets per target, best first.

A ladder is tried from the top. A lower set is used only where IREE fails on the one above with a
cause that the set cures (`cures`); the result names its set. Any other failure ends the compile, as
a module that compiled with other flags might be wrong.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mgx_mlir.core.errors import TargetError
from mgx_mlir.hardware.architectures import ARCHITECTURES, check_arch
from mgx_mlir.hardware.iree_targets import stated_target
from mgx_mlir.hardware.machine import compiled_as, has_tile_registers, processor_features
from mgx_mlir.targets.diagnostics import Cause

OPT_LEVELS = ("O0", "O1", "O2", "O3")

# A dispatch may use this much stack; the runtime's worker threads get four times as much.
STACK_LIMIT = 262144
LARGE_STACK_LIMIT = 1 << 20

# writes IREE's files of each kernel into a folder: assembly, LLVM IR, code objects
DUMP_FILES = "--iree-hal-dump-executable-files-to"
_COMMON = (
    "--iree-input-demote-f64-to-f32=false",  # the default silently computes f64 in f32
    "--iree-opt-strip-assertions=false",  # the default silently drops the checks of dynamic sizes
)
# changes register allocation of host code (branch_moves.py)
_OTHER_REGISTERS = "--iree-hal-memoization=false"


@dataclass(frozen=True)
class FlagSet:
    """A named set of iree-compile flags; `why` says what the set costs compared with the one
    above, `cures` which of its failures it is for.
    """

    name: str
    flags: tuple[str, ...]
    why: str = ""
    cures: frozenset[Cause] = frozenset()


def _other_registers(flags: tuple[str, ...]) -> FlagSet:
    why = "command buffers are made at each call"
    return FlagSet("other-registers", (*flags, _OTHER_REGISTERS), why, frozenset({"moves"}))


# --------------------------------------------------------------------------------------- cpu


def cpu_ladder(
    *,
    cpu: str = "host",
    opt_level: str = "O2",
    data_tiling: bool = True,
    stack_limit: int = STACK_LIMIT,
    extra: Iterable[str] = (),
) -> tuple[FlagSet, ...]:
    """Return the flag sets of llvm-cpu, best first.

    `cpu`: `host`, `generic`, or a CPU name of LLVM (`znver4`). Errors: an unknown level.
    """
    level = check_opt_level(opt_level)
    base = (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        f"--iree-llvmcpu-target-cpu={compiled_as(processor_features()) if cpu == 'host' else cpu}",
        *_COMMON,
    )
    tail = tuple(extra)

    def rung(name: str, why: str, level: str, tiling: bool, stack: int, *cures: Cause) -> FlagSet:
        flags = (
            f"--iree-opt-level={level}",
            f"--iree-opt-data-tiling={'true' if tiling else 'false'}",
            f"--iree-llvmcpu-stack-allocation-limit={stack}",
        )
        return FlagSet(name, base + flags + tail, why, frozenset(cures))

    sets = [rung("best", "", level, data_tiling, stack_limit)]
    if stack_limit < LARGE_STACK_LIMIT:
        sets.append(
            rung("large-stack", "kernels with large tiles on the stack", level, data_tiling,
                 LARGE_STACK_LIMIT, "stack")
        )  # fmt: skip
    if data_tiling:
        sets.append(
            rung("no-data-tiling", "matmuls run up to 10 times slower", level, False,
                 LARGE_STACK_LIMIT, "stack", "layout", "kernel")
        )  # fmt: skip
    if level not in ("O0", "O1"):
        sets.append(
            rung("O1", "fewer fusions and no data tiling", "O1", False, LARGE_STACK_LIMIT,
                 "stack", "layout", "kernel")
        )  # fmt: skip
    sets.append(_other_registers(sets[0].flags))
    return tuple(sets)


@functools.cache
def host_cpu() -> str:
    """Return a short identity of this CPU, which `--cpu=host` code depends on.

    It keeps machines that share a cache from using each other's code.
    """
    facts = [platform.machine(), platform.system()]
    try:
        keep = ("model name", "flags", "Features", "CPU part", "CPU implementer")
        seen: set[str] = set()
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name = line.partition(":")[0].strip()
            if name in keep and name not in seen:
                seen.add(name)
                facts.append(line)
    except OSError:
        facts.append(platform.processor())
    facts.append(f"tile registers: {has_tile_registers()}")  # a process may be denied them
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=8).hexdigest()


# --------------------------------------------------------------------------------------- gpu

DEFAULT_ARCH = "gfx942"
# square roots are rounded: the default is `sqrt.approx`, whose last bits are wrong
_CUDA = ("--nvvm-reflect-add=__CUDA_PREC_SQRT=1",)


def gpu_ladder(
    arch: str = DEFAULT_ARCH, *, opt_level: str = "O2", extra: Iterable[str] = ()
) -> tuple[FlagSet, ...]:
    """Return the flag sets of a GPU architecture, best first: ROCm's of AMD, CUDA's of NVIDIA.

    For AMD, the second set emulates 8-bit floats that the architecture lacks. The third switches
    off vectorized loops, on which LLVM's lowering of buffer pointers may not end.
    """
    known = ARCHITECTURES[check_arch(arch)]
    device, backend = ("hip", "rocm") if known.vendor == "amd" else ("cuda", "cuda")
    base = (
        f"--iree-hal-target-device={device}",
        # the module states the target, as IREE has no name for it
        *(() if stated_target(known.name) else (f"--iree-{backend}-target={known.compiled_as}",)),
        # the default ignores the tile of a matmul whose rows are a multiple of a number
        "--iree-codegen-block-dynamic-dimensions-of-contractions=false",
        *_COMMON,
        *(_CUDA if known.vendor == "nvidia" else ()),
        f"--iree-opt-level={check_opt_level(opt_level)}",
    )
    tail = tuple(extra)
    sets = [FlagSet("best", base + tail)]
    if known.vendor == "amd":
        sets += [
            FlagSet(
                "small-float-emulation",
                (*base, "--iree-llvmgpu-enable-small-float-emulation", *tail),
                "8-bit floats that the architecture lacks are computed by conversion",
                frozenset({"kernel"}),
            ),
            FlagSet(
                "loops-as-they-are",
                (*base, "--vectorize-loops=false", *tail),
                "LLVM does not vectorize loops of kernels",
                frozenset({"pointers"}),
            ),
        ]
    return (*sets, _other_registers((*base, *tail)))


def check_opt_level(level: str) -> str:
    """Check a level, `O0` to `O3`; a bare digit is accepted. Errors: TargetError."""
    name = f"O{level}" if str(level) in "0123" and len(str(level)) == 1 else str(level)
    if name not in OPT_LEVELS:
        raise TargetError(f"unknown optimisation level '{level}', expected one of O0, O1, O2, O3")
    return name
