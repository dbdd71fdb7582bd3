"""Scatters on tensors that are one number throughout, of extents known only at run time."""

from __future__ import annotations

import numpy as np
from onnx import parser

import mgx_mlir

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[n] x, int64[e] t, float[e] v) => (float[n] count, float[n] total, float[n] again) {
  s = Shape(x)
  zeros = ConstantOfShape(s)
  long = Shape(t)
  ones = ConstantOfShape<value = float[1] {1.0}>(long)
  count = ScatterElements<axis=0, reduction="add">(zeros, t, ones)
  total = ScatterElements<axis=0, reduction="add">(zeros, t, v)
  chosen = Gather<axis=0>(total, t)
  again = ScatterElements<axis=0, reduction="add">(zeros, t, chosen)
}
"""


def test_each_scatter_starts_from_zeros_of_its_own() -> None:
    model = parser.parse_model(MODEL)
    program = mgx_mlir.compile(model.SerializeToString(), target="cpu")
    rng = np.random.default_rng(0)
    for n, e in [(7, 20), (5, 3)]:
        x, v = np.zeros(n, np.float32), rng.standard_normal(e).astype(np.float32)
        t = rng.integers(0, n, e)
        total = np.bincount(t, v, n)
        wanted = [np.bincount(t, minlength=n), total, np.bincount(t, total[t], n)]
        got = program.run({"x": x, "t": t, "v": v})
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
