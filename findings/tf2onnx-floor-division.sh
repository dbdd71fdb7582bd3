#!/usr/bin/env bash
# TensorFlow's `//` and `%` of integers round down, as Python's: -7 // 3 is -3, -7 % 3 is 2. tf2onnx
# makes -2 and -1 of them, by ONNX's `Div`, which rounds integers towards 0. For floats both are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnx==1.23.2 \
  onnxruntime==1.32.0 tf2onnx==1.17.0 tensorflow-cpu==2.21.0 keras==3.15.1
"$work/venv/bin/python" - 2> "$work/log" <<'PY' || { cat "$work/log"; exit 1; }
import logging
import os
import sys
from importlib.metadata import version

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import onnxruntime
import tensorflow as tf
import tf2onnx

logging.disable(logging.CRITICAL)
onnxruntime.set_default_logger_severity(4)
print("tf2onnx", version("tf2onnx"), "tensorflow", tf.__version__)


def run(function, x):
    """Return a function's result in TensorFlow, and of its ONNX model in onnxruntime."""
    form = [tf.TensorSpec(x.shape, x.dtype, name="x")]
    made, _ = tf2onnx.convert.from_function(
        tf.function(function, input_signature=form), input_signature=form, opset=18
    )
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return function(tf.constant(x)).numpy(), session.run(None, {"x": x})[0]


ints = np.array([-7, 7, -1, 5], np.int32)
rows = {
    "int32 // 3": run(lambda x: x // 3, ints),
    "int32 // -3": run(lambda x: x // -3, ints),
    "int32 % 3": run(lambda x: x % 3, ints),
    "float32 // 3": run(lambda x: x // 3.0, ints.astype(np.float32)),
    "float32 % 3": run(lambda x: x % 3.0, ints.astype(np.float32)),
}
for name, (want, got) in rows.items():
    print(f"{name}: TensorFlow {want.tolist()}, ONNX {got.tolist()}")
found = {name: got.tolist() for name, (_, got) in rows.items()}
right = all(np.array_equal(*rows[name]) for name in ("float32 // 3", "float32 % 3"))
if found["int32 // 3"] != [-2, 2, 0, 1] or found["int32 % 3"] != [-1, 1, -1, 2] or not right:
    sys.exit("integers are rounded down now")
PY
