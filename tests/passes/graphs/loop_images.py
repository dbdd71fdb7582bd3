"""Random programs for loop_images."""

from __future__ import annotations

from typing import Any

from pattern_graphs import Graph, case

from mgx_mlir.core.shapes import DYN, TensorType


def _bias(g: Graph, x: Any) -> Any:
    """Build a bias of each channel, broadcast to `x` in one of the forms that importers write."""
    dims = TensorType.of(x).dims
    row = g.constant((dims[1], *[1] * (len(dims) - 2)))
    if dims[0] == DYN:
        return g.b.op("multibroadcast", [row, x])
    if g.coin():
        return g.b.op("multibroadcast", [row], out_lens=list(dims))
    return g.b.op("broadcast", g.constant((dims[1],)), axis=1, out_lens=list(dims))


def _layer(g: Graph, x: Any) -> Any:
    """Build an op that keeps the images apart."""
    dims = TensorType.of(x).dims
    kind = g.pick("convolution", "bias", "relu", "pooling", "concat", "pad", "mean", "sum", "turn")
    if kind == "convolution":
        window = min(g.pick(1, 3), *dims[2:])
        w = g.constant((g.random.randint(1, 3), dims[1], window, window))
        return g.b.op(
            "convolution", x, w, padding=[g.pick(0, 1)] * 4, stride=[1, 1], dilation=[1, 1]
        )
    if kind == "bias":
        return g.b.op("add", x, _bias(g, x))
    if kind == "relu":
        return g.b.op("relu", x)
    if kind == "pooling" and min(dims[2:]) > 1:
        return g.b.op(
            "pooling", x, mode="max", lengths=[2, 2], stride=[1, 1], padding=[0] * 4,
            dilations=[1, 1],
        )  # fmt: skip
    if kind == "concat":
        return g.b.op("concat", [x, g.b.op("neg", x)], axis=1)
    if kind == "pad":
        return g.b.op("pad", x, pads=[0, 1, 0, 0, 0, 0, 1, 0], value=0.0)
    if kind == "mean":
        return g.b.op("reduce_mean", x, axes=[g.pick(1, 2, -1)])
    if kind == "turn":
        return g.b.op("transpose", x, permutation=[0, *g.pick((1, 3, 2), (2, 3, 1))])
    return g.b.op("add", x, g.b.op("neg", x))


@case("loop_over_images", rtol=1e-5, options={"least": -10000, "launch": 0})
def loop_over_images(g: Graph) -> Any:
    """Two to six layers; values in between have other readers; now and then images are mixed."""
    count = DYN if g.coin() else g.random.randint(2, 4)
    x = g.argument((count, *g.dims(3, low=2)))
    for _ in range(g.random.randint(2, 6)):
        x = g.maybe_used(_layer(g, x), 0.2)
        if g.coin(0.1):
            x = g.b.op("reduce_sum", x, axes=[0])
    return x
