"""Property cases of select_rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from pattern_graphs import Graph, case


@case("find_tuples_of_one", fires=0.6)
def find_tuples_of_one(g: Graph) -> Any:
    x = g.argument(g.dims(g.pick(1, 2, 3), low=2))
    count = 1 if g.coin(0.8) or len(g.b.dims(x)) == 1 else 2
    dims = (*g.dims(g.pick(0, 1, 2)), count)
    indices = g.argument(dims, "i64", low=-3, high=3)
    return g.b.op("gathernd", x, indices, batch_dims=0)


@case("find_selected_rows", rtol=1e-5, fires=0.5)
def find_selected_rows(g: Graph) -> Any:
    """A few ops on rows {batch, rows, elements}, and a gather of them that may repeat some."""
    batch, rows, depth = g.dims(1)[0], g.pick(3, 4, 5), g.pick(2, 4)
    x = g.argument((batch, rows, depth))
    axis = 1
    for _ in range(g.pick(1, 2, 3)):
        x = g.maybe_used(x, 0.05)
        dims = g.b.dims(x)
        last = len(dims) - 1
        kind = g.pick(*range(9))
        if kind == 0:
            x = g.b.op("add", x, g.b.multibroadcast(g.argument(dims[-1:]), dims))
        elif kind == 1:
            per_row = [d if i == axis else 1 for i, d in enumerate(dims)]
            x = g.b.op("mul", x, g.b.multibroadcast(g.argument(per_row), dims))
        elif kind == 2 and axis == last - 1:
            x = g.b.op("dot", x, g.argument((*dims[:-2], dims[-1], 3)))
        elif kind == 3:
            total = g.b.op("reduce_sum", x, axes=[g.pick(last, last, axis, 0)])
            x = g.b.op("sub", x, g.b.multibroadcast(total, dims))
        elif kind == 4:
            x = g.b.op("softmax", x, axis=g.pick(*(i for i in range(len(dims)) if i != axis), axis))
        elif kind == 5:
            order = list(range(len(dims)))
            g.random.shuffle(order)
            x, axis = g.b.op("transpose", x, permutation=order), order.index(axis)
        elif kind == 6 and axis == 1 and dims[-1] % 2 == 0:
            x = g.b.op("reshape", x, dims=[*dims[:-1], 2, dims[-1] // 2])
        elif kind == 7:
            x = g.b.op("concat", [x, g.b.op("neg", x)], axis=g.pick(last, axis, 0))
        elif kind == 8:
            x = g.b.op("slice", x, axes=[last], starts=[0], ends=[1])
    extent = g.b.dims(x)[axis]
    count = g.random.randint(1, extent)
    chosen = g.random.sample(range(extent), count)
    if g.coin(0.1):
        chosen = [chosen[0]] * count
    indices = np.array([i - extent if g.coin(0.3) else i for i in chosen], np.int64)
    return g.b.op("gather", x, g.b.literal(indices), axis=axis)
