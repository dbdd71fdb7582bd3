"""Random programs for the patterns of simplify_reshapes."""

from math import prod

from pattern_graphs import case

from mgx_mlir.core import dtypes
from mgx_mlir.core.shapes import DYN

DTYPES = ("f32", "f32", "f16", "f64", "i32", "i8", "bool")
NUMBERS = ("f32", "f32", "f16", "f64", "i32")


def split(g, n, parts=3):
    """Extents with the product `n`."""
    out = []
    while n > 1 and len(out) < parts - 1:
        out.append(g.pick(*[d for d in range(1, n + 1) if n % d == 0]))
        n //= out[-1]
    out.append(n)
    return out


def reshaped(g, x):
    """Some reshape, squeeze or unsqueeze of `x`."""
    dims = g.b.dims(x)
    kind = g.pick("reshape", "reshape", "unsqueeze", "squeeze", "flatten", "reshape_lazy")
    if kind == "unsqueeze":
        return g.b.op("unsqueeze", x, axes=[g.random.randint(0, len(dims))])
    if kind == "squeeze":
        return g.b.op("squeeze", x, axes=[])
    if kind == "flatten":
        return g.b.op("flatten", x, axis=g.random.randint(0, len(dims)))
    return g.b.op(kind, x, dims=split(g, prod(dims)))


def permuted(g, x):
    rank = len(g.b.dims(x))
    return g.b.op("transpose", x, permutation=g.random.sample(range(rank), rank))


def widened(g, x):
    """`x` broadcast in one of the three ways."""
    dims = g.b.dims(x)
    if prod(dims) == 1 and g.coin(0.3):
        return g.b.op("scalar", x, scalar_bcst_dims=g.dims(2))
    if g.coin(0.3):
        axis, more = g.random.randint(0, 1), g.dims(2, high=2)
        return g.b.op("broadcast", x, axis=axis, out_lens=(*more[:axis], *dims, *more[axis:]))
    wide = [g.pick(1, 2, 3) if d == 1 else d for d in dims]
    return g.b.op("multibroadcast", [x], out_lens=(g.pick(1, 2), *wide))


def viewed(g, x, steps=None, kinds=(reshaped, permuted, widened)):
    for _ in range(steps or g.random.randint(1, 4)):
        if len(g.b.dims(x)) < 6 and prod(g.b.dims(x)) < 300:
            x = g.pick(*kinds)(g, x)
    return x


def sliced(g, x, axes=1):
    """A part of `x`, of one element or more along each axis."""
    dims = g.b.dims(x)
    where = g.random.sample(range(len(dims)), min(axes, len(dims)))
    bounds = [sorted(g.random.sample(range(dims[a] + 1), 2)) if dims[a] else (0, 0) for a in where]
    low, high = zip(*bounds, strict=True) if bounds else ((), ())
    return g.b.op("slice", x, axes=where, starts=low, ends=high)


def computed(g, dims, dtype=None):
    """A value that a kernel computes (near miss: an argument as it is)."""
    dtype = dtype or g.pick("f32", "f32", "f64", "i32")
    x = g.argument(dims, dtype)
    if g.coin(0.1):
        return x
    if dtype == "f32" and len(dims) >= 2 and g.coin(0.3):
        return g.b.op("dot", x, g.argument((*dims[:-2], dims[-1], dims[-1])))
    if len(dims) and g.coin(0.3):
        return g.b.op("reduce_max", x, axes=[g.random.randrange(len(dims))])
    return g.b.op(g.pick("neg", "abs"), x)


# ---- views --------------------------------------------------------------------------------------


@case("find_nop_reshapes")
def find_nop_reshapes(g):
    """Ops that give their operand back; the same ops where they do something."""
    rank = g.random.randint(1, 4)
    dims = [g.pick(0, 1, 1, 2, 3) for _ in range(rank)] if g.coin(0.8) else [1] * rank
    x = g.argument(dims, g.pick(*NUMBERS))
    if g.coin(0.15):
        x = g.argument([DYN, *dims[1:]])
    static = DYN not in g.b.dims(x)
    kind = g.pick("reshape", "transpose", "slice", "step", "pad", "concat", "contiguous",
                  "multibroadcast", "broadcast", "reduce")  # fmt: skip
    if kind == "reshape":
        return g.b.op(kind, x, dims=[-1 if d < 0 else d for d in g.b.dims(x)])
    if kind == "transpose":
        return permuted(g, x)
    if kind == "slice":
        return g.b.op(kind, x, axes=[0], starts=[0], ends=[g.pick(9, 9, 9, 1)])
    if kind == "step":
        return g.b.op(kind, x, axes=[0], steps=[g.pick(1, 1, 2)])
    if kind == "pad":
        return g.b.op(kind, x, pads=[g.pick(0, 0, 0, 1), *[0] * (2 * rank - 1)])
    if kind == "concat":
        return g.b.op(kind, [x] * g.pick(1, 1, 2), axis=0)
    if kind == "multibroadcast" and static:
        return g.b.op(kind, [x], out_lens=dims)
    if kind == "broadcast" and static:
        return g.b.op(kind, x, out_lens=dims)
    if kind == "reduce" and g.b.dtype(x).is_float and 0 not in g.b.dims(x):
        name = g.pick("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
        ones = [i for i, d in enumerate(g.b.dims(x)) if d == 1] or [0]
        return g.b.op(name, x, axes=ones)
    return g.b.op("contiguous", x)


@case("find_flatten")
def find_flatten(g):
    dims = g.dims(g.random.randint(0, 4), low=g.pick(0, 1, 1, 1))
    x = g.argument((DYN, *dims[1:]) if dims and g.coin(0.2) else dims, g.pick(*DTYPES))
    return g.b.op("flatten", x, axis=g.random.randint(-len(dims), len(dims)))


@case("find_transpose")
def find_transpose(g):
    dims = g.dims(g.random.randint(1, 5), low=g.pick(0, 1))
    x = g.argument((DYN, *dims[1:]) if g.coin(0.2) else dims, g.pick(*DTYPES))
    inner = x if g.coin(0.1) else permuted(g, x)
    return permuted(g, g.maybe_used(inner))


@case("find_nested_shape_transforms", fires=0.3)
def find_nested_shape_transforms(g):
    """Chains of all views; those in their shortest form stay."""
    x = viewed(g, g.argument(g.dims(g.random.randint(0, 3), high=4), g.pick(*DTYPES)), 2)
    return viewed(g, g.maybe_used(x), g.random.randint(1, 3))


# ---- gathers ------------------------------------------------------------------------------------


@case("find_gather_scalar")
def find_gather_scalar(g):
    dims = g.dims(g.random.randint(1, 4))
    axis = g.random.randrange(len(dims))
    shape = [DYN if g.coin(0.1) else d for d in dims]
    x = g.argument(shape, g.pick(*DTYPES))
    kind = g.pick("i32", "i64")
    at = () if g.coin(0.8) else (1,)
    i = g.argument(at, kind) if g.coin(0.1) else g.constant(at, kind, low=-7, high=7)
    return g.b.op("gather", x, i, axis=axis - len(dims) if g.coin() else axis)


@case("find_gather_gather", fires=0.4)
def find_gather_gather(g):
    """Two tables, the numbers of the first one converted; now and then beyond the second one."""
    dims = list(g.dims(g.random.randint(1, 3), high=4))
    axis = g.random.randrange(len(dims))
    n = dims[axis]
    low, high = (-n, n - 1) if g.coin(0.8) else (-n - 1, n)
    places = g.constant((g.random.randint(1, 6),), g.pick("i32", "i64"), low=low, high=high)
    at = [DYN if g.coin(0.2) else d for d in g.dims(g.random.randint(0, 2), high=4)]
    i = g.b.op("gather", places, g.argument(at, g.pick("i32", "i64")), axis=0)
    if g.coin(0.3):
        i = g.b.op("convert", i, target_type=dtypes.from_name(g.pick("i32", "i64")))
    x = g.constant(dims, g.pick(*DTYPES)) if g.coin(0.9) else g.argument(dims, "f32")
    return g.b.op("gather", x, i, axis=axis)


@case("find_gather", fires=0.4)
def find_gather(g):
    """Nested strides, of 0 too, in any order of the index dims; random indices stay."""
    low = g.random.randint(0, 3)
    atoms = [(n, s) for n, s in zip(g.dims(3, high=3), (6, 2, 1), strict=True)]
    atoms = g.random.sample(atoms, g.random.randint(0, 3))
    atoms = [(n, 0) if g.coin(0.2) else (n, s) for n, s in atoms]
    places = [low]
    for n, s in atoms:
        places = [p + i * s for p in places for i in range(n)]
    if g.coin(0.15):
        g.random.shuffle(places)
    extent = max(places) + 1 + g.random.randint(0, 4)
    if g.coin(0.2):
        places = [p - extent if g.coin(0.2) else p for p in places]  # the same, from the end
    dims = list(g.dims(g.random.randint(1, 3), high=3))
    axis = g.random.randrange(len(dims))
    dims[axis] = extent
    shape = [DYN if i != axis and g.coin(0.1) else d for i, d in enumerate(dims)]
    x = g.argument(shape, g.pick(*DTYPES))
    at = split(g, len(places), g.random.randint(1, 3))
    indices = g.constant((len(places),), "i64", value=places)
    return g.b.op("gather", x, g.b.literal(g.b.const(indices).reshape(at)), axis=axis)


# ---- slices and concatenations ------------------------------------------------------------------


@case("find_nested_slice")
def find_nested_slice(g):
    dims = g.dims(g.random.randint(1, 3), low=2, high=6)
    x = g.argument((DYN, *dims[1:]) if g.coin(0.1) else dims, g.pick(*DTYPES))
    if DYN in g.b.dims(x):
        x = g.b.op("slice", x, axes=[0], starts=[0], ends=[2])
        return g.b.op("slice", x, axes=[0], starts=[1], ends=[2])
    inner = x if g.coin(0.1) else sliced(g, x, g.random.randint(1, 2))
    return sliced(g, g.maybe_used(inner), g.random.randint(1, 2))


@case("find_concat_slice")
def find_concat_slice(g):
    rank = g.random.randint(1, 3)
    axis, dims, kind = g.random.randrange(rank), g.dims(rank), g.pick(*DTYPES)
    parts = [
        g.argument([g.random.randint(0, 3) if i == axis else d for i, d in enumerate(dims)], kind)
        for _ in range(g.random.randint(2, 5))
    ]
    joined = g.maybe_used(g.b.op("concat", parts, axis=axis - rank if g.coin() else axis))
    extent = g.b.dims(joined)[axis]
    if extent < 1:
        return joined
    low = g.random.randrange(extent)
    high = g.random.randint(low, min(extent, low + 3))
    x = g.b.op("slice", joined, axes=[axis], starts=[low], ends=[high])
    return sliced(g, x) if 0 not in g.b.dims(x) else x


@case("find_slice_shape_transforms", fires=0.3)
def find_slice_shape_transforms(g):
    """Reshapes that keep the sliced axis, join it or split it; some cut it."""
    rank = g.random.randint(1, 4)
    dims = g.dims(rank, low=g.pick(0, 1, 2, 2), high=6)
    x = g.argument(dims, g.pick(*DTYPES))
    part = g.maybe_used(sliced(g, x, g.pick(1, 1, 1, 2)), 0.1)
    if not prod(g.b.dims(part)):
        return g.b.op("flatten", part)
    if g.coin(0.3):
        return reshaped(g, part)
    return g.b.op("reshape", part, dims=[d for e in g.b.dims(part) for d in split(g, e, 2)])


def pieces(g, x, axis, count, equal=0.8):
    """`x` cut into `count` parts along an axis, most often equal ones."""
    extent = g.b.dims(x)[axis]
    cuts = sorted(g.random.sample(range(1, extent), count - 1))
    if g.coin(equal):
        cuts = [extent // count * (i + 1) for i in range(count - 1)]
    bounds = list(zip([0, *cuts], [*cuts, extent], strict=True))
    if g.coin(0.1):
        bounds = bounds[1:]
    return [g.b.op("slice", x, axes=[axis], starts=[a], ends=[b]) for a, b in bounds]


@case("find_slice_transpose", fires=0.3)
def find_slice_transpose(g):
    """Parts transposed alike, one or two otherwise; too few, used again or of other axes stay."""
    rank, count = g.random.randint(2, 4), g.pick(2, 3)
    axis, dims = g.random.randrange(rank), list(g.dims(rank, high=3))
    dims[axis] = count * g.random.randint(1, 3)
    x = g.maybe_used(g.argument(dims, g.pick(*DTYPES)))
    permutation = g.random.sample(range(rank), rank)
    if g.coin(0.2):
        x = g.b.op("contiguous", x)
    out = []
    for part in pieces(g, x, axis, count):
        other = g.random.sample(range(rank), rank) if g.coin(0.2) else permutation
        out.append(g.b.op("transpose", g.maybe_used(part, 0.1), permutation=other))
    return out


@case("find_transpose_slice", fires=0.3)
def find_transpose_slice(g):
    """All of equal pieces, or some; unequal ones, or a transpose with another user, stay."""
    rank, count = g.random.randint(2, 4), g.pick(2, 3)
    dims = list(g.dims(rank, high=3))
    permutation = g.random.sample(range(rank), rank)
    axis = g.random.randint(g.pick(0, 1, 1), rank - 1)
    dims[permutation[axis]] = count * g.random.randint(1, 3)
    x = g.argument(dims, g.pick(*DTYPES))
    view = g.maybe_used(g.b.op("transpose", x, permutation=permutation), 0.1)
    return pieces(g, view, axis, count)


@case("find_nested_concat")
def find_nested_concat(g):
    rank = g.random.randint(1, 3)
    axis, dims, kind = g.random.randrange(rank), g.dims(rank), g.pick(*DTYPES)
    inner = axis if g.coin(0.8) else g.random.randrange(rank)

    def part():
        return g.argument(dims, kind)

    a = g.maybe_used(g.b.op("concat", [part(), part()], axis=inner - rank if g.coin() else inner))
    wide = g.argument(g.b.dims(a), kind)
    return g.b.op(
        "concat", g.random.sample([a, wide, a], 3), axis=axis - rank if g.coin() else axis
    )


def alike(g, rank, axis, high=4):
    """Arguments of dims that differ along `axis` at most."""
    dims, kind = g.dims(rank, high=high), g.pick(*DTYPES)
    return [
        g.argument([g.random.randint(0, 3) if i == axis else d for i, d in enumerate(dims)], kind)
        for _ in range(g.random.randint(2, 4))
    ]


def joined(g, parts, axis):
    """The concat; in some draws it is sliced, which another pattern must see first."""
    x = g.b.op("concat", parts, axis=axis)
    if g.coin(0.1):
        return g.b.op("slice", x, axes=[axis], starts=[0], ends=[1])
    return x


@case("find_concat_transpose")
def find_concat_transpose(g):
    rank = g.random.randint(1, 4)
    axis = g.random.randrange(rank)
    permutation = g.random.sample(range(rank), rank)
    out = [
        g.maybe_used(g.b.op("transpose", x, permutation=permutation), 0.1)
        for x in alike(g, rank, permutation[axis])
    ]
    if g.coin(0.1):
        out[0] = g.argument(g.b.dims(out[0]), g.b.dtype(out[0]))
    return joined(g, out, axis)


@case("find_concat_reshape", fires=0.4)
def find_concat_reshape(g):
    """The joined axis keeps what is before it; in other draws it does not."""
    lead, tail = g.dims(g.random.randint(0, 2), high=3), g.dims(g.random.randint(0, 2), high=3)
    kind = g.pick(*DTYPES)
    extents = [g.random.randint(1, 3) for _ in range(g.random.randint(2, 3))]
    first, last = split(g, prod(lead), 2), split(g, prod(tail), 2)
    if g.coin(0.2):  # another split of the same elements
        first, last = [1, *first], [prod(tail)]
    parts = []
    for n in extents:
        x = g.argument((*lead, n, *tail), kind)
        parts.append(g.maybe_used(g.b.op("reshape", x, dims=[*first, n, *last]), 0.1))
    if g.coin(0.15):
        parts[0] = g.argument(g.b.dims(parts[0]), kind)
    axis = len(first)
    if len(set(extents)) == 1 and g.coin(0.3):
        axis = g.random.randrange(len(g.b.dims(parts[0])))
    return joined(g, parts, axis)


@case("find_concat_multibroadcasts", fires=0.3)
def find_concat_multibroadcasts(g):
    """Along an axis of the operands; one that the broadcasts add or repeat stays."""
    rank = g.random.randint(1, 3)
    axis, kind, aligned = g.random.randrange(rank), g.pick(*DTYPES), g.coin(0.3)
    dims = [g.pick(1, 2, 3) for _ in range(rank)]
    wide = dims if aligned else [d * g.pick(1, 2) if d == 1 else d for d in dims]
    more, place = g.random.randint(0, 1), g.random.randint(0, 1)
    parts = []
    for _ in range(g.random.randint(2, 3)):
        n = g.random.randint(1, 3)
        x = g.argument([n if i == axis else d for i, d in enumerate(dims)], kind)
        out = [n if i == axis else d for i, d in enumerate(wide)]
        if aligned:
            lens = (*[2] * place, *out, 3)
            parts.append(g.b.op("broadcast", x, axis=place, out_lens=lens))
        else:
            parts.append(g.b.op("multibroadcast", [x], out_lens=(*[2] * more, *out)))
    parts = [g.maybe_used(p, 0.05) for p in parts]
    begin = place if aligned else more
    at = begin + axis if g.coin(0.9) or len({g.b.dims(p) for p in parts}) > 1 else 0
    return joined(g, parts, at)


# ---- pointwise ops and dots ---------------------------------------------------------------------


@case("find_unary_shape_transforms", fires=0.4)
def find_unary_shape_transforms(g):
    x = g.maybe_used(computed(g, g.dims(g.random.randint(0, 3), high=3)), 0.1)
    x = g.maybe_used(viewed(g, x, g.random.randint(1, 2)), 0.1)
    name = g.pick("neg", "abs", "relu", "convert", "identity")
    if name == "convert":
        return g.b.op("convert", x, target_type=g.b.dtype(g.constant((), g.pick("f16", "i64"))))
    return g.b.op(name, x)


@case("find_unary_shape_transforms")
def dynamic_dims(g):
    """A dynamic extent passes too."""
    x = g.b.op("neg", g.argument((DYN, 4)))
    x = g.b.op("unsqueeze", x, axes=[g.pick(0, 1)])
    return g.b.op("abs", g.b.op("transpose", x, permutation=g.random.sample(range(3), 3)))


@case("find_reshape_cont", fires=0.3)
def find_reshape_cont(g):
    """The other operands: reshaped from the same dims, constants, itself; others stay."""
    kind = g.pick("f32", "f64", "i32")
    below = computed(g, g.dims(g.random.randint(1, 3), high=4), kind)
    dims = g.b.dims(below)
    x = g.b.op("reshape", below, dims=split(g, prod(dims)))

    def other():
        which = g.pick("same", "same", "constant", "number", "bias", "self", "argument")
        if which == "same":
            y = g.b.op("reshape", g.argument(dims, kind), dims=g.b.dims(x))
            return g.maybe_used(y, 0.1)
        if which == "constant":
            return g.constant(g.b.dims(x), kind)
        if which == "number":
            return g.b.multibroadcast(g.constant((1,), kind, value=2), g.b.dims(x))
        if which == "bias":
            return g.b.multibroadcast(g.constant(g.b.dims(x)[-1:], kind), g.b.dims(x))
        return x if which == "self" else g.argument(g.b.dims(x), kind)

    x = g.maybe_used(x, 0.1)
    if g.coin(0.2):
        return g.b.op("where", g.constant(g.b.dims(x), "bool"), x, other())
    pair = [x, other()]
    return g.b.op(g.pick("add", "sub", "mul", "max"), *(pair if g.coin() else pair[::-1]))


@case("find_reshape_dot", rtol=1e-6, fires=0.3)
def find_reshape_dot(g):
    """Batches that are regrouped into as many dims or more; into fewer they stay."""
    m, k, n = g.dims(3, high=4)
    batch = g.dims(g.random.randint(1, 3), high=3)
    split_to = split(g, prod(batch), g.random.randint(1, 3))
    kind = g.pick("f32", "f64", "i32")

    def side(*matrix):
        if g.coin(0.2):
            return g.constant((*split_to, *matrix), kind)
        if g.coin(0.1):
            return g.argument((*split_to, *matrix), kind)
        x = g.argument((*batch, *matrix), kind)
        return g.maybe_used(g.b.op("reshape", x, dims=[*split_to, *matrix]), 0.1)

    return g.b.op("dot", side(m, k), side(k, n))


@case("find_mul_add_shape_op_dot", fires=0.3)
def find_mul_add_shape_op_dot(g):
    """A constant along the rows of the weights, one number, or (of a sum) any."""
    lead, (m, k, n), left = g.dims(g.pick(0, 0, 1), high=2), g.dims(3), g.coin()
    dims = (*lead, k, m)  # after the transpose: m x k on the left, k x m on the right
    x = g.argument(dims) if left else g.argument((*lead, m, k))
    rank = len(dims)
    along = rank - 2 if left else rank - 1
    which = g.pick("number", "rows", "rows", "all", "argument")
    d = g.b.dims(x)
    if which == "number":
        c = g.b.multibroadcast(g.constant((1,)), d)
    elif which == "rows":
        c = g.b.multibroadcast(g.constant([e if i == along else 1 for i, e in enumerate(d)]), d)
    else:
        c = g.constant(d) if which == "all" else g.argument(d)
    pair = (x, c) if g.coin() else (c, x)
    y = g.maybe_used(g.b.op(g.pick("mul", "add"), *pair), 0.1)
    y = g.b.op("transpose", y, permutation=[*range(rank - 2), rank - 1, rank - 2])
    if left:
        return g.b.op("dot", y, g.constant((*lead, k, n)))
    return g.b.op("dot", g.constant((*lead, n, k)), y)


@case("find_mul_add_shape_op_dot", rtol=2e-3, fires=0.4, options={"fast_math": True})
def widened_first(g):
    """16-bit products that were rounded before the dot are so no more."""
    m, k, n = g.dims(3)
    c = g.b.multibroadcast(g.constant((k,), "f16"), (m, k))
    y = g.b.op(g.pick("mul", "add"), g.argument((m, k), "f16"), c)
    f32 = g.b.dtype(g.constant((), "f32"))
    y = g.b.op("convert", g.maybe_used(y, 0.2), target_type=f32)
    return g.b.op("dot", y, g.constant((k, n)))


@case("find_op_shape_transform_op", fires=0.3, options={"op_shape_transform_op": True})
def find_op_shape_transform_op(g):
    kind = g.pick("f32", "f64", "i32")
    x = computed(g, g.dims(g.random.randint(1, 3), high=4), kind)
    x = viewed(g, x, g.random.randint(1, 3), (reshaped, permuted, permuted))
    y = g.argument(g.b.dims(x), kind)
    if g.coin(0.2):
        y = g.constant(g.b.dims(x), kind)
    pair = (g.maybe_used(x, 0.1), y)
    return g.b.op(g.pick("add", "sub", "mul"), *(pair if g.coin() else pair[::-1]))


@case("find_op_shape_transform_op", fires=0.0)
def off_by_default(g):
    return find_op_shape_transform_op(g)
