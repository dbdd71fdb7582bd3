"""DynamicQuantizeLSTM against onnxruntime: directions, scales, states, dynamic dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.core.errors import UnsupportedModel
from tests.support.oracle import ort_session

MS = "com.microsoft"
WIDTH = 3


def model(
    direction: str, *, hidden: int = 4, columns: bool, bias: bool, states: bool, **attributes: Any
) -> bytes:
    """A layer of dynamic length and batch; `columns`: a scale for each column of the weights."""
    rng = np.random.default_rng(0)
    ways = 2 if direction == "bidirectional" else 1
    scales = (ways, 4 * hidden) if columns else (ways,)
    weights = {
        "w": rng.integers(-128, 128, (ways, WIDTH, 4 * hidden)).astype(np.int8),
        "r": rng.integers(-128, 128, (ways, hidden, 4 * hidden)).astype(np.int8),
        "bias": rng.standard_normal((ways, 8 * hidden)).astype(np.float32),
    }
    scale = rng.uniform(0.005, 0.02, scales).astype(np.float32)
    for of in "wr":  # onnxruntime's exact form takes no weight of two operands
        weights |= {f"scale_{of}": scale, f"zero_{of}": np.zeros(scales, np.int8)}
    operands = ["x", "w", "r", "bias" if bias else "", "", *(["h", "c"] if states else ["", ""])]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        [*operands, "", "scale_w", "zero_w", "scale_r", "zero_r"],
        ["y", "yh", "yc"],
        domain=MS,
        direction=direction,
        hidden_size=hidden,
        **attributes,
    )
    state = [ways, "b", hidden]
    dims = {"x": ["t", "b", WIDTH]} | ({"h": state, "c": state} if states else {})
    ports = {"y": ["t", ways, "b", hidden], "yh": state, "yc": state}
    ins, outs = (
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in of.items()]
        for of in (dims, ports)
    )
    given = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph([node], "g", ins, outs, given)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return made.SerializeToString()


@pytest.mark.parametrize("target", ["ref", "cpu"])
@pytest.mark.parametrize(
    ("direction", "hidden", "columns", "bias", "states"),
    [
        ("forward", 4, True, True, True),
        ("reverse", 16, False, True, False),
        ("bidirectional", 21, False, False, True),
    ],
)
def test_against_onnxruntime(
    target: str, direction: str, hidden: int, columns: bool, bias: bool, states: bool
) -> None:
    data = model(direction, hidden=hidden, columns=columns, bias=bias, states=states)
    session = ort_session(data)  # with more threads each one's rows are quantized apart
    program = mgx_mlir.compile(data, target, cache=False)
    rng = np.random.default_rng(1)
    ways = 2 if direction == "bidirectional" else 1
    for length, batch in ((1, 1), (6, 1), (4, 9)):
        given = {"x": rng.standard_normal((length, batch, WIDTH)).astype(np.float32)}
        if states:
            for name in "hc":
                state = rng.standard_normal((ways, batch, hidden))
                given[name] = state.astype(np.float32)
        for got, want in zip(program.run(given), session.run(None, given), strict=True):
            np.testing.assert_allclose(got, np.asarray(want), rtol=1e-5, atol=1e-5)
    if states:  # NaN is part of no range
        for name, value in (("h", np.nan), ("c", np.nan), ("c", np.inf)):
            odd = {n: a.copy() for n, a in given.items()}
            odd[name][0, 0, 1] = value
            for got, want in zip(program.run(odd), session.run(None, odd), strict=True):
                np.testing.assert_allclose(got, np.asarray(want), rtol=1e-5, atol=1e-5)


def test_what_is_refused() -> None:
    data = model("forward", columns=False, bias=True, states=True, input_forget=1)
    with pytest.raises(UnsupportedModel, match="clip or input_forget"):
        mgx_mlir.compile(data, "ref", cache=False)
