"""A compiled module, as targets return it and the cache stores it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from mgx_mlir.targets.cache import CachedModule

TargetKind = Literal["ref", "cpu", "gpu"]


@dataclass(frozen=True)
class Executable:
    """A compiled module and how it was made."""

    vmfb: bytes | np.ndarray  # bytes of the module, 64-byte aligned when it came from the cache
    target: TargetKind
    arch: str  # gfx or sm_ name, or name of the CPU
    key: str  # key in the compile cache
    flags: tuple[str, ...]  # flags of iree-compile
    flag_set: str  # name of the flag set that worked
    # failures before this compile, by flag set or kernel form; empty when the first one worked
    fallbacks: tuple[str, ...]
    seconds: float  # seconds of the compile that made it, also when it came from the cache
    # peak resident bytes of the compile that made it, also when it came from the cache
    peak_memory: int
    via: str  # processes of the compile: "binary", "worker", or "workers": kernels apart
    cached: bool  # module came from the cache
    warnings: tuple[str, ...] = ()
    # kernels launched by each exported function, in order; "initializer" runs once at load
    dispatches: dict[str, list[str]] = field(default_factory=dict)
    # bytes that IREE planned: "constants" in the module, "transient" in a call and while loading
    plan: dict[str, int] = field(default_factory=dict)
    # failures of IREE before it compiled this on one thread
    crashes: tuple[str, ...] = ()
    input_alignment: int = 64  # alignment in bytes of an input that is read in place
    # names of launches in the runtime, where they differ: kernels in libraries
    symbols: dict[str, str] = field(default_factory=dict)

    @property
    def kernels(self) -> list[str]:
        """The launches of one call of main that are kernels of the program."""
        return self.launches("main")

    def launches(self, function: str) -> list[str]:
        """Return the launches of one call of a function that are kernels of the program.

        Data tiling on CPUs adds launches of its own, which pack operands; they are left out.
        """
        found = self.dispatches.get(function, [])
        return [name for name in found if not name.startswith("_encoding_")]


def executable_of(key: str, found: CachedModule) -> Executable:
    """Restore a cached module. Errors: KeyError, TypeError or ValueError for a malformed one."""
    r = found.record
    return Executable(
        found.vmfb, r["target"], r["arch"], key, tuple(r["flags"]), r["flag_set"],
        tuple(r["fallbacks"]), r["seconds"], r["peak_memory"], r["via"], True,
        tuple(r["warnings"]), dict(r["dispatches"]), dict(r.get("plan", {})),
        tuple(r.get("crashes", ())), int(r.get("input_alignment", 64)),
        dict(r["symbols"]),
    )  # fmt: skip


def record_of(e: Executable) -> dict[str, Any]:
    """Return the record of a cached module, as JSON values."""
    return {
        f.name: getattr(e, f.name) for f in fields(e) if f.name not in ("vmfb", "key", "cached")
    }
