"""Random programs for the patterns of insert_pad. (numpy sums a window in an order of its own.)"""

from pattern_graphs import case


def padded_convolution(g, last, padding):
    """A convolution in either layout with this padding; groups and strides vary."""
    spatial = 2
    channels, out = 2, g.pick(2, 4)
    group = g.pick(1, 2)
    image = g.dims(spatial, low=3)
    window = g.dims(spatial, high=3)
    n = g.random.randint(1, 2)
    x = g.argument((n, *image, channels) if last else (n, channels, *image))
    # channels-last weights are spatial.., in, out
    w = (*window, channels // group, out) if last else (out, channels // group, *window)
    return g.b.op(
        "convolution",
        g.maybe_used(x),
        g.constant(w),
        padding=padding,
        stride=[g.random.randint(1, 2) for _ in range(spatial)],
        dilation=[1] * spatial,
        group=group,
        channels_last=last,
    )


@case("find_convolution_padding", rtol=1e-6, special=True, fires=0.15)
def find_convolution_padding(g):
    """Without `dense` only what is padded on one side more than on the other."""
    return padded_convolution(g, g.coin(), [g.random.randint(0, 2) for _ in range(g.pick(2, 4))])


@case("find_convolution_padding", fires=0.5, options={"dense": True})
def dense(g):
    pads = [g.random.randint(0, 2) for _ in range(2)]
    return padded_convolution(g, g.coin(0.8), pads * g.pick(1, 2))


@case("find_quant_convolution_padding", fires=0.5, options={"leave": "windows"})
def of_8_bits(g):
    last, (high, wide) = g.coin(), g.dims(2, low=3)
    x = g.argument((1, high, wide, 2) if last else (1, 2, high, wide), "i8")
    w = g.constant((2, 3, 2, 4) if last else (4, 2, 2, 3), "i8")
    pads = [g.random.randint(0, 2) for _ in range(g.pick(2, 4))]
    return g.b.op(
        "quant_convolution", x, w, padding=pads, channels_last=last, pad_value=g.pick(0, -7, 99, 3)
    )
