"""Loops that widen numbers, read at indices which only the run knows: hazard 49."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

import mgx_mlir

# a sort's indices are i32 in a kernel and i64 in ONNX; sums of segments by tf2onnx have this form
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (int64[n] t) => (int64[n] placed, int64[n] counts) {
  n = Shape(t)
  zeros = ConstantOfShape<value = int64[1] {0}>(n)
  values, order = TopK<axis = 0, largest = 0>(t, n)
  last = Constant<value_ints = [-1]>()
  places = Unsqueeze(order, last)
  placed = ScatterND(zeros, places, order)
  kinds, firsts, inverse, each = Unique<axis = 0>(values)
  counts = Gather(each, inverse)
}
"""


@pytest.mark.parametrize("boundaries", [True, False])
def test_indices_of_a_sort_are_read_anywhere(*, boundaries: bool) -> None:
    model = parser.parse_model(MODEL).SerializeToString()
    program = mgx_mlir.compile(model, target="cpu", kernel_boundaries=boundaries)
    assert program.executable.fallbacks == ()
    for n in (1, 9, 300):
        t = np.random.default_rng(n).integers(0, 5, n)
        placed, counts = program.run(t=t)
        np.testing.assert_array_equal(placed, np.arange(n))
        np.testing.assert_array_equal(counts, np.bincount(t)[np.sort(t)])
