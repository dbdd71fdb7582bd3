"""mgx-driver doctor on an emulated GPU: every check runs and passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgx_mlir.tools.driver.main import main

pytestmark = pytest.mark.emulator


def test_emulated(library: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--emulate", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    names = [c["name"] for c in found["checks"] if c["status"] == "ok"]
    assert names == [
        "functions of HIP", "HIP", "architecture", "copies", "a kernel", "matmul, f16",
        "memory bandwidth", "launches",
    ]  # fmt: skip
    assert found["failed"] == 0
