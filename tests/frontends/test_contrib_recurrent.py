"""DynamicQuantizeLSTM against onnxruntime: directions, scales, states, dynamic dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import UnsupportedModel
from tests.support.compare import agrees
from tests.support.models import bytes_of, node

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
    operands = f"x w r {'bias' if bias else '_'} _ {'h c' if states else '_ _'} _"
    layer = node(
        "DynamicQuantizeLSTM", f"{operands} scale_w zero_w scale_r zero_r", "y yh yc", domain=MS,
        direction=direction, hidden_size=hidden, **attributes,
    )  # fmt: skip
    state = [ways, "b", hidden]
    dims = {"x": ["t", "b", WIDTH]} | ({"h": state, "c": state} if states else {})
    results = {"y": ["t", ways, "b", hidden], "yh": state, "yc": state}
    return bytes_of([layer], dims, results, weights, **{MS: 1})


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
    rng = np.random.default_rng(1)
    ways = 2 if direction == "bidirectional" else 1
    calls: list[dict[str, np.ndarray]] = []
    for length, batch in ((1, 1), (6, 1), (4, 9)):
        calls.append({"x": rng.standard_normal((length, batch, WIDTH)).astype(np.float32)})
        if states:
            for name in "hc":
                state = rng.standard_normal((ways, batch, hidden))
                calls[-1][name] = state.astype(np.float32)
    if states:  # NaN is part of no range
        for name, value in (("h", np.nan), ("c", np.nan), ("c", np.inf)):
            calls.append({n: a.copy() for n, a in calls[2].items()})
            calls[-1][name][0, 0, 1] = value
    agrees(data, calls, target)


def test_what_is_refused() -> None:
    data = model("forward", columns=False, bias=True, states=True, input_forget=1)
    with pytest.raises(UnsupportedModel, match="clip or input_forget"):
        mgx_mlir.compile(data, "ref", cache=False)
