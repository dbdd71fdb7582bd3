"""Attention whose batch or lengths only the run knows, on emulated GPUs against float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import mgx_mlir
from mgx_mlir.targets.report import gpu_report
from tests.emulator.oracle import LIMITS, worst

pytestmark = pytest.mark.emulator
KINDS = {"f16": ("float16", np.float16), "f32": ("float", np.float32)}
SCALE = 0.1767578125
# four heads of 32, of which two each share keys and values; the mask is of keys, or of both
NET = """<ir_version: 8, opset_import: ["" : 17]>
g (TYPE[b,ROWS,128] q, TYPE[b,KEYS,64] k, TYPE[b,KEYS,64] v, TYPE[b,1,MASK,KEYS] mask) =>
  (TYPE[b,ROWS,128] y)
<int64[4] apart = {0, 0, 4, 32}, int64[4] fewer = {0, 0, 2, 32}, int64[3] joined = {0, 0, 128},
 int64[1] second = {2}, int64[5] twice = {1, 1, 2, 1, 1}, int64[4] heads = {0, 4, 32, -1},
 int64[4] rows = {0, 4, -1, 32}>
{ q1 = Reshape(q, apart) q2 = Transpose<perm=[0,2,1,3]>(q1)
  k1 = Reshape(k, fewer) k2 = Transpose<perm=[0,2,3,1]>(k1)
  k3 = Unsqueeze(k2, second) k4 = Expand(k3, twice) k5 = Reshape(k4, heads)
  v1 = Reshape(v, fewer) v2 = Transpose<perm=[0,2,1,3]>(v1)
  v3 = Unsqueeze(v2, second) v4 = Expand(v3, twice) v5 = Reshape(v4, rows)
  s = MatMul(q2, k5) t = Mul(s, scale) u = Add(t, mask) p = Softmax<axis=-1>(u)
  o = MatMul(p, v5) w = Transpose<perm=[0,2,1,3]>(o) y = Reshape(w, joined) }"""


def wanted(x: dict[str, np.ndarray]) -> np.ndarray:
    of = {n: a.astype(np.float64) for n, a in x.items()}
    b, rows, _ = of["q"].shape
    q, k, v = (of[n].reshape(b, of[n].shape[1], -1, 32).swapaxes(1, 2) for n in "qkv")
    scores = q @ np.repeat(k, 2, axis=1).swapaxes(2, 3) * SCALE + of["mask"]
    e = np.exp(scores - scores.max(-1, keepdims=True))
    found = (e / e.sum(-1, keepdims=True)) @ np.repeat(v, 2, axis=1)
    return found.swapaxes(1, 2).reshape(b, rows, 128)


NONE = (2, 3, 0)  # no key: a sum of no values
# architecture, type, rows, keys, rows of the mask; kernels; sizes of batch, rows, keys
QUICK: list[Any] = [
    ("gfx942", "f16", "n", "m", "1", 3, [(1, 1, 1), (2, 37, 65), (3, 65, 37), (1, 128, 128), NONE]),
    ("gfx1100", "f32", "n", "n", "1", 3, [(2, 1, 1), (1, 65, 65)]),
    ("gfx942", "f16", "50", "50", "50", 2, [(1, 50, 50), (3, 50, 50)]),
]
SLOW: list[Any] = [
    ("gfx950", "f16", "n", "n", "n", 3, [(2, 1, 1), (1, 65, 65)]),
    ("gfx90a", "f32", "n", "n", "1", 3, [(2, 1, 1), (1, 65, 65)]),
    ("gfx1201", "f16", "n", "n", "1", 4, [(2, 1, 1), (1, 65, 65)]),
]
CASES = [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]


@pytest.mark.parametrize(("arch", "kind", "rows", "keys", "mask", "count", "sizes"), CASES)
def test_dynamic_attention(
    arch: str, kind: str, rows: str, keys: str, mask: str, count: int,
    sizes: list[tuple[int, int, int]], library: Path,
) -> None:  # fmt: skip
    """One kernel, nothing in scratch memory; lengths of one, of tiles and of one row beyond."""
    name, to = KINDS[kind]
    text = NET.replace("TYPE", name).replace("ROWS", rows).replace("KEYS", keys)
    model = onnx.parser.parse_model(text.replace("MASK", mask))
    scale = numpy_helper.from_array(np.array(SCALE, to), "scale")
    model.graph.initializer.append(scale)
    made: Any = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
    )
    assert not made.executable.fallbacks
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    # scalar registers, of which these kernels have too few, are kept in lanes of vector ones
    assert [k.name for k in report.kernels if k.vgpr_spills or k.scratch] == []
    assert sum("attention" in k.name for k in report.kernels) == 1
    assert report.dispatches == count
    rng = np.random.default_rng(6)
    for b, n, m in sizes:
        of_mask = (b, 1, 1 if mask == "1" else n, m)
        dims = {"q": (b, n, 128), "k": (b, m, 64), "v": (b, m, 64), "mask": of_mask}
        x = {i: rng.standard_normal(d).astype(to) for i, d in dims.items()}
        x["mask"][-1, ..., m // 2 + 1 :] = -np.inf
        got = made.run(x)
        if m == 0:
            np.testing.assert_array_equal(got[0], np.zeros_like(x["q"]))
            continue
        assert worst(got, [wanted(x)]) <= LIMITS[kind], (b, n, m)
