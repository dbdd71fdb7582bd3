"""The HIP that these tests run on: the emulator, or with MGX_TEST_HIP=device this machine's GPU.

The emulator is what is installed, else built here. On a GPU the machine's own HIP library takes
its place, of the tests those are left that are for the device's architecture, and tests of the
emulator itself (marked `emulator`, or using `native`) are left out.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgx_mlir.hardware.machine import HIP_VARIABLE
from mgx_mlir.targets import devices, emulator

NATIVE = Path(__file__).resolve().parent.parent.parent / "native"
TESTED = "MGX_TEST_HIP"
# whose tests another architecture of the family takes
STAND_INS = {"gfx9": "gfx942", "gfx11": "gfx1100", "gfx12": "gfx1201"}


def on_device() -> bool:
    """Return whether a GPU is tested. UsageError for a choice that is none."""
    wanted = os.environ.get(TESTED, "emulator")
    if wanted not in ("emulator", "device"):
        raise pytest.UsageError(f"{TESTED}: expected emulator or device, got '{wanted}'")
    return wanted == "device"


def device_arch() -> str:
    """The architecture of the first GPU. UsageError where there is none."""
    found = devices.gpu_devices()
    if not found or not found[0].arch:
        why = devices.why_no_device() or "HIP does not say its architecture"
        raise pytest.UsageError(f"{TESTED}=device needs a GPU that HIP can use: {why}")
    return found[0].arch


def machine_library() -> Path:
    """The folder of the machine's HIP library. UsageError where it is not found."""
    stated = os.environ.get(HIP_VARIABLE, "").removeprefix("file:")
    places = [Path(stated)] if stated else []
    places += [Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "lib"]
    for tool in ("ldconfig", "/sbin/ldconfig"):
        if shutil.which(tool):
            known = subprocess.run([tool, "-p"], capture_output=True, text=True).stdout
            places += [Path(p).parent for p in re.findall(r"libamdhip64\.so => (\S+)", known)]
    for place in places:
        folder = place.parent if place.is_file() else place
        if (folder / emulator.LIBRARY).is_file():
            return folder
    looked = ", ".join(map(str, places))
    raise pytest.UsageError(f"no {emulator.LIBRARY} in {looked}: {HIP_VARIABLE} says where it is")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what a GPU can run, for its architecture."""
    if not on_device():
        return
    mine = [i for i in items if Path(__file__).parent in i.path.parents]
    arch = device_arch()
    archs = {_params(i).get("arch") for i in mine}
    stand_in = next((t for family, t in STAND_INS.items() if arch.startswith(family)), arch)
    taken = arch if arch in archs else stand_in
    gone = []
    for item in mine:
        of_emulator = item.get_closest_marker("emulator") or "native" in item.fixturenames
        if of_emulator or _params(item).get("arch", taken) != taken:
            gone.append(item)
        elif "arch" in _params(item):
            _params(item)["arch"] = arch
    config.hook.pytest_deselected(items=gone)
    items[:] = [i for i in items if i not in gone]


def _params(item: pytest.Item) -> dict[str, object]:
    callspec = getattr(item, "callspec", None)
    return {} if callspec is None else callspec.params


def build(folder: Path) -> str:
    """Build native/ in a folder; why that cannot be done, or ''."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            return f"the emulator is not built, and there is no {tool}"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:  # test processes share what they build
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (
            ["cmake", "-S", str(NATIVE), "-B", str(folder), *generator],
            ["cmake", "--build", str(folder), "--parallel", "2"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return ""


@pytest.fixture(autouse=True, scope="package")
def _emulation_ends_here() -> Iterator[None]:
    """Tests of other folders start without it, whether they run before these or after."""
    before = emulator._active
    yield
    emulator._active = before


@pytest.fixture(scope="session")
def native() -> Path:
    """A folder with the library, its tools and its tests."""
    # kept between runs: only what changed is compiled again
    folder = NATIVE / "build"
    reason = build(folder)
    if reason:
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="package")
def library(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder of the HIP library, where `emulate=True` finds it."""
    patch = pytest.MonkeyPatch()
    if on_device():
        found = machine_library()
        patch.setenv(emulator.PATH_VARIABLE, str(found))
    elif (found := emulator.find_library()) is None:
        found = request.getfixturevalue("native")
        patch.setenv(emulator.PATH_VARIABLE, str(found))
    yield found
    patch.undo()


@pytest.fixture(scope="package")
def gpu_arch(library: Path) -> str:
    """An architecture to compile for: the device's."""
    return device_arch() if on_device() else "gfx942"
