"""Random programs for eliminate_data_type."""

from pattern_graphs import case

INTEGERS = ("int32", "int64", "uint8", "int16")


@case("eliminate_data_type", fires=0.4, options={"types": INTEGERS})
def of_integers(g):
    """Small integers are exact in f32; indices stay integers."""
    dims = g.dims(2)
    kind = g.pick("i32", "i64", "ui8", "i16", "f32", "i8")
    x, y = g.argument(dims, kind), g.constant(dims, kind)
    z = g.b.op(g.pick("add", "mul", "max"), x, y)
    index = g.constant((2,), "i64", low=0, high=0)
    return [z, g.b.op("gather", z, index, axis=0), g.b.op("reduce_sum", z, axes=[1])]


@case(
    "eliminate_data_type",
    fires=0.4,
    options={"types": ("uint8", "int8"), "unsupported_ops": ("quant_dot", "quant_convolution")},
)
def of_products(g):
    """Quantised products become general ones; other ops are left alone."""
    m, k, n = g.dims(3)
    a, b = (g.argument(d, g.pick("i8", "ui8")) for d in ((m, k), (k, n)))
    if g.coin(0.3):
        return g.b.op("relu", a)
    if g.coin():
        return g.b.op("quant_dot", a, b)
    x, w = g.argument((1, 2, 3, 3), "ui8"), g.constant((3, 1, 2, 2), g.pick("i8", "ui8"))
    w = g.b.op("concat", [w, w], axis=1)
    return g.b.op("quant_convolution", x, w, padding=[g.pick(0, 1)] * 2, stride=[1, g.pick(1, 2)])


@case(
    "eliminate_data_type", fires=0.5, special=False,
    options={"types": ("half", "bf16"), "target_type": "float"},
)  # fmt: skip
def of_sixteen_bits(g):
    """Each op alone is computed in f32 and rounded, in either form."""
    x = g.argument(g.dims(2), g.pick("f16", "bf16", "f32"))
    return g.b.op("exp", g.b.op(g.pick("add", "div"), x, g.b.op("tanh", x)))
