"""Rewrites that round at another place, on numbers where it shows, as models meet them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from tests.support.models import bytes_of
from tests.support.oracle import ort_session

F32, I64 = TensorProto.FLOAT, TensorProto.INT64
# 280 of the divisors to 2048 have multiples whose quotient by way of the reciprocal is one low
DIVISORS = (41, 82, 97)


def scaled_times() -> tuple[list, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Floor and Cast of quotients, and standardised seconds since 1970."""
    n, held = [], {}
    for c in DIVISORS:
        held[f"c{c}"] = np.array(c, np.float32)
        n += [
            helper.make_node("Div", ["x", f"c{c}"], [f"q{c}"]),
            helper.make_node("Floor", [f"q{c}"], [f"floor{c}"]),
            helper.make_node("Unsqueeze", [f"q{c}", "axis"], [f"row{c}"]),
            helper.make_node("Cast", [f"row{c}"], [f"int{c}"], to=I64),
        ]
    n += [
        helper.make_node("Sub", ["t", "mean"], ["centred"]),
        helper.make_node("Mul", ["centred", "scale"], ["by_mul"]),
        helper.make_node("Div", ["centred", "spread"], ["by_div"]),
        helper.make_node("MatMul", ["by_div", "w"], ["features"]),
        helper.make_node("Div", ["x", "huge"], ["small"]),
    ]
    held |= {
        "axis": np.array([0], np.int64), "mean": np.array(1.7e9, np.float32),
        "scale": np.array(1e-3, np.float32), "spread": np.array(777, np.float32),
        "w": np.linspace(-1, 1, 8).reshape(4, 2).astype(np.float32),
        "huge": np.array(3e38, np.float32),
    }  # fmt: skip
    rng = np.random.default_rng(0)
    x = np.concatenate([np.arange(300) * c for c in DIVISORS]).astype(np.float32)
    x[-3:] = 1e38, -3e38, np.inf  # the last is left out of what is cast
    t = (1.7e9 + rng.integers(-9000, 9000, (50, 4)) * 128).astype(np.float32)
    return n, held, {"x": x, "t": t}


@pytest.mark.parametrize("fast_math", [True, False])
def test_quotients_ahead_of_steps_and_differences_of_large_numbers(fast_math: bool) -> None:
    nodes, held, feeds = scaled_times()
    outs = [o for n in nodes for o in n.output if o.startswith(("floor", "int"))]
    outs += ["by_mul", "by_div", "features", "small"]
    inputs = {k: list(v.shape) for k, v in feeds.items()}
    data = bytes_of(nodes, inputs, {o: (I64 if o.startswith("int") else F32, None) for o in outs},
                    {k: numpy_helper.from_array(v, k) for k, v in held.items()})  # fmt: skip
    want = ort_session(data).run(None, feeds)
    got = mgx_mlir.compile(data, "cpu", threads=1, cache=False, fast_math=fast_math).run(feeds)
    fits = np.abs(feeds["x"]) < 2**62
    for name, a, b in zip(outs, got, want, strict=True):
        if name.startswith("int"):
            a, b = np.asarray(a)[0][fits], b[0][fits]
        if name.startswith(("floor", "int")):
            np.testing.assert_array_equal(a, b, err_msg=name)
        else:
            atol = 1e-3 if name == "features" else 1e-30  # sums of numbers to 2e3 that cancel
            np.testing.assert_allclose(a, b, rtol=3e-6, atol=atol, err_msg=name)
