"""The HIP library of this process: where it is, and its version."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import TargetError

LEAST_VERSION = 6  # whose properties of a device, and layouts of graphs' parameters, are asked for
_NAMES = ("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7", "amdhip64.dll")


def version(library: Any, which: str = "hipRuntimeGetVersion") -> tuple[int, int, int] | None:
    """Return HIP's version, None where a library does not say it."""
    number, known = ctypes.c_int(0), getattr(library, which, None)
    if known is None or known(ctypes.byref(number)):
        return None
    # major * 10,000,000 + minor * 100,000 + patch
    return number.value // 10_000_000, number.value // 100_000 % 100, number.value % 100_000


def check_version(place: str) -> None:
    """Raise TargetError for a HIP that the runtime is not made for, or that cannot be loaded."""
    found = version(loaded(place))
    if found is not None and found[0] < LEAST_VERSION:
        raise TargetError(
            f"HIP {'.'.join(map(str, found))} is too old: HIP {LEAST_VERSION} or newer is needed",
            notes=[f"of {place}" if place else "of the system's libamdhip64", "ROCm 6 has HIP 6"],
        )


@lru_cache(maxsize=8)
def loaded(place: str) -> ctypes.CDLL:
    """Load the library in a folder, of a file, or the system's (""). Errors: TargetError."""
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
