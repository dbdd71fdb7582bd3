"""Writes data/saved: small SavedModels, zipped, with inputs and what TensorFlow computes.

Needs TensorFlow (`pip install tensorflow-cpu`), in an environment of its own:

    python zoo/tf_cases/make_saved.py [name ...]
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from make_op_cases import write_npz

DATA = Path(__file__).resolve().parents[2] / "tests/frontends/tf/data/saved"
L = tf.keras.layers


def keras_lstm(folder: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Layers with variables, a loop and a state, exported by Keras."""
    tf.keras.utils.set_random_seed(3)
    x = tf.keras.Input((6, 4), name="x")
    y = L.LSTM(5, return_sequences=True)(x)
    model = tf.keras.Model(x, L.Dense(2)(L.GRU(3)(y)))
    model.export(folder, verbose=False)
    value = np.random.RandomState(0).standard_normal((3, 6, 4)).astype(np.float32)
    return {"x": value}, [np.asarray(model(value))]


class _Module(tf.Module):
    """Variables of several types, read directly, gathered from, and through functions."""

    def __init__(self) -> None:
        random = np.random.RandomState(1)
        self.table = tf.Variable(random.standard_normal((7, 3)).astype(np.float32), name="table")
        self.scale = tf.Variable(np.float64(1.5), name="scale")
        self.shift = tf.Variable(np.arange(3, dtype=np.int32), name="shift")
        self.half = tf.Variable(tf.constant([0.5, -2.0, 3.0], tf.bfloat16), name="half")
        self.flag = tf.Variable(True, name="flag")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="ids")], autograph=False)
    def rows(self, ids: Any) -> Any:
        return {"rows": tf.nn.embedding_lookup(self.table, ids), "count": tf.size(ids)}

    @tf.function(input_signature=[tf.TensorSpec([2, 3], tf.float32, name="x")], autograph=False)
    def scaled(self, x: Any) -> Any:
        y = tf.matmul(x, self.table, transpose_b=True) * tf.cast(self.scale, tf.float32)
        z = x + tf.cast(self.shift, tf.float32) * tf.cast(self.half, tf.float32)
        return {"y": tf.cond(self.flag, lambda: y, lambda: -y), "z": z}


def module(folder: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Two signatures; the default one is `scaled`."""
    made = _Module()
    signatures = {"serving_default": made.scaled, "rows": made.rows}
    tf.saved_model.save(made, folder, signatures=signatures)
    x = np.random.RandomState(2).standard_normal((2, 3)).astype(np.float32)
    ids = np.array([3, 0, 6, 3], np.int32)
    found = made.scaled(x)
    rows = made.rows(ids)
    return {"x": x, "ids": ids}, [np.asarray(v) for v in
            (found["y"], found["z"], rows["count"], rows["rows"])]  # fmt: skip


def version1(folder: str, resources: bool) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """A graph of TensorFlow 1 with a Saver, whose variables are references or resources."""
    v1 = tf.compat.v1
    random = np.random.RandomState(4)
    value = random.standard_normal((4, 6)).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (None, 6), name="x")
        weights = random.standard_normal((6, 2)).astype(np.float32)
        w = v1.get_variable("w", initializer=weights, use_resource=resources)
        bias = np.array([0.25, -1.0], np.float32)
        c = v1.get_variable("c", initializer=bias, use_resource=resources)
        y = tf.nn.relu(tf.matmul(x, w) + c)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, {"features": x}, {"scores": y})
        return {"features": value}, [session.run(y, {x: value})]


def partitioned(folder: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """A graph of TensorFlow 1 whose variable is kept in three parts along each axis in turn."""
    v1 = tf.compat.v1
    random = np.random.RandomState(6)
    value = random.standard_normal((4, 140)).astype(np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (None, 140), name="x")
        parts, start = v1.fixed_size_partitioner, v1.random_normal_initializer(seed=6)
        w = v1.get_variable("w", (140, 7), None, start, use_resource=False, partitioner=parts(2))
        c = v1.get_variable("c", (7, 7), None, start, partitioner=parts(3, axis=1))
        y = tf.matmul(tf.matmul(x, tf.convert_to_tensor(w)), tf.convert_to_tensor(c))
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, {"features": x}, {"scores": y})
        return {"features": value}, [session.run(y, {x: value})]


def keras_objects(folder: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Keras 3 layers that a module holds in lists and dicts, two of one name, one held twice."""
    tf.keras.utils.set_random_seed(5)
    made = tf.Module()
    made.layers = [L.Dense(4, name="same"), L.Dense(4, name="same"), L.GRUCell(4)]
    made.parts = {"scale": tf.Variable(np.arange(4, dtype=np.float32), name="same"),
                  "more": [L.LayerNormalization(), {"last": L.Dense(2)}]}  # fmt: skip
    made.again = made.layers[1]
    for layer in (*made.layers, made.parts["more"][0], made.parts["more"][1]["last"]):
        layer.build((None, 4))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")], autograph=False)
    def f(x: Any) -> Any:
        y = made.again(tf.tanh(made.layers[0](x)))
        y = made.layers[2](y * made.parts["scale"], x)[0]
        return {"y": made.parts["more"][1]["last"](made.parts["more"][0](y))}

    tf.saved_model.save(made, folder, signatures=f)
    value = np.random.RandomState(7).standard_normal((3, 4)).astype(np.float32)
    return {"x": value}, [np.asarray(f(value)["y"])]


def detector(folder: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Bicubic resize of a dynamic image, a convolution, padded non-maximum suppression, gather."""
    random = np.random.RandomState(8)
    made = tf.Module()
    made.w = tf.Variable(random.standard_normal((3, 3, 3, 8)).astype(np.float32) * 0.2)
    made.h = tf.Variable(random.standard_normal((8, 5)).astype(np.float32))
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0), indexing="ij"), -1)
    centres = tf.constant((grid.reshape(64, 2) / 8).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([1, None, None, 3], tf.float32, "im")],
                 autograph=False)  # fmt: skip
    def f(im: Any) -> Any:
        x = tf.image.resize(im, (32, 32), method="bicubic")
        y = tf.nn.relu(tf.nn.conv2d(x, made.w, 4, "SAME"))
        y = tf.matmul(tf.reshape(y, (64, 8)), made.h)
        half = tf.exp(tf.clip_by_value(y[:, 2:4], -2, 2)) * 0.1
        middle = centres + tf.tanh(y[:, :2]) * 0.1
        boxes = tf.concat([middle - half, middle + half], 1)
        keep, n = tf.image.non_max_suppression_padded(
            boxes, tf.sigmoid(y[:, 4]), 10, iou_threshold=0.3, score_threshold=0.2,
            pad_to_max_output_size=True,
        )  # fmt: skip
        return {"boxes": tf.gather(boxes, keep), "keep": keep, "n": n}

    tf.saved_model.save(made, folder, signatures=f)
    image = random.uniform(0, 1, (1, 40, 50, 3)).astype(np.float32)
    found = f(image)
    return {"im": image}, [np.asarray(found[k]) for k in ("boxes", "keep", "n")]


def tables(folder: str) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Tables of integers: of a Keras layer, of floats, of one key, and their sizes."""
    made = tf.Module()
    keys = np.array([7, -3, 2**40, 12, 5, 0, 99], np.int64)
    given = tf.lookup.KeyValueTensorInitializer(keys, np.linspace(-1, 1, 7, dtype=np.float32))
    made.floats = tf.lookup.StaticHashTable(given, 0.25)
    one = tf.lookup.KeyValueTensorInitializer(np.int64([12]), np.int64([4]))
    made.one = tf.lookup.StaticHashTable(one, -1)
    made.layer = L.IntegerLookup(vocabulary=[3, 5, 11, 2], num_oov_indices=2)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int64, "x")], autograph=False)
    def f(x: Any) -> Any:
        return {"a": made.floats.lookup(x), "b": made.one.lookup(x), "c": made.layer(x),
                "n": made.floats.size() + made.one.size()}  # fmt: skip

    tf.saved_model.save(made, folder, signatures=f)
    x = np.array([[12, 5, 3], [-3, 2**40, 2], [0, -(2**63), 2**63 - 1], [99, 11, 100]], np.int64)
    found = f(x)
    return {"x": x}, [np.asarray(found[k]) for k in "abcn"]


def write(name: str, make: Any) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        inputs, outputs = make(str(folder))
        DATA.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(DATA / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                if path.name == "fingerprint.pb":
                    continue
                entry = zipfile.ZipInfo(str(path.relative_to(folder)), (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                z.writestr(entry, path.read_bytes())
        arrays = {f"i_{k}": v for k, v in inputs.items()}
        write_npz(DATA / f"{name}.npz", arrays | {f"o{i}": v for i, v in enumerate(outputs)})
        print(name, (DATA / f"{name}.zip").stat().st_size)


MADE = {
    "keras_lstm": keras_lstm,
    "module": module,
    "version1": lambda folder: version1(folder, False),
    "version1_resources": lambda folder: version1(folder, True),
    "partitioned": partitioned,
    "keras_objects": keras_objects,
    "detector": detector,
    "tables": tables,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MADE:
        write(name, MADE[name])
