"""Random programs for eliminate_data_type_for_gpu."""

from pattern_graphs import case


# f8 products in f32 either way; sums in another order
@case("eliminate_data_type_for_gpu", rtol=1e-5, fires=0.5, options={"arch": "gfx90a"})
def products(g):
    m, k, n = g.dims(3)
    kind = g.pick("fp8e4m3fn", "fp8e5m2", "ui8", "i8", "i64", "f64", "f16")
    x, w = g.argument((m, k), kind), g.constant((k, n), kind)
    name = "quant_dot" if kind in ("fp8e4m3fn", "fp8e5m2", "ui8", "i8") else "dot"
    return g.b.op(name, x, w)


# f64 in f32
@case("eliminate_data_type_for_gpu", rtol=1e-5, fires=0.5, options={"disable_64bit": True})
def wide(g):
    kind = g.pick("f64", "i64", "ui64", "i32")
    x = g.argument(g.dims(2), kind)
    return g.b.op("reduce_sum", g.b.op("mul", x, x), axes=[g.pick(0, 1)])
