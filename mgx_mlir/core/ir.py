"""The only importer of the MLIR bindings; other modules get them from here.

They are imported at first use: loading and running a compiled program needs none.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import TargetError
from mgx_mlir.core.own_llvm import load_bindings

if TYPE_CHECKING:
    from torch_mlir import ir, passmanager, rewrite
    from torch_mlir.dialects import (
        arith,
        ext,
        func,
        irdl,
        linalg,
        math,
        ml_program,
        scf,
        tensor,
        vector,
    )


class _Bindings(ModuleType):
    """A module of the bindings that is imported at the first attribute access."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # introspection of modules by tools must not import
            raise AttributeError(name)
        _prepare()
        found = importlib.import_module(self.__name__)
        self.__dict__.update({k: v for k, v in vars(found).items() if not k.startswith("__")})
        return getattr(found, name)


_prepared = False


def _prepare() -> None:
    """Register, once, the packages in which the bindings search for dialect classes."""
    global _prepared
    if _prepared:
        return
    try:
        import torch_mlir  # the package that has the bindings

        load_bindings(Path(torch_mlir.__path__[0], "_mlir_libs"))
        from torch_mlir._mlir_libs import _mlir
    except (ImportError, OSError) as e:
        raise TargetError(
            f"the MLIR bindings cannot be loaded: {e}",
            notes=[
                "without them this package only loads and runs compiled files; to compile, install "
                "it with its dependencies, not with --no-deps"
            ],
        ) from None

    # Without a module of the dialect's name in a searched package the bindings retry the failing
    # import at every OpView: 18 us per op instead of 0.6 us, in walks, patterns and verifiers.
    known: Any = _mlir.globals
    searched = known.dialect_search_modules
    known.dialect_search_modules = ["mgx_mlir.core.dialects", *searched, "mgx_mlir.dialects"]
    # IREE's dialects have no module either; the lowering makes their ops as unregistered ones.
    for name in ("flow", "hal", "iree_linalg_ext", "iree_tensor_ext", "util"):
        sys.modules.setdefault(f"mgx_mlir.dialects.{name}", ModuleType(name, f"{name}: no classes"))
    _prepared = True


if not TYPE_CHECKING:
    ir, passmanager, rewrite = (
        _Bindings(f"torch_mlir.{name}") for name in ("ir", "passmanager", "rewrite")
    )
    ext, func, irdl = (_Bindings(f"torch_mlir.dialects.{name}") for name in ("ext", "func", "irdl"))

# Imported at first access: only lowering needs them.
_LAZY = frozenset(("arith", "linalg", "math", "ml_program", "scf", "tensor", "vector"))


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        _prepare()
        package = "mgx_mlir.core.dialects" if name == "linalg" else "torch_mlir.dialects"
        return importlib.import_module(f"{package}.{name}")
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
