"""ONNX models as programs.

`onnx_op` registers an importer for an operator, also for custom domains: docs/onnx.md.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgx_mlir.core.errors import ModelError
    from mgx_mlir.frontends.onnx.registry import onnx_op
    from mgx_mlir.frontends.problems import NotSupported
    from mgx_mlir.programs.build import Builder

_PLACES = {
    "Builder": "mgx_mlir.programs.build",
    "ModelError": "mgx_mlir.core.errors",
    "NotSupported": "mgx_mlir.frontends.problems",
    "onnx_op": "mgx_mlir.frontends.onnx.registry",
}


def __getattr__(name: str) -> Any:
    # not imported at start-up: reading options does not need it
    if name not in _PLACES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(_PLACES[name]), name)


__all__ = ["Builder", "ModelError", "NotSupported", "onnx_op"]
