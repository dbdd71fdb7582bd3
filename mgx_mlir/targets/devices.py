"""Detection of this machine's AMD and NVIDIA GPUs, without opening one in this process."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from mgx_mlir.core import interrupts
from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.machine import HIP_VARIABLE

TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"
# character devices of NVIDIA's drivers: of Linux, of WSL, of Jetson
NVIDIA_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu")
# in a child process: a failing driver can kill its process, and starting HIP costs memory
_PROBE = """
import sys
from mgx_mlir.core.errors import MgxError
from mgx_mlir.runtime.gpu_calls import print_devices
try:
    print_devices(sys.argv[1])
except MgxError as e:
    sys.exit("; ".join([e.message, *e.notes[:1]]))
"""


@dataclass(frozen=True)
class GpuDevice:
    """A GPU. `arch`: its gfx name, or sm_ and its compute capability; empty where the system does
    not say. `kind`: IREE's driver, hip or cuda, whose devices `index` counts."""

    index: int
    name: str
    arch: str
    kind: str = "hip"


@dataclass(frozen=True)
class Agent:
    """A GPU that the kernel lists: its gfx name, compute units, and bytes of its memory."""

    node: int
    arch: str
    units: int
    memory: int


def gpu_devices() -> tuple[GpuDevice, ...]:
    """Return the GPUs, or none; never raises. On a machine of both vendors they are AMD's.

    On Linux nothing is started unless the kernel's AMD compute device exists or IREE_HIP_DYLIB_PATH
    names a HIP library; for NVIDIA's, unless a device of its driver exists.
    """
    return _probed(os.environ.get(HIP_VARIABLE))[0] or _probed_cuda()[0]


def gpu_kind() -> str:
    """Return the driver of this machine's GPUs, hip or cuda; hip where there are none."""
    found = gpu_devices()
    return found[0].kind if found else "hip"


def default_target() -> str:
    """Return `gpu` where a GPU is found, else `cpu`. The caller reports it."""
    return "gpu" if gpu_devices() else "cpu"


def why_no_device() -> str:
    """Explain why `gpu_devices` finds none."""
    reasons = _probed(os.environ.get(HIP_VARIABLE))[1], _probed_cuda()[1]
    return "; ".join(filter(None, reasons))


@functools.cache
def _probed_cuda() -> tuple[tuple[GpuDevice, ...], str]:
    """Return the devices of the CUDA library, or the reason why there are none."""
    on_linux = sys.platform.startswith("linux")
    if on_linux and not any(Path(node).exists() for node in NVIDIA_NODES):
        return (), f"no device of NVIDIA's driver, {NVIDIA_NODES[0]}"
    rows, why = _asked("cuda")
    return tuple(GpuDevice(i, name, arch, "cuda") for i, (name, arch) in enumerate(rows)), why


@functools.cache
def _probed(library: str | None) -> tuple[tuple[GpuDevice, ...], str]:
    """Return the devices of a HIP library (None: the system's), and why there are none."""
    if sys.platform.startswith("linux") and not Path("/dev/kfd").exists() and not library:
        return (), "the kernel has no AMD compute device, /dev/kfd"
    rows, why = _asked("hip")
    archs = topology_archs(Path("/", TOPOLOGY))
    # some are hidden, so the architecture is known only if all are equal
    if len(archs) != len(rows):
        archs = [archs[0] if len(set(archs)) == 1 else ""] * len(rows)
    found = (
        GpuDevice(i, name, arch or listed)
        for i, ((name, arch), listed) in enumerate(zip(rows, archs, strict=True))
    )
    return tuple(found), why


def _asked(kind: str) -> tuple[list[tuple[str, str]], str]:
    """Return the names and architectures of a driver's GPUs, or the reason why there are none."""
    said = kind.upper()
    try:
        with interrupts.at_once():
            done = subprocess.run(
                [sys.executable, "-c", _PROBE, kind],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        rows = json.loads(done.stdout.strip().splitlines()[-1]) if done.returncode == 0 else []
    except subprocess.TimeoutExpired:
        return [], f"{said} does not answer"
    except (OSError, ValueError, IndexError) as e:
        return [], f"{said}'s answer cannot be read: {type(e).__name__}"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        ended = f"{said} ended its process with status {done.returncode}"
        return [], lines[-1] if done.returncode == 1 and lines else ended
    return [(name, arch) for name, arch in rows], ""


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
    """Return the numbers of a topology file; empty for one that cannot be read."""
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return {}
    return {w[0]: int(w[1]) for w in words if len(w) == 2 and w[1].isdigit()}
