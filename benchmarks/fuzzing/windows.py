"""Growers of convolutions, pools and samplers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.fuzzing.graph import Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows
from benchmarks.fuzzing.layers import weight


def spatial(g: Graph, n: int, **more: Any) -> Value:
    """A value of `n` spatial dims with fixed channels."""
    kinds = {"kinds": (g.pick(*([np.float32] * 6), np.float16, np.float64),)}
    fits = {"test": lambda v: v.extent(1) and v.extent(1) <= 48 and 0 not in v.smallest}

    def make() -> Value:
        lead = g.pick(*sorted(g.worlds[0])) if g.open and g.coin(0.3) else g.size(1, 2)
        rest = [
            g.pick(*sorted(g.worlds[0]))
            if g.open and g.coin(0.2)
            else g.pick(1, 3, 5, 6, 7, 8, 9, 12)
            for _ in range(n)
        ]
        return g.input([lead, g.pick(1, 2, 3, 4, 6, 8, 16), *rest], kinds["kinds"][0])

    made = g.value(low=n + 2, high=n + 2, make=make, **kinds, **fits, **more)
    if 0 in made.smallest:
        raise Rejected("empty")
    return made


def window(g: Graph, x: Value, n: int) -> tuple[list[int], dict[str, Any]]:
    """A kernel that fits, and its strides, dilations and pads."""
    least = x.smallest[2:]
    kernel = [g.size(1, 4) if g.coin(0.8) else g.size(1, 7) for _ in range(n)]
    more: dict[str, Any] = {}
    if g.coin(0.6):
        more["strides"] = [g.pick(1, 1, 2, 3) for _ in range(n)]
    dilation = [1] * n
    if g.coin(0.25):
        dilation = [g.size(1, 3) for _ in range(n)]
        more["dilations"] = dilation
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    how = g.pick("none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if how == "pads":
        more["pads"] = [g.size(0, (s + 1) // 2) for s in spans * 2]
    elif how != "none":
        more["auto_pad"] = how
    pads = more.get("pads", [0] * 2 * n)
    if not how.startswith("SAME"):
        for i in range(n):
            if least[i] + pads[i] + pads[n + i] < spans[i]:
                kernel[i] = 1
    return kernel, more


@grows(4)
def conv(g: Graph) -> Any:
    n = g.pick(1, 2, 2, 2, 3)
    x = spatial(g, n)
    c = x.extent(1) or 1
    group = g.pick(1, 1, *[d for d in range(1, c + 1) if c % d == 0])
    kernel, more = window(g, x, n)
    out = group * g.pick(1, 2, 3, 4, 16 if group == 1 else 1)
    if out > 64:
        raise Rejected("many channels")
    w = weight(g, [out, c // group, *kernel], x.dtype, 0.3)
    b = weight(g, [out], x.dtype) if g.coin() else None
    return g.node("Conv", x, w, b, group=group, **more)


@grows(1.5)
def conv_transpose(g: Graph) -> Any:
    n = g.pick(1, 2, 2, 3)
    x = spatial(g, n)
    c = x.extent(1) or 1
    group = g.pick(1, 1, *[d for d in range(1, c + 1) if c % d == 0])
    kernel = [g.size(1, 4) for _ in range(n)]
    stride = [g.size(1, 3) for _ in range(n)]
    more: dict[str, Any] = {"strides": stride}
    if g.coin(0.3):
        more["dilations"] = [g.size(1, 2) for _ in range(n)]
    if g.coin(0.5):
        more["pads"] = [g.size(0, (k - 1) // 2) for k in kernel * 2]
    if g.coin(0.3):
        more["output_padding"] = [g.size(0, s - 1) for s in stride]
    w = weight(g, [c, g.size(1, 3), *kernel], x.dtype, 0.3)
    b = weight(g, [w.dims[0][1] * group], x.dtype) if g.coin() else None
    return g.node("ConvTranspose", x, w, b, group=group, **more)


@grows(4)
def pool(g: Graph) -> Any:
    n, op = g.pick(1, 2, 2, 2, 3), g.pick("MaxPool", "MaxPool", "AveragePool", "LpPool")
    x = spatial(g, n)
    kernel, more = window(g, x, n)
    if "dilations" in more and g.opset < {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[op]:
        del more["dilations"]
        if "auto_pad" not in more:
            kernel = [min(k, i) for k, i in zip(kernel, x.smallest[2:], strict=True)]
    if more.get("auto_pad", "").startswith("SAME"):
        more.pop("dilations", None)  # onnxruntime ignores dilations in the pads
        if op == "LpPool" and "strides" in more:  # onnxruntime would cut the input
            more["strides"] = [min(s, k) for s, k in zip(more["strides"], kernel, strict=True)]
    if "pads" in more:
        more["pads"] = [min(p, k - 1) for p, k in zip(more["pads"], kernel * 2, strict=True)]
        spans = [
            (k - 1) * d + 1 for k, d in zip(kernel, more.get("dilations", [1] * n), strict=True)
        ]
        for i in range(n):
            if x.smallest[2 + i] + more["pads"][i] + more["pads"][n + i] < spans[i]:
                kernel[i], more["pads"][i], more["pads"][n + i] = 1, 0, 0
    if op == "LpPool":
        more["p"] = g.size(1, 3)
    elif g.opset >= 10 and "auto_pad" not in more and g.coin(0.3):
        more["ceil_mode"] = 1
    if op == "AveragePool" and g.coin(0.4):
        more["count_include_pad"] = 1
    outputs = 2 if op == "MaxPool" and g.opset >= 8 and g.coin(0.2) else 1
    if outputs == 2:
        x_exact = x.exact
        if not x_exact:
            from benchmarks.fuzzing.views import apart

            apart(x, None)
        if g.coin(0.3):
            more["storage_order"] = 1
    return g.node(op, x, kernel_shape=kernel, outputs=outputs, exact=op == "MaxPool", **more)


@grows(1.5)
def global_pool(g: Graph) -> Any:
    op = g.pick("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
    x = spatial(g, g.size(1, 3))
    more = {"p": g.size(1, 3)} if op == "GlobalLpPool" else {}
    return g.node(op, x, exact=op == "GlobalMaxPool", **more)


@grows(2.5)
def resize(g: Graph) -> Any:
    x = g.value(kinds=(np.float32,), low=4, high=4, test=lambda v: 0 not in v.smallest)
    if 0 in x.smallest:
        raise Rejected("empty")
    factors = [1.0, 1.0, *(g.pick(0.5, 1.0, 2.0, 1.5, 3.0, 2.5) for _ in range(2))]
    if any(int(n * f) < 1 for d in x.dims for n, f in zip(d, factors, strict=True)):
        factors = [1.0, 1.0, 2.0, 2.0]
    if g.opset < 10:
        mode = g.pick("nearest", "linear")
        if g.opset < 9:
            return g.node("Upsample", x, scales=[max(1.0, f) for f in factors], mode=mode)
        return g.node(
            "Upsample", x, g.const(np.array([max(1.0, f) for f in factors], np.float32)), mode=mode
        )
    scales = g.const(np.array(factors, np.float32))
    if g.opset < 11:
        return g.node("Resize", x, scales, mode=g.pick("nearest", "linear"))
    mode = g.pick("nearest", "linear", "cubic")
    more: dict[str, Any] = {"mode": mode}
    more["coordinate_transformation_mode"] = g.pick(
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"
    )
    if mode == "nearest":
        more["nearest_mode"] = g.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic" and g.coin(0.4):
        more["cubic_coeff_a"] = -0.5
    if g.opset >= 18 and mode != "nearest" and g.coin(0.3):
        more["antialias"] = 1
    roi = None if g.opset >= 13 else g.const(np.zeros(0, np.float32))
    return g.node("Resize", x, roi, scales, **more)


@grows(1.5, since=16)
def grid_sample(g: Graph) -> Any:
    x = spatial(g, 2)
    batch = x.extent(0)
    if batch is None or x.dtype != np.float32:
        raise Rejected("a dynamic batch")
    h, w = g.size(1, 4), g.size(1, 4)
    linear, cubic = ("linear", "cubic") if g.opset >= 20 else ("bilinear", "bicubic")
    padding = g.pick("zeros", "border", "reflection")
    mode = g.pick(linear, cubic)
    if g.has("AffineGrid") and g.coin(0.4) and min(h, w) > 1:  # at 1 ONNX has -1
        theta = weight(g, [batch, 2, 3])
        grid = g.node(
            "AffineGrid",
            theta,
            g.const(np.array([batch, x.extent(1), h, w])),
            align_corners=g.size(0, 1),
        )
    else:
        grid = g.operand(g.rng.uniform(-1.3, 1.3, (batch, h, w, 2)).astype(np.float32))
    return g.node(
        "GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=g.size(0, 1)
    )


@grows(1, since=18)
def col2im(g: Graph) -> Any:
    image, block = [g.size(3, 6), g.size(3, 6)], [g.size(1, 3), g.size(1, 3)]
    stride = [g.size(1, 2), g.size(1, 2)]
    places = math.prod((i - k) // s + 1 for i, k, s in zip(image, block, stride, strict=True))
    x = g.input([g.size(1, 2), g.size(1, 2) * math.prod(block), places])
    return g.node("Col2Im", x, g.const(np.array(image)), g.const(np.array(block)), strides=stride)


@grows(1, since=11)
def det(g: Graph) -> Any:
    n = g.size(1, 3)
    dims = [g.size(1, 3)] * g.size(0, 1)
    x = g.operand(
        g.rng.normal(0, 1, [*dims, n, n]).astype(np.float32) + 2 * np.eye(n, dtype=np.float32)
    )
    return g.node("Det", x)
