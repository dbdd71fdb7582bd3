"""Errors of modules that cannot be loaded: for another device, damaged, without parameters."""

from __future__ import annotations

from mgx_mlir.core.errors import FileError, TargetError
from mgx_mlir.runtime.device import Device, details, short


def load_error(device: Device, e: Exception, where: str | None) -> Exception:
    """Return the error of a module that a device's runtime refused. where: its file."""
    text = str(e)
    wrong_kind = "device" in text and ("NOT_FOUND" in text or "INCOMPATIBLE" in text)
    if "not emulated" in text:
        return TargetError(
            "the module has instructions that the emulator does not know",
            location=where,
            notes=details(e),
        )
    if wrong_kind or "mismatched target chip" in text:
        return TargetError(
            f"the module was not compiled for a {device.kind} device",
            location=where,
            notes=[short(e)],
        )
    if "parameter" in text:
        return FileError(f"the module's parameters are missing: {short(e)}", location=where)
    return FileError(f"the compiled module cannot be loaded: {short(e)}", location=where)
