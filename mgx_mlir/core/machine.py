"""Facts about the machine that more than one part asks for."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path


def available_cpus() -> int:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def processor_features() -> frozenset[str]:
    """The features that the system names for its processors; empty where it names none."""
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
