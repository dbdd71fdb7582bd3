"""eliminate_pad: explicit pads become the padding of the convolution or pooling after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.op import Op, attributes_of, mnemonic
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, Im2Col
from mgx_mlir.dialects.migraphx.movement import Pad
from mgx_mlir.dialects.migraphx.normalize import Softmax
from mgx_mlir.dialects.migraphx.pointwise_unary import Abs, Exp, Relu, Sigmoid
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

# results that are never negative: a zero border loses no maximum against them
_NOT_NEGATIVE = (Relu, Sigmoid, Abs, Exp, Softmax)


def _spatial_pads(pad: Pad, channels_last: bool) -> tuple[Sequence[int], Sequence[int]] | None:
    """Return the spatial begins and ends; None where batch or channels are padded as well."""
    rank = TensorType.of(pad.operands[0]).rank
    low, high = pad.pads[:rank], pad.pads[rank:]
    spatial = range(1, rank - 1) if channels_last else range(2, rank)
    if any(low[i] or high[i] for i in range(rank) if i not in spatial):
        return None
    return [low[i] for i in spatial], [high[i] for i in spatial]


def _joined(padding: Sequence[int], low: Sequence[int], high: Sequence[int]) -> list[int]:
    """Return padding as begins and ends, enlarged by `low` and `high`."""
    n = len(low)
    after = padding if len(padding) == n else padding[n:]
    return [
        *(p + q for p, q in zip(padding, low, strict=False)),
        *(p + q for p, q in zip(after, high, strict=True)),
    ]


def _find_pad(op: Op, rw: Rewriter) -> tuple[Pad, Sequence[int], Sequence[int]] | NoMatch:
    """Return (pad, begins, ends) of a constant pad that `op` can take over, or why not."""
    pad = defined_by(op.operands[0], Pad)
    if pad is None or pad.mode != "constant":
        return no_match("input is not a pad with a constant")
    if not has_one_use(op.operands[0]):
        return no_match("the padded tensor has other users")
    if op.padding_mode != "default_":
        return no_match("padding mode {} computes its own padding", op.padding_mode)
    found = _spatial_pads(pad, op.channels_last if "channels_last" in type(op).ATTRS else False)
    if found is None:
        return no_match("batch or channels are padded")
    return pad, *found


@pattern(Convolution, QuantConvolution, Im2Col)
def find_pad_convolution(op: Convolution | QuantConvolution | Im2Col, rw: Rewriter) -> Replacement:
    """convolution(pad(x, 0)) -> convolution(x) with more padding; of 8 bits, with its own value"""
    found = _find_pad(op, rw)
    if isinstance(found, NoMatch):
        return found
    pad, low, high = found
    if pad.value != (op.pad_value if isinstance(op, QuantConvolution) else 0):
        return no_match("it pads with {}", pad.value)
    rw.merge_location(pad)
    attributes = attributes_of(op)
    attributes["padding"] = _joined(op.padding, low, high)
    name = mnemonic(op)
    return rw.op(name, pad.operands[0], *list(op.operands)[1:], **attributes)


@pattern(Pooling)
def find_pad_pooling(op: Pooling, rw: Rewriter) -> Replacement:
    """max_pooling(pad(x, -inf)) -> max_pooling(x) with more padding; 0 where x >= 0"""
    if op.mode != "max":
        return no_match("mode {} counts padding", op.mode)
    if op.ceil_mode:
        return no_match("ceil_mode depends on where the input ends")
    found = _find_pad(op, rw)
    if isinstance(found, NoMatch):
        return found
    pad, low, high = found
    dtype = rw.dtype(op.operands[0])
    least = pad.value <= float(dtype.lowest())
    if not least and not (pad.value == 0 and defined_by(pad.operands[0], *_NOT_NEGATIVE)):
        return no_match("the border {} may be a maximum", pad.value)
    padding = _joined(op.padding, low, high)
    lengths = [(k - 1) * d + 1 for k, d in zip(op.lengths, op.dilations, strict=True)] * 2
    if any(p >= k for p, k in zip(padding, lengths, strict=True)):
        return no_match("a window would be entirely in the padding")
    rw.merge_location(pad)
    return rw.op("pooling", pad.operands[0], **{**attributes_of(op), "padding": padding})


@dataclass(frozen=True)
class EliminatePad(PatternPass):
    """Fold explicit pads into convolutions and max poolings."""

    name: ClassVar[str] = "eliminate_pad"
    patterns = (find_pad_convolution, find_pad_pooling)
