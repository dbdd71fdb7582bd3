"""A gpu program's architectures: parsing their names, and one program with code for several."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.hardware.architectures import best_of
from mgx_mlir.targets import devices, emulator, get_target


def named(arch: str | Sequence[str] | None) -> tuple[str, ...]:
    """Parse `gfx942,mi300x`, or a list of names, to distinct architectures.

    Errors: TargetError for unknown names.
    """
    if arch is None:
        return ()
    texts = arch.split(",") if isinstance(arch, str) else arch
    found = dict.fromkeys(get_target("gpu", architecture=a).arch for a in texts)
    if not found:
        raise UsageError("expected an architecture, got an empty list")
    return tuple(found)


def device_archs(*, emulate: bool) -> tuple[str, ...]:
    """Return the known architectures of the devices present.

    For emulated devices it is the architecture that the environment names.
    """
    if emulate:
        stated = emulator.emulated_arch()
        return (stated,) if stated else ()
    return tuple(d.arch for d in devices.gpu_devices())


def of_device(device_id: int, *, emulate: bool) -> str | None:
    """Return the architecture of a device, or None where it is unknown."""
    if emulate:
        return emulator.emulated_arch(device_id)
    found = device_archs(emulate=False)
    return (found[device_id] or None) if 0 <= device_id < len(found) else None


def together(programs: Sequence[IreeProgram], here: str | None) -> IreeProgram:
    """Join programs for different architectures to one with alternatives.

    The first in the result is the one that fits `here` best, else the first given.
    """
    archs = [p.executable.arch for p in programs]
    if len(set(archs)) != len(archs):
        raise FileError(f"expected code for one architecture each, got {', '.join(archs)}")
    best = None if here is None else best_of(archs, here)
    first = next((p for p in programs if p.executable.arch == best), programs[0])
    first.alternatives = tuple(p for p in programs if p is not first)
    return first
