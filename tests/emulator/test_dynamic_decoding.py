"""Few queries over keys that only the run counts, on emulated GPUs against float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.targets.report import gpu_report
from tests.emulator.oracle import LIMITS, error
from tests.support.models import MS, bytes_of, node

pytestmark = pytest.mark.emulator
KINDS: dict[str, Any] = {
    "f16": ("float16", np.float16, TensorProto.FLOAT16),
    "bf16": ("bfloat16", ml_dtypes.bfloat16, TensorProto.BFLOAT16),
}
SIZE, SCALE = 64, 0.125
# a batch that is dynamic, heads of which some share keys and values
NET = """<ir_version: 8, opset_import: ["" : 17]>
g (TYPE[b,HEADS,ROWS,64] q, TYPE[b,OWN,n,64] k, TYPE[b,OWN,n,64] v, TYPE[b,1,MASK,n] mask) =>
  (TYPE[b,HEADS,ROWS,64] y)
<int64[1] second = {2}, int64[5] times = {1, 1, TIMES, 1, 1}, int64[4] whole = {0, HEADS, -1, 64}>
{ k1 = Unsqueeze(k, second) k2 = Expand(k1, times) k3 = Reshape(k2, whole)
  v1 = Unsqueeze(v, second) v2 = Expand(v1, times) v3 = Reshape(v2, whole)
  k4 = Transpose<perm=[0,1,3,2]>(k3) s = MatMul(q, k4) t = Mul(s, scale) u = Add(t, mask)
  p = Softmax<axis=-1>(u) y = MatMul(p, v3) }"""

# architecture, type, heads, heads of keys, queries, rows of the mask, kernels, sizes
LONG = [(1, 0), (1, 1), (1, 15), (2, 16), (1, 17), (2, 200), (1, 2049)]
CASES: list[Any] = [
    ("gfx942", "f16", 4, 2, 1, 1, 4, LONG),
    ("gfx1100", "f16", 2, 2, 3, 3, 4, [(1, 1), (2, 200)]),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("gfx90a", "f16", 4, 4, 1, 1, 4, LONG),
            ("gfx950", "bf16", 8, 2, 2, 1, 4, LONG),
            ("gfx1201", "bf16", 1, 1, 15, 15, 4, LONG),
            ("gfx1100", "f16", 8, 1, 1, 1, 4, LONG),
        )
    ),
]


@pytest.mark.parametrize(
    ("arch", "kind", "heads", "own", "rows", "masks", "count", "sizes"), CASES
)  # fmt: skip
def test_dynamic_decoding(
    arch: str, kind: str, heads: int, own: int, rows: int, masks: int, count: int,
    sizes: list[tuple[int, int]], library: Path,
) -> None:  # fmt: skip
    """No key, parts without a key, partial ones, and a first part that the mask hides.

    There are two kernels, and one each for the queries and the mask.
    """
    name, to, code = KINDS[kind]
    text = NET.replace("TYPE", name).replace("HEADS", str(heads)).replace("OWN", str(own))
    text = text.replace("ROWS", str(rows)).replace("MASK", str(masks))
    model = onnx.parser.parse_model(text.replace("TIMES", str(heads // own)))
    model.graph.initializer.append(helper.make_tensor("scale", code, [], [SCALE]))
    made: Any = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
    )
    assert not made.executable.fallbacks
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.vgpr_spills or k.scratch] == []
    assert sum("online_attention" in k.name for k in report.kernels) == 1
    assert report.dispatches == count
    rng = np.random.default_rng(7)
    for b, n in sizes:
        shapes = {"q": (b, heads, rows, SIZE), "k": (b, own, n, SIZE), "v": (b, own, n, SIZE)}
        x = {i: rng.standard_normal(d).astype(to) for i, d in shapes.items()}
        x["mask"] = rng.standard_normal((b, 1, masks, n)).astype(to)
        x["mask"][-1, ..., : n // 2] = -np.inf
        q, k, v, mask = (x[i].astype(np.float64) for i in ("q", "k", "v", "mask"))
        k, v = (np.repeat(a, heads // own, axis=1) for a in (k, v))
        scores = q @ k.swapaxes(2, 3) * SCALE + mask
        got = made.run(x)[0]
        if n == 0:  # a sum of no values
            np.testing.assert_array_equal(got, np.zeros_like(x["q"]))
            continue
        e = np.exp(scores - scores.max(-1, keepdims=True))
        assert error(got, (e / e.sum(-1, keepdims=True)) @ v) <= LIMITS[kind], (b, n)


def grouped(new: Any) -> bytes:
    """GroupQueryAttention of f16 whose cache grows: the number of keys is an input."""
    kind = TensorProto.FLOAT16
    inputs = {n: (kind, ["b", new, h * SIZE]) for n, h in (("q", 4), ("k", 2), ("v", 2))}
    inputs |= {n: (kind, ["b", 2, "p", SIZE]) for n in ("pk", "pv")}
    inputs |= {"last": (TensorProto.INT32, ["b"]), "total": (TensorProto.INT32, [])}
    attend = node("GroupQueryAttention", "q k v pk pv last total", "y nk nv", domain=MS,
                  num_heads=4, kv_num_heads=2)  # fmt: skip
    return bytes_of([attend], inputs, dict.fromkeys(("y", "nk", "nv"), (kind, None)), ms=1)


@pytest.mark.parametrize(
    ("arch", "new", "kernel"), [("gfx942", 1, "online_attention"), ("gfx1100", "s", "_attention")]
)
def test_a_cache_that_grows(arch: str, new: Any, kernel: str, library: Path) -> None:
    """Operands that the operator widens are multiplied as they are, one token or a dynamic
    number."""
    made: Any = mgx_mlir.compile(grouped(new), target="gpu", arch=arch, emulate=True, cache=False)
    assert not made.executable.fallbacks
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.vgpr_spills or k.scratch] == []
    (found,) = (k.name for k in report.kernels if "attention" in k.name)
    assert kernel in found
    assert "f32" not in found
    rng = np.random.default_rng(8)
    for past in (7, 150):
        rows = 1 if new == 1 else 3
        dims = {"q": (2, rows, 256), "k": (2, rows, 128), "v": (2, rows, 128)}
        dims |= dict.fromkeys(("pk", "pv"), (2, 2, past, SIZE))
        x: dict[str, Any] = {n: rng.standard_normal(d).astype(np.float16) for n, d in dims.items()}
        x["last"] = np.array([past + rows - 1, past // 2 + rows], np.int32)
        x["total"] = np.array(past + rows, np.int32)
        want = []
        for i, last in enumerate(x["last"]):
            first = last + 1 - rows
            q, k, v = (
                x[n][i].astype(np.float64).reshape(rows, -1, SIZE).swapaxes(0, 1) for n in "qkv"
            )
            k, v = (
                np.repeat(np.concatenate([x[c][i, :, :first], a], axis=1), 2, axis=0)
                for c, a in (("pk", k), ("pv", v))
            )
            late = np.arange(last + 1)[None, :] > first + np.arange(rows)[:, None]
            e = np.exp(np.where(late, -np.inf, q @ k.swapaxes(1, 2) * SIZE**-0.5))
            y = (e / e.sum(-1, keepdims=True)) @ v
            want.append(y.swapaxes(0, 1).reshape(rows, -1))
        assert error(made.run(x)[0], np.stack(want)) <= LIMITS["f16"], past
