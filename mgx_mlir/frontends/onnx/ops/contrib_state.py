"""com.microsoft: depthwise causal convolutions that carry their last rows as state."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    convert,
    extent_as,
    less_equal,
    number,
    reshape,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
    zeros,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"
_MOST_ROWS = 8  # rows of a window of states, and captured rows


def _in_range(**attributes: int) -> None:
    for name, value in attributes.items():
        if not 0 <= value <= _MOST_ROWS:
            raise ModelError(f"attribute '{name}' expected 0 to {_MOST_ROWS}, got {value}")


def _activated(b: Builder, y: Value, activation: str) -> Value:
    if activation not in ("none", "silu", "swish"):
        raise ModelError(f"attribute 'activation' expected none or silu, got {activation}")
    return y if activation == "none" else b.mul(y, b.sigmoid(y))


@onnx_op("CausalConvWithState", domain=MS)
def causal_conv_with_state(
    b: Builder,
    node: Node,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    past_state: Value | None = None,
    *,
    activation: str = "none",
    channels_last: int = 0,
    dilation: int = 1,
    input_channel_offset: int = 0,
    input_channels: int = 0,
    ndim: int = 1,
    state_channels_last: int = -1,
    state_length: int = 0,
    state_update_capacity: int = 0,
    state_window: int = 0,
) -> Outputs:
    """Import CausalConvWithState: a depthwise convolution over the last elements and the previous
    state.

    The new state is the one after the last element, or with a `state_window` those after each of
    the last elements. With `state_update_capacity` the first inputs are returned too.
    """
    _in_range(state_window=state_window, state_update_capacity=state_update_capacity)
    if ndim != 1:
        raise NotSupported("ndim other than 1")
    if state_channels_last not in (-1, 0, 1):
        raise ModelError(
            f"attribute 'state_channels_last' expected -1, 0 or 1, got {state_channels_last}"
        )
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    state_last = bool(channels_last) if state_channels_last < 0 else bool(state_channels_last)
    if input_channels:
        if not channels_last or len(b.dims(x)) != 3:
            raise ModelError("expected channels_last and an input of rank 3 with input_channels")
        end = input_channel_offset + input_channels
        if not 0 <= input_channel_offset < end <= b.dims(x)[2]:
            raise ModelError(f"no channels {input_channel_offset} to {end} in {b.dims(x)[2]}")
        x = slice_(b, x, [2], [input_channel_offset], [end])
    elif input_channel_offset:
        raise ModelError("expected input_channels with input_channel_offset")
    if state_update_capacity and not channels_last:
        raise ModelError("expected channels_last with state_update_capacity")
    tail = b.dims(x)[2:]
    if channels_last:
        if DYN in tail:
            raise NotSupported("dynamic channels")
        x = _first(b, x, math.prod(tail))
    batch, channels, length = b.dims(x)
    taps = b.dims(weight)[2]
    if DYN in (batch, channels, length, taps):
        raise NotSupported("dynamic dims")
    reach = (taps - 1) * dilation
    rows = state_length or reach
    if rows < reach:
        raise ModelError(f"state_length {state_length} is less than the {reach} rows of the kernel")
    if past_state is None:
        past_state = zeros(b, (batch, channels, rows), dtype)
    else:
        if state_window:
            last = slice_(b, past_state, [0], [state_window - 1], [state_window])
            past_state = squeeze(b, last, [0])
        if state_last:
            past_state = _first(b, past_state, channels)
    whole = b.concat([past_state, x], axis=2)
    y = b.convolution(
        convert(b, slice_(b, whole, [2], [rows - reach], [rows + length]), kind),
        convert(b, weight, kind), padding=[0], stride=[1], dilation=[dilation], group=channels,
    )  # fmt: skip
    if bias is not None:
        y = b.add(y, unsqueeze(b, convert(b, bias, kind), [1]))
    y = convert(b, _activated(b, y, activation), dtype)
    own = tail if channels_last else ()

    def state_after(elements: int) -> Value:
        if elements < 1:  # before the window of this call
            state = zeros(b, (batch, channels, rows), dtype)
        else:
            state = slice_(b, whole, [2], [elements], [elements + rows])
        return _last(b, state, own) if state_last else state

    if state_window:
        after = [unsqueeze(b, state_after(length - state_window + j + 1), [0])
                 for j in range(state_window)]  # fmt: skip
        state = b.concat(after, axis=0)
    else:
        state = state_after(length)
    captured = None
    if state_update_capacity:
        count = min(length, state_update_capacity)
        captured = _last(b, slice_(b, x, [2], [0], [count]), ())
        if count < state_update_capacity:
            captured = b.pad(captured, pads=[0, 0, 0, 0, state_update_capacity - count, 0])
    return _last(b, y, tail) if channels_last else y, state, captured


def _first(b: Builder, x: Value, channels: int) -> Value:
    """{batch, length, ..} as {batch, channels, length}."""
    return transpose(b, b.reshape(x, dims=[0, 0, channels]), [0, 2, 1])


def _last(b: Builder, x: Value, tail: Sequence[int]) -> Value:
    """{batch, channels, length} as {batch, length, tail..}."""
    batch, channels, length = b.dims(x)
    return reshape(b, transpose(b, x, [0, 2, 1]), [batch, length, *(tail or (channels,))])


def _bounds(b: Builder, ends: Value, sequence: Value) -> tuple[Value, Value]:
    """Return the begins and ends of the sequences, as sums over a mask: iree-compile refuses a
    kernel that reads one sliced element of another kernel's vector.
    """
    bounds = unsqueeze(b, convert(b, ends, INT64), [0])
    place, zero = unsqueeze(b, axis_range(b, ends, 0), [0]), number(b, 0, bounds)

    def bound(which: Value) -> Value:
        picked = b.where(b.equal(place, unsqueeze(b, which, [1])), bounds, zero)
        return squeeze(b, b.reduce_sum(picked, axes=[1]), [1])

    return bound(sequence), bound(b.add(sequence, 1))


@onnx_op("VarlenCausalConvWithState", domain=MS)
def varlen_causal_conv_with_state(
    b: Builder,
    node: Node,
    x: Value,
    weight: Value,
    ends: Value,
    bias: Value | None = None,
    initial_state: Value | None = None,
    capture_count: Value | None = None,
    kernel_delta: Value | None = None,
    previous_mask: Value | None = None,
    *,
    activation: str = "none",
    delta_offset: int = 0,
    dilation: int = 1,
    group_size: int = 1,
    state_update_capacity: int = 0,
) -> Outputs:
    """Import VarlenCausalConvWithState: concatenated sequences; `ends` has their begins and the
    last end.

    A table holds the tokens, then the states; each tap of each token is one of its rows.
    """
    _in_range(state_update_capacity=state_update_capacity)
    if kernel_delta is not None or previous_mask is not None or delta_offset or group_size != 1:
        raise NotSupported("kernel_delta and previous_mask")
    if initial_state is None or (capture_count is None) != (state_update_capacity == 0):
        raise ModelError("expected initial_state, and capture_count with state_update_capacity")
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    channels, _, taps = b.dims(weight)
    if DYN in (channels, taps):
        raise NotSupported("dynamic channels")
    if dilation < 1:
        raise ModelError(f"attribute 'dilation' expected 1 or more, got {dilation}")
    x = b.reshape(x, dims=[0, channels])
    reach = (taps - 1) * dilation
    starts, stops = _bounds(b, ends, axis_range(b, initial_state, 0))
    token = axis_range(b, x, 0)
    # index of a token's sequence: the number of sequences that end before it
    passed = convert(b, less_equal(b, unsqueeze(b, stops, [0]), unsqueeze(b, token, [1])), INT64)
    mine = squeeze(b, b.reduce_sum(passed, axes=[1]), [1])
    table = x
    if reach:
        states = b.reshape(transpose(b, initial_state, [0, 2, 1]), dims=[-1, channels])
        table = b.concat([x, states], axis=0)
    tokens = extent_as(b, x, 0, INT64)

    def row(start: Value, sequence: Value, place: Value) -> Value:
        """Return the table row of a sequence's element; elements before the first are its state."""
        old = b.add(b.add(b.add(b.mul(sequence, reach), reach), place), tokens)
        return b.where(compare(b, "less", place, 0), old, b.add(start, place))

    back = b.literal((taps - 1 - np.arange(taps, dtype=np.int64)) * dilation)
    first = unsqueeze(b, b.gather(starts, mine, axis=0), [1])
    place = b.sub(b.sub(unsqueeze(b, token, [1]), first), unsqueeze(b, back, [0]))
    picked = b.gather(convert(b, table, kind), row(first, unsqueeze(b, mine, [1]), place), axis=0)
    kernel = transpose(b, convert(b, squeeze(b, weight, [1]), kind), [1, 0])  # {taps, channels}
    y = squeeze(b, b.reduce_sum(b.mul(picked, unsqueeze(b, kernel, [0])), axes=[1]), [1])
    if bias is not None:
        y = b.add(y, unsqueeze(b, convert(b, bias, kind), [0]))
    y = convert(b, _activated(b, y, activation), dtype)
    final = initial_state
    first = unsqueeze(b, starts, [1])
    lengths = b.sub(unsqueeze(b, stops, [1]), first)
    if reach:
        place = b.add(b.sub(lengths, reach), unsqueeze(b, arange(b, reach), [0]))
        entry = unsqueeze(b, axis_range(b, initial_state, 0), [1])
        final = transpose(b, b.gather(table, row(first, entry, place), axis=0), [0, 2, 1])
    if capture_count is None:
        return y, final, None
    slot = unsqueeze(b, arange(b, state_update_capacity), [0])
    count = b.min(unsqueeze(b, convert(b, capture_count, INT64), [1]), lengths)
    taken = b.gather(x, b.add(first, slot), axis=0)
    wanted = unsqueeze(b, compare(b, "less", slot, count), [2])
    return y, final, b.where(wanted, taken, number(b, 0, taken))
