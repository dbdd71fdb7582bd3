"""Targets: compiling a lowered program with IREE, the compile cache, reports on gpu code."""

from mgx_mlir.targets.base import (
    BackendOptions,
    CpuTarget,
    Executable,
    GpuTarget,
    Target,
    default_target,
    get_target,
    register_target,
    target_names,
)

__all__ = [
    "BackendOptions",
    "CpuTarget",
    "Executable",
    "GpuTarget",
    "Target",
    "default_target",
    "get_target",
    "register_target",
    "target_names",
]
