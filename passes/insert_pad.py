"""insert_pad: padding that a kernel cannot hold becomes a pad op of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.passes import PatternPass, option
from mgx_mlir.core.pattern import Pattern, no_match, pattern
from mgx_mlir.core.shapes import TensorType


@pattern("convolution")
def find_convolution_padding(op: Any, rw: Any) -> Any:
    """convolution{padding}(x, w) -> convolution(pad(x), w)"""
    padding = list(op.padding)
    x, w = TensorType.of(op.input), TensorType.of(op.weights)
    spatial = x.rank - 2
    if len(padding) == spatial:
        padding = padding * 2
    if op.padding_mode != "default_":
        return no_match("padding mode {} is computed at run time", op.padding_mode)
    if not any(padding):
        return no_match("it has no padding")
    asymmetric = padding[:spatial] != padding[spatial:]
    if not (rw.options.dense or asymmetric):
        return no_match("the padding is symmetric")
    if not op.channels_last and not asymmetric:
        return no_match("it is not channels-last")
    if op.channels_last and _padded_inside(op, x, w, spatial):
        return no_match("a small or strided depthwise kernel pads its input itself")
    lead, tail = ([0], [0]) if op.channels_last else ([0, 0], [])
    pads = [*lead, *padding[:spatial], *tail, *lead, *padding[spatial:], *tail]
    padded = rw.op("pad", op.input, mode="constant", pads=pads, value=0.0)
    return rw.op(
        "convolution",
        padded,
        op.weights,
        padding=[0] * len(op.padding),
        stride=op.stride,
        dilation=op.dilation,
        group=op.group,
        padding_mode="default_",
        channels_last=op.channels_last,
    )


def _padded_inside(op: Any, x: TensorType, w: TensorType, spatial: int) -> bool:
    """Depthwise kernels of 3x3, and strided ones, run faster with the pad inside (measured:
    docs/kernels.md). Those that span one axis only do not compile so."""
    window = w.dims[:spatial]
    depthwise = op.group == x.dims[-1] == w.dims[-1]
    small = all(k <= 3 for k in window) or any(s > 1 for s in op.stride)
    return depthwise and small and sum(k > 1 for k in window) > 1


@dataclass(frozen=True)
class InsertPad(PatternPass):
    """Asymmetric padding of convolutions as a pad op; with `dense`, that of every channels-last
    convolution but small depthwise ones."""

    name: ClassVar[str] = "insert_pad"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_convolution_padding,)
    dense: bool = option(False, "also symmetric padding of channels-last convolutions")
