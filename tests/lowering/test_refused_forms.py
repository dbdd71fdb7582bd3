"""Programs whose plain form the backend refuses or gets wrong: each runs as in onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from mgx_mlir.core.errors import RunError
from tests.support.compare import agrees
from tests.support.models import parsed_bytes

HEAD = '<ir_version: 8, opset_import: ["" : 18]> g '
X = np.arange(63, dtype=np.float32).reshape(7, 9)


def runs(text: str, feeds: dict[str, np.ndarray], fallbacks: tuple[str, ...] | None = None) -> None:
    data = onnx.parser.parse_model(HEAD + text).SerializeToString()
    program = agrees(data, [feeds], rtol=1e-6, atol=0)
    assert fallbacks is None or program.executable.fallbacks == fallbacks


@pytest.mark.parametrize("start", [0, 1])
def test_elements_of_a_slice_with_steps_at_computed_places(start: int) -> None:
    text = f"""(float[n, m] x, int64[2] dims) => (float[?, ?] y)
      <int64[1] first = {{{start}}}, int64[1] last = {{9223372036854775807}}, int64[1] one = {{1}},
       int64[1] two = {{2}}> {{
      s = Slice(x, first, last, one, two)
      y = Expand(s, dims)
    }}"""
    runs(text, {"x": X, "dims": np.array([7, 5 - start])})


def test_elements_from_the_end_of_a_slice_of_a_slice_with_steps() -> None:
    text = """(float[8] x) => (float[4] y, float[2] z)
      <int64[1] least = {-100}, int64[1] first = {7}, int64[1] last = {-1}, int64[1] five = {-5},
       int64[1] zero = {0}, int64[1] back = {-2}> {
      y = Slice(x, first, least, zero, back)
      z = Slice(y, last, five, zero, back)
    }"""
    runs(text, {"x": np.arange(8, dtype=np.float32)})


def test_axes_of_a_squeeze_that_are_an_input() -> None:
    text = "(float[n, m, k] x, int64[2] axes) => (float[l] y) { y = Squeeze(x, axes) }"
    runs(text, {"x": X[:1, :7, None], "axes": np.array([2, 0])})


def test_one_bool_of_dims() -> None:
    text = """(float[n] x) => (bool[1] y, float[1] z) <int64[1] eight = {8}> {
      s = Shape(x)
      y = Equal(s, eight)
      z = Cast <to = 1> (y)
    }"""
    runs(text, {"x": X[0, :8]})


def test_dims_in_two_axes() -> None:
    text = """(float[n, m] x) => (int64[2, 1] column, int64[1, 2] row, int64[3, 2] table)
      <int64[1] zero = {0}, int64[1] one = {1}> {
      s = Shape(x)
      column = Unsqueeze(s, one)
      row = Unsqueeze(s, zero)
      table = Concat <axis = 0> (row, row, row)
    }"""
    runs(text, {"x": X})


def test_parts_of_what_is_counted_at_run_time() -> None:
    """A column of the rows that are kept, and a row in front: the copy is launched by the count."""
    text = """(float[n, 3] x, float[1, m, 4] boxes, float[1, 2, m] scores)
      => (float[?] a, int64[?] b)
      <int64 first = {0}, int64[2] ahead = {1, 0}, float low = {0.0}, int64[1] most = {4},
       float[1] overlap = {0.4}, float[1] least = {0.3}> {
      r = Gather <axis = 1> (x, first)
      g = Greater (r, low)
      kept = Compress <axis = 0> (x, g)
      rows = Gather <axis = 1> (kept, first)
      a = Pad (rows, ahead)
      boxed = NonMaxSuppression (boxes, scores, most, overlap, least)
      w = Gather <axis = 1> (boxed, first)
      b = Pad (w, ahead)
    }"""
    rng = np.random.default_rng(0)
    feeds = {
        "x": (rng.standard_normal((6, 3)) * 3).astype(np.float32),
        "boxes": np.sort(rng.random((1, 9, 4)).astype(np.float32), -1),
        "scores": rng.random((1, 2, 9)).astype(np.float32),
    }
    runs(text, feeds, fallbacks=())


def test_rows_of_a_table_of_one_number() -> None:
    """IREE folds the reads, and refuses the vectors of whole results that were left."""
    data = parsed_bytes(
        """(int64[4096] places, float[16] x) => (float[4096,16] y)
        { rows = Gather (table, places) y = Mul (rows, x) }""",
        {"table": np.full((1000, 16), 0.5)},
        opset=18,
    )
    places, x = np.arange(4096) % 1000, np.arange(16, dtype=np.float32)
    program = agrees(data, [{"places": places, "x": x}])
    assert program.executable.fallbacks == ()
    with pytest.raises(RunError, match="indices"):
        program.run({"places": places + 1, "x": x})
