#!/usr/bin/env bash
# A SavedModel's GraphDef names a variable by the shared name of its VarHandleOp, 'dense/kernel'.
# TensorFlow's own variables have checkpoint keys that follow the attributes: module.scale is
# 'scale/.ATTRIBUTES/VARIABLE_VALUE'. Keras 3 keeps layer.kernel in a private attribute, so that
# its key is 'layer/_kernel/...', while layer.bias has 'layer/bias/...'. Neither the shared name nor
# the public attribute finds the value; the checkpoint's object graph does.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 keras==3.15.1
export TF_CPP_MIN_LOG_LEVEL=3
"$work/venv/bin/python" - "$work/model" 2>/dev/null <<'PY'
import sys

import keras
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

folder = sys.argv[1]


class Scaled(tf.Module):
    def __init__(self):
        super().__init__()
        self.layer = keras.layers.Dense(2, name="dense")
        self.layer.build((None, 3))
        self.scale = tf.Variable(1.0, name="scale")


module = Scaled()
run = tf.function(lambda x: module.scale * module.layer(x))
run = run.get_concrete_function(tf.TensorSpec([None, 3], tf.float32))
tf.saved_model.save(module, folder, signatures=run)
print("tensorflow", tf.__version__, "keras", keras.__version__)
saved = saved_model_pb2.SavedModel()
with open(f"{folder}/saved_model.pb", "rb") as file:
    saved.ParseFromString(file.read())
nodes = saved.meta_graphs[0].graph_def.node
names = {n.attr["shared_name"].s.decode() for n in nodes if n.op == "VarHandleOp"}
end = "/.ATTRIBUTES/VARIABLE_VALUE"
keys = [k for k, _ in tf.train.list_variables(f"{folder}/variables/variables")]
keys = sorted(k.removesuffix(end) for k in keys if k.endswith(end))
print("attributes of the layer  ", [n for n in ("kernel", "bias") if hasattr(module.layer, n)])
print("shared names             ", sorted(n for n in names if "dense" in n or n == "scale"))
print("keys in the checkpoint   ", keys)
if keys != ["layer/_kernel", "layer/bias", "scale"] or "dense/kernel" not in names:
    sys.exit("the keys are others now")
PY
