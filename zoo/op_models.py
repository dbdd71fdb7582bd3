"""Models of one operator, or of a few that frameworks write as one: what `single_ops.py` times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Dims = tuple[int, ...]
Node = tuple[str, Sequence[str], Sequence[str], dict[str, Any]]
SEED = 5
FLOAT = onnx.TensorProto.FLOAT
ATTENTION: list[Node] = [
    ("Transpose", ["k"], ["kt"], {"perm": [0, 1, 3, 2]}),
    ("MatMul", ["q", "kt"], ["s"], {}),
    ("Mul", ["s", "c"], ["t"], {}),
    ("Softmax", ["t"], ["p"], {"axis": -1}),
    ("MatMul", ["p", "v"], ["y"], {}),
]


@dataclass(frozen=True)
class OpModel:
    """inputs: drawn for each run, as (dtype, dims). weights: its initializers."""

    name: str
    inputs: Mapping[str, tuple[str, Dims]]
    nodes: Sequence[Node]
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: Sequence[str] = ("y",)
    opset: int = 18

    def proto(self, *, fixed: bool = True) -> onnx.ModelProto:
        """Build the model; not `fixed`: each dim of an input has a name instead of a number."""

        def value(name: str, dtype: str, dims: Dims) -> onnx.ValueInfoProto:
            shape = list(dims) if fixed else [f"{name}{i}" for i in range(len(dims))]
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            return helper.make_tensor_value_info(name, kind, shape)

        graph = helper.make_graph(
            [helper.make_node(op, i, o, **a) for op, i, o, a in self.nodes],
            self.name,
            [value(n, *typed) for n, typed in self.inputs.items()],
            [onnx.ValueInfoProto(name=n) for n in self.outputs],
            [numpy_helper.from_array(np.ascontiguousarray(w), n) for n, w in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        rank = len(next(iter(self.inputs.values()))[1])
        for output in inferred.graph.output:
            if output.type.WhichOneof("value") is None:  # onnx infers no type of some functions
                unknown = helper.make_tensor_value_info(output.name, FLOAT, [None] * rank)
                output.CopyFrom(unknown)
        onnx.checker.check_model(inferred)
        return inferred

    def arrays(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw its inputs: floats standard normal, indices up to 1000, bytes up to 120."""
        drawn = {}
        for name, (dtype, dims) in self.inputs.items():
            if dtype == "float32":
                drawn[name] = rng.standard_normal(dims).astype(dtype)
            else:
                drawn[name] = rng.integers(0, 1000 if dtype == "int64" else 120, dims).astype(dtype)
        return drawn


def all_models() -> list[OpModel]:
    """Return every model, always with the same weights."""
    rng = np.random.default_rng(SEED)

    def weight(*dims: int, fan: int | None = None) -> np.ndarray:
        """Draw a weight; fan: how many products are summed, so that results stay of size one."""
        scale = math.sqrt(max(1, int(np.prod(dims[1:])) if fan is None else fan))
        return (rng.standard_normal(dims) / scale).astype(np.float32)

    families = (_rows, _pointwise, _windows, _pools, _products, _attention, _movement)
    families += (_reductions, _selections, _recurrent, _quantised)
    return [model for family in families for model in family(weight)]


Weight = Callable[..., np.ndarray]


def _x(*dims: int) -> dict[str, tuple[str, Dims]]:
    return {"x": ("float32", dims)}


def _two(*dims: int) -> dict[str, tuple[str, Dims]]:
    return {"x": ("float32", dims), "z": ("float32", dims)}


def _one(
    name: str,
    op: str,
    inputs: Mapping[str, tuple[str, Dims]],
    weights: Mapping[str, np.ndarray] | None = None,
    opset: int = 18,
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> OpModel:
    """Return a model of one node, whose operands are the inputs and then the weights."""
    weights = weights or {}
    node: Node = (op, [*inputs, *weights], outputs, attributes)
    return OpModel(name, inputs, [node], weights, outputs, opset)


def _rows(weight: Weight) -> Iterator[OpModel]:
    for n in (128, 197, 512, 1500):
        yield _one(f"softmax_1536x{n}", "Softmax", _x(12, 128, n), axis=-1)
    yield _one("softmax_axis1_1x80x8400", "Softmax", _x(1, 80, 8400), axis=1)
    yield _one("logsoftmax_8x32000", "LogSoftmax", _x(8, 32000), axis=-1)
    for rows in (128, 512):
        scale = {"g": weight(768, fan=1), "b": weight(768, fan=1)}
        name, x = f"layernorm_{rows}x768", _x(1, rows, 768)
        yield _one(name, "LayerNormalization", x, scale, axis=-1)
    nodes: list[Node] = [
        ("Add", ["x", "z"], ["s"], {}),
        ("LayerNormalization", ["s", "g", "b"], ["y"], {"axis": -1}),
    ]
    scale = {"g": weight(768, fan=1), "b": weight(768, fan=1)}
    yield OpModel("add_layernorm_512x768", _two(1, 512, 768), nodes, scale)
    gain = {"g": weight(768, fan=1)}
    yield _one("rmsnorm23_128x768", "RMSNormalization", _x(1, 128, 768), gain, 23, axis=-1)
    nodes = [
        ("Pow", ["x", "two"], ["p"], {}),
        ("ReduceMean", ["p", "ax"], ["m"], {"keepdims": 1}),
        ("Add", ["m", "eps"], ["e"], {}),
        ("Sqrt", ["e"], ["q"], {}),
        ("Div", ["x", "q"], ["d"], {}),
        ("Mul", ["d", "g"], ["y"], {}),
    ]
    numbers = {"two": np.float32(2), "ax": np.int64([-1]), "eps": np.float32(1e-6)}
    yield OpModel("rmsnorm_decomposed_128x768", _x(1, 128, 768), nodes, {**numbers, **gain})
    scale = {"g": weight(128, fan=1), "b": weight(128, fan=1)}
    x = _x(1, 128, 32, 32)
    yield _one("groupnorm_1x128x32x32", "GroupNormalization", x, scale, 21, num_groups=32)
    x, scale = _x(1, 64, 56, 56), {"g": weight(64, fan=1), "b": weight(64, fan=1)}
    yield _one("instancenorm_1x64x56x56", "InstanceNormalization", x, scale)
    moments = {"m": weight(64, fan=1), "v": np.abs(weight(64, fan=1)) + np.float32(0.5)}
    yield _one("batchnorm_1x64x56x56", "BatchNormalization", x, {**scale, **moments})


def _pointwise(weight: Weight) -> Iterator[OpModel]:
    yield _one("gelu_erf_512x3072", "Gelu", _x(512, 3072), opset=20)
    yield _one("gelu_tanh_128x3072", "Gelu", _x(128, 3072), opset=20, approximate="tanh")
    nodes: list[Node] = [
        ("Div", ["x", "s2"], ["a"], {}),
        ("Erf", ["a"], ["e"], {}),
        ("Add", ["e", "one"], ["f"], {}),
        ("Mul", ["x", "f"], ["g"], {}),
        ("Mul", ["g", "half"], ["y"], {}),
    ]
    numbers = {"s2": np.float32([2**0.5]), "one": np.float32([1]), "half": np.float32([0.5])}
    yield OpModel("gelu_decomposed_128x3072", _x(128, 3072), nodes, numbers)
    nodes = [("Sigmoid", ["x"], ["s"], {}), ("Mul", ["x", "s"], ["y"], {})]
    yield OpModel("silu_1x64x80x80", _x(1, 64, 80, 80), nodes)
    for op in ("Sigmoid", "Tanh", "Exp"):
        yield _one(f"{op.lower()}_128x3072", op, _x(128, 3072))
    yield _one("relu_1x64x112x112", "Relu", _x(1, 64, 112, 112))
    yield _one("add_1x256x56x56", "Add", _two(1, 256, 56, 56))
    yield _one("add_row_128x3072", "Add", _x(128, 3072), {"b": weight(3072, fan=1)})
    yield _one("tiny_add_16", "Add", _x(16), {"w": weight(16, fan=1)})
    nodes = [
        ("Gemm", ["x", "w1", "b1"], ["a"], {}),
        ("Relu", ["a"], ["r"], {}),
        ("Gemm", ["r", "w2", "b2"], ["y"], {}),
    ]
    weights = {"w1": weight(64, 128, fan=64), "b1": weight(128, fan=1)}
    weights |= {"w2": weight(128, 10, fan=128), "b2": weight(10, fan=1)}
    yield OpModel("tiny_mlp_64_128_10", _x(1, 64), nodes, weights)


# name, inputs, outputs, image, kernel, stride, groups
CONVOLUTIONS = (
    ("conv3x3_64_56", 64, 64, 56, 3, 1, 1),
    ("conv3x3_128_28", 128, 128, 28, 3, 1, 1),
    ("conv3x3_256_14", 256, 256, 14, 3, 1, 1),
    ("conv3x3_512_7", 512, 512, 7, 3, 1, 1),
    ("conv3x3s2_128_56", 128, 128, 56, 3, 2, 1),
    ("conv7x7s2_stem", 3, 64, 224, 7, 2, 1),
    ("conv1x1_64_256_56", 64, 256, 56, 1, 1, 1),
    ("conv1x1_1024_256_14", 1024, 256, 14, 1, 1, 1),
    ("conv1x1_2048_512_7", 2048, 512, 7, 1, 1, 1),
    ("conv1x1s2_256_512_56", 256, 512, 56, 1, 2, 1),
    ("conv3x3_17_19_15", 17, 19, 15, 3, 1, 1),
    ("conv3x3_4_128_32", 4, 128, 32, 3, 1, 1),
    ("depthwise3x3_144_56", 144, 144, 56, 3, 1, 144),
    ("depthwise3x3s2_144_56", 144, 144, 56, 3, 2, 144),
    ("depthwise5x5_240_28", 240, 240, 28, 5, 1, 240),
    ("depthwise5x5s2_240_28", 240, 240, 28, 5, 2, 240),
    ("depthwise3x3_960_7", 960, 960, 7, 3, 1, 960),
    ("depthwise3x3_16_112", 16, 16, 112, 3, 1, 16),
    ("depthwise7x7_96_56", 96, 96, 56, 7, 1, 96),
    ("grouped3x3_32x4_56", 128, 128, 56, 3, 1, 32),
)


def _windows(weight: Weight) -> Iterator[OpModel]:
    for name, ci, co, size, k, stride, group in CONVOLUTIONS:
        attributes = {"pads": [k // 2] * 4, "strides": [stride] * 2, "group": group}
        nodes: list[Node] = [
            ("Conv", ["x", "w", "b"], ["c"], attributes),
            ("Relu", ["c"], ["y"], {}),
        ]
        weights = {"w": weight(co, ci // group, k, k), "b": weight(co, fan=1)}
        yield OpModel(name, _x(1, ci, size, size), nodes, weights)
    weights = {"w": weight(768, 3, 16, 16), "b": weight(768, fan=1)}
    yield _one("conv16x16s16_patch", "Conv", _x(1, 3, 224, 224), weights, strides=[16, 16])
    weights = {"w": weight(384, 80, 3), "b": weight(384, fan=1)}
    yield _one("conv1d_80_384_3000", "Conv", _x(1, 80, 3000), weights, pads=[1, 1])
    weights = {"w": weight(384, 384, 3), "b": weight(384, fan=1)}
    yield _one("conv1d_s2_384_3000", "Conv", _x(1, 384, 3000), weights, pads=[1, 1], strides=[2])
    weights = {"w": weight(402, 1, 400), "b": weight(402, fan=1)}
    yield _one("conv1d_spectrum_16000", "Conv", _x(1, 1, 16000), weights, strides=[160])
    weights = {"w": weight(16, 16, 3, 3, 3), "b": weight(16, fan=1)}
    yield _one("conv3d_16_16x32x32", "Conv", _x(1, 16, 16, 32, 32), weights, pads=[1] * 6)
    yield from _inverted_residual(weight)
    attributes = {"pads": [1] * 4, "strides": [2, 2]}
    w = {"w": weight(64, 64, 4, 4)}
    yield _one("transposed_k4s2_64_32", "ConvTranspose", _x(1, 64, 32, 32), w, **attributes)
    w = {"w": weight(128, 64, 2, 2)}
    yield _one("transposed_k2s2_128_32", "ConvTranspose", _x(1, 128, 32, 32), w, strides=[2, 2])


def _inverted_residual(weight: Weight) -> Iterator[OpModel]:
    """Depthwise convolutions where models have them: between two of 1x1, with no transpose."""
    for k, stride in ((3, 1), (3, 2), (5, 1), (5, 2)):
        nodes: list[Node] = [
            ("Conv", ["x", "w1", "b1"], ["a"], {}),
            ("HardSwish", ["a"], ["b"], {}),
            ("Conv", ["b", "w2", "b2"], ["c"],
             {"pads": [k // 2] * 4, "strides": [stride] * 2, "group": 96}),
            ("HardSwish", ["c"], ["d"], {}),
            ("Conv", ["d", "w3", "b3"], ["y"], {}),
        ]  # fmt: skip
        weights = {"w1": weight(96, 24, 1, 1), "b1": weight(96, fan=1)}
        weights |= {"w2": weight(96, 1, k, k), "b2": weight(96, fan=1)}
        weights |= {"w3": weight(24, 96, 1, 1), "b3": weight(24, fan=1)}
        name = f"depthwise{k}x{k}s{stride}_block_96_40"
        yield OpModel(name, _x(1, 24, 40, 40), nodes, weights)


def _pools(_: Weight) -> Iterator[OpModel]:
    for name, op, dims, k, stride in (
        ("maxpool3x3s2_64_112", "MaxPool", (1, 64, 112, 112), 3, 2),
        ("maxpool5x5_128_20", "MaxPool", (1, 128, 20, 20), 5, 1),
        ("averagepool3x3_64_56", "AveragePool", (1, 64, 56, 56), 3, 1),
    ):
        attributes = {"kernel_shape": [k, k], "strides": [stride] * 2, "pads": [k // 2] * 4}
        yield _one(name, op, _x(*dims), **attributes)
    for channels, size in ((2048, 7), (96, 56)):
        name, x = f"globalaveragepool_{channels}_{size}", _x(1, channels, size, size)
        yield _one(name, "GlobalAveragePool", x)


def _products(weight: Weight) -> Iterator[OpModel]:
    constant = ((1024, 1024, 1024), (128, 768, 3072), (128, 768, 768), (197, 768, 768))
    constant += ((49, 3072, 768), (16, 768, 768), (8, 768, 3072))
    for m, k, n in constant:
        yield _one(f"gemm_{m}x{k}x{n}", "MatMul", _x(m, k), {"w": weight(k, n, fan=k)})
    for k, n in ((768, 3072), (768, 32000), (4096, 4096)):
        yield _one(f"gemv_{k}x{n}", "MatMul", _x(1, k), {"w": weight(k, n, fan=k)})
    both: tuple[tuple[Dims, Dims], ...] = (
        ((1024, 1024), (1024, 1024)),
        ((64, 768), (768, 768)),
        ((12, 128, 64), (12, 64, 128)),
        ((12, 512, 64), (12, 64, 512)),
        ((12, 512, 512), (12, 512, 64)),
    )
    for a, b in both:
        inputs = {"x": ("float32", a), "w": ("float32", b)}
        yield _one(f"both_{'x'.join(map(str, (*a, b[-1])))}", "MatMul", inputs)
    nodes: list[Node] = [
        ("MatMul", ["x", "w"], ["m"], {}),
        ("Add", ["m", "b"], ["a"], {}),
        ("Gelu", ["a"], ["y"], {}),
    ]
    weights = {"w": weight(768, 3072, fan=768), "b": weight(3072, fan=1)}
    yield OpModel("gemm_bias_gelu_128x768x3072", _x(128, 768), nodes, weights, opset=20)
    yield OpModel("gemm_bias_gelu_1x128x768x3072", _x(1, 128, 768), nodes, weights, opset=20)


def _attention(_: Weight) -> Iterator[OpModel]:
    scale = {"c": np.float32([0.125])}
    for s in (128, 512):
        inputs = dict.fromkeys("qkv", ("float32", (1, 12, s, 64)))
        yield OpModel(f"attention_decomposed_12x{s}x64", inputs, ATTENTION, scale)
        yield _one(f"attention_12x{s}x64", "Attention", inputs, opset=23)
        yield _one(f"attention_causal_12x{s}x64", "Attention", inputs, opset=23, is_causal=1)
    inputs = {"q": ("float32", (1, 12, 1, 64))}
    inputs |= dict.fromkeys("kv", ("float32", (1, 12, 512, 64)))
    yield OpModel("attention_decode_512", inputs, ATTENTION, scale)


def _movement(weight: Weight) -> Iterator[OpModel]:
    yield _one("transpose_0213_512x12x64", "Transpose", _x(1, 512, 12, 64), perm=[0, 2, 1, 3])
    yield _one("transpose_10_768x3072", "Transpose", _x(768, 3072), perm=[1, 0])
    yield _one("transpose_to_last_64_56", "Transpose", _x(1, 64, 56, 56), perm=[0, 2, 3, 1])
    yield _one("transpose_to_first_64_56", "Transpose", _x(1, 56, 56, 64), perm=[0, 3, 1, 2])
    yield _one("concat_channels_128_56", "Concat", _two(1, 128, 56, 56), axis=1)
    yield _one("concat_last_512x768", "Concat", _two(512, 768), axis=1)
    parts = ("y", "y2", "y3")
    yield _one(
        "split3_512x2304", "Split", _x(512, 2304), outputs=parts, axis=1, num_outputs=len(parts)
    )
    bounds = {"s": np.int64([768]), "e": np.int64([1536]), "a": np.int64([1])}
    yield _one("slice_last_512x2304", "Slice", _x(512, 2304), bounds)
    pads = {"p": np.int64([0, 0, 1, 1, 0, 0, 1, 1])}
    yield _one("pad_64_56", "Pad", _x(1, 64, 56, 56), pads)
    node: Node = ("Gather", ["w", "i"], ["y"], {"axis": 0})
    ids: dict[str, tuple[str, Dims]] = {"i": ("int64", (1, 128))}
    yield OpModel("gather_30522x768_128", ids, [node], {"w": weight(30522, 768, fan=1)})
    factors = {"s": np.float32([1, 1, 2, 2])}
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    for mode, attributes in (("nearest", nearest), ("linear", {})):
        node = ("Resize", ["x", "", "s"], ["y"], {"mode": mode, **attributes})
        yield OpModel(f"resize_{mode}_64_40", _x(1, 64, 40, 40), [node], factors)


def _reductions(_: Weight) -> Iterator[OpModel]:
    for name, axes, dims in (
        ("last", [1], (1024, 1024)),
        ("first", [0], (1024, 1024)),
        ("middle", [1], (32, 128, 128)),
        ("all", [0, 1], (1024, 1024)),
        ("image", [2, 3], (1, 256, 56, 56)),
    ):
        yield _one(f"reducemean_{name}", "ReduceMean", _x(*dims), {"axes": np.int64(axes)})
    yield _one("reducemax_last", "ReduceMax", _x(1024, 1024), {"axes": np.int64([1])})
    yield _one("argmax_64x32000", "ArgMax", _x(64, 32000), axis=1, keepdims=0)
    k = {"k": np.int64([50])}
    yield _one("topk50_8x32000", "TopK", _x(8, 32000), k, outputs=("y", "i"), axis=1)
    yield _one("cumsum_512x768", "CumSum", _x(512, 768), {"a": np.int64(0)})


def _selections(weight: Weight) -> Iterator[OpModel]:
    """Ops whose results are as large as their inputs' numbers say."""
    for boxes, classes, least in ((100, 1, 0.25), (500, 3, 0.25), (8400, 80, 0.25), (8400, 80, -9)):
        inputs = {"x": ("float32", (1, boxes, 4)), "s": ("float32", (1, classes, boxes))}
        limits = {
            "m": np.int64([100]), "i": np.float32([0.5]), "t": np.float32([least]),
        }  # fmt: skip
        name = f"suppression_{boxes}x{classes}{'' if least > 0 else '_all'}"
        yield _one(name, "NonMaxSuppression", inputs, limits)
    half: list[Node] = [("Relu", ["x"], ["r"], {}), ("NonZero", ["r"], ["y"], {})]
    yield OpModel("nonzero_512x768", _x(512, 768), half)
    chosen: list[Node] = [
        ("Greater", ["z", "l"], ["c"], {}),
        ("Compress", ["x", "c"], ["y"], {"axis": 0}),
    ]
    given: dict[str, tuple[str, Dims]] = {"x": ("float32", (8400, 84)), "z": ("float32", (8400,))}
    yield OpModel("compress_8400x84", given, chosen, {"l": np.float32(0.5)})


def _recurrent(weight: Weight) -> Iterator[OpModel]:
    steps, hidden = 100, 256
    for name, op, gates, directions, batch in (
        ("lstm", "LSTM", 4, 1, 1),
        ("gru", "GRU", 3, 1, 1),
        ("lstm_both_ways", "LSTM", 4, 2, 8),
    ):
        weights = {
            "w": weight(directions, gates * hidden, hidden, fan=hidden),
            "r": weight(directions, gates * hidden, hidden, fan=hidden),
            "b": weight(directions, 2 * gates * hidden, fan=hidden),
        }
        attributes: dict[str, Any] = {"hidden_size": hidden}
        if directions == 2:
            attributes["direction"] = "bidirectional"
        x = _x(steps, batch, hidden)
        yield _one(f"{name}_{steps}x{batch}x{hidden}", op, x, weights, **attributes)


def _quantised(weight: Weight) -> Iterator[OpModel]:
    w = np.clip(weight(768, 3072, fan=1) * 40, -127, 127).astype(np.int8)
    bytes_in: dict[str, tuple[str, Dims]] = {"x": ("uint8", (128, 768))}
    cast: Node = ("Cast", ["i"], ["y"], {"to": 1})
    node: Node = ("MatMulInteger", ["x", "w", "az"], ["i"], {})
    weights = {"w": w, "az": np.uint8(128)}
    yield OpModel("matmulinteger_u8s8_128x768x3072", bytes_in, [node, cast], weights)
    node = ("MatMulInteger", ["x", "w"], ["i"], {})
    signed: dict[str, tuple[str, Dims]] = {"x": ("int8", (128, 768))}
    yield OpModel("matmulinteger_s8s8_128x768x3072", signed, [node, cast], {"w": w})
    nodes: list[Node] = [
        ("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], {}),
        ("MatMulInteger", ["q", "w", "z"], ["i"], {}),
        ("Cast", ["i"], ["f"], {"to": 1}),
        ("Mul", ["s", "ws"], ["t"], {}),
        ("Mul", ["f", "t"], ["y"], {}),
    ]
    dynamic = {"w": w, "ws": np.float32(0.001)}
    yield OpModel("dynamic_quantised_128x768x3072", _x(128, 768), nodes, dynamic)
    scales = {"xs": np.float32(0.02), "xz": np.uint8(128)}
    result = {"ys": np.float32(0.05), "yz": np.uint8(128)}
    weights = {"w": w, "ws": np.float32(0.001), "wz": np.int8(0)}
    yield _one("qlinearmatmul_128x768x3072", "QLinearMatMul", bytes_in, scales | weights | result)
    numbers = {"s": np.float32(0.02), "z": np.uint8(128)}
    yield _one("quantizelinear_128x3072", "QuantizeLinear", _x(128, 3072), numbers)
    taken: list[Node] = [
        ("QuantizeLinear", ["x", "xs", "xz"], ["q"], {}),
        ("DequantizeLinear", ["q", "xs", "xz"], ["d"], {}),
    ]
    given: list[Node] = [
        ("QuantizeLinear", ["m", "ys", "yz"], ["mq"], {}),
        ("DequantizeLinear", ["mq", "ys", "yz"], ["y"], {}),
    ]
    middle: list[Node] = [
        ("DequantizeLinear", ["w", "ws", "wz"], ["wd"], {}),
        ("MatMul", ["d", "wd"], ["m"], {}),
    ]
    constants = scales | weights | result
    name = "qdq_matmul_128x768x3072"
    yield OpModel(name, _x(128, 768), [*taken, *middle, *given], constants)
    kernel = np.clip(weight(64, 64, 3, 3, fan=1) * 40, -127, 127).astype(np.int8)
    per_channel = {"w": kernel, "ws": np.full(64, 0.001, np.float32), "wz": np.zeros(64, np.int8)}
    middle = [
        ("DequantizeLinear", ["w", "ws", "wz"], ["wd"], {"axis": 0}),
        ("Conv", ["d", "wd"], ["c"], {"pads": [1] * 4}),
        ("Relu", ["c"], ["m"], {}),
    ]
    constants = scales | per_channel | {"ys": np.float32(0.05), "yz": np.uint8(0)}
    nodes = [*taken, *middle, *given]
    yield OpModel("qdq_conv3x3_64_56", _x(1, 64, 56, 56), nodes, constants)
    for kind, dims, image, group in (
        ("conv1x1_256_28", (256, 256, 1, 1), (1, 256, 28, 28), 1),
        ("depthwise3x3_144_56", (144, 1, 3, 3), (1, 144, 56, 56), 144),
    ):
        kernel = np.clip(weight(*dims, fan=1) * 40, -127, 127).astype(np.int8)
        node = (
            "ConvInteger",
            ["x", "w", "xz"],
            ["i"],
            {"pads": [dims[2] // 2] * 4, "group": group},
        )
        pixels: dict[str, tuple[str, Dims]] = {"x": ("uint8", image)}
        yield OpModel(
            f"convinteger_{kind}", pixels, [node, cast], {"w": kernel, "xz": np.uint8(99)}
        )
        inputs = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
        node = ("QLinearConv", inputs, ["y"], node[3])
        by_channel = {"ws": np.full(dims[0], 0.001, np.float32), "wz": np.zeros(dims[0], np.int8)}
        own = scales | result | by_channel | {"w": kernel}
        yield OpModel(f"qlinearconv_{kind}", pixels, [node], own)
