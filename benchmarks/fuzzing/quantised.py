"""Growers of quantised, recurrent and other layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.fuzzing.graph import Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows
from benchmarks.fuzzing.layers import weight
from benchmarks.fuzzing.windows import spatial, window

# ---- quantised -----------------------------------------------------------------------------------


@grows(3, since=10)
def quantize(g: Graph) -> Any:
    """There and back, or one of them. Ties are rare: the scale is no round number."""
    x = g.value(kinds=(np.float32,), low=1, high=4)
    kind = g.pick(np.uint8, np.int8)
    axis = g.size(0, x.rank - 1)
    per = [x.extent(axis)] if g.opset >= 13 and x.extent(axis) and g.coin(0.4) else []
    more = {"axis": axis} if per else {}
    s = g.const(np.asarray(g.rng.uniform(0.02, 0.09, per), np.float32))
    z = g.const(
        g.numbers(
            per, kind, low=100 if kind is np.uint8 else -9, high=140 if kind is np.uint8 else 9
        )
    )
    off(g, x, s, axis)
    q = g.node("QuantizeLinear", x, s, z, exact=True, **more)
    if g.coin(0.25):
        return q
    if g.coin(0.3):
        q = g.node("Relu" if g.opset >= 14 and kind is np.int8 else "Identity", q, exact=True)
    return g.node("DequantizeLinear", q, s, z, exact=False, **more)


def off(g: Graph, x: Value, s: Value, axis: int) -> None:
    """Reject a rounded value that lies near the middle of two steps."""
    scale = s.arrays[0].astype(np.float64)
    if scale.ndim:
        scale = scale.reshape([-1 if a == axis else 1 for a in range(x.rank)])
    for a in x.arrays:
        steps = a.astype(np.float64) / scale
        if (np.abs(steps - np.floor(steps) - 0.5) < 1e-4).any():
            raise Rejected("between two steps")


@grows(1, since=11)
def dynamic_quantize(g: Graph) -> Any:
    x = g.value(kinds=(np.float32,), low=1, high=3, test=lambda v: v.exact and 0 not in v.smallest)
    if 0 in x.smallest or not x.all(lambda a: np.ptp(a) > 0.1):
        raise Rejected("no range")
    q, s, z = g.node("DynamicQuantizeLinear", x, outputs=3)
    for a, b in zip(x.arrays, s.arrays, strict=True):
        steps = a.astype(np.float64) / float(b)
        if (np.abs(steps - np.floor(steps) - 0.5) < 1e-3).any():
            raise Rejected("between two steps")
    return g.node("DequantizeLinear", q, s, z)


@grows(2, since=10)
def integer_products(g: Graph) -> Any:
    kind = g.pick(np.uint8, np.int8)
    if g.coin():
        k, n = g.extent(), g.extent()
        x = g.input([*g.dims(g.size(1, 2)), k], kind)
        w = g.operand(g.numbers([k, n], g.pick(np.uint8, np.int8), low=0, high=100))
        zeros = [
            g.const(g.numbers([], v.dtype, low=0, high=9)) if g.coin() else None for v in (x, w)
        ]
        return g.node("MatMulInteger", x, w, *zeros, exact=True)
    x = g.input([g.size(1, 2), g.size(1, 3), g.pick(3, 5, 8), g.pick(3, 5, 8)], np.uint8)
    kernel, more = window(g, x, 2)
    w = g.operand(g.numbers([g.size(1, 4), x.extent(1) or 1, *kernel], np.uint8, low=0, high=100))
    zeros = [g.const(g.numbers([], v.dtype, low=0, high=9)) if g.coin() else None for v in (x, w)]
    return g.node("ConvInteger", x, w, *zeros, exact=True, **more)


@grows(2, since=13)
def qdq_layer(g: Graph) -> Any:
    """A product between quantised operands, as quantisers write it."""
    kind = g.pick(np.uint8, np.int8)

    def there_and_back(v: Value) -> Value:
        s = g.const(np.float32(g.rng.uniform(0.02, 0.06)))
        z = g.const(np.asarray(g.size(110, 130) if kind is np.uint8 else g.size(-5, 5), kind))
        off(g, v, s, 0)
        return g.node("DequantizeLinear", g.node("QuantizeLinear", v, s, z, exact=True), s, z)

    def stored(dims: list[int]) -> Value:
        axis = g.pick(None, 0)
        s = g.const(g.rng.uniform(0.005, 0.02, [dims[0]] if axis == 0 else []).astype(np.float32))
        q = g.const(g.numbers(dims, np.int8, low=-127, high=127))
        more = {"axis": 0} if axis == 0 else {}
        return g.node("DequantizeLinear", q, s, **more)

    if g.coin():
        x = g.value(kinds=(np.float32,), low=2, high=3)
        k = x.extent(-1)
        if not k:
            raise Rejected("a dynamic depth")
        y = g.node("MatMul", there_and_back(x), stored([k, g.extent()]))
    else:
        x = spatial(g, 2)
        if x.dtype != np.float32:
            raise Rejected("not f32")
        kernel, more = window(g, x, 2)
        y = g.node(
            "Conv", there_and_back(x), stored([g.size(1, 8), x.extent(1) or 1, *kernel]), **more
        )
    if g.coin():
        y = g.node("Relu", y)
    return there_and_back(y) if g.coin() else y


# ---- recurrent -----------------------------------------------------------------------------------


@grows(2.5)
def recurrent(g: Graph) -> Any:
    op = g.pick("RNN", "GRU", "LSTM")
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    direction = g.pick("forward", "reverse", "bidirectional")
    d, hidden = 2 if direction == "bidirectional" else 1, g.size(1, 5)
    x = g.value(
        kinds=(np.float32,), low=3, high=3, test=lambda v: v.extent(2) and 0 not in v.smallest
    )
    if 0 in x.smallest:
        raise Rejected("empty")
    n, batch = x.extent(2) or 1, x.extent(1)
    w, r = weight(g, [d, gates * hidden, n]), weight(g, [d, gates * hidden, hidden])
    b = weight(g, [d, 2 * gates * hidden]) if g.coin() else None
    lens = h = c = None
    if batch and x.extent(0):
        lens = (
            g.operand(g.numbers([batch], np.int32, low=1, high=x.smallest[0]))
            if g.coin(0.3)
            else None
        )
        h = weight(g, [d, batch, hidden]) if g.coin(0.4) else None
        c = weight(g, [d, batch, hidden]) if g.coin(0.4) and op == "LSTM" else None
    p = weight(g, [d, 3 * hidden]) if op == "LSTM" and g.coin(0.2) else None
    more: dict[str, Any] = {}
    if op == "GRU":
        more["linear_before_reset"] = g.size(0, 1)
    if g.coin(0.25):
        per = {"RNN": 1, "GRU": 2, "LSTM": 3}[op]
        more["activations"] = [g.pick("Tanh", "Sigmoid", "Relu") for _ in range(per * d)]
    if g.coin(0.15):
        more["clip"] = 0.8
    given = [x, w, r, b, lens, h, *([c, p] if op == "LSTM" else [])]
    outputs = g.pick([0], [0, 1], [1], *([[0, 1, 2], [2]] if op == "LSTM" else []))
    return g.node(op, *given, hidden_size=hidden, direction=direction, outputs=outputs, **more)


# ---- others --------------------------------------------------------------------------------------


@grows(1, since=12)
def losses(g: Graph) -> Any:
    x = g.value(kinds=(np.float32,), low=2, high=4, test=lambda v: v.static and 0 not in v.smallest)
    if not x.static or 0 in x.smallest:
        raise Rejected("dynamic")
    dims = [x.dims[0][0], *x.dims[0][2:]]
    classes = x.dims[0][1]
    labels = g.operand(g.numbers(dims, np.int64, low=0, high=classes - 1))
    w = g.operand(g.rng.uniform(0.3, 1, classes).astype(np.float32)) if g.coin() else None
    more: dict[str, Any] = {"reduction": g.pick("none", "mean", "sum")}
    if g.coin(0.3) and classes > 1:
        more["ignore_index"] = 0
        if not labels.all(lambda a: (a != 0).any()):
            raise Rejected("all ignored")
    if g.coin():
        return g.node("SoftmaxCrossEntropyLoss", x, labels, w, outputs=g.pick(1, 2), **more)
    return g.node("NegativeLogLikelihoodLoss", x, labels, w, **more)


@grows(1, since=17)
def windows_of_signals(g: Graph) -> Any:
    op = g.pick("HannWindow", "HammingWindow", "BlackmanWindow")
    return g.node(op, g.numbers_of(g.size(2, 17)), periodic=g.size(0, 1))


@grows(1, since=17)
def dft(g: Graph) -> Any:
    parts = g.size(1, 2)
    x = g.input([g.size(1, 2), g.size(1, 12), parts])  # onnxruntime computes f64 in f32
    inverse = g.size(0, 1) if parts == 2 else 0
    more = {"onesided": g.size(0, 1)} if parts == 1 else {"inverse": inverse}
    if g.opset < 20:
        more["axis"] = 1
    return g.node("DFT", x, **more)


@grows(1, since=10)
def roi_align(g: Graph) -> Any:
    x = spatial(g, 2)
    if not x.extent(0) or x.dtype != np.float32:
        raise Rejected("a dynamic batch")
    n = g.size(1, 3)
    start = g.rng.random((n, 2)) * 3
    rois = np.concatenate([start, start + 0.5 + g.rng.random((n, 2)) * 4], 1).astype(np.float32)
    more: dict[str, Any] = {
        "output_height": g.size(1, 3),
        "output_width": g.size(1, 3),
        "sampling_ratio": g.size(1, 2),
    }
    if g.opset >= 16:
        more["coordinate_transformation_mode"] = g.pick("half_pixel", "output_half_pixel")
    batch = g.numbers([n], np.int64, low=0, high=(x.extent(0) or 1) - 1)
    return g.node("RoiAlign", x, g.operand(rois), g.operand(batch), **more)


@grows(0.7, since=10)
def max_suppression(g: Graph) -> Any:
    n = g.size(1, 8)
    start = g.rng.random((1, n, 2)) * 4
    boxes = np.concatenate([start, start + 0.5 + g.rng.random((1, n, 2)) * 3], 2).astype(np.float32)
    scores = g.rng.permutation(n * 2).reshape(1, 2, n).astype(np.float32) / (2 * n)
    return g.node(
        "NonMaxSuppression", g.operand(boxes), g.operand(scores), g.const(np.array(g.size(1, 4))),
        g.const(np.float32(g.pick(0.3, 0.55))), g.const(np.float32(0.21)),
        center_point_box=0, exact=True,
    )  # fmt: skip
