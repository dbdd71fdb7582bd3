"""Random programs for fp_to_double."""

from pattern_graphs import case

from mgx_mlir.core import dtypes


# values that f32 rounds
@case("fp_to_double", rtol=1e-5, fires=0.9)
def fp_to_double(g):
    m, k, n = g.dims(3)
    x, w = g.argument((m, k)), g.constant((k, n), low=0.1, high=1)
    y = g.b.op("dot", g.b.op("sigmoid", x), g.maybe_used(w))
    if g.coin():
        y = g.b.op("convert", g.b.op("convert", y, target_type=dtypes.DOUBLE),
                   target_type=dtypes.FLOAT)  # fmt: skip
    i = g.argument((m, n), "i32")
    z = g.b.op("add", g.maybe_used(y), g.b.op("convert", i, target_type=dtypes.FLOAT))
    return g.b.op("softmax", z, axis=g.pick(0, 1))


# a rounding of f16 that is gone
@case("fp_to_double", rtol=4e-3, fires=0.9)
def of_sixteen_bits(g):
    x = g.argument(g.dims(2), g.pick("f16", "bf16"))
    return g.b.op("tanh", g.b.op("exp", g.maybe_used(g.b.op("sigmoid", x))))
