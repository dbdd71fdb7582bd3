"""Growers of branches, loops, scans and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from benchmarks.fuzzing.graph import Graph, Rejected, Scope, Value
from benchmarks.fuzzing.growers import GROWERS, grows
from benchmarks.fuzzing.oracle import kind_of

INNER = (
    "unary", "binary", "chains", "reduce", "softmax", "matmul", "clip", "transpose", "squeeze",
    "slice", "concat", "cast", "select", "compare", "gather", "layer_norm", "expand", "reshape",
    "shapes", "split", "pad", "cumulative", "gemm", "scatter", "tile",
)  # fmt: skip


def inside(g: Graph, n: int) -> None:
    """Up to `n` growers in the current scope."""
    names = [k for k in INNER if k in GROWERS and GROWERS[k][2] <= g.opset]
    for _ in range(n):
        try:
            GROWERS[g.pick(*names)][0](g)
        except Rejected:
            continue


def info(name: str, v: Value, shaped: bool = True) -> Any:
    dims = [v.extent(a) for a in range(v.rank)] if shaped else None
    return helper.make_tensor_value_info(name, kind_of(v.arrays[0]), dims)


def like(g: Graph, x: Value, values: list[Value]) -> Value:
    """A value of the dims and type of `x`, made of one of `values`."""
    same = [v for v in values if v.dtype == x.dtype and v.dims == x.dims]
    if same:
        return g.pick(*same[-3:])
    small = [v for v in values if v.dtype == x.dtype and v.rank == 0]
    if small and g.coin():
        return g.node("Add", x, g.pick(*small))
    return x


def ended(g: Graph, v: Value) -> Value:
    """A value that the body makes itself, for its result."""
    return g.node("Identity", v, exact=True)


def tame_state(g: Graph, v: Value) -> Value:
    return g.node("Tanh", v) if v.is_float else v


@grows(2)
def branch(g: Graph) -> Any:
    if len(g.scopes) > 2:
        raise Rejected("deep")
    x = g.value(kinds=(np.float32,))
    if g.coin(0.6):
        conds = [v for v in g.seen if v.dtype == np.bool_ and all(d in ((), (1,)) for d in v.dims)]
        cond = g.pick(*conds) if conds and g.coin() else g.operand(np.array(g.coin()))
    else:
        y = g.value(kinds=(np.float32,), test=lambda v: v.exact)
        cond = g.node(
            "Greater",
            g.node("ReduceMax", y, keepdims=0, exact=True),
            g.const(np.float32(g.rng.normal())),
            exact=True,
        )
    graphs, found = [], []
    for _ in range(2):
        with g.body() as scope:
            inside(g, g.size(0, 3))
            made = ended(g, like(g, x, scope.values) if g.coin(0.7) else x)
            found.append(made)
            graphs.append(body_of(g, scope, [], [made], shaped=False))
    return g.node("If", cond, then_branch=graphs[0], else_branch=graphs[1])


def body_of(
    g: Graph, scope: Scope, params: list[Value], results: list[Value], shaped: bool = True
) -> Any:
    return helper.make_graph(
        scope.nodes, g.name(), [info(v.name, v, shaped) for v in params],
        [info(v.name, v, shaped) for v in results],
    )  # fmt: skip


def param(g: Graph, arrays: list[np.ndarray]) -> Value:
    """A parameter of a body, with the arrays of its first iteration."""
    return g.add(Value(g.name(), arrays))


@grows(2)
def loop(g: Graph) -> Any:
    if len(g.scopes) > 2:
        raise Rejected("deep")
    starts = [g.value(kinds=(np.float32,), high=3) for _ in range(g.size(1, 2))]
    counts = (
        [np.array(g.size(0, 4)) for _ in g.worlds]
        if g.coin(0.3)
        else [np.array(g.size(1, 4))] * len(g.worlds)
    )
    if len({int(c) for c in counts}) == 1:
        trips = g.operand(counts[0])
    else:
        rows = g.value(kinds=(np.float32,), low=1)
        trips = g.node("Squeeze", g.node("Slice", g.node("Shape", rows, exact=True), *(
            g.const(np.array([i])) for i in (0, 1)), exact=True), exact=True)  # fmt: skip
        if max(int(a) for a in trips.arrays) > 9:
            raise Rejected("long")
    with g.body() as scope:
        number = param(g, [np.array(0) for _ in g.worlds])
        going = param(g, [np.array(True) for _ in g.worlds])
        own = [param(g, s.arrays) for s in starts]
        inside(g, g.size(1, 4))
        if g.coin(0.4):
            step = g.node("Cast", number, to=1, exact=True)
            g.node("Add", own[0], step)
        following = [ended(g, tame_state(g, like(g, v, scope.values))) for v in own]
        scans = [ended(g, g.pick(*scope.values[2:])) for _ in range(g.size(0, 2))]
        if g.coin(0.3):
            again = g.node("Less", number, g.const(np.array(g.size(0, 3))), exact=True)
        else:
            again = ended(g, going)
        graph = body_of(g, scope, [number, going, *own], [again, *following, *scans], g.coin())
    cond = g.const(np.array(True))
    return g.node(
        "Loop", trips, cond, *starts, body=graph, outputs=[*range(len(starts) + len(scans))]
    )


@grows(1.5, since=9)
def scan(g: Graph) -> Any:
    if len(g.scopes) > 2:
        raise Rejected("deep")
    sources = [g.value(kinds=(np.float32,), low=1, high=4, test=lambda v: 0 not in v.smallest)]
    length = [d[0] for d in sources[0].dims]
    if 0 in length or max(length) > 9:
        raise Rejected("long")
    start = g.value(kinds=(np.float32,), high=3)
    with g.body() as scope:
        own = param(g, start.arrays)
        rows = [param(g, [np.asarray(a[0]) for a in s.arrays]) for s in sources]
        inside(g, g.size(1, 4))
        following = ended(g, tame_state(g, like(g, own, scope.values)))
        scans = [ended(g, g.pick(*scope.values)) for _ in range(g.size(1, 2))]
        graph = body_of(g, scope, [own, *rows], [following, *scans])
    return g.node(
        "Scan", start, *sources, body=graph, num_scan_inputs=len(sources),
        scan_input_directions=[g.size(0, 1) for _ in sources],
        scan_output_directions=[g.size(0, 1) for _ in scans],
        outputs=[*range(1 + len(scans))],
    )  # fmt: skip
