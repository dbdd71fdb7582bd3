"""Rotary embeddings of dynamic dims on GPUs: one kernel each, of all sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from tests.support.models import parsed

# halves of each head's row change places, one of them negative
NET = """(float[b,n,96] x, float[b,n,32] c, float[b,n,32] s) => (float[b,3,n,32] y) {
r = Reshape (x, dims)
t = Transpose <perm = [0, 2, 1, 3]> (r)
low = Slice (t, zero, half, axis)
high = Slice (t, half, all, axis)
minus = Neg (high)
turned = Concat <axis = -1> (minus, low)
cw = Unsqueeze (c, one)
sw = Unsqueeze (s, one)
a = Mul (t, cw)
b2 = Mul (turned, sw)
y = Add (a, b2)
}"""
NUMBERS = {
    "dims": [0, 0, 3, 32], "zero": [0], "half": [16], "all": [32], "axis": [3], "one": [1],
}  # fmt: skip


@pytest.mark.parametrize("arch", ["gfx942", pytest.param("gfx1201", marks=pytest.mark.slow)])
def test_a_rotary_embedding(arch: str, library: Path) -> None:
    given = {name: np.array(v) for name, v in NUMBERS.items()}
    model = parsed(NET, given, opset=18).SerializeToString()
    program = mgx_mlir.compile(model, "gpu", arch=arch, emulate=True, cache=False)
    names = program.executable.dispatches["main"]
    assert not [name for name in names if "memcpy" in name]
    assert len(names) == 1
    rng = np.random.default_rng(0)
    for batch, length in ((1, 1), (2, 5), (1, 33), (3, 1), (0, 4), (2, 0)):
        x = rng.standard_normal((batch, length, 96), np.float32)
        c, s = (rng.standard_normal((batch, length, 32), np.float32) for _ in range(2))
        t = x.reshape(batch, length, 3, 32).transpose(0, 2, 1, 3)
        turned = np.concatenate([-t[..., 16:], t[..., :16]], -1)
        want = t * c[:, None] + turned * s[:, None]
        np.testing.assert_allclose(program.run(x=x, c=c, s=s)[0], want, rtol=1e-6, atol=1e-6)
