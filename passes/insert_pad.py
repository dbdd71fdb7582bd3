"""insert_pad: padding that a kernel does not support becomes a pad op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.passes.lowering import select
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

DEPTH = 16  # least depth of an 8-bit matrix instruction


@pattern(Convolution)
def find_convolution_padding(op: Convolution, rw: Rewriter) -> Replacement:
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
    if op.channels_last and _left_to_kernel(op, w, spatial, rw.options.leave):
        return no_match("its kernel pads the input itself")
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


@pattern(QuantConvolution)
def find_quant_convolution_padding(op: QuantConvolution, rw: Rewriter) -> Replacement:
    """quant_convolution{pad_value}(x, w) -> quant_convolution(pad(x, pad_value), w)

    GPU kernels read 0 past the border of an image. Channels are padded to the depth of a matrix
    instruction too, and weights with 0; else registers spill.
    """
    if rw.options.leave != "windows":
        return no_match("the kernel pads with any number")
    if op.padding_mode != "default_":
        return no_match("padding mode {} is computed at run time", op.padding_mode)
    if len(op.operation.operands) > 2:
        return no_match("it scales its operands")
    padding, spatial = list(op.padding), TensorType.of(op.input).rank - 2
    border = any(padding) and op.pad_value != 0
    channels = TensorType.of(op.input).dims[-1]
    dense = op.channels_last and op.group == 1
    fill = DEPTH - channels if dense and 0 < channels < DEPTH else 0
    if not (border or fill):
        return no_match("it pads with 0, and its channels are enough")
    low, high = (padding[:spatial], padding[-spatial:]) if border else ([0] * spatial,) * 2
    lead, tail = ([0], [0]) if op.channels_last else ([0, 0], [])
    pads = [*lead, *low, *tail, *lead, *high, *([fill] if op.channels_last else [])]
    value = float(op.pad_value) if border else 0.0
    padded = rw.op("pad", op.input, mode="constant", pads=pads, value=value)
    attributes = attributes_of(op)
    if border:
        attributes["padding"] = [0] * len(padding)
        attributes.pop("pad_value")
    weights = op.weights
    if fill:
        weights = _filled(rw, weights, fill)
    return rw.op("quant_convolution", padded, weights, **attributes)


def _filled(rw: Rewriter, weights: ir.Value, fill: int) -> ir.Value:
    """Build channels-last weights with as many more channels, of 0; a constant where they are."""
    array = rw.const(weights)
    if array is not None:
        wide = np.pad(array, [(0, 0)] * (array.ndim - 2) + [(0, fill), (0, 0)])
        return rw.literal(wide, TensorType.of(weights).dtype)
    pads = [0] * (2 * TensorType.of(weights).rank)
    pads[-2] = fill
    return rw.op("pad", weights, mode="constant", pads=pads, value=0.0)


def _left_to_kernel(op: Convolution, w: TensorType, spatial: int, leave: str) -> bool:
    """Return whether the kernel of a convolution pads its input itself."""
    if leave == "vector":
        return select.refusal("cpu", "convolution", op) is None
    if leave == "windows":
        counts = TensorType.of(op.out).dims[1:-1]
        moving = zip(w.dims[:spatial], counts, strict=True)
        return sum(k > 1 and n > 1 for k, n in moving) > 1
    return False


def _padded_inside(op: Convolution, x: TensorType, w: TensorType, spatial: int) -> bool:
    """Return whether a depthwise kernel was measured to be faster with the pad inside.

    Figures: docs/data/kernel-measurements.md.

    Kernels of 3x3 and strided ones do. Those that span one axis only do not compile so.
    """
    window = w.dims[:spatial]
    depthwise = op.group == x.dims[-1] == w.dims[-1]
    small = all(k <= 3 for k in window) or any(s > 1 for s in op.stride)
    return depthwise and small and sum(k > 1 for k in window) > 1


@dataclass(frozen=True)
class InsertPad(PatternPass):
    """Asymmetric padding of convolutions becomes a pad op.

    With `dense`, so does that of every channels-last convolution except small depthwise ones.

    `leave` names convolutions that keep their padding: `vector`, those that become vector loops,
    which copy their input with its border; `windows`, those whose windows move along two axes or
    more, and 8-bit ones that are padded with 0 and have enough channels.
    """

    name: ClassVar[str] = "insert_pad"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_convolution_padding,
        find_quant_convolution_padding,
    )
    dense: bool = option(False, "also symmetric padding of channels-last convolutions")
    leave: str = option("", "convolutions that keep their padding: vector, windows or none")
