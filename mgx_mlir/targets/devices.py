"""Which AMD devices this machine has, found without touching a GPU from this process."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mgx_mlir.targets.emulator import DRIVER_VARIABLE, user_library

_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
# in a child: a driver that fails can take its process down, and starting HIP costs memory
_PROBE = """
import json
import iree.runtime as rt
rows = rt.get_driver("hip").query_available_devices()
print(json.dumps([[int(r["device_id"]), str(r.get("name", ""))] for r in rows]))
"""


@dataclass(frozen=True)
class HipDevice:
    """A device of the HIP driver; `arch` is its gfx name, empty where the system does not say."""

    index: int
    name: str
    arch: str


@functools.cache
def hip_devices() -> tuple[HipDevice, ...]:
    """The HIP devices, or none; never raises.

    On Linux nothing is started unless the kernel's AMD compute device exists or
    IREE_HIP_DYLIB_PATH names a HIP library.
    """
    linux = sys.platform.startswith("linux")
    library = user_library()
    if linux and not Path("/dev/kfd").exists() and not library:
        return ()
    environment = {k: v for k, v in os.environ.items() if library or k != DRIVER_VARIABLE}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            capture_output=True, text=True, timeout=60, check=True, env=environment,
        )  # fmt: skip
        rows = json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return ()
    archs = topology_archs(_TOPOLOGY)
    if len(archs) != len(rows):  # some are hidden: the name is known only if all are alike
        archs = [archs[0] if len(set(archs)) == 1 else ""] * len(rows)
    named = (re.search(r"gfx[0-9a-f]+", name) for _, name in rows)
    return tuple(
        HipDevice(i, name, arch or (found[0] if found else ""))
        for (i, name), arch, found in zip(rows, archs, named, strict=True)
    )


def topology_archs(nodes: Path) -> list[str]:
    """The gfx names of the GPUs that the Linux kernel lists, in its order."""
    found = []
    try:
        folders = sorted(nodes.iterdir(), key=lambda p: (len(p.name), p.name))
    except OSError:
        return []
    for folder in folders:
        try:
            rows = dict(
                line.split(maxsplit=1)
                for line in (folder / "properties").read_text().splitlines()
                if line.strip()
            )
            version, simds = int(rows["gfx_target_version"]), int(rows["simd_count"])
        except (OSError, ValueError, KeyError):
            continue
        if version and simds:  # a CPU is a node too
            found.append(f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}")
    return found
