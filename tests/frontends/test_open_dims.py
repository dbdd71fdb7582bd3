"""What is folded of numbers that run-time extents decide: what holds for every size, no more."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import mgx_mlir

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
    data = program(kind, number, body)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    compiled = mgx_mlir.compile(data, target="ref", cache=False)
    for n in (0, 1, 2, 3, 7, 8, 16, 36, 37, 38, 76, 77, 78, 1000):
        x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
        (want,) = session.run(None, {"x": x})
        np.testing.assert_array_equal(np.asarray(compiled.run({"x": x})[0]), want)


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
