"""Attention whose masks are chosen by Where: one kernel, its numbers on the emulator in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.targets.report import gpu_report
from tests.emulator.oracle import LIMITS, error
from tests.support.models import MS, bytes_of, node

pytestmark = pytest.mark.emulator
KINDS = {"f16": ("float16", np.float16), "f32": ("float", np.float32)}
HEADS, SIZE = 4, 64
# the number in place of a score is a constant, what a sample's mask adds comes from outside
NET = """<ir_version: 8, opset_import: ["" : 17]>
g (TYPE[b,4,ROWS,64] q, TYPE[b,4,KEYS,64] k, TYPE[b,4,KEYS,64] v, SEEN) => (TYPE[b,4,ROWS,64] y)
{ k1 = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, k1) t = Mul(s, scale)
  u = Where(CHOICE) MORE p = Softmax<axis=-1>(LAST) y = MatMul(p, v) }"""


def model(
    kind: str, rows: str, keys: str, *, seen: str, choice: str, low: float, bias: bool
) -> Any:
    name, to = KINDS[kind]
    text = NET.replace("ROWS", rows).replace("KEYS", keys).replace("CHOICE", choice)
    ports = f"bool[{seen}] seen" + (f", TYPE[b,1,1,{keys}] bias" if bias else "")
    text = text.replace("SEEN", ports).replace("MORE", "w = Add(u, bias)" if bias else "")
    found = onnx.parser.parse_model(
        text.replace("LAST", "w" if bias else "u").replace("TYPE", name).replace("[b,", "[B,")
    )
    for n, value in (("scale", 0.125), ("low", low)):
        found.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, to), n))
    return found


def attend(x: dict[str, np.ndarray], seen: np.ndarray, low: float) -> np.ndarray:
    """softmax(where(seen, q k / 8, low) + bias) v, as it is written."""
    q, k, v = (x[n].astype(np.float64) for n in "qkv")
    scores = np.where(seen, q @ k.swapaxes(2, 3) / 8, low)
    if "bias" in x:
        scores = scores + x["bias"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def check(made: Any, x: dict[str, np.ndarray], want: np.ndarray, kind: str) -> None:
    (got,) = made.run(x)
    got = np.asarray(got)
    hidden = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), hidden)
    assert error(np.where(hidden, 0, got), np.where(hidden, 0, want)) <= LIMITS[kind]


def compiled(found: Any, arch: str) -> tuple[Any, Any]:
    made: Any = mgx_mlir.compile(
        found.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
    )
    assert not made.executable.fallbacks
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    assert [k.name for k in report.kernels if k.vgpr_spills or k.scratch] == []
    return made, report


LOWEST = float(np.finfo(np.float32).min)
# architecture, type, rows, keys, dims of what is seen, Where's operands, low, bias, sizes
Form = tuple[str, str, str, str, str, str, float, bool, list[tuple[int, int, int]]]
FORMS: list[Form] = [
    ("gfx942", "f16", "32", "48", "1,1,32,48", "seen, t, low", -65504.0, False, [(2, 32, 48)]),
    ("gfx942", "f16", "n", "m", "B,1,n,m", "seen, t, low", -np.inf, True, [(2, 33, 70), (1, 1, 1)]),
    ("gfx1100", "f32", "n", "m", "B,1,n,m", "seen, low, t", LOWEST, False, [(2, 33, 70)]),
    ("gfx942", "f16", "1", "300", "1,1,1,300", "seen, t, low", -65504.0, True, 2 * [(2, 1, 300)]),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda f: "-".join(map(str, f[:4])))
def test_chosen_masks(form: Form, library: Path) -> None:
    """Rows that see no key have the mean of all values by a finite number, and NaN by -inf."""
    arch, kind, rows, keys, dims, choice, low, bias, sizes = form
    batch = "b" if rows == "n" else str(sizes[0][0])
    found = model(kind, rows, keys, seen=dims, choice=choice, low=low, bias=bias)
    for port in (*found.graph.input, *found.graph.output):
        for d in port.type.tensor_type.shape.dim:
            if d.dim_param == "B":
                d.Clear()
                if batch.isdigit():
                    d.dim_value = int(batch)
                else:
                    d.dim_param = batch
    made, report = compiled(found, arch)
    assert sum("attention" in k.name for k in report.kernels) == 1
    rng = np.random.default_rng(5)
    for step, (b, n, m) in enumerate(sizes):
        to = KINDS[kind][1]
        shapes = {"q": (b, HEADS, n, SIZE), "k": (b, HEADS, m, SIZE), "v": (b, HEADS, m, SIZE)}
        x = {i: rng.standard_normal(d).astype(to) for i, d in shapes.items()}
        first = dims.split(",")[0]
        seen = rng.random((b if first == "B" else 1, 1, n, m)) < 0.6
        seen[:, :, : n if n == 1 and step == 0 else n > 1] = False  # a row, or the only one
        if bias:
            x["bias"] = np.where(rng.random((b, 1, 1, m)) < 0.7, 0, -np.inf).astype(to)
            x["bias"][..., -1] = 0
            seen[..., -1] |= step > 0
        given = seen if choice.startswith("seen, t") else ~seen
        check(made, {**x, "seen": given}, attend(x, seen, float(to(low))), kind)


def grouped(batch: Any, new: Any, past: Any, heads: int, shared: int, kind: str) -> bytes:
    """GroupQueryAttention over a cache of each sample's own length."""
    number = np.dtype(KINDS[kind][1])
    rows = {"q": heads, "k": shared, "v": shared}
    inputs: dict[str, Any] = {n: (number, [batch, new, h * SIZE]) for n, h in rows.items()}
    inputs |= {n: (number, [batch, shared, past, SIZE]) for n in ("pk", "pv")}
    inputs["last"] = (TensorProto.INT32, [batch])
    attend = node("GroupQueryAttention", "q k v pk pv last total", "y nk nv", domain=MS,
                  num_heads=heads, kv_num_heads=shared)  # fmt: skip
    outputs = dict.fromkeys(("y", "nk", "nv"), (number, None))
    return bytes_of([attend], inputs, outputs, {"total": np.array(past, np.int32)}, ms=1)


def cached(x: dict[str, np.ndarray], heads: int, shared: int) -> np.ndarray:
    """Return the results of GroupQueryAttention, in float64."""
    b, new, _ = x["q"].shape
    q, k, v = (
        x[n].astype(np.float64).reshape(b, new, -1, SIZE).swapaxes(1, 2) for n in "qkv"
    )  # fmt: skip
    found = np.zeros((b, new, heads * SIZE))
    for i, last in enumerate(x["last"]):
        first = last + 1 - new
        keys, values = (
            np.repeat(
                np.concatenate([x[c][i, :, :first].astype(np.float64), n[i]], 1), heads // shared, 0
            )
            for c, n in (("pk", k), ("pv", v))
        )
        scores = q[i] @ keys.swapaxes(1, 2) * SIZE**-0.5
        late = np.arange(last + 1)[None, :] > first + np.arange(new)[:, None]
        e = np.exp(np.where(late, -np.inf, scores))
        found[i] = ((e / e.sum(-1, keepdims=True)) @ values).swapaxes(0, 1).reshape(new, -1)
    return found


@pytest.mark.parametrize(
    ("arch", "kind", "new", "past", "count"),
    [("gfx942", "f16", 1, 300, 6), ("gfx1100", "f16", 20, 100, 5)],
)
def test_grouped_queries(
    arch: str, kind: str, new: int, past: int, count: int, library: Path
) -> None:
    """A cache is longer than what each sample has of it."""
    model = onnx.load_from_string(grouped(2, new, past, 4, 2, kind))
    made, report = compiled(model, arch)
    assert sum("attention" in k.name for k in report.kernels) == 1
    assert report.dispatches == count
    rng = np.random.default_rng(new)
    rows = {"q": 4, "k": 2, "v": 2}
    x = {n: rng.standard_normal((2, new, h * SIZE)).astype(KINDS[kind][1]) for n, h in rows.items()}
    for n in ("pk", "pv"):
        x[n] = rng.standard_normal((2, 2, past, SIZE)).astype(KINDS[kind][1])
    x["last"] = np.array([past - 1, new + 3], np.int32)
    got = np.asarray(made.run(x)[0])
    assert error(got, cached(x, 4, 2)) <= LIMITS[kind]
