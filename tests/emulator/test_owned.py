"""GPUs that IREE has no name for: their code gives the right numbers on the emulator.

All operators: `pytest -m slow tests/emulator/test_operators.py -k gfx1030`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from tests.support.models import parsed

NET = """(float[n,40] x, float16[h,64] a, float16[64,32] b) => (float[n,24] y, float16[h,32] z) {
m = MatMul (x, w) y = Softmax <axis = -1> (m) p = MatMul (a, b) z = Tanh (p) }"""


@pytest.mark.parametrize(
    "arch", ["gfx1030", *(pytest.param(a, marks=pytest.mark.slow) for a in ("gfx1102", "gfx1152"))]
)
def test_numbers(arch: str, library: Path) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((40, 24)).astype(np.float32)
    model = parsed(NET, {"w": w}, opset=18).SerializeToString()
    program = mgx_mlir.compile(model, "gpu", arch=arch, emulate=True, cache=False)
    for n, h in ((1, 16), (37, 1), (64, 33)):
        x = rng.standard_normal((n, 40)).astype(np.float32)
        a, b = (rng.standard_normal(s).astype(np.float16) for s in ((h, 64), (64, 32)))
        y, z = program.run(x=x, a=a, b=b)
        m = np.exp(x.astype(float) @ w - (x.astype(float) @ w).max(1, keepdims=True))
        np.testing.assert_allclose(y, m / m.sum(1, keepdims=True), rtol=2e-5, atol=1e-7)
        # the matmul is rounded to f16 ahead of tanh
        np.testing.assert_allclose(z, np.tanh(a.astype(float) @ b.astype(float)), atol=4e-3)
