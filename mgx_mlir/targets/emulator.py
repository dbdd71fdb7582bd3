"""The emulator of AMD GPUs: finding its library, and making it this process's HIP.

IREE's hip driver loads `libamdhip64.so` by name once in a process; `activate` points it at the
emulator's, so that the very code that would go to a GPU runs on the processor. One process has
one HIP: the emulator or the real one. docs/emulator.md says what that shows.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from mgx_mlir.core.errors import TargetError

LIBRARY = "libamdhip64.so"
# the folder of a library built by hand with CMake
PATH_VARIABLE = "MGX_EMULATOR_PATH"
# what IREE's driver reads
DRIVER_VARIABLE = "IREE_HIP_DYLIB_PATH"
CHECK_VARIABLE = "MGX_EMULATE_CHECK"
ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1101", "gfx1103", "gfx1150", "gfx1151",
         "gfx1200", "gfx1201")  # fmt: skip

_active: Path | None = None


def _places() -> Iterator[Path]:
    given = os.environ.get(PATH_VARIABLE)
    if given:
        yield Path(given)
        return
    yield Path(__file__).resolve().parent / "native"
    # an editable install keeps what was built beside other packages
    yield Path(sysconfig.get_path("platlib")) / "mgx_mlir" / "targets" / "native"


def find_library() -> Path | None:
    """The folder that holds the emulator's library, or None where it is not built."""
    for place in _places():
        if (place / LIBRARY).is_file():
            return place
    return None


def active() -> bool:
    """Whether this process's HIP is the emulator, by `activate`."""
    return _active is not None


def user_library() -> str | None:
    """The HIP library that the user's environment names for IREE, if any."""
    return None if active() else os.environ.get(DRIVER_VARIABLE)


def check_arch(arch: str) -> None:
    """Errors: TargetError for an architecture that is not emulated."""
    if arch not in ARCHS:
        raise TargetError(f"{arch} is not emulated", notes=[f"emulated: {', '.join(ARCHS)}"])


def activate() -> Path:
    """Make the emulator this process's HIP; the folder of its library.

    To be called before a hip device is opened. Errors: TargetError where it is not built, or
    where the environment names another HIP library.
    """
    global _active
    if _active is not None:
        return _active
    found = find_library()
    if found is None:
        places = ", ".join(str(p) for p in _places())
        raise TargetError(
            "the emulator is not built",
            notes=["MGX_NATIVE=1 pip install . builds it; a C++17 compiler is needed",
                   f"looked for {LIBRARY} in {places}"],
        )  # fmt: skip
    other = os.environ.get(DRIVER_VARIABLE)
    if other and Path(other).resolve() not in (found.resolve(), (found / LIBRARY).resolve()):
        raise TargetError(
            f"the environment's {DRIVER_VARIABLE} names another HIP library, {other}",
            notes=["unset it to run on the emulator"],
        )
    os.environ[DRIVER_VARIABLE] = str(found)
    _active = found
    return found
