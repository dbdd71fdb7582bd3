"""Loads the libraries of the MLIR bindings so that they call no other LLVM of the process.

TensorFlow puts its LLVM into the scope where every library finds symbols first. The decision and
its price: docs/design/30-llvm-beside-others.md.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import TargetError

# A function of LLVM and one of MLIR's C API, exported by whatever lets others find its copy.
_FOREIGN = ("_ZN4llvm2cl6Option11addArgumentEv", "mlirContextCreate")


def load_bindings(folder: Path) -> None:
    """Load every library of `folder`, bound to itself and its dependencies before all others.

    Later imports find them loaded. The mode belongs to each call of dlopen, so that imports of
    other threads keep theirs. Nothing happens on macOS, where a symbol names its library.
    Error (TargetError): another allocator forbids this, and another LLVM is in the way.
    Error (OSError): a library cannot be loaded.
    """
    own_first = getattr(os, "RTLD_DEEPBIND", 0)
    if not own_first:
        return
    if _foreign_allocator():
        _refuse_foreign_llvm()
        own_first = 0
    # Shared with all others of the process, with their scope and not with the one of the bindings.
    ctypes.CDLL("libstdc++.so.6")
    for path in sorted(folder.glob("lib*.so")) + sorted(folder.glob("_*.so")):
        ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_LOCAL | own_first)


def _foreign_allocator() -> bool:
    """Say whether malloc is another allocator's than libc's: a preloaded one, a sanitizer's.

    A library that is bound to itself first takes libc's free, also for memory that libc took from
    the other allocator (`strdup`, `realpath`). The sanitizers refuse such a library.
    """
    found, libc = ctypes.CDLL(None), ctypes.CDLL("libc.so.6")
    return _address(found.malloc) != _address(libc.malloc)


def _refuse_foreign_llvm() -> None:
    """Raise TargetError where another LLVM would answer for symbols of the bindings."""
    everywhere = ctypes.CDLL(None)
    if any(hasattr(everywhere, name) for name in _FOREIGN):
        raise TargetError(
            "the MLIR bindings cannot be loaded: another library of this process, such as "
            "TensorFlow's, exports an LLVM, and malloc is not libc's",
            notes=["compile in another process, or start Python without the preloaded allocator"],
        )


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
