"""The emulator's library: what is installed, else one built here for the session."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgx_mlir.targets import emulator

NATIVE = Path(__file__).resolve().parent.parent.parent / "native"


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


@pytest.fixture(scope="session")
def native() -> Path:
    """A folder with the library, its tools and its tests."""
    # kept between runs: only what changed is compiled again
    folder = NATIVE / "build"
    reason = build(folder)
    if reason:
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def library(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder of the emulator's library, where the product finds it."""
    patch = pytest.MonkeyPatch()
    if (found := emulator.find_library()) is None:
        found = request.getfixturevalue("native")
        patch.setenv(emulator.PATH_VARIABLE, str(found))
    yield found
    patch.undo()
