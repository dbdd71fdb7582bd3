"""Which AMD devices this machine has, found without starting a GPU where there is none."""

from __future__ import annotations

import functools
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HipDevice:
    """A device of the HIP driver; `arch` is its gfx name, empty when the driver does not say."""

    index: int
    name: str
    arch: str


@functools.cache
def hip_devices() -> tuple[HipDevice, ...]:
    """The HIP devices, or none; never raises.

    On Linux the runtime library is loaded only where the kernel's AMD compute device exists or
    IREE_HIP_DYLIB_PATH names a library.
    """
    linux = sys.platform.startswith("linux")
    if linux and not Path("/dev/kfd").exists() and not os.environ.get("IREE_HIP_DYLIB_PATH"):
        return ()
    try:
        import iree.runtime as rt

        driver = rt.get_driver("hip")
        found = []
        for row in driver.query_available_devices():
            index = int(row["device_id"])
            text = f"{row} {_info(driver, index)}"
            arch = re.search(r"gfx[0-9a-f]{3,4}", text)
            found.append(HipDevice(index, str(row.get("name", "")), arch[0] if arch else ""))
        return tuple(found)
    except Exception:  # the driver raises many kinds when there is no device: the answer is none
        return ()


def _info(driver: object, index: int) -> str:
    try:
        return str(driver.dump_device_info(index))  # type: ignore[attr-defined]
    except Exception:  # not every driver has it
        return ""
