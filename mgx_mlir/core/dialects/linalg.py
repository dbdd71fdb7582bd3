"""linalg's op classes without OpDSL, which takes 60 ms of CPU to import.

Builders of named ops are written in OpDSL: the first access imports it, except for `fill`, which
most programs need.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.ir import ir

_BUILTIN: Any = importlib.import_module("torch_mlir._mlir_libs._mlirDialectsLinalg")
_OPS: Any = importlib.import_module("torch_mlir.dialects._linalg_ops_gen")
GenericOp, IndexOp, YieldOp = _OPS.GenericOp, _OPS.IndexOp, _OPS.YieldOp


def fill(value: ir.Value, *, outs: Sequence[ir.Value]) -> ir.Value:
    """Build a linalg.fill of one tensor."""
    made = _OPS.FillOp([o.type for o in outs], [value], outs)
    _BUILTIN.fill_builtin_region(made.operation)
    return made.results[0]


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("torch_mlir.dialects.linalg"), name)


__all__ = ["GenericOp", "IndexOp", "YieldOp", "fill"]
