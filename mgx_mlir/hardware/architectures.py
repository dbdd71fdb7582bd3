"""GPU architectures by name: vendor, cards, and the target name in IREE."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mgx_mlir.core.errors import TargetError

Vendor = Literal["amd", "nvidia"]


@dataclass(frozen=True)
class Architecture:
    """An architecture, and the cards that have it."""

    name: str  # gfx name, or sm_ and the compute capability
    vendor: Vendor
    products: tuple[str, ...]
    compiled_as: str  # target of IREE 3.13, which differs from `name` where IREE lacks it

    @property
    def capability(self) -> int:
        """Compute capability of an NVIDIA architecture, 90 of `sm_90`."""
        return int(self.name.removeprefix("sm_"))


_AMD: dict[str, tuple[str, ...]] = {
    "gfx906": ("mi50", "mi60", "radeonvii"),
    "gfx908": ("mi100",),
    "gfx90a": ("mi210", "mi250", "mi250x"),
    "gfx942": ("mi300a", "mi300x", "mi308x", "mi325x"),
    "gfx950": ("mi350x", "mi355x"),
    "gfx1030": ("rx6800", "rx6800xt", "rx6900xt", "rx6950xt", "w6800", "v620"),
    "gfx1031": ("rx6700", "rx6700xt", "rx6750xt"),
    "gfx1032": ("rx6600", "rx6600xt", "rx6650xt", "w6600"),
    "gfx1033": ("steamdeck",),
    "gfx1034": ("rx6400", "rx6500xt", "w6400"),
    "gfx1035": ("680m",),
    "gfx1036": (),
    "gfx1100": ("rx7900xtx", "rx7900xt", "w7900", "w7800"),
    "gfx1101": ("rx7800xt", "rx7700xt", "w7700", "v710"),
    "gfx1102": ("rx7600", "rx7600xt", "w7600", "w7500"),
    "gfx1103": ("780m", "760m"),
    "gfx1150": ("890m", "880m"),
    "gfx1151": ("8060s",),
    "gfx1152": ("860m",),
    "gfx1153": ("820m",),
    "gfx1200": ("rx9060xt",),
    "gfx1201": ("rx9070xt", "rx9070", "r9700"),
    "gfx1250": (),
}
# NVIDIA's table of compute capabilities; IREE 3.13 has targets up to sm_89
_NVIDIA: dict[str, tuple[str, tuple[str, ...]]] = {
    "sm_80": ("sm_80", ("a100", "a30")),
    "sm_86": ("sm_86", ("a10", "a40", "a2", "a16", "rtxa6000", "rtx3090", "rtx3080")),
    "sm_89": ("sm_89", ("l4", "l40", "l40s", "rtx6000ada", "rtx4090", "rtx4080")),
    "sm_90": ("sm_89", ("h100", "h200", "gh200")),
    "sm_100": ("sm_89", ("b200", "gb200")),
    "sm_120": ("sm_89", ("rtx5090", "rtx5080")),
}
ARCHITECTURES: dict[str, Architecture] = {
    **{n: Architecture(n, "amd", products, n) for n, products in _AMD.items()},
    **{n: Architecture(n, "nvidia", products, t) for n, (t, products) in _NVIDIA.items()},
}


def _key(name: str) -> str:
    """Return the lookup key of a name: `RTX A6000` and `rtx-a6000` -> `rtxa6000`."""
    return re.sub(r"[\s_-]", "", name.strip().lower().split(":")[0])


_ARCH_OF = {_key(n): a.name for a in ARCHITECTURES.values() for n in (a.name, *a.products)}


def check_arch(name: str) -> str:
    """Return the name of a GPU architecture or card: `mi300x` -> `gfx942`, `h100` -> `sm_90`.

    A feature suffix (`gfx942:sramecc+:xnack-`, as devices report it) is dropped.
    Errors: TargetError with the nearest names.
    """
    key = _key(name)
    found = _ARCH_OF.get(key)
    if found is not None:
        return found
    near = [
        _ARCH_OF[n] if n == _key(_ARCH_OF[n]) else n
        for n in difflib.get_close_matches(key, _ARCH_OF, n=3, cutoff=0.6)
    ]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(ARCHITECTURES)}"
    raise TargetError(f"unknown GPU architecture '{name}'", notes=[hint])


def vendor_of(arch: str | None) -> Vendor | None:
    """Return the vendor of an architecture, None for another name, such as a CPU's."""
    found = ARCHITECTURES.get(arch or "")
    return found.vendor if found is not None else None


def runs_on(code: str, device: str) -> bool:
    """Return whether code that was compiled for one architecture runs on a device of another.

    AMD's machine code runs on its own architecture. NVIDIA's is PTX, which its driver compiles for
    the device: it runs on the architecture that IREE compiled it as, and on newer ones. An NVIDIA
    device may be of an architecture that is not in the table.
    """
    made = ARCHITECTURES.get(code)
    if made is None or made.vendor == "amd":
        return code == device
    if not re.fullmatch(r"sm_\d+", device):
        return False
    return ARCHITECTURES[made.compiled_as].capability <= int(device.removeprefix("sm_"))


def best_of(codes: Sequence[str], device: str) -> str | None:
    """Return the best architecture for a device, among those of compiled code.

    It is the device's own, else the newest that runs there; None if none does.
    """
    if device in codes:
        return device
    fit = [code for code in codes if runs_on(code, device)]
    return max(fit, key=lambda code: ARCHITECTURES[code].capability, default=None)


def driver_of(arch: str) -> Literal["hip", "cuda"]:
    """Return the name of IREE's driver that code for an architecture runs on."""
    return "cuda" if arch.startswith("sm_") else "hip"


__all__ = ["ARCHITECTURES", "Architecture", "Vendor", "best_of", "check_arch", "driver_of",
           "runs_on", "vendor_of"]  # fmt: skip
