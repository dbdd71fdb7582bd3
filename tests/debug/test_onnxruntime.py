"""onnxruntime as a reference."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper, save

CODE = """
import sys
from mgx_mlir.debug.onnxruntime import OnnxRuntimeSession
print(OnnxRuntimeSession(sys.argv[1]).output_names)
"""


def test_a_comparison_starts_no_telemetry(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 21)]
    save(helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "m.onnx")
    folder = tmp_path / "home"
    folder.mkdir()
    homes = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME"), str(folder))
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"} | homes
    command = [sys.executable, "-c", CODE, str(tmp_path / "m.onnx")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "['y']\n"
    names = {path.name for path in folder.rglob("*") if path.is_file()}
    assert not names & {".ses", "deviceid", "onnxruntime.db"}
