"""Small networks in the ways that converters write them, with drawn extents, dynamic or fixed.

Each function adds one network to a graph; `Drawn` draws its extents, and of which the run decides.
Those of decoders with caches and of Paddle are in exporter_idioms.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from zoo import exporter_idioms
from zoo.drawn import ML, Drawn, branch, cut
from zoo.made import BOOL, FLOAT, INT64, layer_norm

FLOAT16 = TensorProto.FLOAT16


def tf2onnx(g: Drawn) -> None:
    """Channels last: transposes around each convolution, SAME pads, biases added apart."""
    c, k, stride = g.one_of(2, 3, 4), g.one_of(1, 3), g.one_of(1, 2)
    h, w = (g.extent(2, 5, 2) for _ in "hw")
    x = g.given(g.extent(1, 3), h, w, c)
    inner = g.op("Transpose", x, perm=[0, 3, 1, 2])
    weight = g.weight(6, c, k, k, fan_in=c * k * k)
    y = g.op("Conv", inner, weight, auto_pad="SAME_UPPER", strides=[stride, stride],
             kernel_shape=[k, k], group=1, dilations=[1, 1])  # fmt: skip
    y = g.op("Transpose", y, perm=[0, 2, 3, 1])
    y = g.op("Add", y, g.vector(6))
    y = g.op("Relu", y) if g.one_of(True, False) else g.op("Clip", y, g.const(0.0), g.const(6.0))
    if g.one_of(True, False):
        y = g.op("Transpose", y, perm=[0, 3, 1, 2])
        y = g.op("AveragePool", y, auto_pad="SAME_UPPER", kernel_shape=[2, 2], strides=[2, 2])
        y = g.op("Transpose", y, perm=[0, 2, 3, 1])
    y = g.op("Reshape", y, g.dims_of(y, (0, 1), -1, 6))
    y = g.op("Squeeze", g.op("ReduceMean", y, g.ints(1), keepdims=1), g.ints(1))
    y = g.op("Add", g.op("MatMul", y, g.weight(6, 5)), g.vector(5))
    g.result(g.op("Softmax", y, axis=-1), 2)


def paddle(g: Drawn) -> None:
    """Hard swish in its parts, squeeze and excitation, Resize by a computed size, an ArgMax."""
    h, w = (g.extent(2, 4, 2) for _ in "hw")
    x = g.given(g.extent(1, 2), 3, h, w)
    y = g.conv_bn(x, 3, 8, 3, stride=2)
    gate = g.op("Clip", g.op("Add", y, g.const(3.0)), g.const(0.0), g.const(6.0))
    y = g.op("Div", g.op("Mul", y, gate), g.const(6.0))
    s = g.op("Conv", g.op("GlobalAveragePool", y), g.weight(8, 8, 1, 1))
    s = g.op("HardSigmoid", s, alpha=0.2, beta=0.5)
    y = g.op("Mul", y, s)
    sizes = g.op("Slice", g.op("Shape", x), g.ints(2), g.ints(4), g.ints(0))
    front = g.op("Slice", g.op("Shape", y), g.ints(0), g.ints(2), g.ints(0))
    sizes = g.op("Concat", front, sizes, axis=0)
    way = g.one_of(("asymmetric", "floor"), ("half_pixel", "round_prefer_ceil"))
    y = g.op("Resize", y, "", "", sizes, mode="nearest", nearest_mode=way[1],
             coordinate_transformation_mode=way[0])  # fmt: skip
    if g.one_of(True, False, False):
        y = g.op("ConvTranspose", y, g.weight(8, 4, 2, 2), strides=[2, 2], kernel_shape=[2, 2])
        g.result(g.op("Sigmoid", y), 4)
        return
    y = g.op("Squeeze", g.op("ReduceMax", y, g.ints(2), keepdims=1), g.ints(2))
    y = g.op("Transpose", y, perm=[0, 2, 1])
    g.result(g.op("ArgMax", y, axis=2, keepdims=0), 2, INT64)
    g.result(g.op("ReduceMax", g.op("Softmax", y, axis=2), g.ints(2), keepdims=0), 2)


def skl(g: Drawn) -> None:
    """Columns picked and scaled, then a linear model, trees or a network of two layers."""
    columns = g.one_of(3, 4, 6)
    x = g.given(g.extent(1, 9), columns)

    def ml(kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        found = g.op(kind, *inputs, outputs=outputs, **attributes)
        g.nodes[-1].domain = ML
        return found

    picked = g.ints(*g.rng.permutation(columns)[: columns - 1].tolist())
    left = ml("ArrayFeatureExtractor", x, picked)
    offset, scale = g.rng.standard_normal((2, columns - 1)).tolist()
    left = ml("Scaler", left, offset=offset, scale=scale)
    right = ml("Normalizer", x, norm=g.one_of("MAX", "L1", "L2"))
    y = g.op("Concat", left, right, axis=1)
    width = 2 * columns - 1
    kind = g.one_of("linear", "trees", "network")
    if kind == "linear":
        weights = g.rng.standard_normal(3 * width).tolist()
        label, scores = ml(
            "LinearClassifier", y, outputs=2, coefficients=weights, classlabels_ints=[2, 5, 7],
            intercepts=[0.1, 0.2, -0.3], multi_class=1, post_transform="SOFTMAX",
        )  # fmt: skip
        g.result(label, 1, INT64)
        g.result(ml("Normalizer", scores, norm="L1"), 2)
    elif kind == "trees":
        g.result(ml("TreeEnsembleRegressor", y, n_targets=1, **stumps(g, width)), 2)
    else:
        y = g.op("Relu", g.op("Add", g.op("MatMul", y, g.weight(width, 8)), g.vector(8)))
        y = g.op("Add", g.op("MatMul", y, g.weight(8, 1)), g.vector(1))
        g.result(g.op("Reshape", g.op("Cast", y, to=FLOAT), g.ints(-1, 1)), 2)


def stumps(g: Drawn, width: int) -> dict[str, list[Any]]:
    """Return the attributes of trees of one split each."""
    trees = range(3)
    inner = [(t, i == 0) for t in trees for i in range(3)]
    return {
        "nodes_treeids": [t for t, _ in inner],
        "nodes_nodeids": [0, 1, 2] * 3,
        "nodes_featureids": [int(g.rng.integers(width)) * first for _, first in inner],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * 3,
        "nodes_values": [float(g.rng.normal()) * first for _, first in inner],
        "nodes_truenodeids": [1, 0, 0] * 3,
        "nodes_falsenodeids": [2, 0, 0] * 3,
        "target_treeids": [t for t in trees for _ in range(2)],
        "target_nodeids": [1, 2] * 3,
        "target_ids": [0] * 6,
        "target_weights": g.rng.standard_normal(6).tolist(),
    }  # fmt: skip


def float16(g: Drawn) -> None:
    """Inputs and outputs kept in f32, weights in f16, and operators left out between casts."""
    n, width = g.extent(1, 6), g.one_of(4, 8)
    x = g.op("Cast", g.given(g.extent(1, 2), n, width), to=FLOAT16)
    w = g.const(g.rng.standard_normal((width, 8)) * 0.3, np.float16)
    y = g.op("Add", g.op("MatMul", x, w), g.const(g.rng.standard_normal(8) * 0.1, np.float16))
    y = g.op(g.one_of("Relu", "Tanh", "Sigmoid"), y)
    wide = g.op("Cast", y, to=FLOAT)  # on the list of operators that stay
    wide = g.op("CumSum", wide, g.const(1, np.int64))
    y = g.op("Add", y, g.op("Cast", wide, to=FLOAT16))
    y = g.op("Mul", y, g.op("Softmax", y, axis=-1))
    g.result(g.op("Cast", y, to=FLOAT), 3)


def folded(g: Drawn) -> None:
    """The result of a simplifier: constants of shapes, with 0 and -1, Gemm, reshapes in a row."""
    n = g.extent(1, 5)
    x = g.given(n, 3, 8)
    y = g.op("Reshape", x, g.ints(-1, 8))
    y = g.op("Gemm", y, g.weight(6, 8), g.vector(6), transB=1, alpha=g.one_of(1.0, 0.5))
    y = g.op("LayerNormalization", y, g.vector(6, 0.5, 1.5), g.vector(6), epsilon=1e-5)
    y = g.op("Reshape", y, g.ints(-1, 3, 2, 3))
    y = g.op("Transpose", y, perm=g.one_of([0, 2, 1, 3], [0, 2, 3, 1], [0, 1, 3, 2]))
    y = g.op("Reshape", y, g.ints(0, 0, -1))
    tiled = g.op("Tile", y, g.ints(1, 2, 1))
    first, second = g.op("Split", tiled, outputs=2, axis=1, num_outputs=2)
    g.result(g.op("Sub", g.op("Mul", first, g.const(2.0)), second), 3)


def encoder(g: Drawn) -> None:
    """Gelu and normalisation in their parts around a shortcut, which onnxruntime fuses."""
    width = g.one_of(4, 8)
    x = g.given(g.extent(1, 2), g.extent(1, 5), width)
    y = g.gelu(g.linear(x, width, 16))
    y = g.op("Add", x, g.linear(y, 16, width))
    y = layer_norm(g, y, width)
    g.result(g.linear(y, width, 3), 3)


def merged(g: Drawn) -> None:
    """A decoder's layer with and without what was kept before, in the branches of an If."""
    heads, size, past = 2, 4, g.extent(0, 4)
    x = g.given(1, g.extent(1, 3), heads * size)
    kept = g.given(1, heads, past, size)
    cached = g.given(kind=BOOL)
    key = g.heads(g.op("MatMul", x, g.weight(8, 8)), (0, -1, heads, size))
    query = g.heads(g.op("MatMul", x, g.weight(8, 8)), (0, -1, heads, size))
    mark = len(g.nodes)
    own = g.op("Concat", kept, key, axis=2)
    score = g.op("MatMul", query, g.op("Transpose", own, perm=[0, 1, 3, 2]))
    with_past = branch(g, mark, g.op("MatMul", g.op("Softmax", score, axis=-1), own), own)
    own = g.op("Identity", key)
    score = g.op("MatMul", query, g.op("Transpose", own, perm=[0, 1, 3, 2]))
    without = branch(g, mark, g.op("MatMul", g.op("Softmax", score, axis=-1), own), own)
    out, present = g.op("If", cached, outputs=2, then_branch=with_past, else_branch=without)
    out = g.op("Reshape", g.op("Transpose", out, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
    g.result(g.op("MatMul", out, g.weight(8, 5)), 3)
    g.result(present, 4)


def squeezed(g: Drawn) -> None:
    """torch's `squeeze` of a dynamic dim: an If whose branches differ in rank, then elements."""
    last = f"d{len(g.sizes)}"
    g.sizes[last] = (1, g.one_of(2, 3, 7))  # onnxruntime refuses a known extent other than 1
    x = g.given(g.extent(2, 6), 5, last)
    extent = g.op("Gather", g.op("Shape", x), g.ints(2), axis=0)
    condition = g.op("Equal", extent, g.ints(1))
    then = len(g.nodes)
    small = g.op(g.one_of("Relu", "Identity"), g.op("Squeeze", x, g.ints(2)))
    first = branch(g, then, small)
    other = len(g.nodes)
    second = branch(g, other, g.op("Identity", x))
    y = g.op("If", condition, then_branch=first, else_branch=second)
    g.result(g.op("Tanh", y), 3)


def sound(g: Drawn) -> None:
    """A detector of speech: in each branch of an If frames of a mirrored signal, bins, layers."""
    signal = g.given(g.extent(1, 2), g.extent(5, 12, 2))
    wide = g.given(kind=BOOL)
    graphs = []
    for window, hop in ((8, 4), (4, 2)):
        mark, bins = len(g.nodes), window // 2 + 1
        y = g.op("Pad", signal, g.ints(0, hop, 0, hop), mode="reflect")
        y = g.op("Unsqueeze", y, g.ints(1))
        y = g.op("Conv", y, g.weight(2 * bins, 1, window), strides=[hop])
        ends = [g.ints(n) for n in (0, bins, 2 * bins)]
        halves = [g.op("Slice", y, a, b, g.ints(1)) for a, b in itertools.pairwise(ends)]
        y = g.op("Sqrt", g.op("Add", *(g.op("Mul", h, h) for h in halves)))
        for cin, cout, stride in ((bins, 6, 1), (6, 4, 2)):
            y = g.op("Conv", y, g.weight(cout, cin, 3), g.vector(cout), pads=[1, 1],
                     strides=[stride])  # fmt: skip
            y = g.op("Relu", y)
        y = g.op("ReduceMean", y, g.ints(2), keepdims=0)
        graphs.append(branch(g, mark, g.op("Sigmoid", g.linear(y, 4, 2))))
    g.result(g.op("If", wide, then_branch=graphs[0], else_branch=graphs[1]), 2)


def keras(g: Drawn) -> None:
    """A masked recurrent layer of Keras as a Loop that carries its weights and its length."""
    width = g.one_of(3, 4)
    x = g.given(g.extent(1, 5), g.extent(1, 3), width)  # time, batch, width
    mask = g.op("Greater", x, g.const(-0.5))
    steps = g.op("Squeeze", g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1)), g.ints(0))
    state = g.op("ConstantOfShape", g.op("Slice", g.op("Shape", x), g.ints(1), g.ints(3)),
                 value=helper.make_tensor("", FLOAT, [1], [0.0]))  # fmt: skip
    weights = [g.weight(width, width), g.weight(width, width), g.vector(width)]
    zero = g.const(0, np.int64)
    names = [f"k{len(g.nodes)}_{n}" for n in ("i", "go", "at", "h", "n", "w", "r", "b")]
    at, h, end, w, r, bias = names[2:]
    mark = len(g.nodes)
    row, here = (g.op("Gather", v, at, axis=0) for v in (x, mask))
    new = g.op("Add", g.op("MatMul", row, w), g.op("MatMul", h, r))
    new = g.op("Tanh", g.op("Add", new, bias))
    kept = g.op("Where", here, new, h)
    after = g.op("Add", at, g.const(1, np.int64))
    outs = [
        g.op("Less", after, end),
        after,
        kept,
        *(g.op("Identity", v) for v in (end, w, r, bias)),
    ]
    outs.append(g.op("Identity", kept))
    nodes, told = cut(g, mark, at)
    kinds = [INT64, BOOL, INT64, FLOAT, INT64, FLOAT, FLOAT, FLOAT]
    dims = [[], [], [], None, [], [width, width], [width, width], [width]]
    given = zip(names, kinds, dims, strict=True)
    made = zip(outs, [*kinds[1:], FLOAT], strict=True)
    body = helper.make_graph(
        nodes, "body",
        [helper.make_tensor_value_info(n, k, d) for n, k, d in given],
        [helper.make_tensor_value_info(told[n], k, None) for n, k in made],
    )  # fmt: skip
    found = g.op("Loop", "", g.op("Less", zero, steps), zero, state, steps, *weights,
                 outputs=7, body=body)  # fmt: skip
    g.result(found[1], 2)
    g.result(found[6], 3)


def detector(g: Drawn) -> None:
    """Boxes of a grid, the best of which are listed: kept rows with one row of zeros in front."""
    n = g.extent(3, 8)
    wide = g.given(1, n, 7)
    parts = [
        g.op("Slice", wide, g.ints(a), g.ints(b), g.ints(2)) for a, b in ((0, 2), (2, 4), (4, 7))
    ]
    centre, size, scores = (g.op("Sigmoid", p) for p in parts)
    boxes = g.op("Concat", g.op("Sub", centre, size), g.op("Add", centre, size), axis=2)
    most = g.one_of(2, 3)
    kept = g.op(
        "NonMaxSuppression", boxes, g.op("Transpose", scores, perm=[0, 2, 1]), g.ints(most),
        g.const([0.5]), g.const([0.4]), center_point_box=0,
    )  # fmt: skip
    place = g.op("Gather", kept, g.const(2, np.int64), axis=1)
    rows = g.op("Gather", g.op("Squeeze", boxes, g.ints(0)), place, axis=0)
    g.result(g.op("Pad", rows, g.ints(1, 0, 0, 0)), 2)
    g.result(g.op("Pad", place, g.ints(1, 0)), 1, INT64)
    best = g.op("ReduceMax", scores, g.ints(2), keepdims=0)
    count = g.op("Min", g.op("Slice", g.op("Shape", best), g.ints(1), g.ints(2)), g.ints(4))
    value, index = g.op("TopK", best, count, outputs=2, axis=1)
    g.result(value, 2)
    g.result(index, 2, INT64)


def positions(g: Drawn) -> None:
    """A mask of tokens, and a row of a buffer of places, each expanded to computed dims."""
    batch, length = g.extent(1, 3), g.extent(1, 6)
    tokens, mask = g.given(batch, length, kind=INT64), g.given(batch, length, kind=INT64)
    shape = g.op("Shape", tokens)
    end = g.op("Slice", shape, g.ints(1), g.ints(2))
    buffer = g.op("Slice", g.const([range(20)], np.int64), g.ints(0), end, g.ints(1))
    minus = g.op("Mul", g.op("ConstantOfShape", g.ints(2), value=numbers(1)), g.ints(-1))
    wanted = g.op("Where", g.op("Equal", shape, minus), g.op("Abs", minus), shape)
    place = g.op("Expand", buffer, wanted)
    x = g.op("Add", g.op("Gather", g.weight(5, 8), tokens), g.op("Gather", g.weight(20, 8), place))
    x = layer_norm(g, x, 8)
    front = g.op("Slice", shape, g.ints(0), g.ints(1))
    square = g.op("Concat", front, g.ints(1), end, end, axis=0)
    hidden = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
    hidden = g.op("Sub", g.const(1.0), g.op("Expand", hidden, square))
    hidden = g.op("Where", g.op("Cast", hidden, to=BOOL), g.const(-1e4), hidden)
    score = g.op("MatMul", x, g.op("Transpose", x, perm=[0, 2, 1]))
    score = g.op("Add", g.op("Unsqueeze", score, g.ints(1)), hidden)
    y = g.op("MatMul", g.op("Softmax", score, axis=-1), g.op("Unsqueeze", x, g.ints(1)))
    g.result(g.op("Squeeze", y, g.ints(1)), 3)


def numbers(*values: int) -> TensorProto:
    return helper.make_tensor("", INT64, [len(values)], values)


IDIOMS: dict[str, Callable[[Drawn], None]] = {
    "tf2onnx": tf2onnx,
    "paddle": paddle,
    "skl": skl,
    "float16": float16,
    "folded": folded,
    "encoder": encoder,
    "merged": merged,
    "squeezed": squeezed,
    "sound": sound,
    "keras": keras,
    "detector": detector,
    "positions": positions,
    "gpt2_merged": exporter_idioms.gpt2_merged,
    "llama_merged": exporter_idioms.llama_merged,
    "paddle_shapes": exporter_idioms.paddle_shapes,
    "paddle_boxes": exporter_idioms.paddle_boxes,
    "paddle_steps": exporter_idioms.paddle_steps,
}
