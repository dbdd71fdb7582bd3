"""The emulator of AMD GPUs: its library, and the devices that it emulates.

IREE's hip driver loads a `libamdhip64.so`; with the emulator's, the code for a GPU runs on the CPU.
A process may use the emulator and the system's HIP at once: each is a
driver of its own. docs/emulator.md says what emulation shows.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from mgx_mlir.core.errors import TargetError
from mgx_mlir.hardware.machine import processor_features

LIBRARY = "libamdhip64.so"
# the folder of a library built by hand with CMake
PATH_VARIABLE = "MGX_EMULATOR_PATH"
# the emulated devices: an architecture for each, or one for all
ARCH_VARIABLE = "MGX_EMULATE_ARCH"
ARCHS = (
    "gfx90a", "gfx942", "gfx950", *(f"gfx103{n}" for n in range(7)),
    "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
    "gfx1200", "gfx1201",
)  # fmt: skip
# builds of the library, best first, and what a CPU needs for each (names of /proc/cpuinfo)
_V3 = ("avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm")
BUILDS: dict[str, tuple[str, ...]] = {
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", *_V3),
    "x86-64-v3": _V3,
    "": (),
}

_active = False


def _places() -> Iterator[Path]:
    given = os.environ.get(PATH_VARIABLE)
    if given:
        yield Path(given)
        return
    yield Path(__file__).resolve().parent / "native"
    # an editable install keeps what was built beside other packages
    yield Path(sysconfig.get_path("platlib")) / "mgx_mlir" / "targets" / "native"


def find_library() -> Path | None:
    """Return the folder of the emulator's library for this CPU, None where none is built."""
    for place in _places():
        for build, needs in BUILDS.items():
            if (place / build / LIBRARY).is_file() and processor_features().issuperset(needs):
                return place / build
    return None


def active() -> bool:
    """Return whether this process asked for emulation."""
    return _active


def check_arch(arch: str) -> None:
    """Raise TargetError for an architecture that is not emulated."""
    if arch not in ARCHS:
        raise TargetError(f"{arch} is not emulated", notes=[f"emulated: {', '.join(ARCHS)}"])


def emulated_arch(device_id: int = 0) -> str | None:
    """Return the architecture that the environment states for an emulated device, else None.

    Without one a device runs the code of any. Errors: TargetError for one that is not emulated.
    """
    stated = [a.strip() for a in os.environ.get(ARCH_VARIABLE, "").split(",") if a.strip()]
    if not stated:
        return None
    arch = stated[device_id if 0 <= device_id < len(stated) else 0]
    check_arch(arch)
    return arch


def activate() -> Path:
    """Return the folder of the emulator's library, for a process that asks for it.

    It is built where there is none (targets/emulator_build.py), but not where the environment
    names its folder. Nothing but `active` changes. Errors: TargetError where it cannot be had.
    """
    global _active
    found = find_library()
    if found is None and PATH_VARIABLE in os.environ:
        raise TargetError(
            "the emulator is not built",
            notes=[f"looked for {LIBRARY} in {os.environ[PATH_VARIABLE]}, as {PATH_VARIABLE} says"],
        )
    if found is None:
        # start-up: only if it is requested and missing
        from mgx_mlir.targets import emulator_build

        found = emulator_build.build(LIBRARY)
    _active = True
    return found
