"""mgx-driver doctor: what the system says of its GPUs, and how a failure is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgx_mlir.debug.gpu_checks import device_checks
from mgx_mlir.debug.gpu_system import system_checks
from mgx_mlir.debug.nvidia_system import nvidia_checks
from mgx_mlir.debug.system_check import BAD, OK, WARNED
from mgx_mlir.hardware.machine import HIP_VARIABLE
from mgx_mlir.targets.devices import TOPOLOGY, Agent, agents
from tests.driver.conftest import Driver

NODE = """cpu_cores_count 0
simd_count 1216
simd_per_cu 4
gfx_target_version {version}
"""


def machine(root: Path, versions: tuple[int, ...] = (90402, 110000)) -> Path:
    """Write the files of a machine with these GPUs, behind a processor."""
    nodes = root / TOPOLOGY
    for i, version in enumerate((0, *versions)):
        banks = nodes / str(i) / "mem_banks/0"
        banks.mkdir(parents=True)
        (banks / "properties").write_text("heap_type 1\nsize_in_bytes 206141652992\n")
        text = NODE.format(version=version) if version else "cpu_cores_count 64\nsimd_count 0\n"
        (nodes / str(i) / "properties").write_text(text)
    (root / "sys/module/amdgpu").mkdir(parents=True)
    (root / "sys/module/amdgpu/version").write_text("6.10.5\n")
    for i, vendor in enumerate(("0x1002", "0x8086")):
        node = root / f"sys/class/drm/renderD{128 + i}/device"
        node.mkdir(parents=True)
        (node / "vendor").write_text(f"{vendor}\n")
    (root / "dev/dri").mkdir(parents=True)
    for name in ("kfd", "dri/renderD128", "dri/renderD129"):
        (root / "dev" / name).touch()
    return root


def test_a_whole_machine(tmp_path: Path) -> None:
    root = machine(tmp_path)
    assert agents(root / TOPOLOGY) == [
        Agent(1, "gfx942", 304, 206141652992), Agent(2, "gfx1100", 304, 206141652992),
    ]  # fmt: skip
    found = {c.name: c for c in system_checks(root, {}, lambda path: True)}
    assert {c.status for c in found.values()} == {OK}
    assert found["kernel driver"].found == "amdgpu, 6.10.5"
    assert "gfx942, 304 compute units, 192.0 GiB" in found["agents"].found
    assert "renderD128" in found["render nodes"].found
    assert "renderD129" not in found["render nodes"].found  # another maker's


def test_an_empty_machine(tmp_path: Path) -> None:
    found = system_checks(tmp_path, {})
    assert [c.name for c in found if c.status == BAD] == [
        "kernel driver", "/dev/kfd", "render nodes", "agents",
    ]  # fmt: skip
    assert all(c.notes for c in found[:3])


def nvidia_machine(root: Path) -> Path:
    """Write the files of a machine with one NVIDIA GPU."""
    driver = root / "proc/driver/nvidia"
    (driver / "gpus/0000:01:00.0").mkdir(parents=True)
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04\nGCC version: 13\n"
    (driver / "version").write_text(text)
    (driver / "gpus/0000:01:00.0/information").write_text("Model: \t NVIDIA H200\nIRQ: 11\n")
    (root / "dev/nvidia-caps").mkdir(parents=True)
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (root / "dev" / name).touch()
    return root


def test_a_machine_of_nvidia_s(tmp_path: Path) -> None:
    root = nvidia_machine(tmp_path)
    rows = nvidia_checks(root, lambda path: True, lambda name: True)
    found = {c.name: c for c in rows}
    assert {c.status for c in rows} == {OK}
    assert found["kernel driver"].found.endswith("580.159.04")
    assert found["cards"].found == "NVIDIA H200"
    assert found["device files"].found.startswith("nvidia-uvm, nvidia0, nvidiactl may")
    assert [c.name for c in system_checks(root, {}, lambda p: True)][:3] == [
        "kernel driver", "device files", "cards",
    ]  # fmt: skip
    machine(root)  # AMD's come first where both are
    assert "render nodes" in {c.name for c in system_checks(root, {}, lambda p: True)}


def test_what_nvidia_s_machines_lack(tmp_path: Path) -> None:
    root = nvidia_machine(tmp_path)
    found = {c.name: c for c in nvidia_checks(root, lambda p: p.name != "nvidia0", lambda n: False)}
    assert found["device files"].found == "this user may not read and write nvidia0"
    assert found["CUDA library"].found == "libcuda.so, libcuda.so.1 cannot be loaded"
    last = nvidia_checks(root, lambda p: True, lambda n: n != "libcuda.so")[-1]
    assert (last.status, "a link to libcuda.so.1" in last.notes[0]) == (BAD, True)
    (root / "dev/nvidia-uvm").unlink()
    (root / "proc/driver/nvidia/version").unlink()
    found = {c.name: c for c in nvidia_checks(root, lambda p: True, lambda n: True)}
    assert found["device files"].found == "no /dev/nvidia-uvm"
    assert found["kernel driver"].status == BAD


def test_permissions(tmp_path: Path) -> None:
    """A user outside of the groups is told which file, and how to get in."""
    found = {c.name: c for c in system_checks(machine(tmp_path), {}, lambda p: p.name != "kfd")}
    assert [n for n, c in found.items() if c.status == BAD] == ["/dev/kfd"]
    assert "usermod -aG render,video" in " ".join(found["/dev/kfd"].notes)


def test_damaged_files(tmp_path: Path) -> None:
    """Nothing that the system's files hold ends the checks."""
    root = machine(tmp_path)
    nodes = root / TOPOLOGY
    (nodes / "1/properties").write_bytes(b"\xff\xfe gfx_target_version\nsimd_count x\n")
    (nodes / "2/mem_banks/0/properties").unlink()
    assert agents(root / TOPOLOGY) == [Agent(2, "gfx1100", 304, 0)]


def test_variables(tmp_path: Path) -> None:
    given = {"HIP_VISIBLE_DEVICES": "1", "HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
    last = system_checks(tmp_path, given)[-1]
    assert (last.name, last.status) == ("environment", WARNED)
    assert "HIP_VISIBLE_DEVICES=1" in last.found
    assert system_checks(tmp_path, {"HIP_VISIBLE_DEVICES": "1"})[-1].status == OK


def test_no_hip_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIP_VARIABLE, str(tmp_path))
    [only] = device_checks(0, emulate=False)
    assert (only.name, only.status) == ("HIP", BAD)


def test_a_driver_that_hangs() -> None:
    [only] = device_checks(0, emulate=False, timeout=0.01)
    assert (only.status, only.found) == (BAD, "no answer in 0.01 seconds, after the start")


def test_words_after_it(driver: Driver) -> None:
    ran = driver("doctor", "model.onnx")
    assert ran.status == 2
    assert "expected no argument, got 'model.onnx'" in ran.err
