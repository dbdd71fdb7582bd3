"""ONNX sequences and optionals, against onnxruntime: operators, If, Loop, inputs and outputs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, parser

import mgx_mlir
from mgx_mlir.api.target import get_target
from mgx_mlir.core.errors import ModelError, RunError, UnsupportedModel, UsageError
from mgx_mlir.integrations.backend import Backend, StructuredRep
from mgx_mlir.programs.signature import Signature
from tests.support.oracle import ort_session

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A * 10
HEAD = '<ir_version: 10, opset_import: ["": 18]>\n'


def parsed(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text)


def oracle(model: onnx.ModelProto, inputs: dict[str, Any]) -> list[Any]:
    session = ort_session(model)
    return session.run(None, inputs)


def same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        if isinstance(e, list):
            assert isinstance(f, list)
            same(f, e)
        else:
            np.testing.assert_array_equal(f, e)
            assert f.dtype == e.dtype


def check(
    model: onnx.ModelProto, inputs: dict[str, Any], target: str = "ref", **options: Any
) -> Any:
    compiled = mgx_mlir.compile(model.SerializeToString(), target=target, cache=False, **options)
    same(compiled.run(inputs), oracle(model, inputs))
    return compiled


def refused(text: str, match: str, kind: type = UnsupportedModel, **options: Any) -> None:
    with pytest.raises(kind, match=match):
        mgx_mlir.compile(parsed(text).SerializeToString(), target="ref", **options)


OPERATORS = parsed("""
g (float[2, 3] a, float[2, 3] b, float[N, 3] c)
    => (seq(float) s, int64 n, float[M, 3] at, float[K, 3] all, float[2, 2, 3] stacked,
        seq(float) halves, seq(float) rows, seq(float) by, float[J, 3] gone) {
  zero = Constant <value_int: int = 0> ()
  one = Constant <value_int: int = 1> ()
  last = Constant <value_int: int = -1> ()
  empty = SequenceEmpty <dtype: int = 1> ()
  s0 = SequenceInsert (empty, a)
  s1 = SequenceInsert (s0, b, zero)
  s2 = SequenceInsert (s1, c, last)
  s = Identity (s2)
  n = SequenceLength (s2)
  at = SequenceAt (s2, last)
  all = ConcatFromSequence <axis: int = 0> (s2)
  pair = SequenceConstruct (a, b)
  stacked = ConcatFromSequence <axis: int = -2, new_axis: int = 1> (pair)
  three = Constant <value_int: int = 2> ()
  halves = SplitToSequence <axis: int = 1> (a, three)
  rows = SplitToSequence <keepdims: int = 0> (a)
  sizes = Constant <value_ints: ints = [1, 0, 2]> ()
  by = SplitToSequence <axis: int = 1> (a, sizes)
  less = SequenceErase (s2, one)
  least = SequenceErase (less)
  gone = SequenceAt (least, zero)
}
""")


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_operators(target: str) -> None:
    compiled = check(OPERATORS, {"a": A, "b": B, "c": A[:1]}, target)
    assert compiled.output_names == [o.name for o in OPERATORS.graph.output]


def test_places_of_the_run() -> None:
    model = parsed("""
g (float[2, 3] a, float[2, 3] b, int64 p, int64 q)
    => (float[2, 3] at, seq(float) more, seq(float) less) {
  pair = SequenceConstruct (a, b)
  at = SequenceAt (pair, p)
  more = SequenceInsert (pair, a, q)
  less = SequenceErase (more, p)
}
""")
    compiled = mgx_mlir.compile(model.SerializeToString(), target="ref")
    for p, q in itertools.product((-2, -1, 0, 1), (-2, 0, 1, 2)):
        inputs = {"a": A, "b": B, "p": np.int64(p), "q": np.int64(q)}
        arrays = {k: np.asarray(v) for k, v in inputs.items()}
        same(compiled.run(arrays), oracle(model, arrays))


def test_places_of_the_run_need_elements_of_one_rank() -> None:
    refused(
        """g (float[2] a, float[3, 1] b, int64 p) => (float[N] y)
        { s = SequenceConstruct (a, b) y = SequenceAt (s, p) }""",
        "'position' is computed at run time, the elements differ in their dims",
    )


# ---- If and Loop -------------------------------------------------------------------------------

BRANCH = """
g (bool c, float[2, 3] a, float[2, 3] b) => (seq(float) y, int64 n) {{
  y = If (c) <
    then_branch: graph = t () => (seq(float) t0) {{ t0 = SequenceConstruct (a, b) }},
    else_branch: graph = e () => (seq(float) e0) {{ {other} }}
  >
  n = SequenceLength (y)
}}
"""


@pytest.mark.parametrize("c", [True, False])
def test_branches_of_one_structure(c: bool) -> None:
    model = parsed(BRANCH.format(other="z = Neg (a) e0 = SequenceConstruct (z, b)"))
    check(model, {"c": np.array(c), "a": A, "b": B})


def test_branches_of_two_structures() -> None:
    text = BRANCH.format(other="e0 = SequenceConstruct (a)")
    refused(text, "output 0 that is a sequence of 2 or a sequence of 1")
    model = parsed(text)  # the value of the condition picks the branch when it is read
    compiled = mgx_mlir.compile(
        model.SerializeToString(), target="ref", input_values={"c": np.array(False)}
    )
    assert compiled.input_names == ["a", "b"]
    same(compiled.run({"a": A, "b": B}), oracle(model, {"c": np.array(False), "a": A, "b": B}))
    prepared = Backend.prepare(model)
    assert isinstance(prepared, StructuredRep)
    for c in (True, False):
        same(list(prepared.run([np.array(c), A, B])),
             oracle(model, {"c": np.array(c), "a": A, "b": B}))  # fmt: skip


LOOP = """
g ({trips} float[2, 3] a) => (seq(float) y, float[N] sums) {{
  {count}
  go = Constant <value: tensor = bool {{1}}> ()
  start = SequenceConstruct (a)
  y, sums = Loop (n, go, start) <
    body: graph = b (int64 i, bool k, seq(float) s) => (bool k1, seq(float) s1, float t) {{
      k1 = Identity (k)
      f = Cast <to: int = 1> (i)
      {place}
      e = SequenceAt (s, zero)
      x = Add (e, f)
      {step}
      t = ReduceSum <keepdims: int = 0> (x)
    }}
  >
}}
"""
ZERO = "zero = Constant <value_int: int = 0> ()"


def test_a_loop_that_makes_a_sequence_grow() -> None:
    count = "n = Constant <value_int: int = 3> ()"
    text = LOOP.format(trips="", count=count, place=ZERO, step="s1 = SequenceInsert (s, x)")
    compiled = check(parsed(text), {"a": A})
    assert [len(v) for v in compiled.run({"a": A})] == [4, 3]


def test_a_loop_of_run_time_length_over_a_sequence() -> None:
    step = "s0 = SequenceErase (s) s1 = SequenceInsert (s0, x)"
    model = parsed(LOOP.format(trips="int64 n,", count="", place=ZERO, step=step))
    compiled = mgx_mlir.compile(model.SerializeToString(), target="ref")
    for n in (1, 4):
        inputs = {"n": np.array(n), "a": A}
        same(compiled.run(inputs), oracle(model, inputs))
    grows = LOOP.format(trips="int64 n,", count="", place=ZERO, step="s1 = SequenceInsert (s, x)")
    refused(grows, "carried value 0 that is a sequence of 1, then a sequence of 2: the number of "
                   "iterations is known at run time only")  # fmt: skip


OPEN = parsed("""
g (float[n, 3] x) => (seq(float) rows, seq(float) parts, seq(float) numbers) {
  none = Constant <value_ints: ints = [0]> ()
  zero = Constant <value_int: int = 0> ()
  shape = Shape <start: int = 0, end: int = 1> (x)
  count = Squeeze (shape, none)
  go = Constant <value: tensor = bool {1}> ()
  empty = SequenceEmpty <dtype: int = 1> ()
  rows, numbers = Loop (count, go, empty, empty) <
    body: graph = b (int64 i, bool k, seq(float) r, seq(float) s)
        => (bool k1, seq(float) r1, seq(float) s1) {
      k1 = Identity (k)
      row = Gather <axis: int = 0> (x, i)
      low = Relu (row)
      r1 = SequenceInsert (r, low)
      one = Gather <axis: int = 0> (low, zero)
      s1 = SequenceInsert (s, one)
    }
  >
  parts = SplitToSequence <axis: int = 0> (x)
}
""")


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_lists_of_dynamic_length_are_outputs(target: str) -> None:
    compiled = check(OPEN, {"x": A}, target)
    for x in (np.ones((4, 3), np.float32), A[:1]):
        same(compiled.run({"x": x}), oracle(OPEN, {"x": x}))
    assert Signature.from_json(compiled.signature.to_json()) == compiled.signature
    assert str(compiled.signature.output_groups[0]) == "a list of tensors"


# ---- inputs and outputs ------------------------------------------------------------------------

MAPPED = """
g (seq(float[N]) x, float[1] w) => (seq(float[N]) y, seq(int64[1]) sizes) {
  y, sizes = SequenceMap (x, w) <
    body: graph = b (float[N] e, float[1] v) => (float[N] r, int64[1] d)
      { r = Add (e, v) d = Shape (e) }
  >
}
"""


def test_inputs() -> None:
    model = parsed(MAPPED)
    xs = [np.arange(n, dtype=np.float32) for n in (3, 1)]
    inputs = {"x": xs, "w": np.ones(1, np.float32)}
    expected = oracle(model, inputs)
    data = model.SerializeToString()
    dims = {"x[0]": [3], "x[1]": [1]}
    for options in (
        {"input_lengths": {"x": 2}},
        {"input_lengths": {"x": 2}, "map_input_dims": dims},
    ):
        compiled = mgx_mlir.compile(data, target="ref", **options)
        assert compiled.input_names == ["x", "w"]
        assert compiled.output_names == ["y", "sizes"]
        same(compiled.run(inputs), expected)
        given = {"x[0]": xs[0], "x[1]": xs[1], "w": inputs["w"]}  # one by one
        same(compiled.run(given), expected)
        with pytest.raises(
            RunError, match="input 'x' expected a list of 2 tensors, got a list of 1"
        ):
            compiled.run({**inputs, "x": xs[:1]})
        with pytest.raises(RunError, match="expected a list of 2 tensors, got no list"):
            compiled.run({**inputs, "x": xs[0]})
        assert Signature.from_json(compiled.signature.to_json()) == compiled.signature
    with pytest.raises(RunError, match=r"input 'x\[0\]' expected"):
        compiled.run({**inputs, "x": xs[::-1]})


def test_the_api_gives_lists() -> None:
    data = parsed(MAPPED).SerializeToString()
    program = mgx_mlir.parse_onnx_buffer(data, input_lengths={"x": 2}, map_input_dims={"x[1]": [1]})
    assert program.get_parameter_names() == ["x[0]", "x[1]", "w"]
    xs, w = [np.ones(1, np.float32), np.zeros(1, np.float32)], np.ones(1, np.float32)
    for _ in range(2):
        y, sizes = program.run({"x": xs, "w": w})
        same([np.array(v) for v in y], [x + 1 for x in xs])
        assert len(sizes) == 2
        if not program.is_compiled():
            program.compile(get_target("ref"))


def test_the_backend_compiles_for_the_structure_of_a_run() -> None:
    model = parsed(MAPPED)
    prepared = Backend.prepare(model)
    w = np.ones(1, np.float32)
    for sizes in ((2,), (2, 3), ()):
        xs = [np.arange(n, dtype=np.float32) for n in sizes]
        y, lengths = prepared.run([xs, w])
        same(y, [x + 1 for x in xs])
        same(lengths, [np.array([n]) for n in sizes])


def test_errors_of_inputs() -> None:
    refused(MAPPED, "'x' is a sequence, and the model does not state its number of elements")
    refused(MAPPED, "'z', which is no input", UsageError,
            input_lengths={"x": 1, "z": 1})  # fmt: skip
    refused(MAPPED, "is no sequence", UsageError, input_lengths={"x": 1, "w": 1})
    refused(MAPPED, "is no optional", UsageError, input_lengths={"x": None})
    wrong = {"w": np.ones(2, np.float32)}
    refused(MAPPED, "value of dims", UsageError, input_lengths={"x": 1}, input_values=wrong)
    wrong = {"w": np.ones(1, np.float64)}
    refused(MAPPED, "expected float32", UsageError, input_lengths={"x": 1}, input_values=wrong)


def test_an_operator_on_tensors_gets_a_sequence() -> None:
    refused(
        "g (float[2] a) => (float[2] y) { s = SequenceConstruct (a, a) y = Neg (s) }",
        "input 0 expected a tensor, got a sequence of 2",
        ModelError,
    )


def test_elements_of_two_types() -> None:
    refused(
        "g (float[2] a, int64[2] b) => (seq(float) y) { y = SequenceConstruct (a, b) }",
        "expected elements of one type, got float_type and int64_type",
        ModelError,
    )


@pytest.mark.parametrize("present", [True, False])
def test_optionals(present: bool) -> None:
    model = parsed("""
g (optional(float[2]) x, float[2] a) => (bool has, float[2] y, optional(float[2]) same) {
  same = Identity (x)
  has = OptionalHasElement (x)
  y = If (has) <
    then_branch: graph = t () => (float[2] t0) { t0 = OptionalGetElement (x) },
    else_branch: graph = e () => (float[2] e0) { e0 = Identity (a) }
  >
}
""")
    value = np.array([1, 2], np.float32) if present else None
    lengths = {} if present else {"x": None}
    compiled = mgx_mlir.compile(model.SerializeToString(), target="ref", input_lengths=lengths)
    a = np.array([3, 4], np.float32)
    has, y, again = compiled.run({"x": value, "a": a})
    assert bool(has) is present
    np.testing.assert_array_equal(y, value if present else a)
    assert again is None if not present else (again == value).all()
    with pytest.raises(RunError, match="input 'x' expected"):
        compiled.run({"x": None if present else a, "a": a})


def test_element_types_of_sequences_are_known() -> None:
    """4-bit integers are held in i8; a list of them is given and got as 4-bit integers."""
    kind = onnx.helper.tensor_dtype_to_np_dtype(TensorProto.INT4)
    model = parsed("g (int4[4] a) => (seq(int4) y) { y = SequenceConstruct (a) }")
    compiled = mgx_mlir.compile(model.SerializeToString(), target="ref")
    ((got,),) = compiled.run({"a": np.array([-8, 0, 7, 1]).astype(kind)})
    assert got.dtype == kind
    np.testing.assert_array_equal(got.astype(int), [-8, 0, 7, 1])
