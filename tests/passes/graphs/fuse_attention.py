"""Random programs for fuse_attention: attentions as models spell them, and what is none."""

import numpy as np
from pattern_graphs import case

DTYPES = ("f32", "f32", "f32", "f16", "bf16")


class Draw:
    """The parts of one attention. `rank` of q, k and v is 2 to 4: (.., heads, rows, width)."""

    def __init__(self, g, *, exact=True, widths=(1, 2, 3, 8), rank=None):
        self.g, self.b = g, g.b
        self.exact = exact
        self.dtype = g.pick(*DTYPES)
        rank = rank or g.pick(2, 3, 4, 4, 4)
        self.lead = g.dims(rank - 2, high=3)
        self.m, self.n = g.dims(2, high=6)
        self.width, self.depth = g.pick(*widths), g.pick(1, 2, 3, 8)

    def tensor(self, *dims):
        return self.g.argument(dims, self.dtype, low=-1, high=1)

    def moved(self, rows, width, keep_last=True):
        """(lead.., rows, width), as a view of something."""
        g, b, lead = self.g, self.b, self.lead
        kind = g.pick("plain", "heads", "slice", "transposed", "squeezed", "joined", "spread")
        if kind == "heads" and len(lead) == 2:  # (batch, rows, heads * width)
            x = self.tensor(lead[0], rows, lead[1] * width)
            x = b.op("reshape", x, dims=[lead[0], rows, lead[1], width])
            return b.op("transpose", x, permutation=[0, 2, 1, 3])
        if kind == "slice":
            low, high = g.random.randint(0, 2), g.random.randint(0, 2)
            x = self.tensor(*lead, rows, low + width + high)
            return b.op("slice", x, axes=[-1], starts=[low], ends=[low + width])
        if kind == "transposed" and not keep_last:
            x = self.tensor(*lead, width, rows)
            return b.op("transpose", x, permutation=[*range(len(lead)), len(lead) + 1, len(lead)])
        if kind == "squeezed":
            return b.op("squeeze", self.tensor(*lead, rows, 1, width), axes=[len(lead) + 1])
        if kind == "joined" and lead:
            x = self.tensor(int(np.prod(lead)) * rows, width)
            return b.op("reshape", x, dims=[*lead, rows, width])
        if kind == "spread" and lead:  # heads that share keys
            x = self.tensor(*lead[:-1], 1, rows, width)
            return b.multibroadcast(x, (*lead, rows, width))
        return self.tensor(*lead, rows, width)

    def scaled(self, x):
        """x, or a multiple of it by one number, or by an element each."""
        g, b = self.g, self.b
        if g.coin(0.6):
            return x
        dims = b.dims(x)
        if g.coin(0.2):
            return b.op("mul", x, self.tensor(*dims))
        c = b.multibroadcast(g.constant((1,), self.dtype, value=g.pick(0.5, 0.25, 2.0, -1.5)), dims)
        return b.op("mul", *((x, c) if g.coin() else (c, x)))

    def packed(self):
        """q, k, v as slices of one tensor."""
        b, lead, m, w = self.b, self.lead, self.m, self.width
        self.n, self.depth = m, w
        heads = int(np.prod(lead))
        x = self.tensor(m, 3 * heads * w)
        found = []
        for i in range(3):
            part = b.op("slice", x, axes=[1], starts=[i * heads * w], ends=[(i + 1) * heads * w])
            part = b.op("reshape", part, dims=[m, *lead, w])
            rank = len(lead)
            order = [*range(1, rank + 1), 0, rank + 1]
            found.append(b.op("transpose", part, permutation=order))
        return found

    def shared(self):
        """q, k and v of one tensor, some of them scaled."""
        g, b = self.g, self.b
        self.n, self.depth = self.m, self.width
        x = self.moved(self.m, self.width)
        y = self.scaled(x)
        views = [x, y, y, b.op("contiguous", y)]
        return [g.pick(*views) for _ in range(3)]

    def operands(self):
        g = self.g
        kind = g.pick("apart", "apart", "apart", "packed", "shared")
        if kind == "apart":
            q, v = self.moved(self.m, self.width), self.moved(self.n, self.depth, keep_last=False)
            k = self.moved(self.n, self.width, keep_last=False)
        else:
            q, k, v = self.packed() if kind == "packed" else self.shared()
        if kind != "shared":
            q, k = self.scaled(q), self.scaled(k)
        return q, self.turned(k), v

    def turned(self, k):
        rank = len(self.lead)
        return self.b.op("transpose", k, permutation=[*range(rank), rank + 1, rank])

    def masked(self, s):
        """The scores past scales, masks, caps and casts, in any order."""
        g, b = self.g, self.b
        for _ in range(g.random.randint(0, 3)):
            dims = b.dims(s)
            small = g.pick(
                dims[-1:], dims[-2:], (dims[-2], 1), (1,), dims, (*dims[:-2], 1, dims[-1])
            )
            if len(dims) > 2:
                small = g.pick(small, dims[-3:])
            kind = g.pick("scale", "mask", "where", "cap", "other", "causal")
            if kind == "scale":
                c = g.constant((1,), self.dtype, value=g.pick(0.5, 0.125, -1.0))
                s = b.op("mul", s, b.multibroadcast(c, dims))
            elif kind == "mask":
                s = b.op("add", s, b.multibroadcast(self.tensor(*small), dims))
            elif kind == "where":
                keep = b.multibroadcast(g.argument(small, "bool"), dims)
                low = g.constant((1,), self.dtype, value=g.pick(-1e4, -np.inf, 0.0))
                low = b.multibroadcast(low, dims)
                s = b.op("where", keep, *((s, low) if g.coin() else (low, s)))
            elif kind == "cap":
                s = b.op(g.pick("tanh", "relu", "abs"), s)
            elif kind == "causal":
                low = np.triu(np.full(dims[-2:], g.pick(-np.inf, -1e4)), 1)
                s = b.op(
                    "add", s, b.multibroadcast(g.constant(dims[-2:], self.dtype, value=low), dims)
                )
            else:
                s = b.op("mul", self.tensor(*dims), s)
        return s

    def softmax(self, s):
        g, b = self.g, self.b
        rank = len(self.lead) + 2
        axis = g.pick(-1, rank - 1) if g.coin(0.95) else 0
        if self.dtype != "f32" and g.coin(0.3):  # in f32
            s = b.op("convert", s, target_type="f32")
            return b.op("convert", b.op("softmax", s, axis=axis), target_type=self.dtype)
        return g.maybe_used(b.op("softmax", s, axis=axis), 0.05)

    def guarded(self, w):
        zero = self.g.constant((1,), self.dtype, value=0.0)
        zero = self.b.multibroadcast(zero, self.b.dims(w))
        return self.b.op("where", self.b.op("isnan", w), zero, w)

    def attention(self, guard=0.0):
        g, b = self.g, self.b
        q, k, v = self.operands()
        s = g.maybe_used(b.op("dot", q, k), 0.05)
        w = self.softmax(self.masked(s))
        return b.op("dot", self.guarded(w) if g.coin(guard) else w, v)


@case("find_attention", rtol=2e-6, fires=0.4)
def find_attention(g):
    return Draw(g).attention()


@case("find_attention", rtol=2e-6, fires=0.4, options={"fast_math": True})
def guarded(g):
    return Draw(g).attention(guard=0.7)


@case("find_attention", rtol=2e-6, fires=0.4, special=True)
def hostile(g):
    """NaN and infinities everywhere: a row of the weights is NaN, or all of it is as it was."""
    d = Draw(g)
    d.dtype = "f32"
    return d.attention()


@case("find_attention", rtol=2e-6, fires=0.1, options={"flash": True})
def flash(g):
    return Draw(g).attention()


@case("find_masks", rtol=2e-6, fires=0.2, options={"flash": True, "fast_math": True}, special=False)
def find_masks(g):
    """Masks by where, and more than one: numbers that hide a score, and some that do not."""
    d = Draw(g)
    d.dtype = "f32"
    b = g.b
    q, k, v = d.operands()
    s = b.op("dot", q, k)
    dims = b.dims(s)
    for _ in range(g.random.randint(1, 3)):
        small = g.pick(dims, dims[-2:], dims[-1:], (*dims[:-2], 1, dims[-1]))
        if g.coin(0.3):
            s = b.op("add", s, b.multibroadcast(d.tensor(*small), dims))
            continue
        seen = g.argument(small, "bool") if g.coin(0.7) else g.constant(small, "bool")
        low = g.constant((1,), d.dtype, value=g.pick(-np.inf, -3e38, -3e38, -1e4, 0.0))
        low = b.multibroadcast(low, dims)
        seen = b.multibroadcast(seen, dims)
        s = b.op("where", seen, *((s, low) if g.coin() else (low, s)))
    w = d.softmax(g.maybe_used(s, 0.05))
    return b.op("dot", d.guarded(w) if g.coin(0.1) else w, v)


@case("find_attention", rtol=2e-6, fires=0.3)
def rotary(g):
    """Queries, and sometimes keys, of halves that are turned."""
    d = Draw(g, widths=(16, 32, 8, 6), rank=g.pick(3, 4))
    b, half = g.b, d.width // 2

    def turned(x, rows):
        dims = b.dims(x)
        low = b.op("slice", x, axes=[-1], starts=[0], ends=[half])
        high = b.op("slice", x, axes=[-1], starts=[half], ends=[2 * half])
        other = b.op("concat", [b.op("neg", high), low], axis=g.pick(-1, len(dims) - 1))
        cos, sin = (
            b.multibroadcast(d.tensor(*g.pick((rows, d.width), (1, rows, d.width))), dims)
            for _ in range(2)
        )
        return b.op("add", b.op("mul", x, cos), b.op("mul", other, sin))

    q = turned(d.moved(d.m, d.width), d.m)
    k = d.moved(d.n, d.width)
    k = turned(k, d.n) if g.coin() else k
    w = d.softmax(d.masked(b.op("dot", g.maybe_used(d.scaled(q), 0.1), d.turned(k))))
    return b.op("dot", w, d.moved(d.n, d.depth))


@case("find_kv_cache_attention", rtol=2e-6, fires=0.3)
def find_kv_cache_attention(g):
    """Keys and values from caches; now and then one of them is not."""
    d = Draw(g, rank=4)
    b = g.b
    batch, heads = d.lead
    shared = g.pick(1, 1, 2)
    lengths = g.argument((batch,), "i32", low=0, high=d.n)
    new = g.random.randint(1, 3)

    def cache(width):
        if g.coin(0.15):
            return d.tensor(batch, heads, d.n, width)
        x, past = d.tensor(batch, heads, new, width), d.tensor(batch, heads, d.n, width)
        return b.op("concat_past_present", x, lengths, past)

    def grouped(x):
        """Each head of the cache for several of the queries'."""
        if shared == 1:
            return x
        dims = b.dims(x)
        x = b.op("unsqueeze", x, axes=[2])
        x = b.multibroadcast(x, (batch, heads, shared, *dims[2:]))
        return b.op("reshape", x, dims=[batch, heads * shared, *dims[2:]])

    q = d.scaled(d.tensor(batch, heads * shared, d.m, d.width))
    k, v = grouped(cache(d.width)), grouped(cache(d.depth))
    return b.op("dot", d.softmax(d.masked(b.op("dot", q, d.turned(k)))), v)


def kernel(g, d):
    """The op group of an attention, as find_attention makes it for plain operands."""
    from mgx_mlir.core.shapes import TensorType
    from mgx_mlir.passes.analysis.kernel_ops import make_kernel

    rank = len(d.lead) + 2
    q, k, v = d.tensor(*d.lead, d.m, d.width), d.tensor(*d.lead, d.n, d.width), None
    v = d.tensor(*d.lead, d.n, d.depth)
    out = TensorType.of(v).with_dims((*d.lead, d.m, d.depth))
    inputs = [q, k, v]
    mask = None
    if g.coin():
        small = g.pick((d.n,), (d.m, d.n), (d.m, 1), (*d.lead, 1, d.n))
        mask = g.pick("add", "where")
        inputs.append(g.argument(small, "bool") if mask == "where" else d.tensor(*small))
    cast = d.dtype != "f32" and g.coin()
    low = g.pick(-np.inf, -1e4)

    def build(args):
        b = g.b
        s = b.op("dot", args[0], d.turned(args[1]))
        if g.coin():
            c = g.constant((1,), d.dtype, value=0.5)
            s = b.op("mul", s, b.multibroadcast(c, b.dims(s)))
        if cast:
            s = b.op("convert", s, target_type="f32")
        dims = b.dims(s)
        if mask:
            wide = b.multibroadcast(args[3], dims)
            if mask == "where":
                number = g.constant((1,), "f32" if cast else d.dtype, value=low)
                s = b.op("where", wide, s, b.multibroadcast(number, dims))
            else:
                wide = b.op("convert", wide, target_type="f32") if cast else wide
                s = b.op("add", s, wide)
        w = b.op("softmax", s, axis=rank - 1)
        if cast:
            w = b.op("convert", w, target_type=d.dtype)
        y = b.op("dot", w, args[2])
        return [b.op("relu", y) if g.coin(0.3) else y]

    return make_kernel("group", inputs, [out.mlir()], build, tag="attention").results[0]


@case("find_attention_output", fires=0.4)
def find_attention_output(g):
    """Heads side by side, or another order, of an attention or of something else."""
    d = Draw(g)
    y = g.maybe_used(kernel(g, d), 0.1) if g.coin(0.9) else d.tensor(*d.lead, d.m, d.depth)
    for _ in range(g.random.randint(1, 2)):
        dims = g.b.dims(y)
        if g.coin():
            order = list(range(len(dims)))
            if g.coin(0.2):
                g.random.shuffle(order)
            elif len(order) > 2:
                order = [*order[:-3], order[-2], order[-3], order[-1]]
            y = g.b.op("transpose", y, permutation=order)
        else:
            at = g.random.randrange(len(dims))
            joined = [*dims[:at], int(np.prod(dims[at : at + 2])), *dims[at + 2 :]]
            y = g.b.op("reshape", y, dims=joined)
        y = g.maybe_used(y, 0.1)
    return g.b.op("relu", y)


@case("find_flash_decoding", rtol=4e-6, fires=0.4, options={"splits": 2}, special=True)
def find_flash_decoding(g):
    d = Draw(g)
    d.n *= g.pick(1, 2, 2)
    return kernel(g, d)


@case("find_flash_decoding", rtol=4e-6, fires=0.4, options={"splits": 3})
def of_all_attentions(g):
    """Draw programs as find_attention leaves them, for its parts."""
    d = Draw(g)
    d.n = 3 * g.random.randint(1, 2)
    return kernel(g, d)


# at IR level the scores are rounded to f16 (kernels keep them), where one of 8 is off by 4e-3
@case("find_widened_attention", rtol=1e-2, fires=0.4, options={"flash": True}, special=False)
def find_widened_attention(g):
    from mgx_mlir.core import dtypes
    from mgx_mlir.core.shapes import TensorType
    from mgx_mlir.passes.analysis.kernel_ops import make_kernel

    d = Draw(g)
    d.dtype, d.m = "f16", g.random.randint(14, 24)
    inputs = [d.tensor(*d.lead, rows, width) for rows, width in
              ((d.m, d.width), (d.n, d.width), (d.n, d.depth))]  # fmt: skip
    early, twice = g.coin(0.9), g.coin(0.1)
    out = TensorType(dtypes.FLOAT, (*d.lead, d.m, d.depth))

    def build(arguments):
        b = g.b
        q, k, v = arguments if not early else (
            b.op("convert", x, target_type="f32") for x in arguments
        )  # fmt: skip
        s = b.op("dot", q, d.turned(k))
        if g.coin(0.3):
            s = b.op("add", s, b.multibroadcast(g.constant((d.n,), "f32"), b.dims(s)))
        y = b.op("dot", b.op("softmax", s, axis=len(d.lead) + 1), v)
        return [y]

    if not early:
        inputs = [g.b.op("convert", x, target_type="f32") for x in inputs]
    y = make_kernel("group", inputs, [out.mlir()], build, tag="attention").results[0]
    results = [g.b.op("convert", y, target_type="f16" if g.coin(0.9) else "bf16")]
    return [*results, y] if twice else results
