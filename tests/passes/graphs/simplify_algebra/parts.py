"""Random programs for simplify_algebra: of concatenations and slices."""

from pattern_graphs import case

from graphs.simplify_algebra.shared import NUMBERS, extents, repeated

# ---- concatenations ------------------------------------------------------------------------------


@case("find_concat_same_input", fires=0.4)
def find_concat_same_input(g):
    dims, kind = list(extents(g)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    dims[axis] = g.pick(1, 1, 1, 2)
    x = g.argument(dims, kind)
    values = [x] * g.pick(2, 3)
    if g.coin(0.2):
        values.append(g.argument(dims, kind))
    return g.b.op("concat", values, axis=axis - (len(dims) if g.coin(0.3) else 0))


@case("find_concat_op", fires=0.4)
def find_concat_op(g):
    """Broadcasts and packed weights."""
    if g.coin(0.3):
        kind, axis = g.pick("i8", "ui8"), g.pick(0, 1)
        along = g.pick(0, 1)
        values = []
        for _ in range(2):
            dims = [2, 2]
            dims[axis] = g.dims(1)[0]
            values.append(g.b.op("unpack_int4", g.argument(dims, kind), axis=along))
        return g.b.op("concat", values, axis=axis)
    dims, kind = list(g.dims(3, high=3)), g.pick(*NUMBERS)
    axis, kept = g.random.randrange(3), [g.coin(0.5) for _ in range(3)]
    values = []
    for _ in range(g.pick(2, 3)):
        dims[axis] = g.dims(1)[0]
        small = [d if k else 1 for d, k in zip(dims, kept, strict=True)]
        x = g.argument(small, kind) if g.coin(0.7) else g.constant(small, kind)
        values.append(g.maybe_used(g.b.multibroadcast(x, dims), 0.1))
    return g.b.op("concat", values, axis=axis)


@case("find_concat_op", fires=0.4, options={"all_forms": True})
def concat_of_pointwise_ops(g):
    dims, kind = list(extents(g)), g.pick(*NUMBERS)
    axis, name = g.random.randrange(len(dims)), g.pick("neg", "abs", "add", "mul", "sub")
    values = []
    for _ in range(g.pick(2, 3)):
        dims[axis] = g.dims(1)[0]
        own = name if g.coin(0.9) else g.pick("neg", "add")
        count = 1 if own in ("neg", "abs") else 2
        operands = [g.argument(dims, kind) for _ in range(count)]
        values.append(g.maybe_used(g.b.op(own, *operands), 0.1))
    return g.b.op("concat", values, axis=axis)


@case("find_split_concat", fires=0.35)
def find_split_concat(g):
    dims, kind = list(g.dims(g.pick(1, 2), low=2, high=6)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    x = g.argument(dims, kind)
    values, at = [], 0
    while at < dims[axis]:
        low = at if g.coin(0.8) else g.random.randrange(dims[axis])
        high = g.random.randint(low + 1, dims[axis])
        part = g.b.op("slice", x, axes=[axis], starts=[low], ends=[high])
        values.append(g.maybe_used(part, 0.2))
        at = max(high, at + 1)
    if g.coin(0.3):
        values.insert(g.random.randint(0, len(values)), x)
    return g.b.op("concat", values, axis=axis)


# ---- all parts of one tensor ---------------------------------------------------------------------


def cut(g, x, axis, chance=0.95):
    """Slices that cut `x` along `axis`, in any order; seldom with a gap or an overlap."""
    extent = g.b.dims(x)[axis]
    places = sorted(g.random.sample(range(1, extent), min(extent - 1, g.pick(1, 1, 2))))
    bounds = list(zip([0, *places], [*places, extent], strict=True))
    if g.coin(1 - chance):
        low, high = bounds[-1]
        bounds[-1] = (max(low - 1, 0), high) if g.coin() else (low, max(high - 1, low))
    g.random.shuffle(bounds)
    return [g.b.op("slice", x, axes=[axis], starts=[a], ends=[b]) for a, b in bounds], bounds


@case("find_splits", fires=0.5)
def find_splits(g):
    dims, kind = list(g.dims(g.pick(1, 2, 3), low=2, high=5)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    if len(dims) > 1 and g.coin(0.2):
        dims[axis - 1] = "n"
    x = g.argument(dims, kind)
    parts, bounds = cut(g, x, axis)
    kinds = ("constant", "unary", "tensor", "twice", "shared", "reduce")
    how = g.pick(*kinds[1:2], *kinds[2:4]) if "n" in dims else g.pick(*kinds)
    name = g.pick("add", "sub", "mul")
    y = g.argument(dims, kind)
    shared = g.argument([1] * len(dims), kind) if "n" not in dims else None
    number = g.pick(None, None, 0, 2)
    others = [i for i in range(len(dims)) if i != axis]
    out = []
    for part, (low, high) in zip(parts, bounds, strict=True):
        own = g.b.dims(part)
        flip = g.coin(0.05)
        if how == "unary" or flip:
            out.append(g.b.op(g.pick("neg", "abs") if flip else "neg", part))
        elif how == "reduce" and others:
            out.append(g.b.op("reduce_max", part, axes=others[:1]))
        elif how == "twice":
            out.append(g.b.op("mul", part, part))
        elif how == "tensor":
            z = g.b.op("slice", y, axes=[axis], starts=[low], ends=[high])
            out.append(g.b.op(name, *((z, part) if g.coin(0.1) else (part, z))))
        elif how == "shared":
            out.append(g.b.op(name, g.b.multibroadcast(shared, own), part))
        else:
            out.append(g.b.op(name, part, repeated(g, own, kind, value=number)))
    return [*out, *(p for p in parts if g.coin(0.1))]


@case("find_split_reshape", fires=0.35)
def find_split_reshape(g):
    dims, kind = list(g.dims(g.pick(1, 2, 3), low=1, high=3)), g.pick("f32", "i8")
    axis, unit = g.random.randrange(len(dims)), g.pick(1, 2)
    n = g.random.randint(2, 4)
    dims[axis] = n * unit
    dynamic_axis = len(dims) > 1 and axis > 0 and g.coin(0.2)
    x = g.argument([-1 if dynamic_axis and not i else d for i, d in enumerate(dims)], kind)
    places = sorted(g.random.sample(range(1, n), g.pick(1, min(2, n - 1))))
    form = g.pick("split", "join", "left", "ones")
    out = []
    for low, high in zip([0, *places], [*places, n], strict=True):
        part = g.b.op("slice", x, axes=[axis], starts=[low * unit], ends=[high * unit])
        own = [-1 if dynamic_axis and not i else d for i, d in enumerate(dims)]
        own[axis] = (high - low) * unit
        if form == "split":
            own[axis : axis + 1] = [high - low, unit]
        elif form == "join" and axis + 1 < len(own):
            own[axis : axis + 2] = [own[axis] * own[axis + 1]]
        elif form == "left" and axis > 0 and not dynamic_axis:
            own[axis - 1 : axis + 1] = [own[axis - 1] * own[axis]]
        else:
            own.insert(g.pick(0, len(own)), 1)
        part = g.maybe_used(part, 0.05)
        out.append(g.b.op("reshape", part, dims=own))
    return out


@case("find_split_transpose", fires=0.5)
def find_split_transpose(g):
    dims, kind = list(g.dims(g.pick(2, 3, 4), low=2, high=4)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    if g.coin(0.2):
        dims[axis - 1] = "n"
    x = g.argument(dims, kind)
    permutation = g.random.sample(range(len(dims)), len(dims))
    parts, _ = cut(g, x, axis)
    out = []
    for part in parts:
        own = permutation if g.coin(0.95) else list(reversed(range(len(dims))))
        out.append(g.b.op("transpose", g.maybe_used(part, 0.05), permutation=own))
    return out
