"""Property cases of fuse_rows."""

from __future__ import annotations

from typing import Any

from pattern_graphs import Graph, case

from mgx_mlir.passes.analysis.kernel_ops import make_kernel

_DEPTH, _COLUMNS = 256, 256  # the fewest weights of many rows that are multiplied as digits


def _like(g: Graph, v: Any, other: Any) -> Any:
    return g.b.op("multibroadcast", [v], out_lens=list(g.b.dims(other)))


@case("find_computed_rows", fires=0.4)
def find_computed_rows(g: Graph) -> Any:
    """Norms and gates of known rows, many and few, now and then read elsewhere."""
    dims = (*g.pick((20,), (3, 7), (24, 1), (5,)), _DEPTH)
    x, beside = g.argument(dims), g.argument(g.pick(dims, (_DEPTH,)))
    axis = g.pick(*[len(dims) - 1] * 5, 0)
    is_norm = g.coin()

    def norm(a: list[Any]) -> list[Any]:
        total = g.b.op("reduce_max", a[0], axes=[axis])
        y = g.b.op("add", a[0], _like(g, total, a[0]))
        return [g.b.op("mul", y, _like(g, a[1], a[0]))]

    def gate(a: list[Any]) -> list[Any]:
        return [g.b.op("mul", g.b.op("abs", a[0]), _like(g, a[1], a[0]))]

    if is_norm:
        rows = make_kernel("fused_reduce", [x, beside], [x.type], norm, axes=[axis])
    else:
        rows = make_kernel("pointwise", [x, beside], [x.type], gate)
    codes = g.constant((_DEPTH // 2, _COLUMNS), "ui8", low=0, high=255)
    scales = g.constant((_DEPTH // 32, _COLUMNS))
    given = [g.maybe_used(rows.results[0], 0.2), codes, scales]
    probe = g.b.op("blocked_dot", *given, block_size=32)
    kind = probe.type
    probe.owner.erase()

    def dot(a: list[Any]) -> list[Any]:
        return [g.b.op("blocked_dot", *a, block_size=32)]

    return make_kernel("group", given, [kind], dot, tag="blocked_dot").results[0]
