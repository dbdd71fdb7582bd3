"""Random programs for quantize_8bits."""

from pattern_graphs import case


# half a step of 1/20, of values of 1 and more
@case("quantize_8bits", rtol=0.0125, fires=0.8, options={"scales": (20.0, 25.0)})
def int8(g):
    """One value for each scale, and integers, which lose their capture."""
    x = g.argument(g.dims(g.pick(0, 1, 2)), g.pick("f32", "f64", "f16"), low=1, high=5)
    out = [g.b.op("capture", x, ins_index=g.pick(0, 1))] if g.coin(0.9) else [x]
    if g.coin(0.3):
        out.append(g.b.op("capture", g.argument((2,), "i32"), ins_index=2))
    return out


# half a unit of three bits
@case(
    "quantize_8bits", rtol=0.07, fires=0.9,
    options={"precision": "fp8e4m3fn", "scales": (80.0,), "shifts": (3.0,)},
)  # fmt: skip
def f8(g):
    x = g.argument(g.dims(2), low=1, high=5)
    return g.b.op("capture", x, ins_index=0)


@case(
    "quantize_8bits", rtol=0.0125, fires=0.9,
    options={"precision": "uint8", "scales": (20.0,), "shifts": (100.0,)},
)  # fmt: skip
def affine(g):
    x = g.argument((g.pick("n", 3), 2), low=1, high=5)
    return g.b.op("capture", x, ins_index=0)
