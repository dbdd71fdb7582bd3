"""Random programs for fuse_reduce: reductions with pointwise ops before, after and between."""

from pattern_graphs import case

NAMES = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
BINARY = ("add", "sub", "mul", "max")


class Draw:
    def __init__(self, g):
        self.g, self.b = g, g.b
        self.dtype = g.pick("f32", "f32", "f32", "f16", "i32", "f64")
        self.dims = g.dims(g.random.randint(1, 3), low=1, high=4)
        rank = len(self.dims)
        self.axes = g.random.sample(range(rank), g.random.randint(1, rank))
        self.x = g.argument(self.dims, self.dtype, low=-2, high=2)

    def spread(self, x):
        return self.b.multibroadcast(x, self.dims)

    def pointwise(self, x, steps=2, used=0.1):
        """Pointwise ops on x of its own dims, with other operands."""
        g, b = self.g, self.b
        for _ in range(g.random.randint(1, steps)):
            dims = b.dims(x)
            if g.coin(0.4):
                x = b.op(g.pick("neg", "abs", "relu"), x)
            else:
                kind = g.pick("argument", "broadcast", "number", "itself")
                if kind == "argument":
                    y = g.argument(dims, self.dtype, low=-2, high=2)
                elif kind == "broadcast":
                    y = g.argument([g.pick(1, d) for d in dims], self.dtype, low=-2, high=2)
                    y = b.multibroadcast(y, dims)
                elif kind == "number":
                    y = b.multibroadcast(g.constant((1,), self.dtype, value=2), dims)
                else:
                    y = x
                x = b.op(g.pick(*BINARY), *((x, y) if g.coin() else (y, x)))
            x = g.maybe_used(x, used)
        return x

    def reduce(self, x, axes=None):
        g, b = self.g, self.b
        rank = len(b.dims(x))
        axes = self.axes if axes is None else axes
        if self.dtype != "i32" and len(axes) == 1 and g.coin(0.2):
            return b.op(
                g.pick("softmax", "softmax", "logsoftmax"), x, axis=axes[0] - g.pick(0, rank)
            )
        return b.op(g.pick(*NAMES), x, axes=[a - g.pick(0, rank) for a in axes])


@case("create_reduce_modules", fires=0.9)
def create_reduce_modules(g):
    d = Draw(g)
    if g.coin(0.1):  # no rows: no kernel
        g.used(g.b.op("reduce_sum", g.argument((0, 3)), axes=[0]))
    return d.reduce(d.x)


@case("find_pointwise_reduce", fires=0.5)
def find_pointwise_reduce(g):
    """The reduced value is computed; sometimes it, or one of its operands, has other readers."""
    d = Draw(g)
    x = d.pointwise(d.x, 3, 0.15)
    if g.coin(0.1):  # in one row
        d.dims, d.axes = (1, *d.dims), [a + 1 for a in d.axes]
        x = d.pointwise(g.b.op("unsqueeze", x, axes=[0]), 1)
    if g.coin(0.1):
        d.dims = (2, *d.dims)
        x = d.spread(x)
    return d.reduce(x)


@case("find_pointwise_reduce", fires=0.5, rtol=1e-6)
def dynamic_dims(g):
    x = g.argument(("n", *g.dims(1)))
    y = g.b.op("relu", x)
    if g.coin():
        y = g.b.op("mul", y, x)
    return g.b.op("reduce_sum", g.maybe_used(y), axes=[g.pick(0, 1, -1)])


@case("find_reduce_pointwise", fires=0.6, beside=("create_reduce_modules",))
def find_reduce_pointwise(g):
    """After it: rows, or rows spread over what was reduced, or something else."""
    d, b = Draw(g), g.b
    y = g.maybe_used(d.reduce(d.x), 0.1)
    y = d.pointwise(y) if g.coin() else y
    if g.coin(0.7):
        wide = d.spread(y) if g.coin(0.9) else b.multibroadcast(y, (2, *d.dims))
        x = d.x if b.dims(wide) == b.dims(d.x) else g.argument(b.dims(wide), d.dtype)
        x = d.pointwise(x, 1) if g.coin(0.3) else x
        y = d.pointwise(b.op(g.pick("add", "sub", "max"), wide, x))
    return y


@case(
    "find_reduce_reduce",
    fires=0.4,
    beside=("create_reduce_modules", "find_reduce_pointwise", "find_pointwise_reduce"),
)
def find_reduce_reduce(g):
    """Normalisations: a second and a third reduction of what the first one gave."""
    d, b = Draw(g), g.b
    x = d.pointwise(d.x) if g.coin() else d.x
    for _ in range(g.random.randint(2, 3)):
        axes = d.axes if g.coin(0.85) else g.random.sample(range(len(d.dims)), 1)
        y = g.maybe_used(d.reduce(x, axes), 0.1)
        x = b.op(g.pick("sub", "add"), x if g.coin(0.8) else d.x, d.spread(y))
        x = d.pointwise(x, 1, 0.05) if g.coin() else x
    return x


@case("fuse_reduce", fires=0.9)
def whole(g):
    """Softmax and layer normalisation as they are spelled, and others beside them."""
    d, b = Draw(g), g.b
    values = [d.x]
    for _ in range(g.random.randint(2, 5)):
        x = g.pick(*values[-2:])
        kind = g.pick("reduce", "pointwise", "norm")
        if kind == "reduce":
            x = d.spread(d.reduce(x, d.axes if g.coin(0.7) else [0]))
        elif kind == "norm":
            x = b.op("sub", x, d.spread(b.op("reduce_max", x, axes=d.axes)))
            if d.dtype != "i32":
                x = b.op("exp", x)
                x = b.op("div", x, d.spread(b.op("reduce_sum", x, axes=d.axes)))
        else:
            x = d.pointwise(x)
        if x is not values[-1]:
            values.append(g.maybe_used(x, 0.1))
    return [v for v in values[1:] if next(iter(v.uses), None) is None]


@case("fuse_reduce", fires=0.9, options={"max_inputs": 2})
def few_operands(g):
    d = Draw(g)
    return d.pointwise(d.reduce(d.pointwise(d.x, 3)), 3)


# sums are of the same elements, in another order where dims are joined
@case("reduce_reshape", fires=0.3, rtol=1e-6)
def reduce_reshape(g):
    """Joined, split and added extents ahead of a reduction."""
    b = g.b
    dtype = g.pick("f32", "f32", "i32", "f16")
    dims = list(g.dims(g.random.randint(1, 4), low=g.pick(0, 1, 1, 1, 1, 1)))
    x = g.argument(dims, dtype, low=-2, high=2)
    if g.coin(0.9):
        x = g.maybe_used(b.op(g.pick("neg", "abs"), x), 0.1)
    at = g.random.randrange(len(dims))
    kind = "unsqueeze" if 0 in dims else g.pick("join", "split", "unsqueeze", "squeeze", "again")
    if kind == "join" and at + 1 < len(dims):
        y = b.op("reshape", x, dims=[*dims[:at], dims[at] * dims[at + 1], *dims[at + 2 :]])
    elif kind == "unsqueeze":
        y = b.op("unsqueeze", x, axes=[at])
    elif kind == "squeeze" and dims[at] == 1 and len(dims) > 1:
        y = b.op("squeeze", x, axes=[at])
    elif kind == "split":
        n = dims[at]
        part = g.pick(*(p for p in range(1, n + 1) if n % p == 0)) if n else 1
        y = b.op("reshape", x, dims=[*dims[:at], part, n // part, *dims[at + 1 :]])
    else:
        y = b.op("reshape", x, dims=dims[::-1])
    y = g.maybe_used(y, 0.1)
    rank = len(b.dims(y))
    axes = g.random.sample(range(rank), g.random.randint(0 if g.coin(0.1) else 1, rank))
    return b.op(g.pick(*NAMES), y, axes=[a - g.pick(0, rank) for a in axes])
