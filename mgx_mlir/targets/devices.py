"""AMD devices of this machine, found without touching a GPU from this process."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mgx_mlir.core import interrupts
from mgx_mlir.hardware.machine import HIP_VARIABLE

TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"
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


@dataclass(frozen=True)
class Agent:
    """A GPU that the kernel lists: its gfx name, compute units, and bytes of its memory."""

    node: int
    arch: str
    units: int
    memory: int


def hip_devices() -> tuple[HipDevice, ...]:
    """Return the HIP devices, or none; never raises.

    On Linux nothing is started unless the kernel's AMD compute device exists or IREE_HIP_DYLIB_PATH
    names a HIP library.
    """
    return _probed(os.environ.get(HIP_VARIABLE))[0]


def default_target() -> str:
    """Return `gpu` where a HIP device is found, else `cpu`. The caller reports it."""
    return "gpu" if hip_devices() else "cpu"


def why_no_device() -> str:
    """Explain why `hip_devices` finds none."""
    return _probed(os.environ.get(HIP_VARIABLE))[1]


@functools.cache
def _probed(library: str | None) -> tuple[tuple[HipDevice, ...], str]:
    """Return the devices of a HIP library (None: the system's), and why there are none."""
    if sys.platform.startswith("linux") and not Path("/dev/kfd").exists() and not library:
        return (), "the kernel has no AMD compute device, /dev/kfd"
    try:
        with interrupts.at_once():
            done = subprocess.run(
                [sys.executable, "-c", _PROBE],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
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
    archs = topology_archs(Path("/", TOPOLOGY))
    if len(archs) != len(rows):  # some are hidden: the name is known only if all are equal
        archs = [archs[0] if len(set(archs)) == 1 else ""] * len(rows)
    found = (
        HipDevice(i, name, arch or listed)
        for i, ((name, arch), listed) in enumerate(zip(rows, archs, strict=True))
    )
    return tuple(found), ""


def topology_archs(nodes: Path) -> list[str]:
    """Return the gfx names of the GPUs that the Linux kernel lists, in its order."""
    return [a.arch for a in agents(nodes)]


def agents(nodes: Path) -> list[Agent]:
    """Return the GPUs that the Linux kernel lists, in its order."""
    found = []
    for folder in _numbered(nodes):
        rows = _properties(folder / "properties")
        version, simds = rows.get("gfx_target_version", 0), rows.get("simd_count", 0)
        if not version or not simds:  # a CPU is a node too
            continue
        arch = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
        units = simds // max(rows.get("simd_per_cu", 0), 1)
        banks = (_properties(p / "properties") for p in _numbered(folder / "mem_banks"))
        memory = sum(b.get("size_in_bytes", 0) for b in banks)
        found.append(Agent(int(folder.name), arch, units, memory))
    return found


def _numbered(folder: Path) -> list[Path]:
    try:
        return sorted((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    except OSError:
        return []


def _properties(file: Path) -> dict[str, int]:
    """Return the numbers of a topology file; nothing of one that cannot be read."""
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return {}
    return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit()}
