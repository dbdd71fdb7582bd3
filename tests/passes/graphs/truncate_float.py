"""Random programs for truncate_float."""

from pattern_graphs import case

from mgx_mlir.core import dtypes


# four roundings of 2**-11, and sums of up to five products
@case("truncate_float", rtol=4e-3, fires=0.8)
def truncate_float(g):
    """Arithmetic with integers, conversions and quantisers beside it."""
    m, k, n = g.dims(3)
    kind = g.pick("f32", "f64")
    x = g.argument((m, k), kind)
    y = g.b.op("dot", g.b.op("tanh", x), g.constant((k, n), kind, low=0.1, high=1))
    if g.coin(0.3):
        y = g.b.op("convert", y, target_type=dtypes.INT32)
        y = g.b.op("convert", y, target_type=dtypes.FLOAT)
    out = [g.b.op("softmax", y, axis=1), g.b.op("equal", y, y)]
    if g.coin(0.3):
        scale = g.b.multibroadcast(g.constant((), g.b.dtype(x), value=1e-9), (m, k))
        out.append(g.b.op("quantizelinear", x, scale, out_type=dtypes.INT8))
    return out
