"""A drawn case of each family of the CPU's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import int4

from tests.lowering.kernel_families.cases import Case, Draws, Node

Draw = Callable[[Draws], Case]


def pointwise(g: Draws) -> Case:
    """Operators along vectors, with operands that are the same along them or across them."""
    a, b, c = g.dims(3)
    op = g.pick("Exp", "Tanh", "Sigmoid", "Erf", "Relu", "Softplus", "HardSwish", "Abs", "Neg")
    side = g.pick((c,), (b, 1), (1,), (a, 1, 1))
    nodes: list[Node] = [
        (op, ["x"], ["s"], {}),
        (g.pick("Mul", "Add", "Sub"), ["s", "z"], ["y"], {}),
    ]
    given = {"x": ("float32", ("n", b, c)), "z": ("float32", (b, c))}
    if g.pick(True, False):
        given = {"x": ("float32", ("n", b, c))}
        return Case(
            "pointwise", nodes, given, {"z": g.weight(*(1 if d == a else d for d in side))},
            [{"n": a}, {"n": 1}, {"n": 0}], as_onnxruntime=op != "Softplus",
        )  # fmt: skip
    sizes = [{"n": a}, {"n": a + 1}, {"n": 0}]
    return Case("pointwise", nodes, given, sizes=sizes, as_onnxruntime=op != "Softplus")


def softmax(g: Draws) -> Case:
    a, b, c = g.dims(3, 6000)
    axis = g.pick(0, 1, 2)
    node: Node = (g.pick("Softmax", "LogSoftmax"), ["x"], ["y"], {"axis": axis})
    given = {"x": ("float32", ("n", b, "c"))}
    sizes = [{"n": a, "c": c}, {"n": 3, "c": g.extent()}, {"n": 1, "c": 1}]
    return Case("softmax", [node], given, sizes=sizes)


def layer_norm(g: Draws) -> Case:
    a, c = g.extent(), g.extent(least=2)
    weights = {"s": g.weight(c), "b": g.weight(c)}
    node: Node = ("LayerNormalization", ["x", "s", "b"], ["y"], {"axis": -1})
    if g.pick(True, False):
        weights = {"s": g.weight(c)}
        node = ("RMSNormalization", ["x", "s"], ["y"], {"axis": -1})
    given = {"x": ("float32", ("n", c))}
    sizes = [{"n": a}, {"n": 1}, {"n": 0}]
    return Case("norm of rows", [node], given, weights, sizes, limit=2e-5)


def group_norm(g: Draws) -> Case:
    groups, each = g.pick(1, 2, 4), g.pick(1, 2, 3)
    c = groups * each
    h, w = g.dims(2, 1000, 2)
    weights = {"s": g.weight(c), "b": g.weight(c)}
    node: Node = ("GroupNormalization", ["x", "s", "b"], ["y"], {"num_groups": groups})
    if g.pick(True, False):
        node = ("InstanceNormalization", ["x", "s", "b"], ["y"], {})
    given = {"x": ("float32", ("n", c, "h", "w"))}
    sizes = [{"n": 2, "h": h, "w": w}, {"n": 1, "h": w, "w": h + 1}]
    return Case("norm of images", [node], given, weights, sizes, limit=2e-5)


def convolution(g: Draws) -> Case:
    """Dense or in groups; of one axis, two or three."""
    axes = g.pick(1, 2, 2, 2, 3)
    group = g.pick(1, 1, 1, 2, 4)
    ci, co = (group * g.pick(1, 2, 3, 4, 5, 8, 17) for _ in range(2))
    return _convolution(g, "convolution", axes, group, ci, co)


def depthwise(g: Draws) -> Case:
    channels = g.pick(1, 3, 8, 9, 16, 24, 33)
    return _convolution(g, "depthwise", 2, channels, channels, channels * g.pick(1, 1, 2))


def depthwise_planes(g: Draws) -> Case:
    """Rows of a vector and more; with fixed dims the planes are read and written as they are."""
    channels = g.pick(2, 3, 9)
    return _convolution(
        g, "depthwise of planes", 2, channels, channels, channels * g.pick(1, 1, 2), larger=40
    )


def _convolution(
    g: Draws, family: str, axes: int, group: int, ci: int, co: int, larger: int = 0
) -> Case:
    kernel = [g.pick(1, 1, 2, 3, 3, 5) for _ in range(axes)]
    dilation = [g.pick(1, 1, 2) for _ in range(axes)]
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    image = [s + g.pick(0, 1, 4, 7, 12) + larger for s in span]
    pads = [g.pick(0, 1, k // 2) for k in kernel * 2]
    attributes = {
        "pads": pads,
        "strides": [g.pick(1, 1, 2, 3) for _ in range(axes)],
        "dilations": dilation,
        "group": group,
    }
    weights = {"w": g.weight(co, ci // group, *kernel), "b": g.weight(co)}
    nodes: list[Node] = [("Conv", ["x", "w", "b"], ["c"], attributes), ("Relu", ["c"], ["y"], {})]
    names = [f"i{n}" for n in range(axes)]
    given = {"x": ("float32", ("n", ci, *names))}
    sizes = [
        {"n": n, **{k: size + more for k, size in zip(names, image, strict=True)}}
        for n, more in ((2, 0), (1, 5))
    ]
    # an infinity times a border of zeros is in the windows of onnxruntime's columns alone
    return Case(family, nodes, given, weights, sizes, as_onnxruntime=False)


def transposed_convolution(g: Draws) -> Case:
    ci, co = g.pick(1, 3, 8, 9), g.pick(1, 2, 5, 8)
    stride, k = g.pick(1, 2, 3), g.pick(1, 2, 3, 4)
    attributes = {"strides": [stride, stride], "pads": [g.pick(0, k // 2)] * 4}
    node: Node = ("ConvTranspose", ["x", "w"], ["y"], attributes)
    h, w = g.pick(3, 4, 7, 9), g.pick(3, 5, 8, 17)
    given = {"x": ("float32", ("n", ci, h, w))}
    weights = {"w": g.weight(ci, co, k, k)}
    sizes = [{"n": 2}, {"n": 1}]
    return Case("transposed convolution", [node], given, weights, sizes, special=False)


def pooling(g: Draws) -> Case:
    k, stride, dilation = g.pick(1, 2, 3, 5), g.pick(1, 1, 2, 3), g.pick(1, 1, 2)
    span = (k - 1) * dilation + 1
    h, w = span + g.pick(0, 1, 5, 9), span + g.pick(0, 2, 7, 30)
    attributes = {"kernel_shape": [k, k], "strides": [stride, stride], "pads": [k // 2] * 4}
    attributes |= {"dilations": [dilation, dilation], "ceil_mode": g.pick(0, 1)}
    op = g.pick("MaxPool", "AveragePool")
    if op == "AveragePool":
        attributes["count_include_pad"] = g.pick(0, 1)
    c = g.pick(1, 3, 8, 17)
    given = {"x": ("float32", ("n", c, "h", "w"))}
    sizes = [{"n": 2, "h": h, "w": w}, {"n": 1, "h": h + 3, "w": w + 1}]
    node: Node = (op, ["x"], ["y"], attributes)
    return Case("pooling", [node], given, sizes=sizes, as_onnxruntime=op == "AveragePool")


def dot(g: Draws) -> Case:
    """With constant weights, any number of rows; with a bias and an activation behind it."""
    k, n, m = g.extent(), g.extent(), g.extent()
    weights = {"w": g.weight(k, n), "b": g.weight(n)}
    nodes: list[Node] = [
        ("MatMul", ["x", "w"], ["m"], {}),
        ("Add", ["m", "b"], ["a"], {}),
        (g.pick("Relu", "Gelu", "Tanh"), ["a"], ["y"], {}),
    ]
    given = {"x": ("float32", ("p", "m", k))}
    sizes = [{"p": 2, "m": m}, {"p": 1, "m": 1}, {"p": 3, "m": 0}]
    return Case("dot", nodes, given, weights, sizes, special=k < 40)


def product(g: Draws) -> Case:
    """Both operands computed, the second one turned or not."""
    m, k, n, p = g.extent(), g.extent(), g.extent(), g.pick(1, 2, 3)
    given = {"x": ("float32", (p, "m", k)), "z": ("float32", (p, k, "n"))}
    nodes: list[Node] = [("MatMul", ["x", "z"], ["y"], {})]
    if g.pick(True, False):
        given["z"] = ("float32", (p, "n", k))
        turned: Node = ("Transpose", ["z"], ["t"], {"perm": [0, 2, 1]})
        nodes = [turned, ("MatMul", ["x", "t"], ["y"], {})]
    sizes = [{"m": m, "n": n}, {"m": n, "n": m}, {"m": 1, "n": 1}]
    return Case("product of two", nodes, given, sizes=sizes)


def attention(g: Draws) -> Case:
    heads, size, queries, keys = g.pick(1, 2, 3), g.pick(8, 16, 20), g.extent(33), g.extent(65)
    given = {
        "q": ("float32", ("n", heads, "s", size)),
        "k": ("float32", ("n", heads, "t", size)),
        "v": ("float32", ("n", heads, "t", size)),
    }
    sizes = [{"n": 2, "s": queries, "t": keys}, {"n": 1, "s": 1, "t": keys}]
    node: Node = ("Attention", ["q", "k", "v"], ["y"], {})
    return Case("attention", [node], given, sizes=sizes, special=False)


def shared_heads(g: Draws) -> Case:
    """One query, whose heads share keys and values."""
    shared, size, keys = g.pick(1, 2), g.pick(16, 32, 48), g.extent(65)
    given = {
        "q": ("float32", ("n", 6 * shared, 1, size)),
        "k": ("float32", ("n", shared, "t", size)),
        "v": ("float32", ("n", shared, "t", 16)),
    }
    sizes = [{"n": 2, "t": keys}, {"n": 1, "t": 1}, {"n": 1, "t": 530}]
    node: Node = ("Attention", ["q", "k", "v"], ["y"], {})
    return Case("attention of shared heads", [node], given, sizes=sizes, special=False)


def blocks_of_heads(g: Draws) -> Case:
    """Few queries and many, whose heads share keys and values."""
    shared, times, size, keys = g.pick(1, 2), g.pick(2, 3, 4, 5), g.pick(16, 32), g.extent(65)
    given = {
        "q": ("float32", ("n", times * shared, "s", size)),
        "k": ("float32", ("n", shared, "t", size)),
        "v": ("float32", ("n", shared, "t", 16)),
    }
    sizes = [{"n": 2, "s": g.extent(33), "t": keys}, {"n": 1, "s": 1, "t": 1},
             {"n": 1, "s": 17, "t": 230}]  # fmt: skip
    node: Node = ("Attention", ["q", "k", "v"], ["y"], {})
    return Case("attention of blocks of heads", [node], given, sizes=sizes, special=False)


def transpose(g: Draws) -> Case:
    rank = g.pick(2, 3, 4, 5)
    dims = g.dims(rank, 6000)
    order = list(range(rank))
    g.random.shuffle(order)
    node: Node = ("Transpose", ["x"], ["y"], {"perm": order})
    dtype = g.pick("float32", "float32", "uint8", "int64", "int32")
    given = {"x": (dtype, ("n", *dims[1:]))}
    sizes = [{"n": dims[0]}, {"n": dims[0] + 1}, {"n": 0}]
    return Case("transpose", [node], given, sizes=sizes)


def concat(g: Draws) -> Case:
    rank, axis = 3, g.pick(0, 1, 2)
    dims = g.dims(rank)
    given, names = {}, ["x", "z", "u"]
    for name in names:
        own: list[int | str] = list(dims)
        own[axis] = g.extent(9)
        own[0] = "n" if axis else own[0]
        given[name] = ("float32", own)
    node: Node = ("Concat", names, ["y"], {"axis": axis})
    sizes = [{"n": dims[0]}, {"n": 1}, {"n": 0}]
    return Case("concat", [node], given, sizes=sizes)


def split(g: Draws) -> Case:
    a, c = g.extent(), g.extent()
    parts = [g.extent(16) for _ in range(3)]
    node: Node = ("Split", ["x", "p"], ["y", "y2", "y3"], {"axis": 1})
    given = {"x": ("float32", ("n", sum(parts), c))}
    sizes = [{"n": a}, {"n": 1}, {"n": 0}]
    outputs = ("y", "y2", "y3")
    return Case("split", [node], given, {"p": np.int64(parts)}, sizes, outputs)


def slices(g: Draws) -> Case:
    a, b, c = g.dims(3)
    step = g.pick(1, 2, 3, -1, -2)
    start, end = (0, c) if step > 0 else (c - 1, -c - 1)
    weights = {"s": np.int64([start]), "e": np.int64([end]), "a": np.int64([2])}
    weights["t"] = np.int64([step])
    node: Node = ("Slice", ["x", "s", "e", "a", "t"], ["y"], {})
    sizes = [{"n": a}, {"n": 1}, {"n": 0}]
    return Case("slice", [node], {"x": ("float32", ("n", b, c))}, weights, sizes)


def pad(g: Draws) -> Case:
    a, b, c = g.dims(3, least=2)
    mode = g.pick("constant", "edge", "reflect")
    pads = np.int64([0, g.pick(0, 1), g.pick(0, 1), 0, g.pick(0, 1), 1])
    node: Node = ("Pad", ["x", "p"], ["y"], {"mode": mode})
    sizes = [{"n": a}, {"n": 1}]
    return Case("pad", [node], {"x": ("float32", ("n", b, c))}, {"p": pads}, sizes)


def gather(g: Draws) -> Case:
    """Gather of a weight, by a row or a table of indices, or of a computed dynamic tensor."""
    a, c, axis = g.extent(), g.extent(), g.pick(0, 1)
    node: Node = ("Gather", ["w", "i"], ["y"], {"axis": axis})
    weights = {"w": g.weight(a, c)}
    sizes = [{"n": g.extent(), "a": a, "c": c}, {"n": 1, "a": a, "c": 1}, {"n": 0, "a": a, "c": 9}]
    given = {"i": ("int64", g.pick(("n",), (3, "n")))}
    below = (a, c)[axis]
    if g.pick(True, False):
        dtype = g.pick("float32", "uint8", "int64")
        given |= {"w": (dtype, (2, "a", "c"))}
        node = ("Gather", ["w", "i"], ["y"], {"axis": 1})
        weights, below = {}, a
    return Case("gather", [node], given, weights, sizes, below=below)


def scatter(g: Draws) -> Case:
    a, c = g.extent(least=2), g.extent()
    at = g.rng.permutation(a)[: g.pick(1, a // 2)].astype(np.int64)[:, None]
    node: Node = ("ScatterND", ["x", "i", "u"], ["y"], {})
    given = {"x": ("float32", (a, "n")), "u": ("float32", (len(at), "n"))}
    sizes = [{"n": c}, {"n": 1}]
    return Case("scatter", [node], given, {"i": at}, sizes)


def resize(g: Draws) -> Case:
    c, h, w = g.pick(1, 3, 8), g.extent(17), g.extent(33)
    mode = g.pick("nearest", "linear")
    attributes = {"mode": mode}
    if mode == "nearest":
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    node: Node = ("Resize", ["x", "", "s"], ["y"], attributes)
    scale = float(g.pick(2, 2, 3, 4))
    weights = {"s": np.float32([1, 1, scale, scale])}
    given = {"x": ("float32", ("n", c, h, w))}
    sizes = [{"n": 2}, {"n": 1}]
    return Case("resize", [node], given, weights, sizes, special=False)


def reduction(g: Draws) -> Case:
    dims = g.dims(3, 6000)
    op = g.pick("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare")
    axes = np.int64(g.pick([0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]))
    node: Node = (op, ["x", "a"], ["y"], {"keepdims": g.pick(0, 1)})
    sizes = [{"n": dims[0]}, {"n": 1}]
    given = {"x": ("float32", ("n", *dims[1:]))}
    plain = op not in ("ReduceMax", "ReduceMin")
    # sums of many numbers of either sign are small beside what they are made of
    return Case(
        "reduction", [node], given, {"a": axes}, sizes, as_onnxruntime=plain, limit=1e-4
    )  # fmt: skip


def extreme(g: Draws) -> Case:
    dims = g.dims(3)
    node: Node = (g.pick("ArgMax", "ArgMin"), ["x"], ["y"], {"axis": g.pick(0, 1, 2)})
    given = {"x": ("float32", ("n", *dims[1:]))}
    sizes = [{"n": dims[0]}, {"n": dims[0] + 1}]
    return Case("place of an extreme", [node], given, sizes=sizes, special=False)


def topk(g: Draws) -> Case:
    a, c = g.extent(), g.extent()
    node: Node = ("TopK", ["x", "k"], ["y", "i"], {"axis": 1, "largest": g.pick(0, 1)})
    weights = {"k": np.int64([g.random.randint(1, c)])}
    given = {"x": ("float32", ("n", c))}
    sizes = [{"n": a}, {"n": 1}]
    return Case("topk", [node], given, weights, sizes, ("y", "i"), special=False)


def running_sum(g: Draws) -> Case:
    dims = g.dims(3)
    node: Node = ("CumSum", ["x", "a"], ["y"], {"exclusive": g.pick(0, 1), "reverse": g.pick(0, 1)})
    given = {"x": ("float32", ("n", *dims[1:]))}
    sizes = [{"n": dims[0]}, {"n": 1}]
    weights = {"a": np.array(g.pick(0, 1, 2))}
    return Case("running sum", [node], given, weights, sizes, limit=1e-4)


def recurrent(g: Draws) -> Case:
    op, gates = g.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    hidden, size, directions = g.pick(1, 5, 8, 17), g.pick(1, 3, 8), g.pick(1, 2)
    weights = {
        "w": g.weight(directions, gates * hidden, size, scale=0.3),
        "r": g.weight(directions, gates * hidden, hidden, scale=0.3),
        "b": g.weight(directions, 2 * gates * hidden, scale=0.3),
    }
    attributes = {
        "hidden_size": hidden,
        "direction": "bidirectional" if directions == 2 else "forward",
    }
    node: Node = (op, ["x", "w", "r", "b"], ["y"], attributes)
    given = {"x": ("float32", ("t", "n", size))}
    sizes = [{"t": 3, "n": g.pick(1, 2, 5)}, {"t": 1, "n": 1}]
    return Case("recurrent", [node], given, weights, sizes, special=False)


def places(g: Draws) -> Case:
    """Elements that are not 0, of which there are many among integers."""
    rank, dtype = g.pick(1, 2, 3), g.pick("float32", "uint8", "int64")
    dims = g.dims(rank, 20000)
    node: Node = ("NonZero", ["x"], ["y"], {})
    sizes = [{"n": dims[0]}, {"n": dims[0] + 1}, {"n": 0}]
    return Case("places", [node], {"x": (dtype, ("n", *dims[1:]))}, sizes=sizes, below=2, zeros=0.5)


def suppression(g: Draws) -> Case:
    """Boxes of random corners; NaN among scores that no threshold drops has no order there."""
    boxes, classes, limited = g.extent(), g.pick(1, 2, 3, 17), g.pick(True, False)
    given = {"x": ("float32", ("b", "n", 4)), "s": ("float32", ("b", "c", "n"))}
    weights = {"m": np.int64([g.pick(1, 3, 100)]), "i": np.float32([g.pick(0.0, 0.2, 0.6)])}
    if limited:
        weights["t"] = np.float32([g.pick(-0.5, 0.0, 0.7)])
    attributes = {"center_point_box": g.pick(0, 1)}
    node: Node = ("NonMaxSuppression", [*given, *weights], ["y"], attributes)
    sizes = [
        {"b": 2, "c": classes, "n": boxes}, {"b": 1, "c": 1, "n": 1}, {"b": 3, "c": 2, "n": 0},
    ]  # fmt: skip
    return Case("suppression", [node], given, weights, sizes, as_onnxruntime=limited)


def byte_product(g: Draws) -> Case:
    k, n, m = g.extent(), g.extent(), g.extent()
    dtype, zero = g.pick(("uint8", np.uint8(120)), ("int8", np.int8(3)))
    nodes: list[Node] = [
        ("MatMulInteger", ["x", "w", "z"], ["i"], {}),
        ("Cast", ["i"], ["y"], {"to": 1}),
    ]
    given = {"x": (dtype, ("m", k))}
    sizes = [{"m": m}, {"m": 1}, {"m": 0}]
    weights = {"w": g.bytes(k, n), "z": np.asarray(zero)}
    return Case("product of bytes", nodes, given, weights, sizes, below=127)


def byte_product_of_two(g: Draws) -> Case:
    """Both operands computed, as in attention; the depth may be dynamic, too."""
    m, k, n, p = g.extent(), g.extent(), g.extent(), g.pick(1, 2, 3)
    dtype, zero = g.pick(("uint8", np.uint8(120)), ("int8", np.int8(3)))
    nodes: list[Node] = [
        ("MatMulInteger", ["x", "w", "z"], ["i"], {}),
        ("Cast", ["i"], ["y"], {"to": 1}),
    ]
    depth = g.pick(k, "k")
    given = {"x": (dtype, ("p", "m", depth)), "w": ("int8", ("p", depth, "n"))}
    sizes = [{"p": p, "m": m, "n": n, "k": k}, {"p": 1, "m": 1, "n": 1, "k": k}]
    return Case("bytes by bytes", nodes, given, {"z": np.asarray(zero)}, sizes, below=127)


def byte_convolution(g: Draws) -> Case:
    group = g.pick(1, 1, 3)
    ci, co, k = group * g.pick(1, 3, 4, 9, 16), group * g.pick(1, 5, 8, 17), g.pick(1, 3)
    weights = {
        "xs": np.float32(0.02), "xz": np.uint8(99), "w": g.bytes(co, ci // group, k, k),
        "ws": np.full(co, 0.01, np.float32), "wz": np.zeros(co, np.int8),
        "ys": np.float32(0.5), "yz": np.uint8(128),
    }  # fmt: skip
    attributes = {"pads": [k // 2] * 4, "strides": [g.pick(1, 2)] * 2, "group": group}
    node: Node = ("QLinearConv", ["x", *weights], ["y"], attributes)
    given = {"x": ("uint8", ("n", ci, "h", "w"))}
    h, w = g.pick(3, 5, 9), g.pick(3, 8, 18)
    sizes = [{"n": 2, "h": h, "w": w}, {"n": 1, "h": h + 2, "w": w + 1}]
    return Case("convolution of bytes", [node], given, weights, sizes, steps=1, below=127)


def quantising(g: Draws) -> Case:
    a, c = g.extent(), g.extent()
    weights = {"s": np.abs(g.weight(c)) + np.float32(0.05), "z": np.full(c, 100, np.uint8)}
    nodes: list[Node] = [
        ("QuantizeLinear", ["x", "s", "z"], ["y"], {"axis": 1}),
        ("DequantizeLinear", ["y", "s", "z"], ["d"], {"axis": 1}),
    ]
    given = {"x": ("float32", ("n", c))}
    sizes = [{"n": a}, {"n": 1}, {"n": 0}]
    return Case("quantising", nodes[:1], given, weights, sizes, special=False, steps=1)


def few_bits(g: Draws) -> Case:
    """Weights of 4 and 8 bits in blocks: rows few and many, in digits and in tile registers."""
    k, n = 32 * g.pick(1, 3, 16, 17), g.pick(g.extent(), 515, 520)
    bits: Any = g.pick(int4, np.int8)
    most = 7 if bits is int4 else 127
    codes = g.rng.integers(-most, most + 1, (k, n)).astype(bits)
    weights = {"w": codes, "s": np.abs(g.weight(k // 32, n)) / np.float32(most)}
    nodes: list[Node] = [
        ("DequantizeLinear", ["w", "s"], ["d"], {"axis": 0, "block_size": 32}),
        ("MatMul", ["x", "d"], ["m"], {}),
        (g.pick("Relu", "Tanh"), ["m"], ["y"], {}),
    ]
    many = g.pick(9, 20, 33, 65)
    sizes = [{"m": many}, {"m": 1}, {"m": g.pick(2, 3, 8)}, {"m": 0}]
    given = {"x": ("float32", ("m", k))}
    # numbers of many rows have 16 bits
    return Case("few bits", nodes, given, weights, sizes, special=False, limit=1e-4,
                in_onnxruntime=False)  # fmt: skip


FAMILIES: tuple[Draw, ...] = (
    pointwise, softmax, layer_norm, group_norm, convolution, depthwise, transposed_convolution,
    pooling, dot, product, attention, transpose, concat, split, slices, pad, gather, scatter,
    resize, reduction, extreme, topk, running_sum, recurrent, byte_product, byte_convolution,
    quantising, places, suppression, byte_product_of_two, shared_heads, few_bits,
    depthwise_planes, blocks_of_heads,
)  # fmt: skip


def drawn(seed: int, each: int = 1) -> list[Case]:
    """Draw some cases of each family."""
    return [
        draw(Draws(1000 * seed + 31 * i + n))
        for i, draw in enumerate(FAMILIES)
        for n in range(each)
    ]
