"""Facts about the machine that more than one part asks for."""

from __future__ import annotations

import os


def available_cpus() -> int:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
