"""Small models with the inputs and outputs of those that MIGraphX's example scripts load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from tests.support.models import Nodes

TYPES = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32}
Spec = tuple[str, str, Sequence[Any]]


class Net(Nodes):
    """Nodes in order; weights are drawn from one seed."""

    def cast(self, x: str) -> str:
        """Add a cast to f32."""
        return self.op("Cast", x, to=TensorProto.FLOAT)

    def weight(self, *dims: int) -> str:
        return self.const(self.rng.standard_normal(dims) / np.sqrt(max(np.prod(dims[1:]), 1)))

    def save(self, path: Path, inputs: Sequence[Spec], outputs: Sequence[Spec]) -> Path:
        """Write the model."""
        ends = [{n: (TYPES[t], list(d)) for n, t, d in each} for each in (inputs, outputs)]
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(self.model(*ends), str(path))
        return path


def text_encoder(path: Path) -> Path:
    """Text encoder of stable-diffusion: ids to embeddings and one of the whole text."""
    n = Net(1)
    x = n.op("Gather", n.weight(50, 16), "input_ids")
    x = n.op("MatMul", x, n.weight(16, 16))
    n.op("LayerNormalization", x, n.const(np.ones(16), np.float32), into=["last_hidden_state"])
    n.op("ReduceMean", "last_hidden_state", axes=[1], keepdims=0, into=["pooler_output"])
    results = [
        ("last_hidden_state", "float", ["b", "s", 16]),
        ("pooler_output", "float", ["b", 16]),
    ]
    return n.save(path, [("input_ids", "int32", ["b", "s"])], results)


def unet(path: Path) -> Path:
    """U-Net of stable-diffusion: an image, a text and a scalar time step."""
    n = Net(2)
    text = n.op("ReduceMean", "encoder_hidden_states", axes=[1], keepdims=0)
    text = n.op("MatMul", text, n.weight(16, 4))
    text = n.op("Unsqueeze", text, n.const([2, 3], np.int64))
    x = n.op("Conv", "sample", n.weight(4, 4, 3, 3), pads=[1, 1, 1, 1])
    x = n.op("Add", x, text)
    time = n.op("Mul", "timestep", n.const(0.01, np.float32))
    x = n.op("Add", x, time)
    n.op("Conv", n.op("Relu", x), n.weight(4, 4, 1, 1), into=["out_sample"])
    inputs = [
        ("sample", "float", ["b", 4, "h", "w"]),
        ("encoder_hidden_states", "float", ["b", "s", 16]),
        ("timestep", "float", []),
    ]
    return n.save(path, inputs, [("out_sample", "float", ["b", 4, "h", "w"])])


def vae_decoder(path: Path) -> Path:
    """Decoder of stable-diffusion: latents to an image of twice the size."""
    n = Net(3)
    scales = n.const([1, 1, 2, 2], np.float32)
    x = n.op("Resize", "latent_sample", "", scales, mode="nearest")
    n.op("Conv", x, n.weight(3, 4, 3, 3), pads=[1, 1, 1, 1], into=["sample"])
    latents = ("latent_sample", "float", ["b", 4, "h", "w"])
    return n.save(path, [latents], [("sample", "float", ["b", 3, "h2", "w2"])])


def rnnt(folder: Path) -> None:
    """Encoder, prediction and joint nets of RNN-T."""
    n = Net(4)
    w, r = n.weight(1, 32, 6), n.weight(1, 32, 8)
    x = n.op("LSTM", "input", w, r, hidden_size=8)
    n.op("Squeeze", x, n.const([1], np.int64), into=["output"])
    n.op("Add", "feature_length", n.const([0], np.int64), into=["output_lengths"])
    n.save(
        folder / "rnnt_encoder" / "model.onnx",
        [("input", "float", ["t", "b", 6]), ("feature_length", "int64", ["b"])],
        [("output", "float", ["t", "b", 8]), ("output_lengths", "int64", ["b"])],
    )
    n = Net(5)
    x = n.op("Gather", n.weight(6, 4), "symbol")
    x = n.op("Transpose", x, perm=[1, 0, 2])
    w, r, bias = n.weight(1, 20, 4), n.weight(1, 20, 5), n.weight(1, 40)
    n.op("LSTM", x, w, r, bias, "", "hidden_in_1", "hidden_in_2", hidden_size=5,
         into=["steps", "hidden_out_1", "hidden_out_2"])  # fmt: skip
    flat = n.op("Squeeze", "steps", n.const([1], np.int64))
    n.op("Transpose", flat, perm=[1, 0, 2], into=["g"])
    hidden = ["hidden_in_1", "hidden_in_2", "hidden_out_1", "hidden_out_2"]
    states: list[Spec] = [(h, "float", [1, "b", 5]) for h in hidden]
    n.save(
        folder / "rnnt_prediction" / "model.onnx",
        [("symbol", "int64", ["b", 1]), *states[:2]],
        [("g", "float", ["b", 1, 5]), *states[2:]],
    )
    n = Net(6)
    x = n.op("Concat", "onnx::Shape_0", "onnx::Shape_1", axis=2)
    x = n.op("Relu", n.op("MatMul", x, n.weight(13, 16)))
    x = n.op("MatMul", x, n.weight(16, 6))
    n.op("Unsqueeze", x, n.const([1], np.int64), into=["logits"])
    n.save(
        folder / "rnnt_joint" / "model.onnx",
        [("onnx::Shape_0", "float", ["b", 1, 8]), ("onnx::Shape_1", "float", ["b", 1, 5])],
        [("logits", "float", ["b", 1, 1, 6])],
    )


def transformer(path: Path) -> Path:
    """Transformer of Flux: latents, text, positions and a time step of one element."""
    n = Net(7)
    text = n.op("MatMul", "encoder_hidden_states", n.weight(12, 16))
    x = n.op("Concat", n.op("MatMul", "hidden_states", n.weight(8, 16)), text, axis=1)
    t = n.op("Unsqueeze", "timestep", n.const([1, 2], np.int64))
    x = n.op("Add", x, n.op("Sin", t))
    scores = n.op("Softmax", n.op("MatMul", x, n.op("Transpose", x, perm=[0, 2, 1])), axis=-1)
    x = n.op("MatMul", n.op("MatMul", scores, x), n.weight(16, 8))
    first = n.op("Slice", x, *(n.const([v], np.int64) for v in (0, 4, 1)))
    n.op("Identity", first, into=["latent"])
    inputs = [
        ("hidden_states", "float", ["b", "s", 8]),
        ("encoder_hidden_states", "float", ["b", "t", 12]),
        ("timestep", "float", ["b"]),
    ]
    return n.save(path, inputs, [("latent", "float", ["b", "s", 8])])


def classifier(path: Path, name: str = "data", size: int = 16) -> Path:
    """Interface of ResNet-50, NFNet and others: one image to scores."""
    n = Net(8)
    x = n.op("Relu", n.op("Conv", name, n.weight(8, 3, 3, 3), strides=[2, 2]))
    x = n.op("Flatten", n.op("GlobalAveragePool", x))
    n.op("Gemm", x, n.weight(8, 10), n.weight(10), into=["scores"])
    return n.save(path, [(name, "float", [1, 3, size, size])], [("scores", "float", [1, 10])])


def segmenter(path: Path, name: str, dims: Sequence[int]) -> Path:
    """Interface of U-Net and super resolution: an image or a volume to one of its size."""
    n = Net(9)
    kernel = [3] * (len(dims) - 2)
    pads = [1] * 2 * len(kernel)
    x = n.op("Relu", n.op("Conv", name, n.weight(4, dims[1], *kernel), pads=pads))
    n.op("Conv", x, n.weight(dims[1], 4, *kernel), pads=pads, into=["mask"])
    return n.save(path, [(name, "float", dims)], [("mask", "float", dims)])


def bert_squad(path: Path) -> Path:
    """Interface of BERT-SQuAD: four inputs with colons in their names, three results."""
    n = Net(10)
    x = n.op("Gather", n.weight(30, 8), "input_ids:0")
    x = n.op("Add", x, n.op("Gather", n.weight(2, 8), "segment_ids:0"))
    mask = n.op("Unsqueeze", n.cast("input_mask:0"), n.const([2], np.int64))
    x = n.op("Mul", x, mask)
    both = n.op("MatMul", x, n.weight(8, 2))
    n.op("Split", n.op("Transpose", both, perm=[2, 0, 1]), axis=0, into=["e", "s"])
    n.op("Squeeze", "e", n.const([0], np.int64), into=["unstack:1"])
    n.op("Squeeze", "s", n.const([0], np.int64), into=["unstack:0"])
    n.op("Identity", "unique_ids_raw_output___9:0", into=["unique_ids:0"])
    ids: list[Spec] = [
        (f"{k}:0", "int64", ["b", 12]) for k in ("input_ids", "input_mask", "segment_ids")
    ]
    results: list[Spec] = [(f"unstack:{i}", "float", ["b", 12]) for i in (1, 0)]
    unique = ("unique_ids_raw_output___9:0", "int64", ["b"])
    return n.save(path, [unique, *ids], [*results, ("unique_ids:0", "int64", ["b"])])


def decoder(path: Path, *, states: bool) -> Path:
    """Decoder of Llama and Whisper: ids and a mask of a fixed length to scores of the next ids."""
    n = Net(11)
    x = n.op("Gather", n.weight(40, 8), "input_ids")
    mask = n.cast("attention_mask")
    x = n.op("Mul", x, n.op("Unsqueeze", mask, n.const([2], np.int64)))
    more: list[Spec] = [("position_ids", "int64", ["b", "s"])]
    if states:
        more = [("encoder_hidden_states", "float", ["b", "t", 8])]
        other = n.op("ReduceMean", "encoder_hidden_states", axes=[1], keepdims=1)
    else:
        other = n.op("Gather", n.weight(64, 8), "position_ids")
    x = n.op("CumSum", n.op("Add", x, other), n.const(1, np.int64))
    n.op("MatMul", x, n.weight(8, 40), into=["logits"])
    ids: list[Spec] = [(k, "int64", ["b", "s"]) for k in ("input_ids", "attention_mask")]
    return n.save(path, [*ids, *more], [("logits", "float", ["b", "s", 40])])


def encoder(path: Path) -> Path:
    """Encoder of Whisper: the features of sound to states."""
    n = Net(12)
    x = n.op("Conv", "input_features", n.weight(8, 4, 3), pads=[1, 1], strides=[2])
    n.op("Transpose", n.op("Relu", x), perm=[0, 2, 1], into=["last_hidden_state"])
    features = ("input_features", "float", ["b", 4, "t"])
    return n.save(path, [features], [("last_hidden_state", "float", ["b", "t2", 8])])


def detector(path: Path) -> Path:
    """Interface of YOLO: an image to boxes, scores and classes in one tensor."""
    n = Net(13)
    x = n.op("Conv", "images", n.weight(6, 3, 4, 4), strides=[4, 4])
    x = n.op("Sigmoid", n.op("Reshape", x, n.const([1, 6, 64], np.int64)))
    n.op("Transpose", x, perm=[0, 2, 1], into=["output0"])
    return n.save(path, [("images", "float", [1, 3, 32, 32])], [("output0", "float", [1, 64, 6])])
