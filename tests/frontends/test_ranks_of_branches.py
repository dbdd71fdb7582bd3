"""An `If` whose branches differ in rank, as `squeeze` of a dynamic dim is exported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import mgx_mlir
from mgx_mlir.core.errors import ModelError, RunError, UnsupportedModel
from mgx_mlir.frontends.onnx.alternatives import Alternatives, Choices
from tests.support.compare import agrees
from tests.support.models import parsed_bytes

SQUEEZE = """
  s = Shape(x) last = Constant<value_ints = [-1]>() one = Constant<value_ints = [1]>()
  n = Gather(s, last) c = Equal(n, one)
  z = If(c) <then_branch = t () => (float[p,q] u) { u = Squeeze(x, last) },
             else_branch = e () => (float[p,q,r] v) { v = Identity(x) }>"""
HEAD = '<ir_version: 8, opset_import: ["":18]>\n'


def text(tail: str, output: str, squeeze: str = SQUEEZE) -> bytes:
    graph = f"g (float[b,4,n] x) => ({output}) {{{squeeze} {tail} }}"
    return parser.parse_model(HEAD + graph).SerializeToString()


def checked(data: bytes, *shapes: tuple[int, ...]) -> Any:
    """Compile once for each target; compare with onnxruntime at each shape."""
    drawn = (np.random.default_rng(0).standard_normal(shape) for shape in shapes)
    calls = [{"x": x.astype(np.float32)} for x in drawn]
    return [agrees(data, calls, target, atol=1e-6) for target in ("cpu", "ref")]


GEMM = """w = Constant<value = float[4,3] {1,2,3,4,5,6,7,8,9,10,11,12}>() y = Gemm(z, w)"""


def test_the_rest_of_the_model_decides() -> None:
    """Gemm takes matrices: the branch that squeezes runs, and the other one is an error."""
    for program in checked(text(GEMM, "float[b,3] y"), (2, 4, 1), (5, 4, 1)):
        with pytest.raises(RunError, match=r"dim 2 .*= 1|dim 2 expected extent 1"):
            program.run(x=np.zeros((2, 4, 3), np.float32))


def test_the_branch_that_keeps_the_rank() -> None:
    tail = "y = GlobalAveragePool(z)"
    for program in checked(text(tail, "float[b,4,1] y"), (2, 4, 3), (3, 4, 7)):
        with pytest.raises(RunError, match="expected a condition that is false"):
            program.run(x=np.zeros((2, 4, 1), np.float32))


def test_ranks_that_the_outputs_state() -> None:
    checked(text("y = Relu(z)", "float[b,m] y"), (2, 4, 1))


def test_one_choice_for_each_of_several() -> None:
    """The second one squeezes what the first one gave."""
    again = """ d = Gemm(z, w) axes = Constant<value_ints = [2]>() e = Unsqueeze(d, axes)
      k = Gather(s, last) f = Equal(k, one)
      r = If(f) <then_branch = t2 () => (float[p,q] u2) { u2 = Squeeze(e, axes) },
                 else_branch = e2 () => (float[p,q,r] v2) { v2 = Identity(e) }>
      y = Gemm(r, m)"""
    matrix = "m = Constant<value = float[3,2] {1,2,3,4,5,6}>()"
    tail = GEMM.split(" y =")[0] + matrix + again
    checked(text(tail, "float[b,2] y"), (2, 4, 1), (3, 4, 1))


def test_calls_of_one_function_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An imputer of skl2onnx calls a function for each column; each call was decided by itself."""
    count, readings = 12, list[Choices]()
    calls = " ".join(f"y{i} = own.head(x)" for i in range(count))
    total = f"y = Sum({', '.join(f'y{i}' for i in range(count))})"
    head = '<ir_version: 8, opset_import: ["":18, "own":1]>\n'
    function = f'<domain: "own", opset_import: ["":18]> head (x) => (y) {{{SQUEEZE} {GEMM} }}'
    model = f"{head} g (float[b,4,n] x) => (float[b,3] y) {{{calls} {total} }} {function}"
    reading = Alternatives._reading

    def counted(self: Alternatives, choices: Choices) -> Any:
        readings.append(choices)
        return reading(self, choices)

    monkeypatch.setattr(Alternatives, "_reading", counted)
    checked(parser.parse_model(model).SerializeToString(), (2, 4, 1), (5, 4, 1))
    # compiles of each target: nothing chosen, both, then, else, and then for all of them
    assert len(readings) == 2 * 5


def test_calls_of_one_function_that_differ() -> None:
    """Each call is read with a choice of its own: one choice does not fit both."""
    function = f'<domain: "own", opset_import: ["":18]> head (x) => (z) {{{SQUEEZE} }}'
    head = '<ir_version: 8, opset_import: ["":18, "own":1]>\n'
    body = f"""z1 = own.head(x) {GEMM.replace("(z,", "(z1,")}
               z2 = own.head(w2) v = GlobalAveragePool(z2)"""
    inputs, outputs = "float[b,4,n] x, float[b,4,m] w2", "float[b,3] y, float[b,4,1] v"
    model = f"{head} g ({inputs}) => ({outputs}) {{{body} }} {function}"
    data = parser.parse_model(model).SerializeToString()
    x, w2 = (np.random.default_rng(n).random((2, 4, n), np.float32) for n in (1, 3))
    for target in ("cpu", "ref"):
        agrees(data, [{"x": x, "w2": w2}], target, atol=1e-6)


def test_a_choice_inside_of_a_branch() -> None:
    """A branch that is invalid under the wrong choice may still be taken at run time."""
    inner = f"{SQUEEZE} {GEMM}"
    outer = f"""
      k = ReduceSum<keepdims = 0>(x) o = Constant<value_float = 0.0>() f = Greater(k, o)
      r = If(f) <then_branch = t3 () => (float[p,q] a) {{{inner} a = Identity(y)}},
                 else_branch = e3 () => (float[p,q] d)
                   {{all = Constant<value_ints = [0]>() g = Concat<axis = 0>(all, three)
                     d = Expand(o, g)}}>"""
    three = "three = Constant<value_ints = [3]>()"
    for program in checked(text("", "float[b,3] r", three + outer), (2, 4, 1), (5, 4, 1)):
        with pytest.raises(RunError, match=r"dim 2 .*= 1|dim 2 expected extent 1"):
            program.run(x=np.ones((2, 4, 3), np.float32))


def test_neither_branch_can_be_read() -> None:
    tail = "w = Constant<value = float[3] {1,2,3}>() y = Gemm(z, w)"
    with pytest.raises(ModelError, match="expected matrices"):
        mgx_mlir.compile(text(tail, "float[b,3] y"), "ref", cache=False)


# ---- no rank is stated, and each is right -------------------------------------------------------


def either(tail: str, squeeze: str = SQUEEZE) -> bytes:
    """Return a model whose output may have any rank."""
    model = parser.parse_model(HEAD + f"g (float[b,4,n] x) => (float[m] y) {{{squeeze} {tail}}}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model.SerializeToString()


SHAPES = ((2, 4, 1), (2, 4, 3), (3, 4, 1), (1, 4, 2))
BRANCHES = SQUEEZE.replace("u = Squeeze(x, last)", "t1 = Squeeze(x, last) u = Relu(t1)").replace(
    "v = Identity(x)", "v = Neg(x)"
)
UNEQUAL = SQUEEZE.replace("c = Equal(n, one)", "d = Equal(n, one) c = Not(d)").replace(
    "If(c) <then_branch = t () => (float[p,q] u) { u = Squeeze(x, last) },\n"
    "             else_branch = e () => (float[p,q,r] v) { v = Identity(x) }>",
    "If(c) <then_branch = e () => (float[p,q,r] v) { v = Identity(x) },\n"
    "             else_branch = t () => (float[p,q] u) { u = Squeeze(x, last) }>",
)


@pytest.mark.parametrize("squeeze", [SQUEEZE, UNEQUAL, BRANCHES])
def test_the_output_has_the_rank_that_the_call_decides(squeeze: str) -> None:
    for program in checked(either("y = Identity(z)", squeeze), *SHAPES):
        assert program.run(x=np.zeros((2, 4, 1), np.float32))[0].shape == (2, 4)


def test_operators_by_element_follow_either_rank() -> None:
    checked(either("e = Exp(z) half = Constant<value_float = 0.5>() y = Mul(e, half)"), *SHAPES)


def test_a_reader_that_depends_on_the_rank() -> None:
    """The reader takes the larger rank; the other one is an error at run time, no wrong result."""
    tail = "a = Constant<value_ints = [-1]>() y = ReduceSum(z, a)"
    for program in checked(either(tail), (2, 4, 3), (3, 4, 2)):
        with pytest.raises(RunError, match="an extent other than 1 of dim 2"):
            program.run(x=np.zeros((2, 4, 1), np.float32))


@pytest.mark.parametrize("squeeze", [SQUEEZE, BRANCHES])
def test_a_condition_that_the_extent_does_not_bear_out(squeeze: str) -> None:
    """An extent of 1 that is kept, or another one that is left out, cannot be told from others."""
    three = squeeze.replace("one = Constant<value_ints = [1]>", "one = Constant<value_ints = [3]>")
    for program in checked(either("y = Identity(z)", three), (2, 4, 2)):
        for n in (1, 3):
            with pytest.raises(RunError, match=r"extent|dim 2 .* = 1"):
                program.run(x=np.zeros((2, 4, n), np.float32))


def test_ranks_that_nothing_joins() -> None:
    """The error names the dim that decides."""
    flat = SQUEEZE.replace("Squeeze(x, last)", "Reshape(x, last)")
    with pytest.raises(UnsupportedModel, match=r"output 0 of rank 1 or 3, which dim 'n'.*decides"):
        mgx_mlir.compile(either("y = Identity(z)", flat), "ref", cache=False)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_branch_that_does_not_fit_the_sizes(target: str) -> None:
    """With fixed dims a branch for other sizes is no model; the run that takes it has an error."""
    data = parsed_bytes(
        """(float[N,4] x, bool c) => (float[M,4] r) { k = Identity (c) r = If <
        then_branch = t () => (float[1,4] y)
            { a = Constant <value_ints = [0]> () s = Squeeze (x, a) y = Unsqueeze (s, a) },
        else_branch = e () => (float[1,4] z)
            { b = Constant <value_ints = [0]> () z = ReduceSum (x, b) }
        > (k) }""",
        opset=18,
    )
    program = mgx_mlir.compile(data, target, map_input_dims={"x": [2, 4]}, cache=False)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    (got,) = program.run({"x": x, "c": np.array(False)})
    np.testing.assert_array_equal(got, x.sum(0, keepdims=True))
    with pytest.raises(RunError, match=r"condition that is false: in the other branch .*Squeeze"):
        program.run({"x": x, "c": np.array(True)})
