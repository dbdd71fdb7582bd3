"""Facts about this machine that several packages need."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import sys
from pathlib import Path

from mgx_mlir.core.errors import TargetError

try:
    import resource
except ImportError:  # Windows
    resource = None

# folder in which IREE's hip driver looks for HIP; read whenever a driver is made
HIP_VARIABLE = "IREE_HIP_DYLIB_PATH"


def available_cpus() -> int:
    """Return the CPUs this process may use: its affinity's, or fewer where a container has less."""
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return min(count, _quota() or count)


@functools.cache
def _quota() -> int | None:
    try:
        text = Path("/proc/self/cgroup").read_text()
    except OSError:
        return None
    own = next((line[3:] for line in text.splitlines() if line.startswith("0::")), "/")
    return quota_of(Path("/sys/fs/cgroup"), own)


def quota_of(root: Path, group: str) -> int | None:
    """Return the CPUs of a control group's quota of time, rounded up; None without a quota.

    root: the folder of Linux's control groups, version 2. group: a path below it, whose parents
    have quotas too.
    """
    folder, found = root / group.lstrip("/"), list[int]()
    for place in (folder, *folder.parents):
        if place.is_relative_to(root):
            try:
                quota, period = (place / "cpu.max").read_text().split()
                found += [] if quota == "max" else [max(1, -(-int(quota) // int(period)))]
            except (OSError, ValueError):
                continue  # a root has no quota
    return min(found, default=None)


def peak_memory() -> int | None:
    """Return the peak resident bytes of this process; None on Windows."""
    if resource is None:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@functools.cache
def processor_features() -> frozenset[str]:
    """Return the CPU features that the system lists; empty if it lists none."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset(("asimd",) if platform.machine() == "arm64" else ())
    found: frozenset[str] | None = None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            own = frozenset(value.split())
            found = own if found is None else found & own
    return found or frozenset()


# numbers of Linux on x86-64: arch_prctl(2), its request for permission of a state component, and
# AMX's component
TILE_REQUEST = 158, 0x1023, 18


@functools.cache
def has_tile_registers() -> bool:
    """Return whether this process may use AMX's registers for bf16 and bytes; asks Linux for them.

    A process must ask first; its threads and forked children may then use them, too.
    """
    if not {"amx_tile", "amx_bf16", "amx_int8"} <= processor_features():
        return False
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(*TILE_REQUEST) == 0


_SKYLAKE = ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "adx",
            "bmi1", "bmi2", "clflushopt", "clwb", "rdseed", "xsavec", "xsaves")  # fmt: skip
_ICELAKE = ("avx512_vnni", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_bitalg",
            "avx512_vpopcntdq", "gfni", "vaes", "vpclmulqdq", "sha_ni", "rdpid")  # fmt: skip
# LLVM's names for CPUs with 512-bit vectors and without bf16, with the features that their code
# uses
_WITHOUT_BF16 = (
    ("icelake-server", frozenset((*_SKYLAKE, *_ICELAKE))),
    ("cascadelake", frozenset((*_SKYLAKE, "avx512_vnni"))),
    ("skylake-avx512", frozenset(_SKYLAKE)),
)


def compiled_as(features: frozenset[str]) -> str:
    """Return the CPU name to pass to IREE for these features.

    With `host` IREE derives features from the CPU's model, even those that a virtual machine hides,
    such as bf16 instructions.
    """
    if "avx512f" not in features or "avx512_bf16" in features:
        return "host"
    return next((name for name, needs in _WITHOUT_BF16 if needs <= features), "host")


def runtime_tool(name: str) -> Path:
    """Find a program of the iree-base-runtime wheel. TargetError if it is not installed."""
    spec = importlib.util.find_spec("iree._runtime_libs")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in (name, f"{name}.exe"):
            if Path(folder, file).exists():
                return Path(folder, file)
    raise TargetError(f"{name} is not installed", notes=["pip install iree-base-runtime==3.13.0"])
