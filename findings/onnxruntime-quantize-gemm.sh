#!/usr/bin/env bash
# quantize_static of onnxruntime divides the bias of a Gemm by beta, where the text multiplies: x w + 3 b
# becomes x w + b / 3. In the format QOperator alpha scales the bias too: x w / 2 + b becomes (x w + b) / 2.
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
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
print("onnxruntime", onnxruntime.__version__)
random = np.random.default_rng(0)
x, w, b = (random.uniform(-1, 1, dims).astype(np.float32) for dims in ((16, 8), (8, 4), (4,)))


class Once(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": x}]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantized(form, **attributes):
    """Return the result of a Gemm after quantize_static."""
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], **attributes)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 4])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    with tempfile.TemporaryDirectory() as folder:
        old, new = (str(pathlib.Path(folder) / n) for n in ("old.onnx", "new.onnx"))
        onnx.save(model, old)
        quantize_static(old, new, Once(), quant_format=form)
        return onnxruntime.InferenceSession(new, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


product, wide = x.astype(np.float64) @ w, b.astype(np.float64)
cases = [
    ("QDQ, default", QuantFormat.QDQ, {}, product + wide, None),
    ("QDQ, beta 3", QuantFormat.QDQ, {"beta": 3.0}, product + 3 * wide, product + wide / 3),
    ("QOperator, beta 3", QuantFormat.QOperator, {"beta": 3.0}, product + 3 * wide, product + wide / 3),
    ("QOperator, alpha 1/2", QuantFormat.QOperator, {"alpha": 0.5}, product / 2 + wide, (product + wide) / 2),
]
for name, form, attributes, expected, other in cases:
    y = quantized(form, **attributes)
    print(f"{name}: off by {abs(y - expected).max():.3f} of {abs(expected).max():.3f}", end="")
    print("" if other is None else f"; off the wrong formula by {abs(y - other).max():.3f}")
    if other is None and abs(y - expected).max() > 0.05:
        sys.exit("the default is off too now")
    if other is not None and (abs(y - other).max() > 0.05 or abs(y - expected).max() < 0.3):
        sys.exit("alpha and beta are right now")
PY
