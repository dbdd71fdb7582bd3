"""Random programs for fuse_concat: parts, views of them, pointwise ops on both sides."""

from pattern_graphs import case

WHOLE = ("neg", "abs", "relu")
UNARY = {
    "f32": ("neg", "relu", "tanh", "abs"),
    **{"i32": WHOLE, "i8": WHOLE, "i64": WHOLE, "ui8": ("relu",), "bool": ("not",)},
}


class Draw:
    def __init__(self, g):
        self.g, self.b = g, g.b
        self.dtype = g.pick("f32", "f32", "f32", "f16", "bf16", "i32", "i8", "ui8", "i64", "bool")
        self.rank = g.random.randint(1, 4)
        self.axis = g.random.randrange(self.rank) if g.coin(0.4) else self.rank - 1
        self.dims = list(g.dims(self.rank, high=4))
        if g.coin(0.7):
            self.dims[-1] = g.pick(8, 16)

    def part(self):
        dims = list(self.dims)
        last = self.axis == self.rank - 1
        dims[self.axis] = self.g.pick(8, 16, 24, 8, 16, 3) if last else self.g.random.randint(1, 3)
        return self.viewed(dims)

    def tensor(self, dims):
        return self.g.argument(dims, self.dtype)

    def viewed(self, dims):
        """A tensor of `dims` that is a view of another."""
        g, b, rank = self.g, self.b, len(dims)
        kind = g.pick("plain", "plain", "transpose", "slice", "spread", "reshape")
        if kind == "transpose":
            order = g.random.sample(range(rank), rank)
            if g.coin(0.7):  # the last one stays
                order = [*(i for i in order if i != rank - 1), rank - 1]
            x = self.tensor([dims[order.index(i)] for i in range(rank)])
            return b.op("transpose", x, permutation=order)
        if kind == "slice":
            axis, start = g.random.randrange(rank), g.pick(1, 2, 8, 16)
            x = self.tensor([d + start + 1 if i == axis else d for i, d in enumerate(dims)])
            return b.op("slice", x, axes=[axis], starts=[start], ends=[start + dims[axis]])
        if kind == "spread":
            return b.multibroadcast(self.tensor([g.pick(1, d, d) for d in dims]), dims)
        if kind == "reshape" and rank > 1:
            at = g.random.randrange(rank - 1)
            joined = [*dims[:at], dims[at] * dims[at + 1], *dims[at + 2 :]]
            return b.op("reshape", self.tensor(joined), dims=dims)
        return self.tensor(dims)

    def computed(self, x, steps):
        """Pointwise ops on x, with operands of several forms."""
        g, b = self.g, self.b
        for _ in range(steps):
            dims = b.dims(x)
            kind = g.pick("unary", "binary", "broadcast", "constant", "round")
            if kind == "unary":
                x = b.op(g.pick(*UNARY.get(self.dtype, UNARY["f32"])), x)
            elif kind == "round" and self.dtype in ("f32", "i32"):
                x = b.op("convert", x, target_type="i32" if self.dtype == "f32" else "f32")
                x = b.op("convert", x, target_type=self.dtype)
            else:
                if kind == "binary":
                    y = self.viewed(dims)
                elif kind == "constant":
                    y = b.multibroadcast(g.constant((1,), self.dtype, value=1), dims)
                else:
                    y = b.multibroadcast(self.tensor([g.pick(1, d) for d in dims]), dims)
                names = (
                    ("logical_or", "logical_and")
                    if self.dtype == "bool"
                    else ("add", "sub", "mul", "max")
                )
                x = b.op(g.pick(*names), *((x, y) if g.coin() else (y, x)))
            x = g.maybe_used(x, 0.05)
        return x

    def concat(self, before):
        g, b = self.g, self.b
        parts = [self.part() for _ in range(g.random.randint(1, 4))]
        if g.coin(0.15):
            parts.append(parts[0])
        parts = [self.computed(p, g.pick(0, *before)) if before else p for p in parts]
        return g.maybe_used(b.op("concat", parts, axis=self.axis - g.pick(0, self.rank)), 0.1)


@case("find_concat_pointwise", fires=0.4)
def find_concat_pointwise(g):
    d = Draw(g)
    if d.dtype == "bf16" and g.coin():  # readers of a dot stay with it
        d.dtype, d.rank, d.axis, d.dims = "f32", 2, 0, [3, 8]
        x = g.b.op("dot", g.argument((4, 2)), g.argument((2, 8)))
        c = g.b.op("concat", [d.tensor((1, 8)), d.tensor((3, 8))], axis=0)
        return g.b.op("add", *g.pick((c, x), (x, c)))
    return d.computed(d.concat(()), g.random.randint(1, 3))


@case("find_pointwise_concat_pointwise", fires=0.4)
def find_pointwise_concat_pointwise(g):
    d = Draw(g)
    return d.computed(d.concat((1, 2, 3)), g.random.randint(0, 2))


@case("find_pointwise_concat_pointwise", fires=0.7)
def rotary(g):
    """x cos + (-high, low) sin."""
    b, half = g.b, g.pick(8, 16, 32)
    dtype = g.pick("f32", "f16", "bf16")
    batch, rows, heads = g.dims(3)
    x = g.argument((batch, rows, heads * 2 * half), dtype)
    x = b.op("reshape", x, dims=[batch, rows, heads, 2 * half])
    x = b.op("transpose", x, permutation=[0, 2, 1, 3])
    dims = b.dims(x)
    low = b.op("slice", x, axes=[3], starts=[0], ends=[half])
    high = b.op("slice", x, axes=[-1], starts=[half], ends=[2 * half])
    cos, sin = (b.multibroadcast(g.argument((1, rows, 2 * half), dtype), dims) for _ in range(2))
    other = b.op("concat", [b.op("neg", high), low], axis=-1)
    return b.op("add", b.op("mul", x, cos), b.op("mul", g.maybe_used(other, 0.1), sin))


@case("find_pointwise_concat_pointwise", fires=0.3)
def concats_in_a_row(g):
    """Operands of nested concats are fused into one kernel, once."""
    d = Draw(g)
    d.dims[-1], d.axis = 8, 0
    x = d.computed(d.concat((1, 2)), 1)
    rest = d.computed(d.tensor(d.b.dims(x)), 1)
    return d.computed(d.b.op("concat", [x, rest, x][: g.random.randint(2, 3)], axis=0), 1)


@case("fuse_concat", fires=0.15, options={"max_inputs": 4})
def few_operands(g):
    d = Draw(g)
    return d.computed(d.concat((0, 1, 2)), g.random.randint(0, 2))
