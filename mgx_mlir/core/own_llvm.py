"""Loading of the MLIR bindings' libraries so that they use no other LLVM of the process.

TensorFlow exports its LLVM globally, where every library finds symbols first. See
docs/design/30-llvm-beside-others.md.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import TargetError

# A function of LLVM and one of MLIR's C API; a library that exports its LLVM has them.
_FOREIGN = ("_ZN4llvm2cl6Option11addArgumentEv", "mlirContextCreate")


def load_bindings(folder: Path) -> None:
    """Load every library of `folder` with RTLD_DEEPBIND.

    Later imports find them loaded. The flag is per call of dlopen, so imports of other threads are
    not affected. Does nothing on macOS, where a symbol names its library.
    Error (TargetError): malloc is not libc's, which excludes the flag, and another LLVM is
    exported.
    Error (OSError): a library cannot be loaded.
    """
    own_first = getattr(os, "RTLD_DEEPBIND", 0)
    if not own_first:
        return
    if _foreign_allocator():
        _refuse_foreign_llvm()
        own_first = 0
    # Shared with the rest of the process, so bound in its scope.
    ctypes.CDLL("libstdc++.so.6")
    for path in sorted(folder.glob("lib*.so")) + sorted(folder.glob("_*.so")):
        ctypes.CDLL(str(path), os.RTLD_NOW | os.RTLD_LOCAL | own_first)


def _foreign_allocator() -> bool:
    """Return whether malloc is a preloaded allocator's or a sanitizer's, not libc's.

    A deep-bound library calls libc's free, also for memory that libc got from the other allocator
    (`strdup`, `realpath`). The sanitizers refuse such a library.
    """
    found, libc = ctypes.CDLL(None), ctypes.CDLL("libc.so.6")
    return _address(found.malloc) != _address(libc.malloc)


def _refuse_foreign_llvm() -> None:
    """Raise TargetError where another LLVM would resolve symbols of the bindings."""
    everywhere = ctypes.CDLL(None)
    if any(hasattr(everywhere, name) for name in _FOREIGN):
        raise TargetError(
            "the MLIR bindings cannot be loaded: another library of this process, such as "
            "TensorFlow's, exports an LLVM, and malloc is not libc's",
            notes=["compile in another process, or start Python without the preloaded allocator"],
        )


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
