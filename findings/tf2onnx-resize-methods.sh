#!/usr/bin/env bash
# tf2onnx makes a nearest `Resize` of `tf.image.resize` by method "area", the mean of the pixels that
# a new one covers: of each 2 x 2 pixels it takes one. The cubic resize of TensorFlow 1, without centres of
# pixels, gets the coefficient -0.5 in place of -0.75: off by a tenth of a step between two pixels.
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


rows = np.array([[0, 100], [0, 100]], np.float32)
image = np.tile(rows, (2, 2)).reshape(1, 4, 4, 1)  # columns of 0 and of 100
step = np.array([0, 0, 0, 100, 100, 100], np.float32).reshape(1, 1, 6, 1)


def cubic(x):
    return tf.compat.v1.image.resize_bicubic(x, (1, 12))


area = run(lambda x: tf.image.resize(x, (2, 2), method="area"), image)
legacy = run(cubic, step)
linear = run(lambda x: tf.image.resize(x, (1, 12)), step)
for name, pair in (("area of 0 and 100", area), ("cubic, a step", legacy), ("linear, a step", linear)):
    want, got = (np.round(x.ravel(), 2).tolist() for x in pair)
    print(f"{name}:\n  TensorFlow {want}\n  ONNX       {got}")
if set(area[0].ravel()) != {50} or 50 in area[1] or not np.allclose(*linear, atol=1e-3):
    sys.exit("areas are averaged now")
if np.abs(legacy[0] - legacy[1]).max() < 1:
    sys.exit("the cubic resize is that of TensorFlow now")
PY
