"""Writes data/models: graphs of whole models, inputs, and what TensorFlow computes.

Needs TensorFlow (`pip install tensorflow-cpu`), in an environment of its own:

    python zoo/tf_cases/make_models.py [--full FOLDER [--size N]] [name ...]

The weights are numbers that weights.py draws, so that a stored graph holds only how to draw them.
--full also writes each model as a frozen graph and as a SavedModel with its weights; --size makes
the images of Keras' applications N x N, and then nothing is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import weights  # noqa: E402
from make_op_cases import write_npz  # noqa: E402

DATA = HERE.parents[1] / "tests/frontends/tf/data/models"
K = tf.keras
L = tf.keras.layers
MODELS: dict[str, Callable[[], Any]] = {}
SIZE: list[int] = []  # image size, if --size gives one


def model(f: Callable[[], Any]) -> Callable[[], Any]:
    """Register a function that gives a Keras model and the dims of its input, batch included."""
    MODELS[f.__name__] = f
    return f


def _application(name: str, size: int, **more: Any) -> Any:
    build = getattr(K.applications, name)
    [size] = SIZE or [size]
    built = build(
        weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None, **more
    )
    return built, (2, size, size, 3)


@model
def resnet50() -> Any:
    return _application("ResNet50", 32)


@model
def mobilenet_v2() -> Any:
    return _application("MobileNetV2", 64)


@model
def mobilenet_v3() -> Any:
    return _application("MobileNetV3Small", 64)


@model
def efficientnet() -> Any:
    return _application("EfficientNetB0", 64)


@model
def densenet() -> Any:
    return _application("DenseNet121", 32)


@model
def convnext() -> Any:
    return _application("ConvNeXtTiny", 32)


@model
def mnist() -> Any:
    """The graph of MIGraphX's driver page: 784-128-10."""
    x = K.Input((784,), name="x")
    y = L.Dense(10, activation="softmax")(L.Dense(128, activation="relu")(x))
    return K.Model(x, y), (1, 784)


@model
def transformer() -> Any:
    tokens = K.Input((12,), dtype="int32", name="tokens")
    x = L.Embedding(50, 32)(tokens)
    for _ in range(2):
        y = L.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True)
        x = L.LayerNormalization()(x + y)
        y = L.Dense(32)(L.Dense(64, activation="gelu")(x))
        x = L.LayerNormalization()(x + y)
    x = L.GlobalAveragePooling1D()(L.Dropout(0.1)(x))
    return K.Model(tokens, L.Dense(5, activation="softmax")(x)), (3, 12)


@model
def lstm() -> Any:
    x = K.Input((9, 6), name="x")
    y = L.LSTM(8, return_sequences=True)(x)
    return K.Model(x, L.Dense(3)(L.LSTM(5)(y))), (2, 9, 6)


@model
def bidirectional() -> Any:
    x = K.Input((7, 6), name="x")
    y = L.Bidirectional(L.LSTM(4, return_sequences=True))(x)
    return K.Model(x, L.Bidirectional(L.GRU(5), merge_mode="ave")(y)), (3, 7, 6)


@model
def gru() -> Any:
    x = K.Input((8, 6), name="x")
    y = L.GRU(7, return_sequences=True, reset_after=True)(x)
    y = L.GRU(5, return_sequences=True, reset_after=False, go_backwards=True)(y)
    return K.Model(x, L.SimpleRNN(4)(y)), (2, 8, 6)


@model
def masked_lstm() -> Any:
    tokens = K.Input((8,), dtype="int32", name="tokens")
    x = L.Embedding(20, 6, mask_zero=True)(tokens)
    return K.Model(tokens, L.LSTM(5, return_sequences=True)(x)), (3, 8)


@model
def unet() -> Any:
    x = inputs = K.Input((32, 32, 3), name="image")
    kept = []
    for width in (8, 16):
        x = L.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = L.BatchNormalization()(L.Conv2D(width, 3, padding="same", activation="relu")(x))
        kept.append(x)
        x = L.MaxPooling2D()(x)
    x = L.Conv2D(32, 3, padding="same", activation="relu")(x)
    for width, other in zip((16, 8), reversed(kept), strict=True):
        if width == 16:
            x = L.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        else:
            x = L.Conv2D(width, 3, padding="same")(L.UpSampling2D(interpolation="bilinear")(x))
        x = L.Concatenate()([x, other])
        x = L.Conv2D(width, 3, padding="same", activation="relu")(x)
    return K.Model(inputs, L.Conv2D(2, 1, activation="sigmoid")(x)), (2, 32, 32, 3)


class _Preprocess(tf.Module):
    """Images of bytes, resized, cropped to boxes and normalised."""

    @tf.function
    def __call__(self, image: Any) -> Any:
        x = tf.image.convert_image_dtype(image, tf.float32)
        x = tf.image.resize(x, (20, 24))
        x = tf.compat.v1.image.resize_bilinear(x, (17, 19), align_corners=True)
        boxes = [[0.1, 0.1, 0.9, 0.8], [0.0, 0.2, 1.1, 1.0]]
        x = tf.image.crop_and_resize(x, boxes, [0, 1], (12, 10))
        x = tf.image.central_crop(x, 0.8)
        x = tf.image.adjust_contrast(tf.image.flip_left_right(x), 1.3)
        x = (tf.clip_by_value(x, 0.0, 1.0) - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        return tf.transpose(x, [0, 3, 1, 2])


@model
def preprocessing() -> Any:
    return _Preprocess(), (2, 30, 40, 3)


class _Branches(tf.Module):
    """A condition, a loop with an early end, and a switch of several branches."""

    @tf.function
    def __call__(self, x: Any) -> Any:
        s = tf.reduce_sum(x)
        if s > 0:
            y, z = x * 2.0, s
        else:
            y, z = -x, s * s
        i = tf.constant(0)
        while i < 5 and tf.reduce_sum(y) < 40.0:
            y = y + tf.abs(x) + tf.cast(i, tf.float32)
            i += 1
        k = tf.cast(tf.reduce_max(x), tf.int32) % 3
        w = tf.switch_case(k, [lambda: x + 1.0, lambda: x * 3.0, lambda: tf.sqrt(tf.abs(x))])
        total = tf.zeros([])
        for row in tf.range(3):
            if row == 1:
                continue
            total += x[row, 0]
        return y, z, tf.cast(i, tf.float32), w, total


@model
def branches() -> Any:
    return _Branches(), (3, 4)


_BYTES = {"preprocessing": ("uint8", 0, 255)}
_TOKENS = {"transformer": 50, "masked_lstm": 20}


def inputs_of(name: str, dims: tuple[int, ...]) -> np.ndarray:
    random = np.random.RandomState(7)
    if name in _BYTES:
        return random.randint(0, 256, dims).astype(np.uint8)
    if name in _TOKENS:
        x = random.randint(1, _TOKENS[name], dims).astype(np.int32)
        if name == "masked_lstm":
            x[0, 5:] = 0
            x[1, 2:] = 0
        return x
    scale = 1.0 if name in ("lstm", "gru", "bidirectional", "branches") else 0.5
    return (random.standard_normal(dims) * scale).astype(np.float32)


def write(name: str, full: Path | None, variants: bool) -> None:
    K.backend.clear_session()
    found, dims = MODELS[name]()
    keras = isinstance(found, K.Model)
    x = inputs_of(name, dims)
    kind = tf.as_dtype(x.dtype)
    if keras:
        for i, v in enumerate(found.weights):
            v.assign(weights.draw(i, v.path, tuple(v.shape)))
        call = tf.function(lambda t: found(t, training=False), autograph=False)
        argument = found.inputs[0].name
    else:
        call, argument = found.__call__, "x"
    spec = tf.TensorSpec((None, *dims[1:]) if keras else dims, kind, name=argument)
    function = call.get_concrete_function(spec)
    wanted = [np.asarray(v) for v in tf.nest.flatten(function(tf.constant(x)))]
    for lowered in (False, True):
        frozen = convert_variables_to_constants_v2(function, lower_control_flow=lowered)
        graph = frozen.graph.as_graph_def()
        text = {n.op for n in graph.node} | {
            n.op for f in graph.library.function for n in f.node_def
        }
        if lowered and not text & {"Merge", "Switch"}:
            continue
        again = [np.asarray(v) for v in tf.nest.flatten(frozen(tf.constant(x)))]
        for a, b in zip(again, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * np.abs(b).max())
        form = f"{name}_v1" if lowered else name
        outputs = [t.name for t in frozen.outputs]
        if full is not None:
            (full / f"{form}.pb").write_bytes(graph.SerializeToString(deterministic=True))
        for node in [*graph.node, *(n for f in graph.library.function for n in f.node_def)]:
            for key in [k for k in node.attr if k.startswith("_")]:
                del node.attr[key]
        if SIZE:
            continue
        drawn = weights.take_out(
            graph,
            {v.path: i for i, v in enumerate(found.weights)} if keras else {},
            found.weights if keras else [],
        )
        meta = {"input": frozen.inputs[0].op.name, "outputs": outputs, "drawn": drawn}
        stored = graph.SerializeToString(deterministic=True)
        arrays = {"graph": np.frombuffer(stored, np.uint8), "x": x}
        arrays |= {f"o{i}": a for i, a in enumerate(wanted)}
        arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        DATA.mkdir(parents=True, exist_ok=True)
        write_npz(DATA / f"{form}.npz", arrays)
        size = (DATA / f"{form}.npz").stat().st_size
        ops = len(graph.node) + sum(len(f.node_def) for f in graph.library.function)
        print(f"{form}: {ops} nodes, {len(drawn)} weights drawn, {size} bytes")
    if full is not None:
        folder = full / name
        shutil.rmtree(folder, ignore_errors=True)
        if keras:
            found.export(str(folder), verbose=False)
        else:
            tf.saved_model.save(found, str(folder), signatures=_named(call, spec))
        np.savez(full / f"{name}.npz", x=x, **{f"o{i}": a for i, a in enumerate(wanted)})


def _named(call: Any, spec: Any) -> Any:
    """A signature whose outputs have names in order."""

    def named(x: Any) -> Any:
        return {f"output_{i}": v for i, v in enumerate(tf.nest.flatten(call(x)))}

    return tf.function(named, input_signature=[spec], autograph=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", type=Path)
    parser.add_argument("--size", type=int)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    SIZE.extend([given.size] if given.size else [])
    if given.full:
        given.full.mkdir(parents=True, exist_ok=True)
    for name in given.names or MODELS:
        write(name, given.full, True)


if __name__ == "__main__":
    main()
