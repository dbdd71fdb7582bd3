"""Random programs for the patterns of rewrite_resize."""

from pattern_graphs import case

MODES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_half_pixel_for_nn")  # fmt: skip


def resized(g, x, mode, **more):
    """Axes repeated, thinned out, resized to anything, or left alone."""
    dims = g.b.dims(x)
    sizes, scales = [], []
    for d in dims:
        k = g.pick(1, 1, 2, 3)
        free = g.random.randint(1, 9) if d else 0  # nothing can be resized from nothing
        sizes.append(g.pick(d, d * k, d * k, -(-d // k), free))
        scales.append(g.pick(1.0, float(k), float(k), 0.5 if d > 1 else 1.0, 1.7))
    extents = {"sizes": sizes} if g.coin() else {"scales": scales}
    where = g.pick(*MODES)
    return g.b.op("resize", x, mode=mode, coordinate_transformation_mode=where, **extents, **more)


def image(g, *kinds):
    rank = g.random.randint(1, 4)
    return g.argument(g.dims(rank, low=0 if g.coin(0.1) else 1), g.pick(*kinds))


NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")


@case("rewrite_nearest_resize")
def rewrite_nearest_resize(g):
    x = image(g, "f32", "f16", "i8", "i64", "i1")
    return resized(g, x, "nearest", nearest_mode=g.pick(*NEAREST))


@case("rewrite_nearest_resize", fires=0.2, options={"affine_only": True})
def views_only(g):
    x = image(g, "f32", "i32")
    return resized(g, x, "nearest", nearest_mode=g.pick(*NEAREST))


@case("rewrite_linear_resize", rtol=1e-5)
def rewrite_linear_resize(g):
    x = image(g, "f32", "f32", "f16", "f64", "i32")
    return resized(g, x, "linear", exclude_outside=g.coin(0.1), antialias=g.coin(0.1))
