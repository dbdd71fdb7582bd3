"""report --gpu --emulate: what an emulated call executed, beside what the code says."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from mgx_mlir.tools.driver.main import main
from tests.emulator.models import gemm


def test_report(library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, out = tmp_path / "gemm.onnx", tmp_path / "report.json"
    onnx.save(gemm("f16", 0).model, model)
    command = ["report", "--gpu", "--arch", "gfx942", "--emulate", str(model)]
    assert main([*command, "-o", str(out)]) == 0
    (found,) = json.loads(out.read_text())
    (kernel,) = found["kernels"]
    ran = kernel["executed"]
    assert ran["launches"] == kernel["launches"] == 1
    # 64 x 96 x 128, whole in matrix instructions
    assert ran["matrix_operations"] == 2 * 64 * 96 * 128
    assert ran["lds_wide_share"] == 1.0
    assert 0 < ran["fill"] < 0.1
    assert ran["bound_us"] == max(ran[f"{u}_us"] for u in ("matrix", "vector", "lds")) > 0
    assert found["totals"]["executed"]["bound_us"] == ran["bound_us"]
    capfd.readouterr()
    assert main(command) == 0
    assert "executed in an emulated call" in capfd.readouterr().out
