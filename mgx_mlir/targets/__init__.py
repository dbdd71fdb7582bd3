"""Targets: compiling a lowered program with IREE, the compile cache, reports on gpu code.

Names are loaded when first used: a program that the cache has needs no compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgx_mlir.targets.base import (
        BackendOptions,
        CpuTarget,
        GpuTarget,
        Target,
        get_target,
        register_target,
        target_names,
    )
    from mgx_mlir.targets.devices import default_target
    from mgx_mlir.targets.executable import Executable

_ELSEWHERE = {"Executable": "executable", "default_target": "devices"}

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    module = importlib.import_module(f"{__name__}.{_ELSEWHERE.get(name, 'base')}")
    return getattr(module, name)
