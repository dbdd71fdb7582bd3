"""Held-out models of images, volumes and points."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from benchmarks.emulator.held_out.net import INT64, Net, held


def squeeze(g: Net, x: str, width: int, inner: int) -> str:
    """Gate channels by their means."""
    gate = g.op("ReduceMean", x, g.ints(2, 3), keepdims=1)
    gate = g.op("Relu", g.conv(gate, width, inner, 1, 1))
    gate = g.op("HardSigmoid", g.conv(gate, inner, width, 1, 1), alpha=1 / 6, beta=0.5)
    return g.op("Mul", x, gate)


@held({"b": 3}, b=1)
def gated_mobile(g: Net) -> None:
    """Inverted residuals of 3x3 and 5x5 with gates of channels and hard swish."""
    x = g.floats("image", "b", 3, 35, 29)
    x = g.act(g.conv(x, 3, 16, 3, 3, strides=[2, 2]), "HardSwish")
    into = 16
    for wide, out, k, stride in ((40, 24, 3, 2), (64, 24, 5, 1), (72, 40, 5, 2)):
        y = g.act(g.conv(x, into, wide, 1, 1), "HardSwish")
        y = g.act(g.conv(y, wide, wide, k, k, group=wide, strides=[stride] * 2), "HardSwish")
        y = g.conv(squeeze(g, y, wide, 8), wide, out, 1, 1)
        x, into = g.op("Add", x, y) if stride == 1 and into == out else y, out
    y = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.result(g.op("Gemm", y, g.weight(into, 10), g.vector(10)), 2)


@held({"b": 2}, b=2)
def shuffled_channels(g: Net) -> None:
    """Halves of channels, one through convolutions, joined and shuffled by groups."""
    x = g.op("Relu", g.conv(g.floats("image", "b", 3, 32, 32), 3, 24, 3, 3, strides=[2, 2]))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for _ in range(2):
        left, right = g.op("Split", x, outputs=2, axis=1, num_outputs=2)
        right = g.op("Relu", g.conv_bn(right, 12, 12, 1))
        right = g.conv_bn(right, 12, 12, 3, group=12)
        right = g.op("Relu", g.conv_bn(right, 12, 12, 1))
        x = g.op("Concat", left, right, axis=1)
        x = g.op("Reshape", x, g.ints(0, 2, 12, 8, 8))
        x = g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3, 4]), g.ints(0, 24, 8, 8))
    y = g.op("ReduceMean", x, g.ints(2, 3), keepdims=0)
    g.result(g.op("LogSoftmax", g.linear(y, 24, 7), axis=-1), 2)


@held({"b": 1}, b=1)
def u_net(g: Net) -> None:
    """Two levels with transposed convolutions and joined paths, group norm as exporters write."""
    x = g.op("Relu", g.conv_bn(g.floats("image", "b", 2, 24, 40), 2, 8, 3))
    low = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    low = g.op("Relu", g.conv_bn(low, 8, 16, 3))
    deep = g.op("MaxPool", low, kernel_shape=[2, 2], strides=[2, 2])
    deep = g.op("LeakyRelu", g.conv_bn(deep, 16, 32, 3), alpha=0.1)
    for path, cin, cout in ((low, 32, 16), (x, 16, 8)):
        w = g.weight(cin, cout, 2, 2, fan_in=cin)
        up = g.op("ConvTranspose", deep, w, g.vector(cout), kernel_shape=[2, 2], strides=[2, 2])
        deep = g.op("Concat", path, up, axis=1)
        deep = g.conv(deep, 2 * cout, cout, 3, 3)
        scales = g.vector(cout, 0.5, 1.5), g.vector(cout)
        deep = g.op("Relu", g.op("GroupNormalization", deep, *scales, num_groups=4))
    g.result(g.op("Sigmoid", g.conv(deep, 8, 1, 1, 1)), 4)


@held(narrow=False)
def boxes(g: Net) -> None:
    """A head of classes and boxes over a grid, non-maximum suppression, the kept boxes gathered."""
    x = g.op("Relu", g.conv(g.floats("image", 1, 3, 32, 32), 3, 16, 3, 3, strides=[4, 4]))
    scores = g.op("Sigmoid", g.conv(x, 16, 3, 3, 3))
    deltas = g.op("Exp", g.op("Mul", g.conv(x, 16, 4, 1, 1), g.const(0.3)))
    scores = g.op("Reshape", scores, g.ints(1, 3, 64))
    deltas = g.op("Transpose", g.op("Reshape", deltas, g.ints(1, 4, 64)), perm=[0, 2, 1])
    where = np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1).reshape(1, 64, 2) * 4.0
    low = g.op("Sub", g.const(where), g.op("Slice", deltas, g.ints(0), g.ints(2), g.ints(2)))
    high = g.op("Slice", deltas, g.ints(2), g.ints(4), g.ints(2))
    high = g.op("Add", g.const(where), g.op("Mul", high, g.const(4.0)))
    corners = g.op("Concat", low, high, axis=-1)
    limits = g.const(5, np.int64), g.const(0.4), g.const(0.3)
    kept = g.op("NonMaxSuppression", corners, scores, *limits, center_point_box=0)
    rows = g.op("Gather", kept, g.ints(0, 2), axis=1)
    g.result(g.op("GatherND", corners, rows), 2)
    g.result(kept, 2, INT64)


@held({"b": 2}, b=1, narrow=False)
def best_of_pyramid(g: Net) -> None:
    """Two levels joined by a nearest Resize; the best scores, and their boxes by GatherElements."""
    x = g.act(g.conv(g.floats("image", "b", 3, 32, 48), 3, 12, 3, 3, strides=[2, 2]), "Silu")
    low = g.act(g.conv(x, 12, 12, 3, 3, strides=[2, 2]), "Silu")
    up = g.op("Resize", low, "", g.const([1, 1, 2, 2]), mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    high = g.op("Concat", g.conv(x, 12, 12, 1, 1), up, axis=1)
    found = []
    for level, width in ((low, 12), (high, 24)):
        y = g.conv(level, width, 5, 1, 1)
        found.append(g.op("Transpose", g.op("Reshape", y, g.ints(0, 5, -1)), perm=[0, 2, 1]))
    rows = g.op("Concat", *found, axis=1)
    score = g.op("Sigmoid", g.op("Gather", rows, g.const(4, np.int64), axis=2))
    best, where = g.op("TopK", score, g.ints(20), outputs=2, axis=1, largest=1, sorted=1)
    index = g.op("Expand", g.op("Unsqueeze", where, g.ints(2)), g.ints(1, 1, 4))
    taken = g.op("Slice", rows, g.ints(0), g.ints(4), g.ints(2))
    g.result(g.op("GatherElements", taken, index, axis=1), 3)
    g.result(best, 2)


@held({"b": 3}, b=2)
def patches(g: Net) -> None:
    """A vision transformer with a class token and attention written as Einsum."""
    width, heads = 48, 3
    x = g.conv(g.floats("image", "b", 3, 32, 32), 3, width, 8, 8, strides=[8, 8], pads=[0] * 4)
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, width, 16)), perm=[0, 2, 1])
    batch = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1))
    shape = g.op("Concat", batch, g.ints(1, width), axis=0)
    x = g.op("Concat", g.op("Expand", g.weight(1, 1, width), shape), x, axis=1)
    x = g.op("Add", x, g.weight(1, 17, width))
    for _ in range(2):
        y = g.op(
            "Reshape", g.linear(g.norm(x, width), width, 3 * width), g.ints(0, 17, 3, heads, 16)
        )
        q, k, v = (g.op("Gather", y, g.const(i, np.int64), axis=2) for i in range(3))
        p = g.op("Mul", g.op("Einsum", q, k, equation="bqhd,bkhd->bhqk"), g.const(0.25))
        y = g.op("Einsum", g.op("Softmax", p, axis=-1), v, equation="bhqk,bkhd->bqhd")
        x = g.op("Add", x, g.linear(g.op("Reshape", y, g.ints(0, 0, width)), width, width))
        y = g.gelu(g.linear(g.norm(x, width), width, 96))
        x = g.op("Add", x, g.linear(y, 96, width))
    y = g.op("Gather", g.norm(x, width), g.const(0, np.int64), axis=1)
    g.result(g.linear(y, width, 11), 2)


@held({"b": 2}, b=1)
def shifted_windows(g: Net) -> None:
    """Attention in windows of an image that is rolled, with a bias of places, and patch merging."""
    width, side, w = 16, 16, 4
    x = g.floats("tokens", "b", side, side, width)
    n = side // w
    for shift in (0, 2):
        y = g.norm(x, width)
        for axis in (1, 2) if shift else ():
            ends = g.op("Slice", y, g.ints(shift), g.ints(side), g.ints(axis))
            y = g.op(
                "Concat", ends, g.op("Slice", y, g.ints(0), g.ints(shift), g.ints(axis)), axis=axis
            )
        y = g.op(
            "Transpose", g.op("Reshape", y, g.ints(-1, n, w, n, w, width)), perm=[0, 1, 3, 2, 4, 5]
        )
        y = g.linear(g.op("Reshape", y, g.ints(-1, w * w, width)), width, 3 * width)
        q, k, v = (
            g.split_heads(p, 2, 8) for p in g.op("Split", y, outputs=3, axis=2, num_outputs=3)
        )
        y = g.linear(g.attend(q, k, v, 8, g.weight(1, 2, w * w, w * w)), width, width)
        y = g.op(
            "Transpose", g.op("Reshape", y, g.ints(-1, n, n, w, w, width)), perm=[0, 1, 3, 2, 4, 5]
        )
        y = g.op("Reshape", y, g.ints(-1, side, side, width))
        for axis in (1, 2) if shift else ():
            ends = g.op("Slice", y, g.ints(side - shift), g.ints(side), g.ints(axis))
            y = g.op(
                "Concat",
                ends,
                g.op("Slice", y, g.ints(0), g.ints(side - shift), g.ints(axis)),
                axis=axis,
            )
        x = g.op("Add", x, y)
    parts = [
        g.op("Slice", x, g.ints(i, j), g.ints(side, side), g.ints(1, 2), g.ints(2, 2))
        for j in (0, 1) for i in (0, 1)
    ]  # fmt: skip
    y = g.norm(g.op("Concat", *parts, axis=-1), 4 * width)
    g.result(g.op("MatMul", y, g.weight(4 * width, 2 * width)), 4)


@held({"b": 2}, b=1)
def next_conv(g: Net) -> None:
    """Depthwise 7x7, a norm over channels, a perceptron, scales of layers; strided 2x2."""
    x = g.conv(g.floats("image", "b", 3, 36, 36), 3, 24, 4, 4, strides=[4, 4], pads=[0] * 4)
    for width in (24, 40):
        y = g.conv(x, width, width, 7, 7, group=width)
        y = g.norm(g.op("Transpose", y, perm=[0, 2, 3, 1]), width)
        y = g.linear(g.gelu(g.linear(y, width, 3 * width)), 3 * width, width)
        y = g.op("Mul", y, g.vector(width))
        x = g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))
        if width == 24:
            x = g.conv(x, 24, 40, 2, 2, strides=[2, 2], pads=[0] * 4)
    g.result(g.norm(g.op("ReduceMean", x, g.ints(2, 3), keepdims=0), 40), 2)


@held({"b": 3}, b=2)
def dense_blocks(g: Net) -> None:
    """Each layer reads all before it; transitions by average pools that round up."""
    x = g.conv(g.floats("image", "b", 1, 27, 27), 1, 12, 3, 3)
    width = 12
    for _ in range(2):
        for _ in range(3):
            y = g.op("BatchNormalization", x, g.vector(width, 0.5, 1.5), g.vector(width),
                     g.vector(width), g.vector(width, 0.5, 1.5))  # fmt: skip
            x = g.op("Concat", x, g.conv(g.op("Relu", y), width, 6, 3, 3), axis=1)
            width += 6
        x = g.op("AveragePool", g.conv(x, width, width // 2, 1, 1), kernel_shape=[2, 2],
                 strides=[2, 2], ceil_mode=1)  # fmt: skip
        width //= 2
    y = g.op("Flatten", g.op("GlobalMaxPool", x), axis=1)
    g.result(g.linear(y, width, 9), 2)


@held({"b": 2}, b=1)
def video(g: Net) -> None:
    """Convolutions, pools and transposed convolutions of three dims."""
    x = g.op("Relu", g.conv(g.floats("video", "b", 2, 6, 14, 14), 2, 8, 3, 3, 3))
    y = g.op("MaxPool", x, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    y = g.op("Elu", g.conv(y, 8, 16, 1, 3, 3, strides=[1, 2, 2]), alpha=0.7)
    y = g.op("Elu", g.conv(y, 16, 16, 3, 1, 1, group=4))
    y = g.op("ConvTranspose", y, g.weight(16, 8, 2, 4, 4, fan_in=64), g.vector(8),
             kernel_shape=[2, 4, 4], strides=[2, 4, 4], output_padding=[0, 1, 1],
             pads=[0, 1, 1, 0, 1, 1])  # fmt: skip
    y = g.op("AveragePool", y, kernel_shape=[2, 2, 2], strides=[1, 2, 2], pads=[1, 0, 0, 0, 0, 0],
             count_include_pad=0)  # fmt: skip
    g.result(y, 5)


@held({"b": 2}, b=1)
def larger_image(g: Net) -> None:
    """Channels to pixels both ways, added to a cubic Resize of the image."""
    x = g.floats("image", "b", 3, 13, 17)
    y = g.conv(x, 3, 16, 5, 5)
    slope = g.const(g.rng.uniform(0.05, 0.3, (16, 1, 1)))
    for _ in range(2):
        inner = g.op("PRelu", g.conv(y, 16, 16, 3, 3), slope)
        y = g.op("Add", y, g.conv(inner, 16, 16, 3, 3))
    y = g.op("DepthToSpace", g.conv(y, 16, 12, 3, 3), blocksize=2, mode="CRD")
    base = g.op("Resize", x, "", g.const([1, 1, 2, 2]), mode="cubic", cubic_coeff_a=-0.75,
                coordinate_transformation_mode="half_pixel")  # fmt: skip
    y = g.op("Clip", g.op("Add", y, base), g.const(-2.0), g.const(2.0))
    g.result(g.op("SpaceToDepth", y, blocksize=2), 4)
    g.result(y, 4)


@held({"b": 3}, b=2)
def transformed_image(g: Net) -> None:
    """A net that turns its image (AffineGrid, GridSample), then reads it."""
    x = g.floats("image", "b", 1, 20, 20)
    y = g.op("MaxPool", g.conv(x, 1, 8, 7, 7), kernel_shape=[2, 2], strides=[2, 2])
    y = g.op("Relu", g.op("GlobalAveragePool", y))
    y = g.op("Tanh", g.linear(g.op("Flatten", y), 8, 6))
    theta = g.op("Add", g.op("Mul", y, g.const(0.3)), g.const([1, 0, 0, 0, 1, 0]))
    grid = g.op("AffineGrid", g.op("Reshape", theta, g.ints(-1, 2, 3)), g.op("Shape", x),
                align_corners=0)  # fmt: skip
    x = g.op("GridSample", x, grid, mode="linear", padding_mode="border", align_corners=0)
    y = g.op("Relu", g.conv(x, 1, 6, 3, 3, strides=[2, 2]))
    g.result(g.linear(g.op("Reshape", y, g.ints(0, 600)), 600, 4), 2)


@held({"b": 2}, b=1)
def style(g: Net) -> None:
    """Reflected borders, instance norms, a nearest Resize by sizes."""
    x = g.floats("image", "b", 3, 24, 24)
    y = x
    for cin, cout, stride in ((3, 8, 1), (8, 16, 2)):
        pad = g.op("Pad", y, g.ints(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
        y = g.conv(pad, cin, cout, 3, 3, strides=[stride] * 2, pads=[0] * 4)
        y = g.op("InstanceNormalization", y, g.vector(cout, 0.5, 1.5), g.vector(cout))
        y = g.op("Relu", y)
    shape = g.op(
        "Concat", g.op("Slice", g.op("Shape", y), g.ints(0), g.ints(2)), g.ints(24, 24), axis=0
    )
    y = g.op("Resize", y, "", "", shape, mode="nearest", nearest_mode="round_prefer_floor")
    y = g.op("Pad", y, g.ints(0, 0, 2, 2, 0, 0, 2, 2), mode="edge")
    g.result(g.op("Tanh", g.conv(y, 16, 3, 5, 5, pads=[0] * 4)), 4)


@held({"b": 2}, b=1)
def branches(g: Net) -> None:
    """Asymmetric kernels, pools and strides side by side, then normalised across channels."""
    x = g.op(
        "Relu", g.conv(g.floats("image", "b", 3, 31, 31), 3, 8, 3, 3, strides=[2, 2], pads=[0] * 4)
    )
    x = g.op("LRN", x, size=3, alpha=0.01, beta=0.75, bias=1.0)
    one = g.op("Relu", g.conv_bn(x, 8, 6, 1))
    two = g.op("Relu", g.conv(g.op("Relu", g.conv(x, 8, 6, 1, 7)), 6, 6, 7, 1))
    three = g.op("AveragePool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    three = g.op("Relu", g.conv(three, 8, 5, 1, 1))
    y = g.op("Concat", one, two, three, axis=1)
    y = g.op("Concat", g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2]),
             g.conv(y, 17, 7, 3, 3, strides=[2, 2], pads=[0] * 4), axis=1)  # fmt: skip
    y = g.op("Dropout", g.op("ReduceMax", y, g.ints(2, 3), keepdims=0))
    g.result(g.op("Softmax", g.linear(y, 24, 12)), 2)


@held({"b": 2}, b=1)
def dilated_pyramid(g: Net) -> None:
    """Dilated convolutions side by side, a linear Resize with aligned corners, a map of classes."""
    x = g.op("Relu", g.conv(g.floats("image", "b", 3, 33, 33), 3, 16, 3, 3, strides=[2, 2]))
    whole = g.op("Relu", g.conv(g.op("GlobalAveragePool", x), 16, 8, 1, 1))
    paths = [g.op("Relu", g.conv(x, 16, 8, 3, 3, dilations=[d, d])) for d in (1, 3, 6)]
    shape = g.op(
        "Concat", g.op("Slice", g.op("Shape", whole), g.ints(0), g.ints(2)), g.ints(17, 17), axis=0
    )
    paths.append(g.op("Resize", whole, "", "", shape, mode="linear"))
    y = g.conv(g.op("Concat", *paths, axis=1), 32, 5, 1, 1)
    sizes = g.op(
        "Concat", g.op("Slice", g.op("Shape", y), g.ints(0), g.ints(2)), g.ints(33, 33), axis=0
    )
    y = g.op(
        "Resize", y, "", "", sizes, mode="linear", coordinate_transformation_mode="align_corners"
    )
    g.result(y, 4)


@held({"r": 3}, r=5)
def regions(g: Net) -> None:
    """Features of regions (RoiAlign), two heads; the regions' number is dynamic."""
    x = g.op("Relu", g.conv(g.floats("image", 2, 3, 24, 24), 3, 8, 3, 3, strides=[2, 2]))

    def corners(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        low = rng.uniform(0, 10, (shape[0], 2))
        return np.concatenate([low, low + rng.uniform(2, 12, low.shape)], 1).astype(np.float32)

    rois, index = g.filled("rois", corners, "r", 4), g.integers("index", 2, "r")
    y = g.op("RoiAlign", x, rois, index, output_height=5, output_width=5, sampling_ratio=2,
             spatial_scale=0.5, mode="avg")  # fmt: skip
    y = g.op("Relu", g.linear(g.op("Flatten", y), 200, 32))
    g.result(g.op("Softmax", g.linear(y, 32, 4), axis=1), 2)
    g.result(g.op("Add", g.linear(y, 32, 4), rois), 2)


@held({"b": 1}, b=2, narrow=False)
def points(g: Net) -> None:
    """Neighbours of points by distance (TopK), their features gathered, maxima over them."""
    x = g.floats("points", "b", 40, 3)
    square = g.op("ReduceSum", g.op("Mul", x, x), g.ints(2), keepdims=1)
    dots = g.op("MatMul", x, g.op("Transpose", x, perm=[0, 2, 1]))
    far = g.op("Sub", square, g.op("Mul", dots, g.const(2.0)))
    far = g.op("Add", far, g.op("Transpose", square, perm=[0, 2, 1]))
    _, near = g.op("TopK", far, g.ints(6), outputs=2, axis=2, largest=0)
    features = g.op("Relu", g.linear(x, 3, 16))
    wide = g.op("Expand", g.op("Unsqueeze", near, g.ints(3)), g.ints(1, 1, 1, 16))
    repeated = g.op("Unsqueeze", features, g.ints(2))
    batch = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1))
    shape = g.op("Concat", batch, g.ints(40, 6, 16), axis=0)
    taken = g.op("GatherElements", g.op("Expand", repeated, shape), wide, axis=1)
    edge = g.op("Concat", g.op("Sub", taken, repeated), g.op("Expand", repeated, shape), axis=3)
    y = g.op(
        "ReduceMax", g.op("LeakyRelu", g.linear(edge, 32, 24), alpha=0.2), g.ints(2), keepdims=0
    )
    y = g.op("Concat", g.op("ReduceMax", y, g.ints(1), keepdims=0),
             g.op("ReduceMean", y, g.ints(1), keepdims=0), axis=1)  # fmt: skip
    g.result(g.linear(y, 48, 5), 2)


@held({"b": 3}, b=2)
def spectral(g: Net) -> None:
    """A layer in the frequency domain: DFT along a line, products of low modes, and back."""
    n, modes, width = 32, 8, 6
    x = g.op("Transpose", g.linear(g.floats("field", "b", n, 1), 1, width), perm=[0, 2, 1])
    y = g.op("DFT", g.op("Unsqueeze", x, g.ints(3)), "", g.const(2, np.int64), onesided=1)
    low = g.op("Slice", y, g.ints(0), g.ints(modes), g.ints(2))
    re, im = (g.op("Gather", low, g.const(i, np.int64), axis=3) for i in (0, 1))
    a, b = (g.weight(width, width, modes, fan_in=width) for _ in range(2))
    by = "bim,iom->bom"
    real = g.op("Sub", g.op("Einsum", re, a, equation=by), g.op("Einsum", im, b, equation=by))
    imaginary = g.op("Add", g.op("Einsum", re, b, equation=by), g.op("Einsum", im, a, equation=by))
    back = []
    angle = 2 * math.pi * np.outer(np.arange(modes), np.arange(n)) / n
    for part, table in ((real, np.cos(angle) / n), (imaginary, -np.sin(angle) / n)):
        back.append(g.op("MatMul", part, g.const(table)))
    y = g.gelu(g.op("Add", g.op("Add", *back), g.conv(x, width, width, 1)))
    g.result(g.linear(g.op("Transpose", y, perm=[0, 2, 1]), width, 1), 3)


@held({"b": 2}, b=1)
def bent_windows(g: Net) -> None:
    """Convolutions whose places are computed (DeformConv), with masks."""
    x = g.op("Relu", g.conv(g.floats("image", "b", 3, 12, 14), 3, 8, 3, 3))
    places = g.op("Mul", g.conv(x, 8, 18, 3, 3), g.const(0.4))
    mask = g.op("Sigmoid", g.conv(x, 8, 9, 3, 3))
    w = g.weight(6, 8, 3, 3, fan_in=72)
    y = g.op("DeformConv", x, w, places, g.vector(6), mask, kernel_shape=[3, 3], pads=[1] * 4)
    g.result(g.op("Softplus", y), 4)


@held({"b": 1}, b=2)
def coded_image(g: Net) -> None:
    """An autoencoder with a table of codes: distances, ArgMin, Gather, transposed convolutions."""
    x = g.op(
        "Relu", g.conv(g.floats("image", "b", 1, 16, 16), 1, 8, 4, 4, strides=[2, 2], pads=[1] * 4)
    )
    z = g.op("Transpose", g.conv(x, 8, 4, 3, 3, strides=[2, 2]), perm=[0, 2, 3, 1])
    table = g.weight(20, 4)
    flat = g.op("Reshape", z, g.ints(-1, 1, 4))
    far = g.op(
        "ReduceL2", g.op("Sub", flat, g.op("Unsqueeze", table, g.ints(0))), g.ints(2), keepdims=0
    )
    code = g.op("ArgMin", far, axis=1, keepdims=0)
    y = g.op("Reshape", g.op("Gather", table, code), g.op("Shape", z))
    y = g.op("Transpose", y, perm=[0, 3, 1, 2])
    for cin, cout in ((4, 8), (8, 1)):
        y = g.op("ConvTranspose", y, g.weight(cin, cout, 4, 4, fan_in=4 * cin), g.vector(cout),
                 kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)  # fmt: skip
        y = g.op("Selu", y)
    g.result(y, 4)
    g.result(code, 1, TensorProto.INT64)
