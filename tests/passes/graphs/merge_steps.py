"""Random programs for the patterns of merge_steps."""

from __future__ import annotations

from typing import Any

from pattern_graphs import Graph, case


@case("find_unrolled", rtol=1e-5)
def find_unrolled(g: Graph) -> Any:
    """Steps of a sequence, seldom in another order or of other weights."""
    count, axis, stacked = g.random.randint(2, 5), g.pick(0, 1), g.pick(0, 1)
    rows, width, columns = g.dims(3)
    x = g.argument((count, rows, width) if axis == 0 else (rows, count, width))
    w, bias = g.constant((width, columns)), g.constant((columns,))
    kinds = [g.pick("bias", "scale", "relu", "none") for _ in range(2)]
    steps = []
    for i in range(count):
        place = i if g.coin(0.98) else 0
        part = g.b.op("slice", x, axes=[axis], starts=[place], ends=[place + 1])
        y = g.b.dot(g.b.squeeze(part, axes=[axis]), w)
        for kind in kinds:
            if kind == "bias":
                y = g.b.add(y, bias if g.coin(0.98) else g.constant((columns,)))
            elif kind == "scale":
                y = g.b.mul(y, 2)
            elif kind == "relu":
                y = g.b.relu(y)
        steps.append(g.b.unsqueeze(g.maybe_used(y, 0.05), axes=[stacked]))
    return g.b.op("concat", steps, axis=stacked)
