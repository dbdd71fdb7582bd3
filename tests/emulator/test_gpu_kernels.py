"""The script that times models on a GPU, on the emulator and without a device."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from benchmarks import gpu_kernels
from mgx_mlir.targets.devices import gpu_devices

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8,9] x) => (float[1,9,4] y) <float[8,4] w = {WEIGHTS}>
{ t = Transpose<perm=[0,2,1]>(x) m = MatMul(t, w) y = Relu(m) }"""


@pytest.fixture(name="model")
def small_model(tmp_path: Path) -> Path:
    text = MODEL.replace("WEIGHTS", ", ".join(str(i / 16) for i in range(32)))
    path = tmp_path / "small.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


@pytest.mark.emulator
def test_each_kernel_has_a_time_and_a_bound(model: Path, tmp_path: Path, library: Path) -> None:
    out = tmp_path / "gpu.json"
    command = [str(model), "--fp16", "--emulate", "gfx942", "--calls", "1", "-o", str(out)]
    assert gpu_kernels.main(command) == 0
    report = json.loads(out.read_text())
    assert report["emulated"] is True
    (row,) = report["models"]
    low, middle, high = row["call_us"]
    assert 0 < low <= middle <= high
    assert row["kernels"]
    assert [k for k in row["kernels"] if not (k["us"] > k["bound_us"] > 0)] == []


@pytest.mark.skipif(bool(gpu_devices()), reason="there is a device")
def test_without_a_device_it_says_why(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_kernels.main([str(model)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no GPU: ")
    assert "--emulate" in said
