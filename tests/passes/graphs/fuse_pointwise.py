"""Random programs for fuse_pointwise: chains, branches, broadcasts, reshapes between."""

from pattern_graphs import case

BEGUN = ("create_pointwise_modules",)
UNARY = ("neg", "abs", "relu")
BINARY = ("add", "sub", "mul", "max")
DTYPES = ("f32", "f32", "f16", "i32", "bool", "f64")


class Draw:
    def __init__(self, g, rank=None):
        self.g, self.b = g, g.b
        self.dtype = g.pick(*DTYPES)
        self.dims = g.dims(g.random.randint(1, 3) if rank is None else rank)
        self.values = [g.argument(self.dims, self.dtype) for _ in range(2)]

    def unary(self, x):
        return self.b.op("not" if self.dtype == "bool" else self.g.pick(*UNARY), x)

    def binary(self, x, y):
        names = ("logical_and", "logical_or", "logical_xor") if self.dtype == "bool" else BINARY
        return self.b.op(self.g.pick(*names), *((x, y) if self.g.coin() else (y, x)))

    def small(self):
        """An operand that is broadcast to the dims."""
        g, b = self.g, self.b
        kind = g.pick("argument", "constant", "axis", "number")
        if kind == "number":
            x = g.constant((1,), self.dtype, value=g.pick(0, 1))
            return b.op("scalar", x, scalar_bcst_dims=self.dims)
        if kind == "axis":
            axis = g.random.randrange(len(self.dims))
            x = g.argument((self.dims[axis],), self.dtype)
            return b.op("broadcast", x, axis=axis, out_lens=self.dims)
        dims = [g.pick(1, d) for d in self.dims]
        x = g.argument(dims, self.dtype) if kind == "argument" else g.constant(dims, self.dtype)
        return b.multibroadcast(x, self.dims)

    def step(self, used=0.1):
        g = self.g
        x = g.pick(*self.values[-3:])
        if g.coin(0.3):
            y = self.unary(x)
        else:
            y = self.binary(x, self.small() if g.coin(0.4) else g.pick(*self.values))
        self.values.append(g.maybe_used(y, used))

    def results(self, *more):
        """The values that nothing reads: an unused op would be swept away."""
        return [*more, *(v for v in self.values[2:] if next(iter(v.uses), None) is None)]

    def chain(self, steps, used=0.1):
        for _ in range(steps):
            self.step(used)
        return self.values[-1]


@case("create_pointwise_modules", fires=0.9)
def create_pointwise_modules(g):
    """Every op is its own kernel; what works on dims and what has no elements is none."""
    d = Draw(g)
    if g.coin(0.1):
        empty = g.argument((0, 3))
        g.used(g.b.op("neg", empty))
    if g.coin(0.2):
        g.used(g.b.op("add", g.constant((2,), "i64", value=1), g.constant((2,), "i64", value=2)))
    d.chain(g.random.randint(1, 4))
    return d.results()


@case("create_pointwise_modules")
def dynamic_dims(g):
    x = g.argument(("n", *g.dims(1)))
    y = g.b.op("relu", x)
    if g.coin():
        y = g.b.op("add", y, g.b.op("multibroadcast", [g.constant((1,)), y]))
    return g.b.op("mul", g.maybe_used(y), x)


@case("find_pointwise_modules", fires=0.7, beside=BEGUN)
def find_pointwise_modules(g):
    d = Draw(g)
    d.chain(g.random.randint(2, 9), 0.2)
    return d.results()


@case("multi_output", fires=0.4, beside=(*BEGUN, "find_pointwise_modules"))
def multi_output(g):
    d = Draw(g)
    d.chain(g.random.randint(2, 7), 0.4)
    return d.results()


@case("pointwise_broadcast_pointwise", fires=0.3, beside=(*BEGUN, "find_pointwise_modules"))
def pointwise_broadcast_pointwise(g):
    """Small results that several kernels, or one, read through broadcasts."""
    d, b = Draw(g), g.b
    small = tuple(g.pick(1, x) for x in d.dims)
    x = g.argument(small, d.dtype)
    for _ in range(g.random.randint(1, 5)):
        x = d.unary(x) if g.coin() else d.binary(x, g.argument(small, d.dtype))
    if d.dtype == "f32" and g.coin():
        x = b.op("exp", x)
    y = b.multibroadcast(g.maybe_used(x, 0.1), d.dims)
    y = d.binary(y, d.chain(2))
    if g.coin(0.3):
        g.used(d.binary(b.multibroadcast(x, (2, *d.dims)), g.argument((2, *d.dims), d.dtype)))
    return d.results(y)


@case("fuse_pointwise", fires=0.9)
def around_other_ops(g):
    """Pointwise ops before and after what is none: kernels may not make a cycle."""
    d, b = Draw(g, rank=2), g.b
    if d.dtype == "bool":
        d.dtype, d.values = "f32", [g.argument(d.dims) for _ in range(2)]
    x = d.chain(2, 0.2)
    for _ in range(g.random.randint(1, 2)):
        kind = g.pick("transpose", "reduce", "softmax", "concat")
        if kind == "transpose":
            y = b.op("transpose", b.op("transpose", x, permutation=[1, 0]), permutation=[1, 0])
        elif kind == "reduce":
            y = b.multibroadcast(b.op("reduce_max", x, axes=[g.pick(0, 1)]), d.dims)
        elif kind == "softmax" and d.dtype in ("f32", "f64"):
            y = b.op("softmax", x, axis=g.pick(0, 1))
        else:
            y = b.op("concat", [x, x], axis=0)
            y = b.op("slice", y, axes=[0], starts=[0], ends=[d.dims[0]])
        d.values.append(d.binary(y, g.pick(*d.values)))
        d.chain(2, 0.1)
        x = g.pick(*d.values[-2:])
    return d.results()


@case("fuse_pointwise", fires=0.3, options={"max_inputs": 3})
def few_operands(g):
    d = Draw(g)
    d.chain(g.random.randint(3, 8), 0.1)
    return d.results()


@case("pointwise_reshape", fires=0.4)
def pointwise_reshape(g):
    """Other dims for the same elements in the middle of a chain."""
    d, b = Draw(g, rank=g.random.randint(1, 3)), g.b
    if g.coin(0.05):
        d.dims = (0, 2)
        d.values = [g.argument(d.dims, d.dtype)] * 2
    x = d.chain(g.random.randint(1, 2), 0.05) if g.coin(0.9) else d.values[0]
    dims = list(d.dims)
    for _ in range(g.random.randint(1, 2)):
        old = b.type(x)
        at = g.random.randrange(len(dims))
        kind = g.pick("join", "unsqueeze", "flatten", "same")
        if kind == "join" and at + 1 < len(dims):
            dims = [*dims[:at], dims[at] * dims[at + 1], *dims[at + 2 :]]
            y = b.op("reshape", x, dims=dims)
        elif kind == "unsqueeze":
            dims = [*dims[:at], 1, *dims[at:]]
            y = b.op("unsqueeze", x, axes=[at])
        elif kind == "flatten":
            y = b.op("flatten", x, axis=at)
            dims = list(b.dims(y))
        else:
            y = b.op("reshape", x, dims=dims)
        y = g.maybe_used(y, 0.1)
        other = g.pick(
            "argument", "constant", "number", "reshape", "unary", "kernel", "itself", "gate"
        )
        if other == "unary":
            x = d.unary(y)
        elif other == "gate":
            x = d.binary(y, d.unary(y))
        elif other == "itself":
            x = d.binary(y, y)
        elif other == "number":
            x = d.binary(y, b.multibroadcast(g.constant((1,), d.dtype, value=1), dims))
        elif other == "reshape":
            x = d.binary(y, b.op("reshape", d.unary(g.argument(old.dims, d.dtype)), dims=dims))
        elif other == "kernel":
            x = d.binary(y, d.unary(g.argument(dims, d.dtype)))
        else:
            x = d.binary(y, (g.constant if other == "constant" else g.argument)(dims, d.dtype))
    if d.dtype == "f32" and g.coin(0.3):
        x = b.op("convert", x, target_type=g.pick("i32", "f16"))
    return x
