#!/usr/bin/env bash
# tf2onnx: `tf.scatter_nd` adds what has one place, its ONNX model keeps the last. `tf.one_hot` of -1,
# a label that is to be left out, is a row of zeros, its model sets the last class. The largest of an
# empty segment is 0 (the lowest float where segments are unsorted), its model has -infinity.
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


numbers = np.array([1, 2, 3], np.float32)
rows = {
    "scatter_nd to 0, 0, 3": run(
        lambda x: tf.scatter_nd(tf.constant([[0], [0], [3]]), x, [4]), numbers),
    "one_hot of 0, -1": run(lambda x: tf.one_hot(x, 3), np.array([0, -1], np.int32)),
    "segment_max of 0, 0, 2": run(
        lambda x: tf.math.segment_max(x, tf.constant([0, 0, 2])), numbers),
    "segment_sum of 0, 0, 2": run(
        lambda x: tf.math.segment_sum(x, tf.constant([0, 0, 2])), numbers),
}
for name, (want, got) in rows.items():
    print(f"{name}: TensorFlow {want.tolist()}, ONNX {got.tolist()}")
found = [got.tolist() for _, got in rows.values()]
if found[:2] != [[2, 0, 0, 3], [[1, 0, 0], [0, 0, 1]]] or found[2][1] != -np.inf:
    sys.exit("places are taken otherwise now")
PY
