"""Random programs for the patterns of rewrite_quantization."""

from pattern_graphs import case

from mgx_mlir.core import dtypes


@case("apply_quantizelinear")
def apply_quantizelinear(g):
    dims = g.dims(g.random.randint(0, 3))
    kind = g.pick("f32", "f32", "f64", "f16", "bf16")
    to = g.pick("i8", "ui8", "i16", "ui16", "i32", "f8E4M3FN", "f8E5M2")
    scale = g.pick(0.01, 0.5, 1e-6)  # now and then everything saturates
    x, s = g.argument(dims, kind), g.argument(dims, kind, low=scale, high=2 * scale)
    zero = [] if g.coin(0.4) else [g.argument(dims, to)]
    stated = not zero or to[0] == "f"
    more = {"out_type": dtypes.from_name(to)} if stated else {}
    return g.b.op("quantizelinear", x, s, *zero, **more)


@case("apply_dequantizelinear")
def apply_dequantizelinear(g):
    dims = g.dims(g.random.randint(0, 3))
    kind = g.pick("i8", "ui8", "i16", "i32", "f8E4M3FN")
    low, high = (None, None) if kind[0] == "f" else (0 if kind[0] == "u" else -100, 100)
    x = g.argument(dims, kind, low, high)
    zero = [] if g.coin(0.4) else [g.argument(dims, kind, low, high)]
    s = g.argument(dims, g.pick("f32", "f32", "f64", "f16", "bf16"))
    return g.b.op("dequantizelinear", x, s, *zero)
