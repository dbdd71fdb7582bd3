"""Inputs are as they were after a run, also those whose memory is used in place."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import mgx_mlir
from mgx_mlir.runtime import prepared_calls
from tests.lowering.harness import on_64_bytes
from tests.support.oracle import ort_session

N = 65536
STORED = "<int64[1, 1] row = {1}, bool yes = {1}>"
GIVEN = f"g (float[2, {N}] x, float[1, {N}] u, bool t, int64 n) => "
BODY = f"(int64 i, bool c, float[2, {N}] s) => (bool c2, float[2, {N}] s2) {{ c2 = Identity(c)"
CASES = {
    "scatter": f"{GIVEN} (float[2, {N}] y) {STORED} {{ y = ScatterND(x, row, u) }}",
    "an output": f"""{GIVEN} (float[2, {N}] y, float[2, {N}] z) {STORED}
      {{ y = ScatterND(x, row, u) z = Identity(x) }}""",
    "a sum": f"""{GIVEN} (float[2, {N}] y) {STORED}
      {{ y = ScatterND <reduction = "add"> (x, row, u) }}""",
    "of a branch": f"""{GIVEN} (float[2, {N}] y) {STORED} {{
      a = If (t) <then_branch = b () => (float[2, {N}] p) {{ p = Identity(x) }},
                  else_branch = d () => (float[2, {N}] q) {{ q = Neg(x) }}>
      y = ScatterND(a, row, u)
    }}""",
    "of a loop": f"""{GIVEN} (float[2, {N}] y) {STORED} {{
      a = Loop (n, yes, x) <body = b {BODY} s2 = Neg(s) }}>
      y = ScatterND(a, row, u)
    }}""",
    # kernels that turn out to copy are folded away by the compiler
    "chosen twice": f"""{GIVEN} (float[2, {N}] y) {STORED}
      {{ a = Where(t, x, x) y = ScatterND(a, row, u) }}""",
    "negated twice": f"""{GIVEN} (float[2, {N}] y) {STORED}
      {{ m = Neg(x) a = Neg(m) y = ScatterND(a, row, u) }}""",
    "beside nothing": f"""{GIVEN} (float[2, {N}] y)
      <int64[1, 1] row = {{1}}, float[0, {N}] z = {{}}>
      {{ a = Concat <axis = 0> (x, z) y = ScatterND(a, row, u) }}""",
    "in a loop": f"""{GIVEN} (float[2, {N}] y) {STORED} {{
      k = Cast <to = 7> (t)
      y = Loop (k, yes, x) <body = b {BODY} s2 = ScatterND(s, row, u) }}>
    }}""",
}


@pytest.mark.parametrize("name", CASES)
def test_scattered_into(name: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 18]> {CASES[name]}'
    data = onnx.parser.parse_model(text).SerializeToString()
    x = np.arange(2 * N, dtype=np.float32).reshape(2, N)
    feeds = {"x": x, "u": -np.ones((1, N), np.float32), "t": np.array(True), "n": np.array(0)}
    session = ort_session(data)
    wants = session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})
    program = mgx_mlir.compile(data, "cpu", cache=False)
    used = {k: on_64_bytes(v) for k, v in feeds.items() if k in program.input_names}
    for got, want in zip(program.run(used), wants, strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(used["x"], x)


def test_one_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that reads computed places of one element is folded away."""
    monkeypatch.setattr(prepared_calls, "_LARGE", 1)
    text = """<ir_version: 8, opset_import: ["" : 18]>
      g (float[1] x, float[1] u) => (float[1] y, float[1] z) <int64[1] at = {0}>
      { y = ScatterElements(x, at, u) z = Identity(x) }"""
    program = mgx_mlir.compile(onnx.parser.parse_model(text).SerializeToString(), "cpu")
    x = on_64_bytes(np.array([5], np.float32))
    y, z = program.run({"x": x, "u": np.array([3], np.float32)})
    assert (y[0], z[0], x[0]) == (3, 5, 5)
