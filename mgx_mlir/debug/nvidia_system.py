"""System information about NVIDIA GPUs: kernel driver, device files, cards, CUDA's library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

from mgx_mlir.debug.system_check import BAD, OK, Check

_DRIVER = "proc/driver/nvidia"
_CONTAINER = "a container needs '--gpus all', and NVIDIA's container toolkit on the host"
# names by which IREE's runtime and other users of CUDA load it
_LIBRARIES = ("libcuda.so", "libcuda.so.1")


def present(root: Path = Path("/")) -> bool:
    """Return whether the machine has an NVIDIA device, or NVIDIA's driver."""
    nodes = ("dev/nvidiactl", "dev/dxg", "dev/nvhost-gpu", _DRIVER)
    return any((root / node).exists() for node in nodes)


def nvidia_checks(
    root: Path, may: Callable[[Path], bool], loads: Callable[[str], bool] | None = None
) -> list[Check]:
    """Check the system of a machine with NVIDIA's driver, without touching a GPU.

    `may`: whether this user may read and write a file. `loads`: whether a library can be loaded.
    """
    return [_driver(root), _nodes(root, may), _cards(root), _library(loads or _found)]


def _driver(root: Path) -> Check:
    try:
        first = (root / _DRIVER / "version").read_text().splitlines()[0]
    except (OSError, IndexError, UnicodeDecodeError):
        return Check(
            "kernel driver", BAD, "the module nvidia is not loaded",
            ("load it with 'modprobe nvidia', or install NVIDIA's driver", _CONTAINER),
        )  # fmt: skip
    return Check("kernel driver", OK, first.removeprefix("NVRM version:").strip())


def _nodes(root: Path, may: Callable[[Path], bool]) -> Check:
    found = sorted(p for p in (root / "dev").glob("nvidia*") if not p.is_dir())
    cards = [p for p in found if p.name.removeprefix("nvidia").isdigit()]
    missing = [n for n in ("nvidiactl", "nvidia-uvm") if not (root / "dev" / n).exists()]
    if not cards or missing:
        what = "no /dev/nvidia0" if not cards else f"no {', '.join(f'/dev/{n}' for n in missing)}"
        mend = ("'nvidia-modprobe -u -c=0' makes the files", _CONTAINER)
        return Check("device files", BAD, what, mend)
    closed = [p.name for p in found if "caps" not in p.name and not may(p)]
    if closed:
        return Check(
            "device files", BAD, f"this user may not read and write {', '.join(closed)}",
            ("'sudo chmod a+rw' allows it; the driver's NVreg_DeviceFileGID sets their group",),
        )  # fmt: skip
    return Check("device files", OK, f"{', '.join(p.name for p in found)} may be read and written")


def _cards(root: Path) -> Check:
    names = []
    for file in sorted((root / _DRIVER / "gpus").glob("*/information")):
        try:
            rows = [line.partition(":") for line in file.read_text().splitlines()]
        except (OSError, UnicodeDecodeError):
            continue
        names += [value.strip() for key, _, value in rows if key.strip() == "Model"]
    if not names:
        return Check("cards", BAD, "the driver lists no GPU")
    return Check("cards", OK, "; ".join(names))


def _library(loads: Callable[[str], bool]) -> Check:
    missing = [name for name in _LIBRARIES if not loads(name)]
    if not missing:
        return Check("CUDA library", OK, "libcuda.so is found")
    notes = [_CONTAINER]
    if missing == ["libcuda.so"]:
        notes = ["IREE loads it by this name: make it a link to libcuda.so.1, then 'ldconfig'"]
    return Check("CUDA library", BAD, f"{', '.join(missing)} cannot be loaded", tuple(notes))


def _found(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
