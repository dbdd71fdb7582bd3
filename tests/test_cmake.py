"""The CMake targets run the checks with the interpreter that CMake was given."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ("check-mgx", ""),
        ("check-mgx-static", " static"),
        ("check-mgx-lit", " lit"),
        ("check-mgx-unit", " pytest"),
    ],
)
def test_targets(target: str, steps: str, tmp_path: Path) -> None:
    """Commands of each target, printed by `make --dry-run`."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), "-G", "Unix Makefiles"]
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    subprocess.run(
        [*configure, f"-DPython3_EXECUTABLE={sys.executable}"], check=True, capture_output=True
    )
    build = ["cmake", "--build", str(tmp_path), "--target", target, "--", "--dry-run"]
    said = subprocess.run(build, check=True, capture_output=True, text=True).stdout
    commands = [line for line in said.splitlines() if "tests/run.py" in line]
    assert len(commands) == 1
    assert commands[0].endswith(f"{sys.executable} tests/run.py{steps}")
