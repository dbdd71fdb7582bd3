"""Which AMD devices this machine has, found without touching a GPU from this process."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mgx_mlir.hardware.machine import HIP_VARIABLE

_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
# in a child: a driver that fails can take its process down, and starting HIP costs memory
_PROBE = """
import sys
from mgx_mlir.core.errors import MgxError
from mgx_mlir.runtime.hip import print_devices
try:
    print_devices()
except MgxError as e:
    sys.exit("; ".join([e.message, *e.notes[:1]]))
"""


@dataclass(frozen=True)
class HipDevice:
    """A device of the HIP driver; `arch` is its gfx name, empty where the system does not say."""

    index: int
    name: str
    arch: str


def hip_devices() -> tuple[HipDevice, ...]:
    """Return the HIP devices, or none; never raises.

    On Linux nothing is started unless the kernel's AMD compute device exists or IREE_HIP_DYLIB_PATH
    names a HIP library.
    """
    return _probed(os.environ.get(HIP_VARIABLE))[0]


def why_no_device() -> str:
    """Explain why `hip_devices` finds none."""
    return _probed(os.environ.get(HIP_VARIABLE))[1]


@functools.cache
def _probed(library: str | None) -> tuple[tuple[HipDevice, ...], str]:
    """Return the devices of a HIP library (None: the system's), and why there are none."""
    if sys.platform.startswith("linux") and not Path("/dev/kfd").exists() and not library:
        return (), "the kernel has no AMD compute device, /dev/kfd"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, timeout=60, check=False
        )
        rows = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else []
    except subprocess.TimeoutExpired:
        return (), "HIP does not answer"
    except (OSError, ValueError, IndexError) as e:
        return (), f"HIP's answer cannot be read: {type(e).__name__}"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        ended = f"HIP ended its process with status {done.returncode}"
        return (), said[-1] if done.returncode == 1 and said else ended
    archs = topology_archs(_TOPOLOGY)
    if len(archs) != len(rows):  # some are hidden: the name is known only if all are alike
        archs = [archs[0] if len(set(archs)) == 1 else ""] * len(rows)
    found = (
        HipDevice(i, name, arch or listed)
        for i, ((name, arch), listed) in enumerate(zip(rows, archs, strict=True))
    )
    return tuple(found), ""


def topology_archs(nodes: Path) -> list[str]:
    """Return the gfx names of the GPUs that the Linux kernel lists, in its order."""
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
