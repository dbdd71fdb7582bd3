#!/usr/bin/env bash
# model.export of Keras 3 writes a SavedModel for serving. Layers that augment images while a model
# is trained are the identity in model.predict and in model(x, training=False). In the exported
# file they are at work: RandomFlip and RandomContrast have training=True as their default, and
# the export calls the model without `training`. Two runs of one image differ, and each run writes
# the seed's variable, so that a reader sees a graph that changes state and cannot be frozen.
# An endpoint of ExportArchive that passes training=False is at rest.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tensorflow-cpu==2.21.0 keras==3.15.1
export TF_CPP_MIN_LOG_LEVEL=3
"$work/venv/bin/python" - "$work" 2>/dev/null <<'PY'
import sys

import keras
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
print("tensorflow", tf.__version__, "keras", keras.__version__)
image = keras.Input((8, 8, 3))
flipped = keras.layers.RandomFlip()(image)
model = keras.Model(image, keras.layers.RandomContrast(0.5)(flipped))
x = np.random.default_rng(0).uniform(0, 255, (2, 8, 8, 3)).astype(np.float32)
print("model.predict changes the image by ", np.abs(model.predict(x, verbose=0) - x).max())


def runs(name):
    serve = tf.saved_model.load(f"{folder}/{name}").signatures["serving_default"]
    key = next(iter(serve.structured_input_signature[1]))
    return [next(iter(serve(**{key: tf.constant(x)}).values())).numpy() for _ in range(2)]


model.export(f"{folder}/exported", verbose=False)
first, second = runs("exported")
print("model.export: changes it by        ", np.abs(first - x).max())
print("two runs of the export differ by   ", np.abs(first - second).max())
archive = keras.export.ExportArchive()
archive.track(model)
spec = [keras.InputSpec(shape=(None, 8, 8, 3), dtype="float32")]
archive.add_endpoint("serve", lambda v: model(v, training=False), input_signature=spec)
archive.write_out(f"{folder}/at_rest", verbose=False)
rest = runs("at_rest")[0]
print("training=False: changes it by      ", np.abs(rest - x).max())
if np.array_equal(first, second) or not np.array_equal(rest, x):
    sys.exit("the export is at rest now")
PY
