"""Folding of numbers that depend on dynamic extents: only facts that hold for every size."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import mgx_mlir
from mgx_mlir.core.errors import UnsupportedModel
from tests.support.compare import agrees

MODEL = """<ir_version: 10, opset_import: ["": 18]>
g (float[N, 3] x) => ({kind} y) {{
  s = Shape <start: int = 0, end: int = 1> (x)
  n = Squeeze (s)
  c = Constant <value_int: int = {number}> ()
  {body}
}}"""

DECIDED = [
    ("int64", 2, "y = Min (n, c)"),
    ("int64", 77, "y = Min (n, c)"),
    ("bool", 7, "y = Greater (n, c)"),
    ("bool", 1, "y = Equal (n, c)"),
    ("bool", 37, "y = Equal (n, c)"),
    ("int64", 2, "y = Mod (n, c)"),
    ("int64", 16, "y = Mod (n, c)"),
    ("float[M, 3]", 2, "z = Constant <value_ints: ints = [0]> () m = Min (n, c) "
     "e = Unsqueeze (m, z) y = Slice (x, z, e)"),
]  # fmt: skip
KNOWN = [
    ("bool", -1, "y = Equal (n, c)"),
    ("bool", 0, "y = Less (n, c)"),
    ("int64", 3, "z = Mul (n, c) y = Div (z, n)"),
]


def program(kind: str, number: int, body: str) -> bytes:
    text = MODEL.format(kind=kind, number=number, body=body)
    return parser.parse_model(text).SerializeToString()


@pytest.mark.parametrize(("kind", "number", "body"), DECIDED)
def test_numbers_that_small_sizes_change(kind: str, number: int, body: str) -> None:
    sizes = (0, 1, 2, 3, 7, 8, 16, 36, 37, 38, 76, 77, 78, 1000)
    calls = ({"x": np.arange(3 * n, dtype=np.float32).reshape(n, 3)} for n in sizes)
    agrees(program(kind, number, body), calls, "ref", rtol=0, atol=0)


@pytest.mark.parametrize(("kind", "number", "body"), KNOWN)
def test_numbers_that_no_size_changes(kind: str, number: int, body: str) -> None:
    some = mgx_mlir.dynamic_dimension(0, 1 << 20)
    read = mgx_mlir.parse_onnx_buffer(program(kind, number, body), default_dyn_dim_value=some)
    assert "dimensions_of" not in str(read)


def test_ranges_of_inputs_count() -> None:
    """N > 7 is known where N is 8 or more."""
    data = program("bool", 7, "y = Greater (n, c)")
    for low, known in ((8, True), (7, False)):
        dims = mgx_mlir.dynamic_dimension(low, 100)
        read = mgx_mlir.parse_onnx_buffer(data, default_dyn_dim_value=dims)
        assert ("dimensions_of" not in str(read)) == known


BRANCH = """<ir_version: 10, opset_import: ["": 18]>
g (float[N, 4] x) => (float[a, b] y) {{
  s = Shape <start: int = 0, end: int = 1> (x)
  n = Squeeze (s)
  zero = Constant <value_ints: ints = [0]> ()
  c = Constant <value_int: int = {number}> ()
  {condition}
  y = If (k) <
    then_branch = t () => (float[d, e] p) {{ p = Neg (x) }},
    else_branch = f () => (float[d] q) {{
      z = Constant <value_ints: ints = [-1]> () q = Reshape (x, z) }}
  >
}}"""
ALWAYS = [
    (7, "m = Min (n, c) k = LessOrEqual (m, n)"),
    (2, "h = Div (n, c) w = Mul (h, c) r = Sub (n, w) k = Less (r, c)"),
    (1, "k = GreaterOrEqual (n, c)"),
    (8, "e = Unsqueeze (c, zero) t = Slice (x, zero, e, zero) "
     "u = Shape <end: int = 1> (t) v = Squeeze (u) k = LessOrEqual (v, c)"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "condition"), ALWAYS)
def test_an_if_that_every_size_decides(number: int, condition: str) -> None:
    """The branches of the If differ in rank: only one of them can be the program."""
    data = parser.parse_model(BRANCH.format(number=number, condition=condition)).SerializeToString()
    compiled = mgx_mlir.compile(
        data, target="ref", cache=False, default_dyn_dim_value=mgx_mlir.dynamic_dimension(1, 4096)
    )
    for n in (1, 2, 7, 8, 9, 100):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4)
        np.testing.assert_array_equal(np.asarray(compiled.run({"x": x})[0]), -x)


def test_an_if_that_sizes_decide_is_kept() -> None:
    body = BRANCH.replace("q = Reshape (x, z)", "q = Abs (x)").replace(
        "float[d] q", "float[d, e] q"
    )
    text = body.format(number=7, condition="m = Min (n, c) k = Less (m, n)")
    data = parser.parse_model(text).SerializeToString()
    compiled = mgx_mlir.compile(data, target="ref", cache=False)
    for n in (0, 3, 7, 8, 20):
        x = np.arange(4 * n, dtype=np.float32).reshape(n, 4) - 5
        np.testing.assert_array_equal(
            np.asarray(compiled.run({"x": x})[0]), -x if n > 7 else np.abs(x)
        )


BOTH = """<ir_version: 10, opset_import: ["": 18]>
g (float[N, 4] x, bool k) => (float[a, b, c] y) {
  y0 = If (k) <
    then_branch = t () => (float[d, e] p) { p = Neg (x) },
    else_branch = f () => (float[d, e] q) { q = Abs (x) }
  >
  s = Shape <start: int = 0, end: int = 1> (y0)
  two = Constant <value_ints: ints = [2, 2]> ()
  d = Concat <axis: int = 0> (s, two)
  r = Reshape (x, d)
  r2 = Reshape (y0, d)
  y = Add (r, r2)
}"""


def test_the_dims_of_an_if_are_those_of_its_branches() -> None:
    some = mgx_mlir.dynamic_dimension(0, 1 << 20)
    data = parser.parse_model(BOTH).SerializeToString()
    read = str(mgx_mlir.parse_onnx_buffer(data, default_dyn_dim_value=some))
    assert "broadcast" not in read
    assert "dimensions_of" not in read


OPEN_LENGTHS = [
    "q = SplitToSequence (x, s) z = Constant <value_int: int = 0> () y = SequenceAt (q, z)",
    "i = Unsqueeze (x, s) y = MaxPool <kernel_shape: ints = [2, 2]> (i)",
]


@pytest.mark.parametrize("body", OPEN_LENGTHS)
def test_valid_models_of_dynamic_lengths_are_unsupported(body: str) -> None:
    """The error is Unsupported, not that of an invalid model."""
    text = f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[n, 4] x, int64[k] s) => (float[a, b] y) {{ {body} }}"""
    some = mgx_mlir.dynamic_dimension(0, 1 << 20)
    with pytest.raises(UnsupportedModel, match="1 node is not supported"):
        mgx_mlir.parse_onnx_buffer(
            parser.parse_model(text).SerializeToString(), default_dyn_dim_value=some
        )


def test_center_crop_pad_of_dynamic_dims() -> None:
    text = """<ir_version: 10, opset_import: ["": 18]>
        g (float[n, m] x) => (float[3, 4] y) <int64[2] s = {3, 4}> { y = CenterCropPad (x, s) }"""
    sizes = ((1, 1), (2, 9), (3, 4), (6, 3), (7, 8))
    calls = ({"x": np.arange(n * m, dtype=np.float32).reshape(n, m)} for n, m in sizes)
    agrees(parser.parse_model(text).SerializeToString(), calls, "ref", rtol=0, atol=0)


@pytest.mark.parametrize("boundaries", [True, False])
def test_extents_as_floats_of_64_bits(boundaries: bool) -> None:
    """Scalars of 8 and 32 bits as well, which IREE's host does not make f64 of."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        open (float[N,1,M] x) => (double[3] a, double[3] b, double[3] c, float[3] d, int64[3] e) {
          two = Constant <value_ints: ints = [2]> ()
          s = Shape (x)
          g = Greater (s, two)
          a = Cast <to: int = 11> (g)
          i = Cast <to: int = 6> (s)
          b = Cast <to: int = 11> (i)
          k = Cast <to: int = 3> (s)
          c = Cast <to: int = 11> (k)
          h = Cast <to: int = 10> (c)
          d = Cast <to: int = 1> (h)
          e = Cast <to: int = 7> (c)
        }"""
    data = parser.parse_model(text).SerializeToString()
    calls = ({"x": np.zeros((n, 1, m), np.float32)} for n, m in ((1, 3), (4, 2)))
    agrees(data, calls, rtol=0, atol=0, kernel_boundaries=boundaries)


def test_dequantizing_a_dynamic_length() -> None:
    """The zero point is one number for all elements, however many."""
    text = """<ir_version: 10, opset_import: ["": 20]>
        open (int8[1,6,3,N] x) => (float[1,6,3,N] y)
        <float scale = {0.02}, int8 zero = {5}> { y = DequantizeLinear (x, scale, zero) }"""
    calls = ({"x": np.arange(18 * n, dtype=np.int8).reshape(1, 6, 3, n)} for n in (1, 7))
    agrees(parser.parse_model(text).SerializeToString(), calls, rtol=1e-6, atol=0)
