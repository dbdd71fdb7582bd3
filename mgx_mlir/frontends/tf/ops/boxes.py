"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT32, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.extents import (
    elements,
    extents,
    least,
    minus,
    reshaped,
    scalar,
    times,
    zeros_of,
)
from mgx_mlir.frontends.helpers import (
    arange,
    compare,
    convert,
    known_extent,
    number,
    same_extent,
    single,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import gather_or
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.cutting import padded
from mgx_mlir.frontends.tf.ops.sorting import best_of
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def _kept(
    b: Builder, boxes: Value, scores: Value, most: Value, iou: Value, score: Value | None
) -> Value:
    """Return the indices of the remaining boxes, best first, as i64."""
    if len(b.dims(boxes)) != 2 or len(b.dims(scores)) != 1:
        raise ModelError("expected boxes of rank 2 and scores of rank 1")
    iou = single(b, iou, "threshold")
    score = None if score is None else single(b, score, "threshold")
    rows = b.nonmaxsuppression(
        unsqueeze(b, boxes, [0]),
        unsqueeze(b, scores, [0, 1]),
        convert(b, single(b, most, "max_output_size"), INT64),
        iou,
        score,
    )
    return squeeze(b, b.slice(rows, axes=[1], starts=[2], ends=[3]), [1])


@tf_op("NonMaxSuppression")
def non_max_suppression(
    b: Builder,
    node: Node,
    boxes: Value,
    scores: Value,
    most: Value,
    *,
    iou_threshold: float = 0.5,
) -> Value:
    """Import NonMaxSuppression, whose threshold is an attribute."""
    iou = b.literal(np.array(iou_threshold, np.float32))
    return convert(b, _kept(b, boxes, scores, most, iou, None), INT32)


@tf_op("NonMaxSuppressionV2")
def non_max_suppression_v2(
    b: Builder, node: Node, boxes: Value, scores: Value, most: Value, iou: Value
) -> Value:
    """Import NonMaxSuppressionV2, whose threshold is an operand."""
    return convert(b, _kept(b, boxes, scores, most, iou, None), INT32)


@tf_op("NonMaxSuppressionV3")
def non_max_suppression_v3(
    b: Builder, node: Node, boxes: Value, scores: Value, most: Value, iou: Value, score: Value
) -> Value:
    """Import NonMaxSuppressionV3, with a score threshold."""
    return convert(b, _kept(b, boxes, scores, most, iou, score), INT32)


def _padded(b: Builder, v: Value, most: Value, wanted: bool) -> Value:
    """Pad with zeros to `most` elements."""
    if not wanted:
        return v
    [count] = elements(b, most)
    zero = b.literal(np.zeros((), b.dtype(v).np))
    return gather_or(b, v, arange(b, count), 0, zero)


@tf_op("NonMaxSuppressionV4", outputs=("selected_indices", "valid_outputs"))
def non_max_suppression_v4(
    b: Builder,
    node: Node,
    boxes: Value,
    scores: Value,
    most: Value,
    iou: Value,
    score: Value,
    *,
    pad_to_max_output_size: bool = False,
) -> Outputs:
    """Import NonMaxSuppressionV4, which also counts, and may pad its result."""
    kept = convert(b, _kept(b, boxes, scores, most, iou, score), INT32)
    count = convert(b, squeeze(b, b.shape(kept), [0]), INT32)
    return _padded(b, kept, most, pad_to_max_output_size), count


@tf_op("NonMaxSuppressionV5", outputs=("selected_indices", "selected_scores", "valid_outputs"))
def non_max_suppression_v5(
    b: Builder,
    node: Node,
    boxes: Value,
    scores: Value,
    most: Value,
    iou: Value,
    score: Value,
    sigma: Value,
    *,
    pad_to_max_output_size: bool = False,
) -> Outputs:
    """Import NonMaxSuppressionV5, which also gives scores; `sigma` makes them soft."""
    if float(node.const(sigma, "soft_nms_sigma").reshape(())) != 0:
        raise NotSupported("soft_nms_sigma other than 0")
    kept = _kept(b, boxes, scores, most, iou, score)
    count = convert(b, squeeze(b, b.shape(kept), [0]), INT32)
    found = b.gather(scores, kept, axis=0)
    out = convert(b, kept, INT32), found
    return *(_padded(b, v, most, pad_to_max_output_size) for v in out), count


@tf_op(
    "CombinedNonMaxSuppression",
    outputs=("nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"),
)
def combined_non_max_suppression(
    b: Builder,
    node: Node,
    boxes: Value,
    scores: Value,
    per_class: Value,
    total: Value,
    iou: Value,
    score: Value,
    *,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
) -> Outputs:
    """Import CombinedNonMaxSuppression: by class, then the best of all classes of each image.

    Remaining boxes are marked in a table {image, class, box}; the others have a score of -inf.
    """
    if len(b.dims(boxes)) != 4 or len(b.dims(scores)) != 3:
        raise ModelError("expected boxes of rank 4 and scores of rank 3")
    n, count, sets, _ = extents(b, boxes)
    classes = extents(b, scores)[2]
    [most], [limit] = elements(b, total), elements(b, per_class)
    if not isinstance(sets, int):
        raise NotSupported("a number of sets of boxes that is known at run time only")
    if isinstance(classes, int) and sets not in (1, classes):
        raise ModelError(f"boxes of {sets} classes for scores of {classes}")
    if sets != 1:
        scores, classes = known_extent(b, scores, 2, sets, "scores"), sets
    for i in range(2):
        scores = same_extent(b, scores, i, boxes, i, f"scores with dim {i} of the boxes")
    if pad_per_class:
        most = least(b, most, times(b, limit, classes))
    by_class = transpose(b, scores, [0, 2, 1])  # image, class, box
    own = transpose(b, boxes, [0, 2, 1, 3])  # image, set, box, corner
    groups, per_set = times(b, n, sets), classes if sets == 1 else 1
    places_of = times(b, classes, count)
    rows = b.nonmaxsuppression(
        reshaped(b, own, [groups, count, 4]),
        reshaped(b, by_class, [groups, per_set, count]),
        scalar(b, limit),
        single(b, iou, "iou_threshold"),
        single(b, score, "score_threshold"),
    )
    marks = zeros_of(b, [groups, per_set, count], INT32)
    ones = b.add(b.mul(squeeze(b, b.slice(rows, axes=[1], starts=[0], ends=[1]), [1]), 0), 1)
    marks = b.scatternd_none(marks, rows, convert(b, ones, INT32))
    stays = compare(b, "greater", reshaped(b, marks, [n, places_of]), 0)
    flat = reshaped(b, by_class, [n, places_of])
    lowest = number(b, float("-inf"), flat)
    k = least(b, most, places_of)
    best, places = best_of(b, b.where(stays, flat, lowest), k, INT64)
    valid = b.not_(b.isinf(best))
    place = b.mod(places, scalar(b, count))
    label = b.div(b.sub(places, place), scalar(b, count))
    spot = place if sets == 1 else places
    table = reshaped(b, own, [n, times(b, sets, count), 4])
    chosen = b.gathernd(table, unsqueeze(b, spot, [2]), batch_dims=1)
    if clip_boxes:
        chosen = b.max(b.min(chosen, 1), 0)
    zero = number(b, 0, chosen)
    out = [
        b.where(unsqueeze(b, valid, [2]), chosen, zero),
        b.where(valid, best, zero),
        b.where(valid, convert(b, label, FLOAT), zero),
    ]
    behind = minus(b, most, k)
    if behind != 0:
        out = [
            padded(b, v, [(0, 0), (0, behind)] + [(0, 0)] * (len(b.dims(v)) - 2), zero) for v in out
        ]
    detections = squeeze(b, b.reduce_sum(convert(b, valid, INT32), axes=[1]), [1])
    return (*out, detections)
