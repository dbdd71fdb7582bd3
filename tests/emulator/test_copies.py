"""Kernels that compute nothing: integers that change their sign, and what unsigned ones leave as
they are. The compiler has no code for such a loop on GPUs; there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import mgx_mlir

MODEL = """<ir_version: 10, opset_import: ["": 20]>
g (int32[N,3] x, uint32 s, uint8[N,3] u, int64[4] w) => (uint32[N,3] a, uint8[N,3] b, uint8[K,3] c,
   uint32[3,N] d, uint32[N,3] e, uint64[4] f, int32[N,3] g) {
  a = Cast<to: int = 12>(x)
  b = Relu(u)
  c = Concat<axis: int = 0>(b, u)
  d = Transpose(a)
  e = Mod(a, s)
  f = Cast<to: int = 13>(w)
  g = BitwiseAnd(x, x)
}"""


@pytest.mark.parametrize("arch", ["gfx1100", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_what_computes_nothing(arch: str, library: Path) -> None:
    model = parser.parse_model(MODEL)
    compiled = mgx_mlir.compile(model.SerializeToString(), "gpu", arch=arch, emulate=True)
    for n in (1, 5):
        x = np.arange(3 * n, dtype=np.int32).reshape(n, 3) * 99 - 150
        u = (np.arange(3 * n) * 37 % 256).astype(np.uint8).reshape(n, 3)
        w = np.array([-(2**63), -1, 0, 2**63 - 1])
        own = x.astype(np.uint32)
        wanted = [own, u, np.concatenate([u, u]), own.T, own % 7, w.astype(np.uint64), x]
        found = compiled.run({"x": x, "s": np.uint32(7), "u": u, "w": w})
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)
            assert np.asarray(a).dtype == b.dtype
