"""Random programs for the patterns of eliminate_pad."""

import numpy as np
from pattern_graphs import case


def padded(g, x, value, everywhere=0.2):
    """A constant pad of the spatial axes of an N,C.. tensor, now and then of the others too."""
    rank = len(g.b.dims(x))
    pads = [g.random.randint(0, 2) for _ in range(2 * rank)]
    if not g.coin(everywhere):
        for i in (0, 1, rank, rank + 1):
            pads[i] = 0
    return g.b.op("pad", x, mode="constant", pads=pads, value=value)


@case("find_pad_convolution", rtol=1e-6, special=True, fires=0.3)
def find_pad_convolution(g):
    spatial = g.pick(1, 2, 2)
    group = g.pick(1, 2)
    x = g.argument((g.random.randint(1, 2), 2, *g.dims(spatial, low=3)))
    y = g.maybe_used(padded(g, x, 0.0 if g.coin(0.9) else 1.0), 0.2)
    channels = g.b.dims(y)[1]
    group = group if channels % group == 0 else 1
    return g.b.op(
        "convolution",
        y,
        g.constant((2, channels // group, *g.dims(spatial, high=3))),
        padding=[g.random.randint(0, 1) for _ in range(spatial * g.pick(1, 2))],
        stride=[g.random.randint(1, 2) for _ in range(spatial)],
        dilation=[1] * spatial,
        group=group,
    )


@case("find_pad_pooling", fires=0.25)
def find_pad_pooling(g):
    """-inf below anything, 0 below what is never negative; averages and other borders stay."""
    spatial = g.pick(1, 2)
    x = g.argument((*g.dims(2, high=2), *g.dims(spatial, low=4, high=6)))
    value = g.pick(-np.inf, -np.inf, -np.inf, 0.0, 0.0, -1.0)
    if g.coin(0.9 if value == 0 else 0.2):
        x = g.b.op(g.pick("relu", "abs", "sigmoid"), x)
    y = g.maybe_used(padded(g, x, value, 0.1), 0.1)
    lengths = [g.random.randint(3, 5) for _ in range(spatial)]
    return g.b.op(
        "pooling",
        y,
        mode="max" if g.coin(0.9) else "average",
        padding=[g.random.randint(0, 1) for _ in range(spatial * g.pick(1, 2))],
        stride=[g.random.randint(1, 2) for _ in range(spatial)],
        lengths=[min(k, d) for k, d in zip(lengths, g.b.dims(y)[2:], strict=True)],
        dilations=[1] * spatial,
        ceil_mode=g.coin(0.1),
    )
