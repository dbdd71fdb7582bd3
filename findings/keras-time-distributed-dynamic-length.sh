#!/usr/bin/env bash
# keras.layers.TimeDistributed applies a layer to each step of a sequence. Called eagerly it gives
# as many steps as it gets. Traced with an unknown number of steps (shape (None, None, 6), as
# model.export and tf.function with an input_signature have it), it gives as many steps as there
# are sequences: of 2 sequences of 9 steps the first 2 steps, without an error. The graph loops
# over the batch's extent where it should over the steps'. A converter that is compared with the
# eager model looks wrong; it is compared with the traced function.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 keras==3.15.1
export TF_CPP_MIN_LOG_LEVEL=3
"$work/venv/bin/python" 2>/dev/null <<'PY'
import sys

import keras
import numpy as np
import tensorflow as tf

print("tensorflow", tf.__version__, "keras", keras.__version__)
x = keras.Input((None, 6))
model = keras.Model(x, keras.layers.TimeDistributed(keras.layers.Dense(3))(x))
given = np.ones((2, 9, 6), np.float32)
signature = [tf.TensorSpec((None, None, 6), tf.float32)]
traced = tf.function(lambda v: model(v, training=False), input_signature=signature)
eager, graph = model(given).shape, traced(tf.constant(given)).shape
print("input             ", given.shape)
print("model(x)          ", tuple(eager))
print("tf.function(model)", tuple(graph))
if tuple(graph) != (2, 2, 3) or tuple(eager) != (2, 9, 3):
    sys.exit("the traced layer takes every step now")
PY
