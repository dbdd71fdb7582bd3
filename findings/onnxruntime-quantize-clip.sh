#!/usr/bin/env bash
# quantize_static of onnxruntime takes out a Clip behind a Conv, as the quantized range would clip by itself.
# The range always holds 0, though: of Clip from -6 to -1 results are up to 0, where at most -1 was asked for.
# The same with activations of 16 bits.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.32.0
"$work/venv/bin/python" - <<'PY'
import logging
import pathlib
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
print("onnxruntime", onnxruntime.__version__)
random = np.random.default_rng(0)
x = random.uniform(-5, 5, (1, 4, 6, 6)).astype(np.float32)
constants = {
    "w": random.uniform(-1, 1, (4, 4, 3, 3)).astype(np.float32),
    "low": np.array(-6, np.float32),
    "high": np.array(-1, np.float32),
}


class Once(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": x}]

    def get_next(self):
        return self.left.pop() if self.left else None


graph = helper.make_graph(
    [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low", "high"], ["y"]),
    ],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 4, 4])],
    [numpy_helper.from_array(value, name) for name, value in constants.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
with tempfile.TemporaryDirectory() as folder:
    old, new = (str(pathlib.Path(folder) / n) for n in ("old.onnx", "new.onnx"))
    onnx.save(model, old)

    def largest(path):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return session.run(None, {"x": x})[0].max()

    before = largest(old)
    print("largest result before:", before)
    for kind in (QuantType.QInt8, QuantType.QInt16):
        quantize_static(old, new, Once(), activation_type=kind)
        after, nodes = largest(new), [n.op_type for n in onnx.load(new).graph.node]
        print(f"largest result, {kind}: {after} of {nodes}")
        if "Clip" in nodes or after < -0.1:
            sys.exit("the Clip stays now")
if before != -1:
    sys.exit("the Clip is another now")
PY
