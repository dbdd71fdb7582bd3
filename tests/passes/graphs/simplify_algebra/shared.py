"""Shared parts of simplify_algebra's draws: types, extents, repeated constants."""

FLOATS = ("f32", "f32", "f32", "f16", "f64")
NUMBERS = (*FLOATS, "i32", "i8", "i64")
# for sums that are taken in another order: what cancels in 16 bits leaves nothing to compare
WIDE = ("f32", "f32", "f64", "i32", "i8", "i64")


def repeated(g, dims, dtype="f32", along=None, value=None):
    """A constant of `dims` that varies along the axes `along` (any choice by default)."""
    if along is None:
        along = [i for i in range(len(dims)) if g.coin()]
    small = [d if i in along else 1 for i, d in enumerate(dims)]
    c = g.constant(small, dtype, value=value)
    if g.coin(0.3) and len(along) == 1:
        flat = g.b.op("reshape", c, dims=[dims[along[0]]])
        return g.b.op("broadcast", flat, axis=along[0], out_lens=list(dims))
    return g.b.multibroadcast(c, dims)


def swapped(g, name, a, b):
    """A commutative op with its operands in either order."""
    return g.b.op(name, *((a, b) if g.coin() else (b, a)))


def extents(g, low=1):
    return g.dims(g.pick(1, 2, 3), low=low, high=4)


def product(g, dims, kind):
    """A value that is rounded; an argument that is exact now and then."""
    x = g.argument(dims, kind)
    return x if g.coin(0.1) else g.b.op("mul", x, g.argument(dims, kind))
