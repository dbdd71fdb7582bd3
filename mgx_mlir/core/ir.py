"""The one importer of the MLIR bindings; everything else takes them from here."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from torch_mlir import ir, passmanager, rewrite
from torch_mlir._mlir_libs import _mlir
from torch_mlir.dialects import ext, func, irdl

if TYPE_CHECKING:
    from torch_mlir.dialects import arith, linalg, math, ml_program, scf, tensor, vector

# Without a module of the dialect's name in a searched package the bindings retry the failing import
# at every OpView: 18 us per op instead of 0.6 us, in walks, patterns and verifiers alike.
_mlir.globals.append_dialect_search_prefix("mgx_mlir.dialects")
# Nor have IREE's dialects a module here, whose ops the lowering makes as unregistered ones.
for _name in ("flow", "hal", "iree_linalg_ext", "iree_tensor_ext", "util"):
    sys.modules.setdefault(f"mgx_mlir.dialects.{_name}", ModuleType(_name, f"{_name}: no classes"))

# Imported when first asked for: linalg alone takes 90 ms, and only lowering needs them.
_LAZY = frozenset(("arith", "linalg", "math", "ml_program", "scf", "tensor", "vector"))


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return importlib.import_module(f"torch_mlir.dialects.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "arith",
    "ext",
    "func",
    "ir",
    "irdl",
    "linalg",
    "math",
    "ml_program",
    "passmanager",
    "rewrite",
    "scf",
    "tensor",
    "vector",
]
