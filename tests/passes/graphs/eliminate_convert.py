"""Random programs for the patterns of eliminate_convert."""

from pattern_graphs import case

from mgx_mlir.core import dtypes

ANY = ("f32", "f16", "f64", "bf16", "i64", "i32", "i8", "ui8", "bool")


@case("find_nop_converts", fires=0.4)
def find_nop_converts(g):
    """The same type twice, and other types, which stay."""
    kind = g.pick(*ANY)
    x = g.argument(g.dims(g.pick(0, 2)), kind)
    target = dtypes.from_name(kind if g.coin(0.7) else g.pick(*ANY))
    return g.b.op("convert", g.maybe_used(x), target_type=target)


@case("find_nested_convert", fires=0.3)
def find_nested_convert(g):
    """Through types that hold every value of the first, and through those that do not."""
    first, middle, last = g.pick(*ANY), g.pick("f64", "f32", "i64", "i32", *ANY), g.pick(*ANY)
    x = g.argument(g.dims(g.pick(0, 1, 2)), first)
    y = g.b.op("convert", x, target_type=dtypes.from_name(middle))
    return g.b.op("convert", g.maybe_used(y), target_type=dtypes.from_name(last))


@case("find_nested_convert", fires=0.5)
def wide_in_the_middle(g):
    x = g.argument(g.dims(2), g.pick("f16", "bf16", "i8", "ui8", "i16"))
    y = g.b.op("convert", x, target_type=g.pick(dtypes.FLOAT, dtypes.DOUBLE))
    return g.b.op("convert", g.maybe_used(y), target_type=g.pick(*dtypes.DTYPES))


@case("find_clip_convert", fires=0.4)
def find_clip_convert(g):
    """A clip to the whole range of a type, to a wider one, and to a narrower one, which stays."""
    dims = g.dims(g.pick(1, 2))
    x = g.argument(dims, g.pick("f32", "f64"))
    target = g.pick(dtypes.INT8, dtypes.UINT8)
    low, high = float(target.lowest()), float(target.highest())
    if g.coin(0.5):
        low, high = low - g.pick(-3, 0, 4), high + g.pick(-2, 0, 300)
    kind = g.b.dtype(x)
    bounds = [g.b.multibroadcast(g.b.literal(v, kind), dims) for v in (low, high)]
    return g.b.op("convert", g.maybe_used(g.b.op("clip", x, *bounds)), target_type=target)
