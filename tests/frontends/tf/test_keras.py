"""Keras files against Keras, where TensorFlow is installed:

pip install tensorflow-cpu && pytest tests/frontends/tf/test_keras.py
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import ModelError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)
_MAKE = """
import sys
import numpy as np
import tensorflow as tf
folder = sys.argv[1]
tf.keras.utils.set_random_seed(3)
layers = tf.keras.layers
x = tf.keras.Input((6, 4), name="x")
y = layers.Dense(2)(layers.GRU(3)(layers.LSTM(5, return_sequences=True)(x)))
model = tf.keras.Model(x, y)
model.save(f"{folder}/model.keras")
model.save(f"{folder}/model.h5")
given = np.load(f"{folder}/x.npy")
np.save(f"{folder}/y.npy", np.asarray(model(given)))
x = tf.keras.Input((8, 6, 3), name="x")
y = layers.Dropout(0.5)(layers.RandomContrast(0.5)(layers.RandomFlip()(x)))
tf.keras.Model(x, y).save(f"{folder}/augmented.keras")
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a model in both forms, its input and its output."""
    folder = tmp_path_factory.mktemp("keras")
    np.save(folder / "x.npy", np.random.RandomState(0).standard_normal((3, 6, 4)).astype("f4"))
    subprocess.run([sys.executable, "-c", _MAKE, str(folder)], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
def test_both_forms(saved, name):
    program = mgx_mlir.compile(saved / name, "ref", batch_size=3)
    assert program.input_names == ["x"]
    [found] = program.run({"x": np.load(saved / "x.npy")})
    np.testing.assert_allclose(found, np.load(saved / "y.npy"), rtol=1e-5, atol=1e-6)
    assert "tensorflow" not in sys.modules


def test_random_layers_are_at_rest(saved):
    """Layers default to training, which Keras 3's own export keeps."""
    x = np.random.RandomState(1).uniform(0, 255, (2, 8, 6, 3)).astype(np.float32)
    program = mgx_mlir.compile(saved / "augmented.keras", "ref", batch_size=2)
    [found] = program.run({"x": x})
    np.testing.assert_array_equal(found, x)


def test_a_file_that_is_none(tmp_path):
    path = tmp_path / "model.keras"
    path.write_bytes(b"not a model")
    with pytest.raises(ModelError, match="TensorFlow cannot export the model"):
        mgx_mlir.parse_tf(str(path))
