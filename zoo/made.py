"""Small ONNX models of each family, made with onnx.helper in the forms that exporters write.

Each function returns a ModelProto with random weights from a fixed seed. Open dimensions are given
by name, so that one function makes the static and the dynamic model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

Dims = Sequence[int | str]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    """A graph under construction: every method adds what it names and returns its value's name."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, dims: Dims, kind: int = FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(dims)))
        return name

    def output(self, value: str, name: str, dims: Dims, kind: int = FLOAT) -> None:
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(dims)))

    def const(self, array: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def weight(self, *dims: int, fan_in: int | None = None) -> str:
        scale = math.sqrt(2 / (fan_in or dims[0]))
        return self.const(self.rng.standard_normal(dims) * scale)

    def vector(self, size: int, low: float = -0.2, high: float = 0.2) -> str:
        return self.const(self.rng.uniform(low, high, size))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(kind, list(inputs), names, f"{kind}_{len(self.nodes)}")
        node.attribute.extend(
            helper.make_attribute(key, value)
            for key, value in sorted(attributes.items())
            if value is not None
        )
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def model(self, opset: int = 18) -> ModelProto:
        graph = helper.make_graph(self.nodes, "made", self.inputs, self.outputs, self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8
        )
        onnx.checker.check_model(model)
        return model

    # ---- pieces shared by the models ---------------------------------------------------------

    def conv_bn(self, x: str, cin: int, cout: int, k: int, stride: int = 1, group: int = 1) -> str:
        pad = k // 2
        w = self.weight(cout, cin // group, k, k, fan_in=cin // group * k * k)
        y = self.op(
            "Conv",
            x,
            w,
            kernel_shape=[k, k],
            strides=[stride, stride],
            pads=[pad] * 4,
            dilations=[1, 1],
            group=group,
        )
        norm = [self.vector(cout, 0.5, 1.5), self.vector(cout), self.vector(cout)]
        return self.op("BatchNormalization", y, *norm, self.vector(cout, 0.5, 1.5), epsilon=1e-5)

    def linear(self, x: str, cin: int, cout: int) -> str:
        y = self.op("MatMul", x, self.weight(cin, cout, fan_in=2 * cin))
        return self.op("Add", self.vector(cout), y)

    def heads(self, x: str, dims: Sequence[int], perm: Sequence[int] = (0, 2, 1, 3)) -> str:
        return self.op("Transpose", self.op("Reshape", x, self.ints(*dims)), perm=list(perm))

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.const(math.sqrt(2))))
        y = self.op("Mul", x, self.op("Add", erf, self.const(1.0)))
        return self.op("Mul", y, self.const(0.5))

    def rms_norm(self, x: str, width: int) -> str:
        square = self.op("Pow", x, self.const(2.0))
        mean = self.op("ReduceMean", square, self.ints(-1), keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.const(1e-6)))
        y = self.op("Mul", x, self.op("Reciprocal", root))
        return self.op("Mul", self.vector(width, 0.5, 1.5), y)

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))


def conv_net(batch: int | str = 2) -> ModelProto:
    """Stem, max pool, a strided residual block, a depthwise block, squeeze-excite, head."""
    g = Graph(1)
    x = g.input("image", [batch, 3, 33, 33])
    y = g.op("Relu", g.conv_bn(x, 3, 16, 7, 2))
    y = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=0)
    body = g.op("Relu", g.conv_bn(y, 16, 8, 1))
    body = g.op("Relu", g.conv_bn(body, 8, 8, 3, 2))
    y = g.op("Relu", g.op("Add", g.conv_bn(body, 8, 32, 1), g.conv_bn(y, 16, 32, 1, 2)))
    deep = g.op("Clip", g.conv_bn(y, 32, 32, 3, 1, group=32), g.const(0.0), g.const(6.0))
    gate = g.op("GlobalAveragePool", deep)
    for cin, cout, act in ((32, 8, "Relu"), (8, 32, "Sigmoid")):
        w = g.weight(cout, cin, 1, 1, fan_in=cin)
        gate = g.op(act, g.op("Conv", gate, w, g.vector(cout), kernel_shape=[1, 1]))
    y = g.op("Add", y, g.conv_bn(g.op("Mul", deep, gate), 32, 32, 1))
    y = g.op("AveragePool", y, kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
    y = g.op("Flatten", g.op("GlobalAveragePool", y), axis=1)
    y = g.op("Gemm", y, g.weight(10, 32, fan_in=32), g.vector(10), transB=1, alpha=1.0, beta=1.0)
    g.output(y, "logits", [batch, 10])
    return g.model()


def transformer(batch: int | str = 2, length: int | str = 12) -> ModelProto:
    """Embedding, layer norm, masked attention with padding mask, GELU MLP: the BERT form."""
    g = Graph(2)
    width, heads = 32, 4
    ids = g.input("input_ids", [batch, length], INT64)
    mask = g.input("attention_mask", [batch, length], INT64)
    x = g.op("Gather", g.const(g.rng.standard_normal((50, width))), ids)
    position = g.const(0.3 * g.rng.standard_normal((1, 64, width)))
    size = g.op("Shape", ids, start=1, end=2)
    x = g.op("Add", x, g.op("Slice", position, g.ints(0), size, g.ints(1)))
    x = layer_norm(g, x, width)
    open_mask = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
    bias = g.op("Mul", g.op("Sub", g.const(1.0), open_mask), g.const(-1e4))
    q, k, v = (g.linear(x, width, width) for _ in range(3))
    q, v = g.heads(q, (0, -1, heads, 8)), g.heads(v, (0, -1, heads, 8))
    k = g.heads(k, (0, -1, heads, 8), (0, 2, 3, 1))
    scores = g.op("Div", g.op("MatMul", q, k), g.const(math.sqrt(8)))
    weights = g.op("Softmax", g.op("Add", scores, bias), axis=-1)
    y = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    y = g.linear(g.op("Reshape", y, g.ints(0, -1, width)), width, width)
    x = layer_norm(g, g.op("Add", y, x), width)
    y = g.linear(g.gelu(g.linear(x, width, 64)), 64, width)
    x = layer_norm(g, g.op("Add", y, x), width)
    g.output(x, "hidden", [batch, length, width])
    return g.model()


def layer_norm(g: Graph, x: str, width: int) -> str:
    scale, bias = g.vector(width, 0.5, 1.5), g.vector(width)
    return g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)


def rope(g: Graph, x: str, cos: str, sin: str, half: int) -> str:
    """x * cos + rotate_half(x) * sin over the last axis."""
    low = g.op("Slice", x, g.ints(0), g.ints(half), g.ints(3), g.ints(1))
    high = g.op("Slice", x, g.ints(half), g.ints(2**63 - 1), g.ints(3), g.ints(1))
    turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
    return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))


def repeat_heads(g: Graph, x: str, groups: int, size: int) -> str:
    """(batch, kv heads, length, size) -> (batch, heads, length, size), through Expand."""
    batch, length = g.op("Shape", x, start=0, end=1), g.op("Shape", x, start=2, end=3)
    wide = g.op("Concat", batch, g.ints(2), g.ints(groups), length, g.ints(size), axis=0)
    flat = g.op("Concat", batch, g.ints(2 * groups), length, g.ints(size), axis=0)
    return g.op("Reshape", g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), wide), flat)


def decoder(batch: int | str = 1, past: int | str = 7) -> ModelProto:
    """RMSNorm, RoPE from position ids, grouped-query attention over a key/value cache, SwiGLU: one
    step of the Llama form. Outputs: hidden state, present key, present value."""
    g = Graph(3)
    width, heads, kv_heads, size = 32, 4, 2, 8
    hidden = g.input("hidden", [batch, 1, width])
    position = g.input("position_ids", [batch, 1], INT64)
    past_key = g.input("past_key", [batch, kv_heads, past, size])
    past_value = g.input("past_value", [batch, kv_heads, past, size])
    frequency = g.const((10000.0 ** -(np.arange(0, size, 2) / size)).reshape(1, 1, size // 2))
    angle = g.op("Unsqueeze", g.op("Cast", position, to=FLOAT), g.ints(2))
    angle = g.op("Mul", angle, frequency)
    angle = g.op("Unsqueeze", g.op("Concat", angle, angle, axis=-1), g.ints(1))
    cos, sin = g.op("Cos", angle), g.op("Sin", angle)
    x = g.rms_norm(hidden, width)
    q = g.heads(g.op("MatMul", x, g.weight(width, width)), (0, -1, heads, size))
    k = g.heads(g.op("MatMul", x, g.weight(width, kv_heads * size)), (0, -1, kv_heads, size))
    v = g.heads(g.op("MatMul", x, g.weight(width, kv_heads * size)), (0, -1, kv_heads, size))
    q, k = rope(g, q, cos, sin, size // 2), rope(g, k, cos, sin, size // 2)
    k = g.op("Concat", past_key, k, axis=2)
    v = g.op("Concat", past_value, v, axis=2)
    keys, values = (repeat_heads(g, part, heads // kv_heads, size) for part in (k, v))
    scores = g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
    weights = g.op("Softmax", g.op("Mul", scores, g.const(size**-0.5)), axis=-1)
    y = g.op("Transpose", g.op("MatMul", weights, values), perm=[0, 2, 1, 3])
    y = g.op("MatMul", g.op("Reshape", y, g.ints(0, 1, width)), g.weight(width, width))
    x = g.op("Add", hidden, y)
    y = g.rms_norm(x, width)
    up = g.op("MatMul", y, g.weight(width, 64))
    y = g.op("Mul", g.silu(g.op("MatMul", y, g.weight(width, 64))), up)
    x = g.op("Add", x, g.op("MatMul", y, g.weight(64, width)))
    g.output(x, "hidden_out", [batch, 1, width])
    after = past + 1 if isinstance(past, int) else "present"
    g.output(k, "present_key", [batch, kv_heads, after, size])
    g.output(v, "present_value", [batch, kv_heads, after, size])
    return g.model()


def prefill(batch: int | str = 1, length: int | str = 9) -> ModelProto:
    """Causal attention whose mask is made in the graph from Range: the form of GPT-2."""
    g = Graph(4)
    width, heads = 32, 4
    x = g.input("hidden", [batch, length, width])
    size = g.op("Squeeze", g.op("Shape", x, start=1, end=2), g.ints(0))
    steps = g.op("Range", g.const(0, np.int64), size, g.const(1, np.int64))
    rows, columns = g.op("Unsqueeze", steps, g.ints(1)), g.op("Unsqueeze", steps, g.ints(0))
    seen = g.op("LessOrEqual", columns, rows)
    bias = g.op("Where", seen, g.const(0.0), g.const(-3.4028235e38))
    y = g.linear(layer_norm(g, x, width), width, 3 * width)
    q, k, v = g.op("Split", y, g.ints(width, width, width), outputs=3, axis=2)
    q, v = g.heads(q, (0, -1, heads, 8)), g.heads(v, (0, -1, heads, 8))
    scores = g.op("MatMul", q, g.heads(k, (0, -1, heads, 8), (0, 2, 3, 1)))
    scores = g.op("Add", g.op("Mul", scores, g.const(8**-0.5)), bias)
    y = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    y = g.linear(g.op("Reshape", y, g.ints(0, -1, width)), width, width)
    g.output(g.op("Add", x, y), "out", [batch, length, width])
    return g.model()


def mlp(batch: int | str = "batch") -> ModelProto:
    """Gemm, Tanh, Gemm, LeakyRelu, LogSoftmax and an ArgMax beside it."""
    g = Graph(5)
    x = g.input("x", [batch, 20])
    y = g.op("Tanh", g.op("Gemm", x, g.weight(20, 16), g.vector(16)))
    y = g.op("Gemm", y, g.weight(16, 12), g.vector(12), alpha=0.5, beta=2.0)
    y = g.op("LeakyRelu", y, alpha=0.1)
    g.output(g.op("LogSoftmax", y, axis=-1), "scores", [batch, 12])
    g.output(g.op("ArgMax", y, axis=-1, keepdims=0), "best", [batch], INT64)
    return g.model()


def shape_arithmetic(batch: int | str = 2, length: int | str = 6) -> ModelProto:
    """Sizes taken apart and put together as the TorchScript exporter does: Shape, Gather with a
    rank-0 index, arithmetic, Unsqueeze, Concat, then ConstantOfShape, Expand and Reshape."""
    g = Graph(6)
    x = g.input("x", [batch, length, 12])

    def size(axis: int) -> str:
        return g.op("Gather", g.op("Shape", x), g.const(axis, np.int64), axis=0)

    def dims(*parts: str) -> str:
        return g.op("Concat", *(g.op("Unsqueeze", p, g.ints(0)) for p in parts), axis=0)

    rows = g.op("Mul", size(0), size(1))
    flat = g.op("Reshape", x, dims(rows, g.const(12, np.int64)))
    half = g.op("Div", size(2), g.const(2, np.int64))
    split = g.op("Reshape", flat, dims(size(0), size(1), g.const(2, np.int64), half))
    token = g.op("Expand", g.weight(1, 1, 12), dims(size(0), g.const(1, np.int64), size(2)))
    ones = g.op("ConstantOfShape", dims(size(0), size(1), g.const(1, np.int64)))
    joined = g.op("Concat", token, g.op("Add", x, ones), axis=1)
    head = g.op(
        "Slice", x, g.ints(0), g.ints(1), g.ints(1)
    )  # reshape of a dynamic dim to a static one
    g.output(g.op("Tanh", split), "split", [batch, length, 2, 6])
    after = length + 1 if isinstance(length, int) else "longer"
    g.output(joined, "joined", [batch, after, 12])
    g.output(head, "head", [batch, 1, 12])
    return g.model()
