"""Facts about the machine that more than one part asks for."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
from pathlib import Path

from mgx_mlir.core.errors import TargetError

# where IREE's hip driver looks for HIP: read each time that a driver is made
HIP_VARIABLE = "IREE_HIP_DYLIB_PATH"


def available_cpus() -> int:
    """Return the processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def processor_features() -> frozenset[str]:
    """Return the features that the system names for its processors; empty where it names none."""
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


def runtime_tool(name: str) -> Path:
    """Find a program of the iree-base-runtime wheel. TargetError where it is not installed."""
    spec = importlib.util.find_spec("iree._runtime_libs")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in (name, f"{name}.exe"):
            if Path(folder, file).exists():
                return Path(folder, file)
    raise TargetError(f"{name} is not installed", notes=["pip install iree-base-runtime==3.13.0"])
