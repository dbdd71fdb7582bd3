"""The few calls of HIP that IREE's runtime has no name for, from the library it loads."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import RunError, TargetError

_NAMES = ("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7", "amdhip64.dll")
_VARIABLE = "IREE_HIP_DYLIB_PATH"


def device_synchronize() -> None:
    """Wait for all that was asked of the current device. Errors: RunError, TargetError."""
    _check("hipDeviceSynchronize", _library().hipDeviceSynchronize())


def stream_synchronize(stream: int) -> None:
    """Wait for all that was asked of a stream. Errors: RunError, TargetError."""
    _check("hipStreamSynchronize", _library().hipStreamSynchronize(ctypes.c_void_p(stream)))


def _check(name: str, status: int) -> None:
    if status:
        raise RunError(f"{name} failed with status {status}")


def _library() -> Any:
    return _loaded(os.environ.get(_VARIABLE, ""))


@lru_cache(maxsize=2)
def _loaded(place: str) -> Any:
    names: list[str] = list(_NAMES)
    if place:
        found = Path(place.removeprefix("file:"))
        names = [str(found)] if found.is_file() else [str(found / n) for n in _NAMES]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise TargetError("the HIP library cannot be loaded", notes=[f"looked for {', '.join(names)}"])
