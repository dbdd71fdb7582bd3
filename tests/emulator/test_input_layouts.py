"""Host arrays in other layouts: a contiguous copy of each lives until the device has its bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import parser

import mgx_mlir

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (int64[N,9,6] x, int64[N,1,6] y) => (int64[N,10,6] z) { z = Concat<axis: int = 1>(x, y) }"""


def test_arrays_that_are_not_contiguous(library: Path) -> None:
    compiled = mgx_mlir.compile(
        parser.parse_model(MODEL).SerializeToString(), "gpu", arch="gfx942", emulate=True
    )
    rng = np.random.default_rng(0)
    for n in (4, 1, 4, 40, 4, 4):
        x = rng.integers(-(2**40), 2**40, (6, 9, n)).T
        y = rng.integers(-(2**40), 2**40, (n, 1, 12))[..., ::2]
        for a, b in ((x, y), (x, y.copy()), (x.copy(), y), (x.astype(">i8"), y.astype(">i8"))):
            [z] = compiled.run({"x": a, "y": b})
            np.testing.assert_array_equal(np.asarray(z), np.concatenate([x, y], axis=1))
