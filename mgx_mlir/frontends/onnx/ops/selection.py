"""Selections of dynamic size: NonMaxSuppression and Unique."""

from __future__ import annotations

from typing import Any

from mgx_mlir.frontends.bounds import all_true
from mgx_mlir.frontends.helpers import axis_in, greater_equal, less_equal, require
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(
    b: Builder,
    node: Node,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    iou: Value | None = None,
    least: Value | None = None,
    *,
    center_point_box: int = 0,
    use_dyn_output: int = 1,
) -> Value:
    """Import NonMaxSuppression; the number of remaining boxes is known only at run time.

    `use_dyn_output` is MIGraphX's own attribute, whose value 0 pads the result; here the result is
    always ONNX's.
    """
    if iou is not None:
        share = b.logical_and(greater_equal(b, iou, 0.0), less_equal(b, iou, 1.0))
        iou = require(b, iou, all_true(b, share), "iou_threshold in [0, 1]")
    return b.nonmaxsuppression(
        boxes, scores, most, iou, least, center_point_box=bool(center_point_box)
    )


@onnx_op("Unique", since=11)
def unique(
    b: Builder, node: Node, x: Value, *, axis: int | None = None, sorted: int = 1
) -> tuple[Any, ...]:
    """Import Unique; the number of distinct values is known only at run time."""
    if axis is None:
        return b.unique(x, sorted=bool(sorted))
    return b.unique(x, axis=axis_in(axis, len(b.dims(x))), sorted=bool(sorted))
