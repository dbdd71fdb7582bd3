"""Conditions on kernels for a dispatch region that IREE compiles."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.passes.analysis.attention_form import DECODING, TAGS

ANCHORS = tuple(
    f"migraphx.{n}" for n in ("dot", "quant_dot", "convolution", "pooling", "transpose", "gather")
)


def is_attention(op: ir.Operation) -> bool:
    """Return whether a kernel is one attention."""
    return is_a(op, Group) and op.opview.tag in TAGS


def is_two_dots(op: ir.Operation) -> bool:
    """Return whether a kernel holds the two dots of an attention, or of a part of one."""
    return is_attention(op) or (is_a(op, Group) and op.opview.tag == DECODING)


def tiles_at_run_time(anchor: ir.OpView) -> bool:
    """Return whether a region with dynamic dims around this op compiles.

    A region that pads inside does not.
    """
    name = anchor.operation.name
    return name == "migraphx.dot" or (name == "migraphx.convolution" and not any(anchor.padding))


def is_padded_row(anchor: ir.OpView) -> bool:
    """Return whether a padded window spans or moves along less than two axes.

    In a region it does not compile, or takes minutes and gigabytes.
    """
    name = anchor.operation.name
    if name == "migraphx.pooling":
        window = list(anchor.lengths)
    elif name == "migraphx.convolution":
        dims = TensorType.of(anchor.weights).dims
        window = list(dims[:-2] if anchor.channels_last else dims[2:])
    else:
        return False
    out = TensorType.of(anchor.out).dims
    counts = out[1:-1] if anchor.channels_last else out[2:]
    padded = any(anchor.padding) or anchor.padding_mode != "default_"
    return padded and sum(k > 1 and n != 1 for k, n in zip(window, counts, strict=False)) < 2


def pads_some_axes(anchor: ir.OpView) -> bool:
    """Return whether a pooling's windows reach a border along some of its axes only.

    In a region IREE may not terminate when it folds the border into its tiles.
    """
    if not is_a(anchor, Pooling) or anchor.dyn_global:
        return False
    out, image = TensorType.of(anchor.out).dims, TensorType.of(anchor.input).dims
    first = 1 if anchor.channels_last else 2
    borders: list[bool] = []
    for i, (k, s, d) in enumerate(
        zip(anchor.lengths, anchor.stride, anchor.dilations, strict=True)
    ):
        reach = (out[first + i] - 1) * s + (k - 1) * d + 1
        # padding that is computed from the sizes sums to the reach of the windows
        low = anchor.padding[i] if anchor.padding_mode == "default_" else 0
        borders.append(low > 0 or reach - low > image[first + i])
    return any(borders) and not all(borders)


def pads_computed(anchor: ir.OpView) -> bool:
    """Return whether a convolution pads an operand that its own kernel computes.

    In a dispatch region such a convolution reads wrong numbers.
    """
    if not is_a(anchor, Convolution):
        return False
    padded = any(anchor.padding) or anchor.padding_mode != "default_"
    return padded and not isinstance(anchor.input.owner, ir.Block)
