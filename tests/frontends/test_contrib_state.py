"""com.microsoft: convolutions that carry a state, against onnxruntime and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contrib_cases import Case, Draws, check

from mgx_mlir.core.errors import MgxError

OP, PACKED = "CausalConvWithState", "VarlenCausalConvWithState"


def last(x: np.ndarray | None) -> np.ndarray | None:
    """Channels first as channels last."""
    return None if x is None else np.ascontiguousarray(x.swapaxes(-1, -2))


def test_convolution_with_state() -> None:
    g, cases, dtype = Draws(4), [], np.float32
    for _ in range(8):
        batch, length, count = g.size(1, 2), g.size(1, 6), g.size(1, 4)
        taps, dilation = g.size(1, 4), g.size(1, 2)
        rows = (taps - 1) * dilation
        w = g.floats(count, 1, taps, dtype=dtype)
        bias = g.floats(count, dtype=dtype) if g.coin() else None
        form: dict[str, Any] = {"activation": g.pick("none", "silu"), "dilation": dilation}
        x = g.floats(batch, count, length, dtype=dtype)
        state = g.floats(batch, count, rows, dtype=dtype) if g.coin() else None
        cases.append(Case(OP, [x, w, bias, state], form, 2))
        turned = [last(x), w, bias, last(state)]
        cases.append(Case(OP, turned, {**form, "channels_last": 1}, 2))
    check(cases)


def by_hand(
    x, w, bias=None, past=None, *, dilation=1, activation="none", input_channel_offset=0,
    input_channels=0, state_channels_last=-1, state_length=0, state_update_capacity=0,
    channels_last=1,
):  # fmt: skip
    """The forms that onnxruntime has for GPUs alone, element by element."""
    assert channels_last
    if input_channels:
        x = x[:, :, input_channel_offset : input_channel_offset + input_channels]
    batch, length, channels = x.shape
    taps = w.shape[2]
    rows = state_length or (taps - 1) * dilation
    if past is None:
        past = np.zeros((batch, rows, channels))
    elif state_channels_last == 0:
        past = past.swapaxes(1, 2)
    y = np.zeros(x.shape)
    whole = np.concatenate([past, x], 1).astype(np.float64)
    for t in range(length):
        for j in range(taps):
            y[:, t] += whole[:, rows + t - (taps - 1 - j) * dilation] * w[:, 0, j]
    if bias is not None:
        y += bias
    if activation != "none":
        y = y / (1 + np.exp(-y))
    state = whole[:, length:]
    state = state.swapaxes(1, 2) if state_channels_last == 0 else state
    if not state_update_capacity:
        return y, state
    seen = np.zeros((batch, state_update_capacity, channels))
    seen[:, : min(length, state_update_capacity)] = x[:, :state_update_capacity]
    return y, state, seen


def test_a_window_of_states() -> None:
    """Each is the state that a call with so many elements fewer would leave."""
    g, cases = Draws(10), []

    def want(x, w, bias, past, *, dilation, state_window, channels_last=0):
        x, past = (v if channels_last else v.swapaxes(-1, -2) for v in (x, past))
        y, _ = by_hand(x, w, bias, past[-1], dilation=dilation)
        states = np.zeros((state_window, *past.shape[1:]))
        for j in range(state_window):
            count = x.shape[1] - state_window + j + 1
            if count > 0:
                states[j] = by_hand(x[:, :count], w, bias, past[-1], dilation=dilation)[1]
        return (y, states) if channels_last else (y.swapaxes(1, 2), states.swapaxes(2, 3))

    for _ in range(6):
        taps, dilation, length, window = g.size(2, 4), g.size(1, 2), g.size(1, 6), g.pick(1, 2, 8)
        a = {"dilation": dilation, "state_window": window}
        x, w, bias = g.floats(2, 3, length), g.floats(3, 1, taps), g.floats(3)
        past = g.floats(window, 2, 3, (taps - 1) * dilation)
        cases.append(Case(OP, [x, w, bias, past], a, 2, want=want))
        turned = [last(x), w, bias, last(past)]
        cases.append(Case(OP, turned, {**a, "channels_last": 1}, 2, want=want))
    check(cases)


def test_forms_for_gpus() -> None:
    g, cases = Draws(5), []
    for _ in range(8):
        taps, dilation, length = g.size(1, 4), g.size(1, 2), g.size(1, 6)
        rows = (taps - 1) * dilation + g.size(1, 3)
        a: dict[str, Any] = {"channels_last": 1, "dilation": dilation, "state_length": rows}
        a["state_channels_last"] = g.pick(-1, 0, 1)
        a |= {"input_channels": 3, "input_channel_offset": g.size(0, 2)} if g.coin() else {}
        x, w = g.floats(2, length, 5), g.floats(5, 1, taps)
        count = a.get("input_channels", 5)
        dims = (2, count, rows) if a["state_channels_last"] == 0 else (2, rows, count)
        a["state_update_capacity"] = g.pick(0, 3)
        outputs = 3 if a["state_update_capacity"] else 2
        given = [x, w[:count], g.floats(count), g.floats(*dims)]
        cases.append(Case(OP, given, a, outputs, want=by_hand))
    check(cases)


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"ndim": 2}, "ndim"),
        ({"state_window": 9}, "'state_window' expected 0 to 8, got 9"),
        ({"state_length": 1}, "less than the 2 rows"),
        ({"input_channels": 2}, "expected channels_last"),
        ({"input_channel_offset": 2}, "expected input_channels"),
        ({"channels_last": 1, "input_channels": 9}, "no channels 0 to 9"),
        ({"state_channels_last": 2}, "'state_channels_last'"),
        ({"activation": "relu"}, "'activation'"),
    ],
)
def test_what_does_not_fit(attributes: dict[str, Any], why: str) -> None:
    g = Draws(6)
    case = Case(OP, [g.floats(1, 3, 3), g.floats(3, 1, 3)], attributes, 2, want=by_hand)
    case.want = lambda *_, **__: []
    with pytest.raises(MgxError, match=why):
        check([case])


def drawn(g: Draws, dtype: Any) -> Case:
    """Sequences one behind the other; at least one token each."""
    lengths = [g.size(1, 5) for _ in range(g.size(1, 3))]
    ends = np.cumsum([0, *lengths]).astype(np.int32)
    count, taps, dilation = g.size(1, 4), g.size(1, 4), g.size(1, 2)
    rows = (taps - 1) * dilation
    a: dict[str, Any] = {"activation": g.pick("none", "silu", "swish"), "dilation": dilation}
    x, w = (g.floats(*d, dtype=dtype) for d in ((int(ends[-1]), count), (count, 1, taps)))
    bias = g.floats(count, dtype=dtype) if g.coin() else None
    given = [x, w, ends, bias, g.floats(len(lengths), count, rows, dtype=dtype)]
    if g.coin():
        a["state_update_capacity"] = g.size(1, 4)
        given.append(g.ints(-1, 6, len(lengths)))
    return Case(PACKED, given, a, 3 if len(given) == 6 else 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_packed_sequences(dtype: Any) -> None:
    g = Draws(7)
    check([drawn(g, dtype) for _ in range(8)])


def test_packed_sequences_of_run_time_lengths() -> None:
    """The number of tokens is the run's."""
    g = Draws(8)
    cases = [drawn(g, np.float32) for _ in range(3)]
    check(cases, free={0})


def test_projected_taps_are_refused() -> None:
    g = Draws(9)
    case = drawn(g, np.float32)
    while len(case.inputs) == 6:
        case = drawn(g, np.float32)
    more = [g.floats(len(case.inputs[0]), 2, 1), g.floats(len(case.inputs[0]), 1)]
    case = Case(PACKED, [*case.inputs, None, *more], case.attributes, 2)
    case.want = lambda *_, **__: []
    with pytest.raises(MgxError, match="kernel_delta and previous_mask"):
        check([case])
