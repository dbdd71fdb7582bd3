"""The output of --explain-kernels."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from mgx_mlir.printers.kernel_choices import explanation
from mgx_mlir.programs.lowered import KernelChoice
from mgx_mlir.tools.driver.main import main

MODEL = """\
<ir_version: 8, opset_import: ["": 17]>
tiny (float[2,64] x, float[64,32] w) => (float[2,32] y)
{
   [product] z = MatMul(x, w)
   [clipped] y = Relu(z)
}
"""


def test_names_of_nodes_places_and_totals() -> None:
    fused = 'loc(fused["a"("m.onnx":3:0), "b"("m.onnx":4:0), "a"("m.onnx":3:0)])'
    taken = KernelChoice("cpu::dot_relu", fused, "matmul", [("rows", "it has no reduction")])
    left = KernelChoice("cpu::floor", 'loc("m.mlir":7:8)')
    assert list(explanation([taken, left])) == [
        "cpu::dot_relu: matmul (a, b)",
        "    not rows: it has no reduction",
        "cpu::floor: linalg (m.mlir:7:8)",
        "2 kernels and ops: matmul 1, linalg 1",
    ]
    assert next(explanation([taken], str.upper)) == "cpu::dot_relu: matmul (M.ONNX:3:0, M.ONNX:4:0)"
    assert list(explanation([])) == ["no kernels"]


def test_the_driver_says_which_rule_takes_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    given = ["compile", str(tmp_path / "m.onnx"), "--cpu", "--arch", "x86-64-v3"]
    assert main([*given, "--explain-kernels"]) == 0
    assert "cpu::dot_relu: matmul (product, clipped)" in capsys.readouterr().err
