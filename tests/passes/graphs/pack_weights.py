"""Random programs for pack_weights."""

from pattern_graphs import case


@case("find_blocked_weights", rtol=1e-5, fires=0.5)
def find_blocked_weights(g):
    """Packed and whole codes, by rows and by columns; blocks of 8, of 16 and of 4 rows."""
    m = g.pick(1, 3)
    k, n = 64, g.pick(64, 72)
    block = g.pick(4, 8, 16, 64)
    turned = g.coin()
    x = g.argument((m, k))
    dims = (n, k) if turned else (k, n)
    blocks = (n, k // block, 1) if turned else (k // block, 1, n)
    spread = (n, k // block, block) if turned else (k // block, block, n)
    if g.coin():
        codes = g.constant((dims[0], dims[1] // 2), "ui8", low=0, high=255)
        w = g.b.unpack_int4(codes)
    else:
        w = g.constant(dims, "i8", low=-128, high=127)
    w = g.b.convert(w, target_type=g.b.dtype(x))
    scale = g.b.multibroadcast(g.constant(blocks, low=0.5, high=1), spread)
    w = g.b.mul(w, g.b.reshape(scale, dims=list(dims)))
    w = g.b.transpose(w, permutation=[1, 0]) if turned else w
    return g.b.op("dot", x, g.maybe_used(w))


@case("find_shared_table", fires=0.5)
def find_shared_table(g):
    """A table, or the scales of one, that a matmul of the same numbers reads transposed."""
    n, k, block = g.pick(64, 96), 64, 8
    kind, bits = g.pick(("ui8", 8), ("i8", 8), ("f16", 16), ("scales", 8))
    n = 1024 if kind == "scales" else n  # scales of small tables are left
    low = -1 if bits == 16 else -128
    codes = g.numbers.integers(low, -low, (k, n))
    scales = g.numbers.integers(1, 99, (k // block, n)) / 64
    whole = codes.T + (128 if kind == "ui8" else 0)
    if kind == "scales":
        table = g.constant((n, k // block), value=scales.T)
    else:
        table = g.constant((n, k), kind, value=whole)
    if g.coin(0.2):
        table = g.constant((n, k), "i8")  # drawn again: other numbers
    rows = g.b.gather(table, g.argument((g.pick(1, 3),), "i64", low=-n, high=n - 1), axis=0)
    held = g.constant((k, n), "f16" if bits == 16 else "i8", value=codes)
    parts = held, g.constant(scales.shape, "f16", value=scales)
    x = g.argument((g.pick(1, 3), k))
    y = g.b.op("blocked_dot", x, *parts, block_size=block, bits=bits)
    g.used(y)
    return rows
