"""Random programs for fuse_ops: anchors and what is computed with their results."""

from pattern_graphs import case


class Draw:
    def __init__(self, g):
        self.g, self.b = g, g.b
        self.dtype = g.pick("f32", "f32", "f32", "f16", "i32", "f64")

    def tensor(self, *dims):
        return self.g.argument(dims, self.dtype, low=-2, high=2)

    def anchor(self):
        g, b = self.g, self.b
        kind = g.pick("dot", "dot", "convolution", "pooling", "transpose", "gather", "broadcast")
        m, k, n = g.dims(3)
        if kind == "dot":
            lead = g.dims(g.random.randint(0, 2), high=2)
            return b.op("dot", self.tensor(*lead, m, k), self.tensor(*lead, k, n))
        if kind == "broadcast":  # a broadcast operand of a dot is computed before it
            w = b.multibroadcast(self.tensor(k, n), (2, k, n))
            return b.op("dot", self.tensor(2, m, k), w)
        if kind == "transpose":
            dims = g.dims(g.random.randint(1, 4))
            order = g.random.sample(range(len(dims)), len(dims))
            return b.op("transpose", self.tensor(*dims), permutation=order)
        if kind == "gather":
            rows = g.argument(g.dims(g.random.randint(0, 2)), "i32", low=0, high=m - 1)
            return b.op("gather", self.tensor(m, k), rows, axis=0)
        if self.dtype == "i32":
            self.dtype = "f32"
        x = self.tensor(m, k, 5, 4)
        if kind == "convolution":
            return b.op(
                "convolution", x, self.tensor(n, k, g.pick(1, 2, 3), 2), padding=[1, 0],
                stride=[g.pick(1, 2), 1], dilation=[1, 1],
            )  # fmt: skip
        return b.op(
            "pooling", x, mode=g.pick("max", "average"), lengths=[2, 2], stride=[1, 2],
            padding=[0, 0], dilations=[1, 1],
        )  # fmt: skip

    def follow(self, x):
        """One pointwise op on x: with a bias, a residual, a number, or none."""
        g, b = self.g, self.b
        dims = b.dims(x)
        kind = g.pick("unary", "bias", "residual", "number", "itself", "wider")
        if kind == "unary" or not dims:
            return b.op(g.pick("neg", "relu", "abs"), x)
        if kind == "bias":
            axis = g.random.randrange(len(dims))
            y = b.op("broadcast", self.tensor(dims[axis]), axis=axis, out_lens=dims)
        elif kind == "residual":
            y = self.tensor(*dims)
            y = b.op("neg", y) if g.coin(0.3) else y
        elif kind == "number":
            y = b.multibroadcast(g.constant((1,), self.dtype, value=2), dims)
        elif kind == "wider":
            x = b.multibroadcast(x, (2, *dims))
            y = self.tensor(2, *dims)
        else:
            y = x
        return b.op(g.pick("add", "sub", "mul", "max"), *((x, y) if g.coin() else (y, x)))


@case("find_standalone_op", fires=0.8)
def find_standalone_op(g):
    d = Draw(g)
    x = g.maybe_used(d.anchor())
    return d.follow(x) if g.coin() else x


@case("find_standalone_op", fires=0.3)
def dynamic_dims(g):
    x = g.argument(("n", g.dims(1)[0]))
    k = g.b.dims(x)[1]
    if g.coin():
        return g.b.op("dot", x, g.argument((k, 3)))
    return g.b.op("transpose", x, permutation=[1, 0])


@case("find_post_ops", fires=0.5, beside=("find_standalone_op",))
def find_post_ops(g):
    d = Draw(g)
    x = g.maybe_used(d.anchor(), 0.1)
    for _ in range(g.random.randint(1, 4)):
        x = g.maybe_used(d.follow(x), 0.1)
    return x


@case("find_post_ops", fires=0.5, beside=("find_standalone_op",))
def between_anchors(g):
    """The result of one anchor is an operand of another: kernels may not make a cycle."""
    d, b = Draw(g), g.b
    n = g.random.randint(1, 4)
    values = [d.tensor(n, n), d.tensor(n, n)]
    for _ in range(g.random.randint(2, 6)):
        x, y = g.pick(*values), g.pick(*values[-2:])
        kind = g.pick("dot", "dot", "transpose", "join", "follow")
        if kind == "dot":
            x = b.op("max", b.op("dot", x, y), x) if g.coin() else b.op("dot", x, y)
        elif kind == "transpose":
            x = b.op("transpose", x, permutation=[1, 0])
        elif kind == "join":
            x = b.op("add", x, y)
        else:
            x = b.op("relu", x)
        values.append(g.maybe_used(x, 0.05))
    return [v for v in values[2:] if next(iter(v.uses), None) is None]


@case("fuse_ops", fires=0.5, options={"max_inputs": 3})
def few_operands(g):
    d = Draw(g)
    x = d.anchor()
    for _ in range(4):
        x = d.follow(x)
    return x
