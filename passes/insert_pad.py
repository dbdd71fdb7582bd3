"""insert_pad: padding that a kernel cannot hold becomes a pad op of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.op import attributes_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern


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
        return no_match("its kernel reads the input past its border")
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

    Kernels of GPUs read past the border of an image as 0.
    """
    if rw.options.leave != "windows":
        return no_match("the kernel pads with any number")
    if op.pad_value == 0:
        return no_match("it pads with 0")
    if op.padding_mode != "default_":
        return no_match("padding mode {} is computed at run time", op.padding_mode)
    padding, spatial = list(op.padding), TensorType.of(op.input).rank - 2
    if not any(padding):
        return no_match("it has no padding")
    low, high = padding[:spatial], padding[-spatial:]
    lead, tail = ([0], [0]) if op.channels_last else ([0, 0], [])
    pads = [*lead, *low, *tail, *lead, *high, *tail]
    padded = rw.op("pad", op.input, mode="constant", pads=pads, value=float(op.pad_value))
    attributes = {**attributes_of(op), "padding": [0] * len(padding)}
    attributes.pop("pad_value")
    return rw.op("quant_convolution", padded, *list(op.operands)[1:], **attributes)


def _left_to_kernel(op: Convolution, w: TensorType, spatial: int, leave: str) -> bool:
    """Say whether the kernel of a convolution pads its input itself."""
    if leave == "vector":
        # start-up: the lowering is loaded where a kernel is judged
        from mgx_mlir.passes.lower.cpu.convolution_kernel import takes

        return takes(op)
    if leave == "windows":
        counts = TensorType.of(op.out).dims[1:-1]
        moving = zip(w.dims[:spatial], counts, strict=True)
        return TensorType.of(op.out).is_static and sum(k > 1 and n > 1 for k, n in moving) > 1
    return False


def _padded_inside(op: Convolution, x: TensorType, w: TensorType, spatial: int) -> bool:
    """Say whether a depthwise kernel runs faster with the pad inside (measured: docs/kernels.md).

    Kernels of 3x3 and strided ones do. Those that span one axis only do not compile so.
    """
    window = w.dims[:spatial]
    depthwise = op.group == x.dims[-1] == w.dims[-1]
    small = all(k <= 3 for k in window) or any(s > 1 for s in op.stride)
    return depthwise and small and sum(k > 1 for k in window) > 1


@dataclass(frozen=True)
class InsertPad(PatternPass):
    """Asymmetric padding of convolutions becomes a pad op.

    With `dense`, so does that of every channels-last convolution but small depthwise ones.

    What `leave` names stays with its convolution: `vector`, those that become vector loops, which
    copy what they read with its border; `windows`, those whose windows move along two axes or more,
    and those of 8 bits that are padded with 0.
    """

    name: ClassVar[str] = "insert_pad"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_convolution_padding,
        find_quant_convolution_padding,
    )
    dense: bool = option(False, "also symmetric padding of channels-last convolutions")
    leave: str = option("", "convolutions that keep their padding: vector, windows or none")
