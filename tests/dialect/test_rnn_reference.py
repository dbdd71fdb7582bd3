"""References of the recurrent operators against onnxruntime."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.op import OPS
from tests.dialect.evaluation import infer
from tests.support.ops import evaluate
from tests.support.oracle import run_node

NAMES = {"tanh": "Tanh", "relu": "Relu", "sigmoid": "Sigmoid"}


def _onnx(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """The ONNX node's attributes; onnxruntime wants the activations of both directions."""
    given = {k: v for k, v in attributes.items() if k not in ("actv_func", "clip")}
    given["activations"] = [NAMES[n] for n in attributes["actv_func"]]
    count = {"rnn": 1, "gru": 2, "lstm": 3}[name]
    if attributes["direction"] == "bidirectional" and len(given["activations"]) == count:
        given["activations"] *= 2
    if attributes.get("clip"):
        given["clip"] = attributes["clip"]
    return given


@pytest.mark.parametrize("name", ["rnn", "gru", "lstm"])
def test_all_states_and_the_last(name: str) -> None:
    for operands, attributes in OPS[name].examples():
        outputs = 3 if name == "lstm" else 2
        want = run_node(name.upper(), *operands, outputs=outputs, **_onnx(name, attributes))
        found = evaluate(name, *operands, **attributes)
        states = found[0] if name == "lstm" else found
        np.testing.assert_allclose(states, want[0], rtol=1e-5, atol=1e-6)
        direction = attributes["direction"]
        lens = operands[4] if len(operands) > 4 else None
        pairs = [(states, want[1])]
        if name == "lstm":
            pairs.append((found[1], want[2]))
        for (every, last), op in zip(pairs, ("hs", "cell"), strict=False):
            if lens is None:
                have = evaluate(f"rnn_last_{op}_output", every, direction=direction)
            else:
                have = evaluate("rnn_var_sl_last_output", every, lens, direction=direction)
            np.testing.assert_allclose(have, last, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_shifts_make_variable_lengths_of_fixed_ones(direction: str) -> None:
    """Shift the sequences to the end, run them at full length, shift the states back."""
    (x, w, r, bias, lens, initial), attributes = next(
        (o, a)
        for o, a in OPS["lstm"].examples()
        if a["direction"] == direction and len(o) == 6 and o[4] is not None
    )
    shifted = evaluate("rnn_var_sl_shift_sequence", x, lens)
    assert not shifted[0, 1].any()
    np.testing.assert_array_equal(shifted[2:, 1], x[:3, 1])
    want = evaluate("lstm", x, w, r, bias, lens, initial, **attributes)[0]
    run = evaluate("lstm", shifted, w, r, bias, None, initial, **attributes)[0]
    found = evaluate("rnn_var_sl_shift_output", run, lens, direction=direction)
    # a backward direction meets its last element first: full length on the shifted sequence is
    # the variable length on the original
    backward = 0 if direction == "reverse" else 1
    np.testing.assert_allclose(found[:, backward], want[:, backward], rtol=1e-5, atol=1e-6)


def test_activation_attributes_and_coupled_gates() -> None:
    x, w, r = (np.ones(d, np.float32) for d in ((1, 1, 1), (1, 1, 1), (1, 1, 1)))
    found = evaluate("rnn", -x, w, r, hidden_size=1, actv_func=["leaky_relu{alpha=0.25}"])
    assert found.reshape(-1).tolist() == [-0.25]
    rng = np.random.default_rng(0)
    x, w, r = (rng.normal(size=d).astype(np.float32) for d in ((4, 2, 3), (1, 8, 3), (1, 8, 2)))
    want = run_node("LSTM", x, w, r, outputs=1, hidden_size=2, input_forget=1)
    found = evaluate("lstm", x, w, r, hidden_size=2, input_forget=1)
    np.testing.assert_allclose(found[0], want, rtol=1e-5, atol=1e-6)


def test_zero_length_and_errors() -> None:
    states = np.ones((4, 1, 2, 3), np.float32)
    last = evaluate("rnn_var_sl_last_output", states, np.array([0, 9], np.int32))
    assert last[0, 0].tolist() == [0, 0, 0]
    assert last[0, 1].tolist() == [1, 1, 1]
    assert infer(
        "gru", "tensor<?x?x3xf32>", "tensor<1x12x3xf32>", "tensor<1x12x4xf32>", hidden_size=4
    ) == ["tensor<?x1x?x4xf32>"]
    x, w, r = "tensor<5x2x3xf32>", "tensor<1x4x3xf32>", "tensor<1x4x4xf32>"
    for types, attributes, message in (
        ([x, "tensor<1x5x3xf32>", r], {}, "weights expected dims {1, 4, 3}, got {1, 5, 3}"),
        ([x, w, r], {"actv_func": ["tanh"] * 3}, "actv_func expected 1 or 2 operators, got 3"),
        ([x, w, r], {"actv_func": ["frob"]}, "activation expected a pointwise operator"),
        ([x, w, r], {"actv_func": ["elu{beta=1}"]}, "has no attribute 'beta'"),
        ([x, w, r], {"clip": -1.0}, "clip expected 0 (none) or more, got -1.0"),
    ):
        with pytest.raises(ShapeError, match=re.escape(message)):
            infer("rnn", *types, hidden_size=4, **attributes)
