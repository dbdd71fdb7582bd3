"""Loops that count up to a bound: as many iterations as onnxruntime makes, known ahead."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.frontends.onnx.counters import Counter, counters
from tests.frontends.loop_models import info
from tests.support.oracle import ort_session

INT = TensorProto.INT64


def model(r: random.Random, *, start: int, bound: int, given: bool) -> onnx.ModelProto:
    """Sum rows while a number is below a bound; where the bound stands is drawn.

    given: the bound is an input of the model. The loop starts whatever the two are: the first
    iteration is behind the outer condition alone.
    """
    kind = r.choice(["state", "outer", "within"]) if not given else r.choice(["state", "outer"])
    less = r.choice(["Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
    by_state, both, cast = r.random() < 0.7, r.random() < 0.4, r.random() < 0.5
    one = helper.make_node("Constant", [], ["one"], value=_number(1))
    body = [
        one,
        helper.make_node("Add", r.sample(["i", "one"], 2), ["next"]),
        helper.make_node("Add", ["n", "one"], ["after"]),
        helper.make_node("Add", ["acc", "row"], ["sum"]),
        helper.make_node("Identity", ["sum"], ["scan"]),
    ]
    number = "next" if by_state else "after"
    limit = {"state": "b", "outer": "bound", "within": "own"}[kind]
    if kind == "within":
        body.append(helper.make_node("Constant", [], ["own"], value=_number(bound)))
    if cast:
        for name, of in (("number_f", number), ("limit_f", limit)):
            body.append(helper.make_node("Cast", [of], [name], to=TensorProto.FLOAT))
        number, limit = "number_f", "limit_f"
    pair = [number, limit] if less.startswith("Less") else [limit, number]
    body.append(helper.make_node(less, pair, ["below"]))
    if both:
        body.append(helper.make_node("Less", ["next", "seven"], ["few"]))
        body.append(helper.make_node("And", ["below", "few"], ["again"]))
    else:
        body.append(helper.make_node("Identity", ["below"], ["again"]))
    body.append(helper.make_node("Identity", ["b"], ["b_out"]))
    graph = helper.make_graph(
        body,
        "body",
        [info("n", [], INT), info("go", [], TensorProto.BOOL), info("i", [], INT),
         info("b", [], INT), info("acc", ["d"])],
        [info("again", [], TensorProto.BOOL), info("next", [], INT), info("b_out", [], INT),
         info("sum", ["d"]), info("scan", ["d"])],
    )  # fmt: skip
    trips = r.choice(["", "most"])
    nodes = [
        helper.make_node("Loop", [trips, "go_first", "start", "bound", "first"],
                         ["i_end", "b_end", "total", "rows"], body=graph),
    ]  # fmt: skip
    held = {"start": start, "seven": r.choice([2, 7]), "most": r.choice([3, 50])}
    if not given:
        held["bound"] = bound
    initializers = [numpy_helper.from_array(np.int64(v), k) for k, v in held.items()]
    initializers.append(numpy_helper.from_array(np.bool_(r.random() < 0.85), "go_first"))
    inputs = [info("first", ["d"]), info("row", ["d"]), *([info("bound", [], INT)] * given)]
    outputs = [info("i_end", [], INT), info("total", ["d"]), info("rows", ["k", "d"])]
    whole = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _number(value: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.int64(value))


def _agree(proto: onnx.ModelProto, target: str, bound: int | None, what: str) -> Any:
    data = proto.SerializeToString()
    session = ort_session(data)
    program = mgx_mlir.compile(data, target)
    feeds: dict[str, np.ndarray] = {
        "first": np.arange(3, dtype=np.float32), "row": np.full(3, 0.5, np.float32),
    }  # fmt: skip
    for limit in (bound,) if bound is not None else (-3, 0, 1, 2, 6, 9):
        given = feeds if bound is not None else {**feeds, "bound": np.array(limit, np.int64)}
        for got, want in zip(program.run(given), session.run(None, given), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want, err_msg=f"{what}, {limit}")
    return program


def test_as_many_iterations_as_onnxruntime() -> None:
    found = 0
    for seed, (start, bound) in enumerate(itertools.product((-2, 0, 4), (-3, 0, 1, 5, 6))):
        r = random.Random(seed)
        proto = model(r, start=start, bound=bound, given=False)
        found += counters(proto.graph.node[0].attribute[0].g, {"seven": 7}.get) is not None
        _agree(proto, "ref", bound, f"seed {seed}")
    assert found == 15


@pytest.mark.parametrize(("target", "seed"), [*(("ref", s) for s in range(20, 32)), ("cpu", 3)])
def test_bounds_of_a_call(target: str, seed: int) -> None:
    proto = model(random.Random(seed), start=seed % 3 - 1, bound=0, given=True)
    _agree(proto, target, None, f"seed {seed}")


def test_a_known_bound_is_a_known_number_of_rows() -> None:
    """A loop that surely starts stacks a static number of rows."""
    for seed in range(40, 60):
        proto = model(random.Random(seed), start=0, bound=5, given=False)
        loop = proto.graph.node[0]
        starts = numpy_helper.to_array(proto.graph.initializer[-1])
        if starts and loop.input[0] == "":
            break
    data = proto.SerializeToString()
    stated = mgx_mlir.parse_onnx_buffer(data).get_output_shapes()[2]
    session = ort_session(data)
    first = np.zeros(1, np.float32)
    rows = np.asarray(session.run(["rows"], {"first": first, "row": first})[0])
    assert stated.lens() == list(rows.shape)


def _body(nodes: str, outputs: str = "again, j") -> onnx.GraphProto:
    return onnx.parser.parse_graph(
        f"b (int64 n, bool go, int64 i, int64 m, float x) => (bool {outputs}, int64 m2, float y)"
        f" {{ {nodes} }}"
    )


STEP = "one = Constant <value = int64 {1}> () j = Add(i, one) m2 = Identity(m) y = Identity(x) "


@pytest.mark.parametrize(
    ("condition", "want"),
    [
        ("again = Less(j, m)", [Counter(0, 1, 1, True, False)]),
        ("again = GreaterOrEqual(m, j)", [Counter(0, 1, 1, True, True)]),
        ("again = Less(i, m)", [Counter(0, 0, 1, True, False)]),
        ("again = Less(n, limit)", [Counter(None, 0, "limit", False, False)]),
        ("a = Less(j, m) again = And(a, go)", [Counter(0, 1, 1, True, False)]),
        # near misses: a bound that moves, a number that falls, a value of the call
        ("k = Less(m, j) again = Identity(k)", None),
        ("h = Sub(j, one) again = Less(h, m)", None),
        ("again = Less(x, y)", None),
        ("a = Less(j, m) again = Or(a, go)", None),
    ],
)
def test_what_counts(condition: str, want: list[Counter] | None) -> None:
    assert counters(_body(STEP + condition)) == want


def test_a_counter_with_another_step_is_none() -> None:
    body = _body(
        "two = Constant <value = int64 {2}> () j = Add(i, two) m2 = Identity(m) y = Identity(x) "
        "again = Less(j, m)"
    )
    assert counters(body) is None


def _made(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    inputs = [info("n", [], INT), info("go", [], TensorProto.BOOL), info("i", [], INT)]
    outputs = [info("again", [], TensorProto.BOOL), info("j", [], INT)]
    return helper.make_graph(list(nodes), "b", inputs, outputs)


def test_bodies_that_nobody_would_write() -> None:
    """Values that are read many times, long chains, cycles, numbers of inputs, odd numbers."""
    node = helper.make_node
    tower = [node("And", [f"a{k}", f"a{k}"], [f"a{k + 1}"]) for k in range(200)]
    first, last = node("Identity", ["go"], ["a0"]), node("Identity", ["a200"], ["again"])
    assert counters(_made(first, *tower, last)) == []
    chain = [node("Identity", [f"x{k}"], [f"x{k + 1}"]) for k in range(5000)]
    first, last = node("Identity", ["go"], ["x0"]), node("Identity", ["x5000"], ["again"])
    assert counters(_made(first, *chain, last)) == []
    assert counters(_made(node("Identity", ["again"], ["again"]))) == []  # refused when it is read
    less = node("Less", ["i", "bound"], ["again"])
    circle = [node("Identity", ["y"], ["i2"]), node("Cast", ["i2"], ["y"], to=INT)]
    assert counters(_made(*circle, node("Less", ["i2", "bound"], ["again"]))) is None
    for wrong in (["i"], ["i", "bound", "i"], []):
        assert counters(_made(node("Less", wrong, ["again"]))) is None
        assert counters(_made(node("Add", wrong, ["j"]), less)) is None
    for number in (np.float32("nan"), np.float32("inf"), np.float32(1.5)):
        one = node("Constant", [], ["one"], value=numpy_helper.from_array(np.array(number)))
        assert counters(_made(one, node("Add", ["i", "one"], ["j"]), less)) is None
    nothing = _made(less)
    del nothing.output[:]
    assert counters(nothing) is None
