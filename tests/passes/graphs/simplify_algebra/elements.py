"""Random programs for simplify_algebra: of single ops and of constants in sums and products."""

from pattern_graphs import case

from graphs.simplify_algebra.shared import (
    FLOATS,
    NUMBERS,
    WIDE,
    extents,
    product,
    repeated,
    swapped,
)

# ---- single ops ----------------------------------------------------------------------------------


@case("find_unit_ops", rtol=1e-7, special=True, fires=0.4)
def find_unit_ops(g):
    dims, kind = extents(g), g.pick(*NUMBERS, "ui8")
    name = g.pick("mul", "add", "sub", "div", *(["max"] if kind == "ui8" else []))
    x = g.argument(dims, kind, 1 if kind[0] != "f" and name == "div" else None)
    unit = repeated(g, dims, kind, value=(name in ("mul", "div")) ^ g.coin(0.1))
    return g.b.op(name, x, unit) if name in ("sub", "div") else swapped(g, name, x, unit)


@case("find_where_const", fires=0.6)
def find_where_const(g):
    dims, kind = extents(g), g.pick(*NUMBERS)
    value = g.pick(True, False, None)
    condition = repeated(g, dims, "bool", value=value)
    return g.b.op("where", condition, g.argument(dims, kind), g.argument(dims, kind))


@case("find_met_require")
def find_met_require(g):
    x = g.argument(extents(g), g.pick(*NUMBERS))
    met = repeated(g, g.pick([], [2], [2, 3]), "bool", value=True)
    return g.b.op("require", g.maybe_used(x), met, expected="a size that fits")


@case("find_neg_unit_ops", rtol=1e-7, special=True, fires=0.5)
def find_neg_unit_ops(g):
    dims, kind, name = extents(g), g.pick(*NUMBERS), g.pick("mul", "div", "sub")
    x = g.argument(dims, kind)
    if name == "sub":
        return g.b.op("sub", repeated(g, dims, kind, value=g.pick(0, 0, 1)), x)
    c = repeated(g, dims, kind, value=-1)
    return swapped(g, "mul", x, c) if name == "mul" else g.b.op("div", x, c)


@case("find_zero_ops", fires=0.3)
def find_zero_ops(g):
    """Integers always, floats never."""
    dims, kind, name = extents(g), g.pick("f32", "i32", "ui8", "i64"), g.pick("mul", "div")
    x = g.argument(dims, kind, *((1, 5) if kind != "f32" and name == "div" else ()))
    zero = repeated(g, dims, kind, value=0)
    return swapped(g, "mul", x, zero) if name == "mul" else g.b.op("div", zero, x)


@case("find_zero_ops", rtol=1e-7, options={"fast_math": True}, special=False)
def zeros_of_floats(g):
    dims, kind = extents(g), g.pick(*FLOATS)
    return swapped(g, "mul", g.argument(dims, kind), repeated(g, dims, kind, value=0))


@case("find_idempotent", fires=0.6)
def find_idempotent(g):
    dims, kind = extents(g, 0), g.pick(*NUMBERS, "ui8")
    x = g.argument(dims, kind)
    return g.b.op(g.pick("max", "min"), x, g.argument(dims, kind) if g.coin(0.2) else x)


@case("eliminate_zero_point", fires=0.5)
def eliminate_zero_point(g):
    dims, kind, wide = extents(g), g.pick("i8", "ui8", "i32"), g.pick("f32", "f16", "f64")
    scale = repeated(g, dims, wide, value=g.pick(0.5, 0.1, 2))
    value = g.pick(0, 0, 0, 3, None)
    z = repeated(g, dims, kind, value=value)
    if g.coin():
        return g.b.op("quantizelinear", g.argument(dims, wide, -50, 50), scale, z)
    return g.b.op("dequantizelinear", g.argument(dims, kind), scale, z)


@case("find_sub_const", fires=0.5)
def find_sub_const(g):
    dims, kind = extents(g), g.pick(*NUMBERS, "ui8")
    return g.b.op("sub", g.argument(dims, kind), g.maybe_used(repeated(g, dims, kind)))


@case("find_div_const", special=True, fires=0.3)
def find_div_const(g):
    """Powers of two: to the last bit."""
    dims, kind = extents(g), g.pick(*FLOATS, "i32")
    c = repeated(g, dims, kind, value=g.pick(2, 4, 8, 3))
    return g.b.op("div", g.argument(dims, kind), c)


@case("find_div_const", rtol=1e-5, options={"fast_math": True}, special=False)
def quotients_by_any_constant(g):
    dims, kind = extents(g), g.pick(*FLOATS, "i32")
    return g.b.op("div", g.argument(dims, kind), g.constant(dims, kind, 1, 5))


@case("find_div_const", options={"fast_math": True}, special=True, fires=0)
def quotients_ahead_of_steps(g):
    """Not one element may differ."""
    dims, kind = extents(g), g.pick("f32", "f64")
    x = g.b.op("div", g.argument(dims, kind, -99, 99), g.constant(dims, kind, 1, 99))
    if g.coin(0.5):
        x = g.b.op("add", x, g.argument(dims, kind))
    return g.b.op(g.pick("floor", "ceil", "nearbyint"), x)


@case("find_recip", rtol=1e-6, special=True, fires=0.5)
def find_recip(g):
    dims, kind = extents(g), g.pick(*FLOATS, "i32")
    one = repeated(g, dims, kind, value=g.pick(1, 1, 1, 2))
    return g.b.op("div", one, g.argument(dims, kind, 1, 5))


@case("find_rsqrt", rtol=1e-5, special=False)
def find_rsqrt(g):
    x = g.argument(extents(g), g.pick(*FLOATS), 0.1, 9)
    return g.b.op("recip", g.maybe_used(g.b.op("sqrt", x)))


@case("find_pow2", rtol=1e-5, special=True, fires=0.5)
def find_pow2(g):
    dims, kind = extents(g), g.pick(*FLOATS)
    return g.b.op("pow", g.argument(dims, kind), repeated(g, dims, kind, value=g.pick(2, 2, 2, 3)))


@case("find_pow_const", rtol=1e-5, special=False, fires=0.5)
def find_pow_const(g):
    dims, kind = extents(g), g.pick(*FLOATS)
    n = g.pick(1, 3, 4, -1, 0.5)
    return g.b.op("pow", g.argument(dims, kind, 0.5, 3), repeated(g, dims, kind, value=n))


@case("find_log_exp", rtol=1e-5, options={"fast_math": True}, special=False)
def find_log_exp(g):
    x = g.argument(extents(g), g.pick("f32", "f64"), -3, 3)
    return g.b.op("log", g.maybe_used(g.b.op("exp", x)))


@case("find_log_div", rtol=1e-5, options={"fast_math": True}, special=False)
def find_log_div(g):
    dims = extents(g)
    kind = g.pick("f32", "f64")
    x = g.argument(dims, kind, -3, 3)
    exp = g.b.op("exp", x)
    below = exp
    if g.coin(0.3):
        below = g.b.op("exp", g.argument(dims, kind, -3, 3))
    elif g.coin(0.8):
        axes = [g.random.randrange(len(dims))]
        below = g.b.multibroadcast(g.b.op("reduce_sum", exp, axes=axes), dims)
    above = exp if g.coin(0.8) else g.argument(dims, kind, 1, 5)
    log = g.b.op("log", g.maybe_used(g.b.op("div", above, below)))
    return g.b.op("add", log, x)  # a difference has the absolute error of its operands


# ---- constants in sums and products --------------------------------------------------------------


@case("find_add_lit_broadcast", rtol=1e-5, special=False)
def find_add_lit_broadcast(g):
    dims, kind = extents(g), g.pick(*WIDE)
    inner = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    return swapped(g, "add", g.maybe_used(inner, 0.2), repeated(g, dims, kind))


@case("find_double_add_lit_broadcast", rtol=1e-5, special=False)
def find_double_add_lit_broadcast(g):
    dims, kind = extents(g), g.pick(*WIDE)
    left = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    right = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    return g.b.op("add", g.maybe_used(left, 0.1), g.maybe_used(right, 0.1))


@case("find_mul_add", rtol=1e-5, special=False)
def find_mul_add(g):
    dims, kind = extents(g), g.pick(*WIDE)
    total = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    return swapped(g, "mul", g.maybe_used(total, 0.2), repeated(g, dims, kind))


@case("find_inner_broadcast", fires=0.4)
def find_inner_broadcast(g):
    dims, kind = extents(g), g.pick(*NUMBERS)

    def operand():
        if g.coin(0.2):
            return repeated(g, dims, kind)
        small = [d if g.coin(0.4) else 1 for d in dims]
        return g.b.multibroadcast(g.argument(small, kind), dims)

    if g.coin(0.3):
        return g.b.op(g.pick("neg", "abs"), operand())
    return g.b.op(g.pick("add", "mul", "sub", "max"), g.maybe_used(operand()), operand())
