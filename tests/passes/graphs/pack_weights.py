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
