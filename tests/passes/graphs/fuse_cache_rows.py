"""Random programs for the patterns of fuse_cache_rows."""

from __future__ import annotations

from typing import Any

from pattern_graphs import Graph, case


def _written(g: Graph, x: Any) -> Any:
    """Write rows {batch, heads, rows, size} to a cache with room for them, or nearly."""
    batch, heads, rows, size = g.b.dims(x)
    past = g.argument((batch, heads, g.random.randint(max(1, rows - 1), 6), size))
    lengths = g.argument((batch,), "i32", low=0, high=6)
    return g.b.op("concat_past_present", x, lengths, past)


def _either(g: Graph, name: str, x: Any, y: Any) -> Any:
    """Build an op of two operands in either order."""
    return g.b.op(name, *g.pick((x, y), (y, x)))


@case("find_turned_rows", rtol=1e-5)
def find_turned_rows(g: Graph) -> Any:
    """RoPE of the rows; now and then with other halves, or read elsewhere."""
    batch, heads, rows, half = (g.random.randint(1, 3) for _ in range(4))
    x = g.argument((batch, heads, rows, 2 * half))
    cos, sin = (g.argument((batch, 1, rows, 2 * half)) for _ in range(2))
    cos, sin = (g.b.multibroadcast(v, g.b.dims(x)) for v in (cos, sin))
    middle = half if g.coin(0.9) or half == 1 else half - 1
    high = g.b.op("slice", x, axes=[3], starts=[middle], ends=[2 * half])
    low = g.b.op("slice", x, axes=[3], starts=[0], ends=[middle])
    turned = g.b.op("concat", [g.b.op("neg", high), low], axis=3)
    parts = [_either(g, "mul", x, cos), _either(g, "mul", turned, sin)]
    total = g.maybe_used(_either(g, "add", *parts), 0.1)
    return _written(g, total)


@case("find_rows_first")
def find_rows_first(g: Graph) -> Any:
    """Rows whose heads were swapped with them, or with elements."""
    x = g.argument(tuple(g.random.randint(1, 4) for _ in range(4)))
    order = [0, 2, 1, 3] if g.coin(0.9) else [0, 1, 3, 2]
    return _written(g, g.maybe_used(g.b.op("transpose", x, permutation=order), 0.2))


@case("find_rows_first")
def heads_beside_others(g: Graph) -> Any:
    """Some heads, or now and then some rows, of what was swapped."""
    batch, rows, heads, size = (g.random.randint(1, 4) for _ in range(4))
    swapped = g.b.op("transpose", g.argument((batch, rows, heads, size)), permutation=[0, 2, 1, 3])
    axis = 1 if g.coin(0.8) else 2
    extent = (heads, rows)[axis - 1]
    start = g.random.randrange(extent)
    end = g.random.randint(start + 1, extent)
    return _written(g, g.b.op("slice", swapped, axes=[axis], starts=[start], ends=[end]))
