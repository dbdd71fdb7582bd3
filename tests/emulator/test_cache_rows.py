"""New rows of a cache on emulated GPUs, turned by RoPE, and transposed where they are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import mgx_mlir

HEADS, SHARED, SIZE, PAST = 4, 2, 16, 24
# halves of each head's row change places, one of them negative
TURNED = """
N3 = Reshape (N, N_dims)
N4 = Transpose <perm = [0, 2, 1, 3]> (N3)
N_low = Slice (N4, zero, half, axis)
N_high = Slice (N4, half, all, axis)
N_minus = Neg (N_high)
N_other = Concat <axis = -1> (N_minus, N_low)
N_c = Mul (N4, cw)
N_s = Mul (N_other, sw)
N_sum = Add (N_c, N_s)
N_back = Transpose <perm = [0, 2, 1, 3]> (N_sum)
N_rows = Reshape (N_back, flat)
"""
NET = (
    """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (KIND[ROWS,64] q, KIND[ROWS,32] k, KIND[ROWS,32] v, KIND[ROWS,16] c, KIND[ROWS,16] s,
   KIND[2,2,24,16] pk, KIND[2,2,24,16] pv, int32[2] last, int32[1] total)
  => (KIND[ROWS,64] y, KIND[2,2,m,16] nk, KIND[2,2,m,16] nv) {
cw = Unsqueeze (c, one)
sw = Unsqueeze (s, one)
"""
    + TURNED.replace("N", "q").replace("qeg", "Neg")
    + TURNED.replace("N", "k").replace("keg", "Neg")
    + """
y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>
  (q_rows, k_rows, v, pk, pv, last, total)
}"""
)
NUMBERS = {
    "q_dims": [0, 0, HEADS, SIZE], "k_dims": [0, 0, SHARED, SIZE], "flat": [0, 0, -1],
    "zero": [0], "half": [SIZE // 2], "all": [SIZE], "axis": [3], "one": [1],
}  # fmt: skip


def turned(x: np.ndarray, c: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return rows {batch, heads, rows, size} after RoPE."""
    other = np.concatenate([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
    return x * c[:, None] + other * s[:, None]


def attended(q: np.ndarray, keys: np.ndarray, values: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the attention {batch, rows, heads * size} over caches whose last row is `last`."""
    new, found = q.shape[2], []
    for i, end in enumerate(last + 1):
        k, v = (np.repeat(c[i, :, :end].astype(np.float64), HEADS // SHARED, 0)
                for c in (keys, values))  # fmt: skip
        scores = q[i] @ k.swapaxes(1, 2) * SIZE**-0.5
        late = np.arange(end)[None, :] > end - new + np.arange(new)[:, None]
        e = np.exp(np.where(late, -np.inf, scores))
        found.append(((e / e.sum(-1, keepdims=True)) @ v).swapaxes(0, 1).reshape(new, -1))
    return np.array(found)


@pytest.mark.parametrize(
    ("arch", "kind", "rows"),
    [("gfx942", "float16", "2,1"), ("gfx1201", "float", "2,1"), ("gfx942", "float", "2,n")],
)
def test_rows_are_turned_and_written(arch: str, kind: str, rows: str, library: Path) -> None:
    model = onnx.parser.parse_model(NET.replace("KIND", kind).replace("ROWS", rows))
    model.graph.initializer.extend(
        numpy_helper.from_array(np.array(v), name) for name, v in NUMBERS.items()
    )
    made = model.SerializeToString()
    program = mgx_mlir.compile(made, "gpu", arch=arch, emulate=True, cache=False)
    rng, to = np.random.default_rng(0), np.float16 if kind == "float16" else np.float32
    # numbers of up to 6; f16 rounds products, sums and results, 2**-11 of each
    tolerance = 5e-3 if kind == "float16" else 1e-4
    for new in (1,) if rows == "2,1" else (1, 5):
        x = {n: rng.standard_normal((2, new, w)).astype(to)
             for n, w in (("q", 64), ("k", 32), ("v", 32), ("c", 16), ("s", 16))}  # fmt: skip
        for n in ("pk", "pv"):
            x[n] = rng.standard_normal((2, SHARED, PAST, SIZE)).astype(to)
        last = np.array([PAST - 1, new + 3], np.int32)
        got = program.run(**x, last=last, total=np.array([PAST], np.int32))
        wide = {n: a.astype(np.float64) for n, a in x.items()}
        q, k, v = (
            wide[n].reshape(2, new, -1, SIZE).swapaxes(1, 2) for n in "qkv"
        )  # fmt: skip
        q, k = (turned(a, wide["c"], wide["s"]) for a in (q, k))
        for i, end in enumerate(last + 1):
            for result, rows_, past in ((got[1], k, "pk"), (got[2], v, "pv")):
                want = wide[past][i].copy()
                want[:, end - new : end] = rows_[i]
                np.testing.assert_allclose(
                    result[i, :, :end], want[:, :end], rtol=tolerance, atol=tolerance
                )
        np.testing.assert_allclose(
            got[0], attended(q, got[1], got[2], last), rtol=tolerance, atol=tolerance
        )
