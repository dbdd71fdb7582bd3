"""Random programs for the patterns of rewrite_convolution."""

from pattern_graphs import case


def _window(g, count):
    """Kernel, strides and dilations of `count` axes."""
    return (
        [g.pick(1, 2, 3, 4) for _ in range(count)],
        [g.pick(1, 1, 2, 3) for _ in range(count)],
        [g.pick(1, 1, 1, 2) for _ in range(count)],
    )


@case("find_transposed_convolution", rtol=1e-5, fires=0.3)
def find_transposed_convolution(g):
    count, group = g.pick(1, 2, 2), g.pick(1, 1, 2)
    kernel, stride, dilation = _window(g, count)
    size = g.dims(count, low=2, high=5)
    x = g.argument([*g.dims(1, high=2), 2 * group, *size])
    w = g.constant([2 * group, g.pick(1, 3), *kernel])
    low = [g.random.randint(0, min(k, n - 1)) for k, n in zip(kernel, size, strict=True)]
    high = [g.pick(0, 0, k // 2) for k in kernel]
    mode = g.pick("default_", "default_", "same_upper", "same_lower")
    padding = [0] * count if mode != "default_" else low if g.coin() else [*low, *high]
    if any(
        (n - 1) * s + (k - 1) * d + 1 - 2 * max(a, b) < 1
        for n, s, k, d, a, b in zip(size, stride, kernel, dilation, low, high, strict=True)
    ):
        padding = [0] * count
    return g.b.op(
        "convolution_backwards", x, w, padding=padding, stride=stride, dilation=dilation,
        group=group, padding_mode=mode,
    )  # fmt: skip


@case("find_volume_convolution", rtol=1e-5, fires=0.3)
def find_volume_convolution(g):
    kernel, stride, dilation = _window(g, 3)
    size = [g.random.randint(1, 3) + (k - 1) * d for k, d in zip(kernel, dilation, strict=True)]
    group = g.pick(1, 1, 1, 2)
    x = g.argument([*g.dims(1, high=2), 2 * group, *size])
    w = g.argument([2 * group, 2, *kernel])
    padding = [g.pick(0, 0, 1, 2) for _ in range(g.pick(3, 6))]
    return g.b.op(
        "convolution", x, w, padding=padding, stride=stride, dilation=dilation, group=group
    )


@case("find_computed_padding", rtol=1e-5, fires=0.6)
def find_computed_padding(g):
    count = g.pick(1, 2)
    kernel, stride, dilation = _window(g, count)
    x = g.argument([1, 3, *g.dims(count, low=2, high=7)])
    w = g.argument([2, 3, *kernel])
    return g.b.op(
        "convolution", x, w, padding=[0] * count, stride=stride, dilation=dilation,
        padding_mode=g.pick("same_upper", "same_lower"),
    )  # fmt: skip
