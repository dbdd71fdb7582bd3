"""Graphs whose extents are clamps, windows and halves of dynamic dims, at sizes on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.support.compare import agrees

HEAD = """<ir_version: 8, opset_import: ["": 17]>
g ({inputs}) => ({outputs})
<int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}},
 int64[1] eight = {{8}}, int64[1] minus = {{-1}}, int64[1] back = {{-8}}, int64[2] heads = {{4, 2}},
 int64[1] last = {{9223372036854775807}}> {{
{body}
}}"""

# name: inputs, outputs, body, the sizes to run at
CASES: dict[str, tuple[str, str, str, list[dict[str, int]]]] = {
    # x[:, :8].view(b, n, heads, d), as an exporter writes it
    "truncated_heads": (
        "float[b, n, 8] x", "float[b, 4, m, 2] y",
        """t = Slice (x, zero, eight, one)
        s = Shape (t)
        i0 = Constant <value_int: int = 0> () i1 = Constant <value_int: int = 1> ()
        b0 = Gather <axis: int = 0> (s, i0) n0 = Gather <axis: int = 0> (s, i1)
        b1 = Unsqueeze (b0, zero) n1 = Unsqueeze (n0, zero)
        d = Concat <axis: int = 0> (b1, n1, heads)
        h = Reshape (t, d)
        y = Transpose <perm: ints = [0, 2, 1, 3]> (h)""",
        [{"b": b, "n": n} for b, n in ((1, 5), (2, 7), (1, 8), (3, 9), (1, 40), (2, 1), (1, 0))],
    ),
    # attention over the last eight of what was kept and what is new
    "stream_window": (
        "float[1, p, 8] past, float[1, k, 8] x", "float[1, k, 8] y",
        """all = Concat <axis: int = 1> (past, x)
        w = Slice (all, back, last, one)
        s = Shape (w)
        count = Gather <axis: int = 0> (s, one)
        d = Concat <axis: int = 0> (one, count, heads)
        r = Reshape (w, d)
        kt = Transpose <perm: ints = [0, 2, 3, 1]> (r)
        v = Transpose <perm: ints = [0, 2, 1, 3]> (r)
        sx = Shape <start: int = 1, end: int = 2> (x)
        dq = Concat <axis: int = 0> (one, sx, heads)
        q0 = Reshape (x, dq)
        q = Transpose <perm: ints = [0, 2, 1, 3]> (q0)
        a = MatMul (q, kt)
        p0 = Softmax <axis: int = -1> (a)
        o = MatMul (p0, v)
        o1 = Transpose <perm: ints = [0, 2, 1, 3]> (o)
        dy = Concat <axis: int = 0> (one, sx, eight)
        y = Reshape (o1, dy)""",
        [{"p": p, "k": k} for p, k in ((3, 2), (0, 1), (7, 1), (8, 1), (30, 4), (2, 20))],
    ),
    "truncate_reshape": (
        "float[n, 4] x", "float[m] y",
        "t = Slice (x, zero, eight, zero) y = Reshape (t, minus)",
        [{"n": n} for n in (0, 1, 5, 7, 8, 9, 100)],
    ),
    "truncate_reshape_by_extent": (
        "float[n, 4] x", "float[2, m, 2] y",
        """t = Slice (x, zero, eight, zero) s = Shape <end: int = 1> (t)
        d = Concat <axis: int = 0> (two, s, two) y = Reshape (t, d)""",
        [{"n": n} for n in (1, 5, 7, 8, 9, 100)],
    ),
    "last_window_reshape": (
        "float[n, 4] x", "float[m, 2, 2] y",
        """t = Slice (x, back, last, zero) s = Shape <end: int = 1> (t)
        d = Concat <axis: int = 0> (s, two, two) y = Reshape (t, d)""",
        [{"n": n} for n in (0, 1, 5, 7, 8, 9, 100)],
    ),
    "min_expand": (
        "float[n, 4] x, float[1, 4] r", "float[m, 4] y",
        """s = Shape <end: int = 1> (x) m0 = Min (s, eight)
        d = Concat <axis: int = 0> (m0, four) y = Expand (r, d)""",
        [{"n": n} for n in (0, 1, 5, 7, 8, 9, 100)],
    ),
    "truncate_broadcast": (
        "float[2, n] x, float[8] r", "float[2, 8] y",
        "t = Slice (x, zero, eight, one) y = Add (t, r)",
        [{"n": n} for n in (1, 8, 9, 100)],
    ),
    "two_truncated": (
        "float[n, 4] x, float[k, 4] z", "float[m, 4] y",
        "t = Slice (x, zero, eight, zero) u = Slice (z, zero, eight, zero) y = Mul (t, u)",
        [{"n": n, "k": k} for n, k in ((5, 5), (1, 6), (6, 1), (8, 20), (9, 8), (1, 40), (7, 7))],
    ),
    "even_odd": (
        "float[n, 4] x", "float[m, 4] y",
        "e = Slice (x, zero, last, zero, two) o = Slice (x, one, last, zero, two) y = Sub (e, o)",
        [{"n": n} for n in (0, 1, 2, 3, 4, 8, 100)],
    ),
    "halves": (
        "float[n, 4] x", "float[m, 2, 2] y, float[k, 2, 2] z",
        """s = Shape <end: int = 1> (x) h = Div (s, two)
        a = Slice (x, zero, h, zero) c = Slice (x, h, last, zero)
        da = Concat <axis: int = 0> (h, two, two)
        rest = Sub (s, h) dc = Concat <axis: int = 0> (rest, two, two)
        y = Reshape (a, da) z = Reshape (c, dc)""",
        [{"n": n} for n in (1, 2, 3, 8, 9, 101)],
    ),
    "at_least": (
        "float[n] x", "float[m] y, int64[1] z",
        """s = Shape (x) m0 = Max (s, eight) w = Expand (x, one) ones = ConstantOfShape (m0)
        k = Slice (ones, zero, s, zero) y = Add (k, x) z = Shape (ones)""",
        [{"n": n} for n in (0, 1, 7, 8, 9, 100)],
    ),
    "window_below": (
        "float[n, 2] x", "int64[2] y, int64[1] z",
        """t = Slice (x, zero, eight, zero) y = Shape (t)
        s = Shape <end: int = 1> (t) e = Equal (s, eight) z = Where (e, two, s)""",
        [{"n": n} for n in (0, 1, 7, 8, 9, 100)],
    ),
}  # fmt: skip


ON_CPU = ("truncated_heads", "stream_window", "min_expand", "truncate_broadcast", "even_odd",
          "two_truncated", "last_window_reshape", "truncate_reshape_by_extent")  # fmt: skip
RUNS = [
    *((name, "ref") for name in CASES),
    *(
        pytest.param(name, "cpu", marks=() if name in ON_CPU else pytest.mark.slow)
        for name in CASES
    ),
]


@pytest.mark.parametrize(("name", "target"), RUNS)
def test_below_at_and_above(name: str, target: str) -> None:
    inputs, outputs, body, sizes = CASES[name]
    model = parser.parse_model(HEAD.format(inputs=inputs, outputs=outputs, body=body))
    rng = np.random.default_rng(0)
    calls = []
    for given in sizes:
        arrays = {}
        for i in model.graph.input:
            dims = [given.get(d.dim_param, d.dim_value) for d in i.type.tensor_type.shape.dim]
            arrays[i.name] = rng.standard_normal(dims).astype(np.float32)
        calls.append(arrays)
    agrees(model.SerializeToString(), calls, target, atol=1e-6)
