"""System information about GPUs: kernel driver, permissions, agents, the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from mgx_mlir.debug import nvidia_system
from mgx_mlir.debug.system_check import BAD, OK, WARNED, Check
from mgx_mlir.targets.devices import TOPOLOGY, agents

# environment variables that hide devices, or change what a device reports
VARIABLES = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
             "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION", "HSA_XNACK",
             "IREE_HIP_DYLIB_PATH")  # fmt: skip
_AMD = "0x1002"  # PCI number of the vendor AMD


def system_checks(
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    access: Callable[[Path], bool] | None = None,
) -> list[Check]:
    """Check the GPU driver of this machine, without using a GPU.

    Checks are for NVIDIA's driver if only that is present, else for AMD's. `root`: folder of the
    system's files. `access`: whether this user may read and write a file.
    """
    may = access or (lambda path: os.access(path, os.R_OK | os.W_OK))
    has_amd = (root / "dev/kfd").exists() or (root / "sys/module/amdgpu").is_dir()
    if nvidia_system.present(root) and not has_amd:
        return [*nvidia_system.nvidia_checks(root, may), _variables(environment)]
    found = [_driver(root), _kfd(root, may), _render_nodes(root, may), _agents(root)]
    return [*found, _variables(environment)]


def _driver(root: Path) -> Check:
    module = root / "sys/module/amdgpu"
    if not module.is_dir():
        return Check(
            "kernel driver", BAD, "the module amdgpu is not loaded",
            ("load it with 'modprobe amdgpu', or install ROCm's kernel driver",
             "in a container the host must have it"),
        )  # fmt: skip
    try:
        version = (module / "version").read_text().strip()
    except OSError:
        version = "the kernel's own"
    return Check("kernel driver", OK, f"amdgpu, {version}")


def _kfd(root: Path, may: Callable[[Path], bool]) -> Check:
    node = root / "dev/kfd"
    if not node.exists():
        return Check(
            "/dev/kfd", BAD, "it does not exist",
            ("a container needs '--device /dev/kfd --device /dev/dri'",),
        )  # fmt: skip
    return _opened("/dev/kfd", [node], may)


def _render_nodes(root: Path, may: Callable[[Path], bool]) -> Check:
    nodes = [p for p in _render(root) if _vendor(root, p) in (_AMD, "")]
    if not nodes:
        return Check(
            "render nodes", BAD, "no render node of AMD's in /dev/dri",
            ("a container needs '--device /dev/kfd --device /dev/dri'",),
        )  # fmt: skip
    return _opened("render nodes", nodes, may)


def _opened(name: str, nodes: list[Path], may: Callable[[Path], bool]) -> Check:
    closed = [p.name for p in nodes if not may(p)]
    names = ", ".join(p.name for p in nodes)
    if closed:
        return Check(
            name, BAD, f"this user may not read and write {', '.join(closed)}",
            ("add the user to the groups of these files: "
             "'sudo usermod -aG render,video $USER', then log in again",
             "a container needs '--group-add video --group-add render'"),
        )  # fmt: skip
    return Check(name, OK, f"{names} may be read and written")


def _render(root: Path) -> Iterator[Path]:
    try:
        yield from sorted((root / "dev/dri").glob("renderD*"))
    except OSError:
        return


def _vendor(root: Path, node: Path) -> str:
    """Return the PCI vendor of a render node, empty if unknown."""
    try:
        return (root / "sys/class/drm" / node.name / "device/vendor").read_text().strip()
    except OSError:
        return ""


def _agents(root: Path) -> Check:
    found = agents(root / TOPOLOGY)
    if not found:
        return Check("agents", BAD, "the kernel lists no compute GPU")
    return Check("agents", OK, "; ".join(
        f"{a.arch}, {a.units} compute units, {a.memory / 2**30:.1f} GiB" for a in found
    ))  # fmt: skip


def _variables(environment: Mapping[str, str]) -> Check:
    given = {name: environment[name] for name in VARIABLES if name in environment}
    if not given:
        return Check("environment", OK, "no variable hides or renames a device")
    text = ", ".join(f"{k}={v}" for k, v in given.items())
    if "HSA_OVERRIDE_GFX_VERSION" in given:
        return Check(
            "environment", WARNED, text,
            ("HSA_OVERRIDE_GFX_VERSION makes a device run code of another architecture",),
        )  # fmt: skip
    return Check("environment", OK, text)
