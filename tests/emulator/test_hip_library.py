"""A HIP library under the name that ROCm's runtime gives it, without the link of development."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mgx_mlir.runtime import hip_library

pytestmark = pytest.mark.emulator

# the first is what the loader finds, the second a folder that is named
OPEN = """
import sys
from mgx_mlir.runtime.device import open_device
for library in (None, sys.argv[1]):
    device = open_device("hip", library=library)
    print(device.hal.allocator.statistics["device_bytes_allocated"] > 0)
"""


@pytest.mark.parametrize("name", ["libamdhip64.so.7"])
def test_a_library_without_the_link(name: str, library: Path, tmp_path: Path) -> None:
    shutil.copy(library / "libamdhip64.so", tmp_path / name)
    inherited = {k: v for k, v in os.environ.items() if k != "IREE_HIP_DYLIB_PATH"}
    done = subprocess.run(
        [sys.executable, "-c", OPEN, str(tmp_path)], capture_output=True, text=True,
        env={**inherited, "LD_LIBRARY_PATH": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_functions_that_a_library_lacks(library: Path) -> None:
    assert hip_library.missing(ctypes.CDLL(str(library / "libamdhip64.so"))) == []
    assert hip_library.missing(ctypes.CDLL(None)) == hip_library.REQUIRED


def test_where_a_library_may_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AMD's wheel, and ROCm's folder."""
    (tmp_path / "_rocm_sdk_core").mkdir()
    (tmp_path / "_rocm_sdk_core" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ROCM_PATH", "/somewhere")
    found = list(hip_library.candidates())
    assert found[0] == "libamdhip64.so"
    assert "/somewhere/lib/libamdhip64.so.7" in found
    assert found[-3] == str(tmp_path / "_rocm_sdk_core" / "lib" / "libamdhip64.so.7")
