"""Pad in all its modes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import INT32, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.helpers import (
    axes_in,
    convert,
    extent,
    greater_equal,
    known_extent,
    require,
    single,
    slice_,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.runtime_axes import axis_hits, element, length, pad_at_run_time
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_FAR = 2**63 - 1  # slice bound beyond every element
_MODES = ("constant", "reflect", "edge", "wrap")


@onnx_op("Pad", since=11)
def pad(
    b: Builder,
    node: Node,
    x: Value,
    pads: Value,
    value: Value | None = None,
    axes: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    """Import Pad; pads, value and axes are operands."""
    if mode not in _MODES:
        raise ModelError(f"attribute 'mode' expected one of {', '.join(_MODES)}, got {mode}")
    rank = len(b.dims(x))
    if axes is None and value is not None and mode != "constant" and _are_axes(b, x, value):
        value, axes = None, value
    chosen = list(range(rank))
    if axes is not None:
        listed = b.const(axes)
        if listed is None:
            pads = _every_axis(b, pads, axes, rank)
        else:
            chosen = axes_in([int(a) for a in listed.reshape(-1)], rank)
    fill = b.literal(np.zeros((), b.dtype(x).np)) if value is None else single(b, value, "value")
    if len(b.dims(pads)) == 1:
        pads = known_extent(b, pads, 0, 2 * len(chosen), "pads")
    known, number = b.const(pads), b.const(fill)
    if length(b, pads, "pads") != 2 * len(chosen):
        raise ModelError(f"pads expected {2 * len(chosen)} numbers, got {length(b, pads, 'pads')}")
    if known is None:
        out = x
        for i, axis in enumerate(chosen):
            begin, end = element(b, pads, i), element(b, pads, i + len(chosen))
            out = pad_at_run_time(b, out, begin, end, axis, mode, fill)
        return out
    begin, end = [0] * rank, [0] * rank
    flat = [int(p) for p in known.reshape(-1)]
    for i, axis in enumerate(chosen):
        begin[axis], end[axis] = flat[i], flat[i + len(chosen)]
    return pad_static(b, x, begin, end, mode, fill, None if number is None else number)


def _are_axes(b: Builder, x: Value, value: Value) -> bool:
    """Return whether the value operand of a mode without one holds the axes, in its position."""
    kind = b.dtype(value)
    return len(b.dims(value)) == 1 and kind in (INT32, INT64) and kind is not b.dtype(x)


def _every_axis(b: Builder, pads: Value, axes: Value, rank: int) -> Value:
    """Return pads for every axis from the pads of axes that a run-time operand lists."""
    n = length(b, axes, "axes")
    if length(b, pads, "pads") != 2 * n:
        raise ModelError(f"pads expected {2 * n} numbers, got {length(b, pads, 'pads')}")
    hits = convert(b, axis_hits(b, axes, rank), INT64)  # listed x rank
    both = b.reshape(convert(b, pads, INT64), dims=[2, n, 1])
    return b.reshape(b.reduce_sum(b.mul(both, unsqueeze(b, hits, [0])), axes=[1]), dims=[2 * rank])


def pad_static(
    b: Builder,
    x: Value,
    begin: list[int],
    end: list[int],
    mode: str,
    fill: Value,
    number: np.ndarray | None,
) -> Value:
    """Pad by known amounts: negative ones cut first; wrap and run-time values are gathers."""
    dims = list(b.dims(x))
    cut = [i for i in range(len(dims)) if begin[i] < 0 or end[i] < 0]
    if cut:
        for i in cut:
            gone = -min(begin[i], 0) - min(end[i], 0)
            if dims[i] != DYN and gone > dims[i]:
                raise ModelError(f"pads {begin + end} cut more than dims {dims}")
            if dims[i] == DYN:
                enough = greater_equal(b, extent(b, x, i), gone)
                x = require(b, x, enough, f"pads that cut no more than there is of dim {i}")
        starts = [-min(begin[i], 0) for i in cut]
        # bounds of a dynamic dim count from the end, and _FAR lies beyond it
        ends = [min(end[i], 0) + (dims[i] if dims[i] != DYN else 0 if end[i] < 0 else _FAR)
                for i in cut]  # fmt: skip
        x = slice_(b, x, cut, starts, ends)
        begin, end = [max(p, 0) for p in begin], [max(p, 0) for p in end]
    if not any(begin) and not any(end):
        return x
    simple = mode == "edge" or (mode == "reflect" and _reflects_once(b.dims(x), begin, end))
    if simple:
        return b.pad(x, pads=begin + end, mode=mode)
    exact = number is not None and float(number) == number and abs(float(number)) < 2**53
    if mode == "constant" and number is not None and (exact or not np.isfinite(float(number))):
        return b.pad(x, pads=begin + end, mode=mode, value=float(number))
    out = x
    for axis, (p, q) in enumerate(zip(begin, end, strict=True)):
        if p or q:
            low, high = b.literal(np.array(p, np.int64)), b.literal(np.array(q, np.int64))
            out = pad_at_run_time(b, out, low, high, axis, mode, fill)
    return out


def _reflects_once(dims: Sequence[int], begin: Sequence[int], end: Sequence[int]) -> bool:
    """Return whether `pad` supports a reflection: not longer than its axis, or on a dynamic
    axis.
    """
    return all(
        d == DYN or (p < max(d, 1) and q < max(d, 1))
        for d, p, q in zip(dims, begin, end, strict=True)
    )


@onnx_op("Pad", since=2)
def pad_2(
    b: Builder,
    node: Node,
    x: Value,
    *,
    pads: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
) -> Value:
    """Import Pad of opsets 2 to 10, whose pads are an attribute."""
    rank = len(b.dims(x))
    if len(pads) != 2 * rank:
        raise ModelError(f"pads expected {2 * rank} numbers, got {len(pads)}")
    if mode not in _MODES[:3]:
        raise ModelError(f"attribute 'mode' expected constant, reflect or edge, got {mode}")
    number = np.array(value).astype(b.dtype(x).np)
    return pad_static(b, x, list(pads[:rank]), list(pads[rank:]), mode, b.literal(number), number)


@onnx_op("Pad", since=1)
def pad_1(
    b: Builder,
    node: Node,
    x: Value,
    *,
    paddings: Sequence[int],
    mode: str = "constant",
    value: float = 0.0,
) -> Value:
    """Import Pad of opset 1, whose pads are called `paddings`."""
    return pad_2(b, node, x, pads=paddings, mode=mode, value=value)
