"""Losses: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.helpers import axis_range, compare, convert, same_extent, squeeze, unsqueeze
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


def negative_log_likelihood(
    b: Builder,
    scores: Value,
    labels: Value,
    weights: Value | None,
    ignore_index: int | None,
    reduction: str,
) -> Value:
    """Return -weight[label] * scores[.., label, ..], summed or averaged over labels that are not
    ignored.
    """
    rank = len(b.dims(scores))
    if rank < 2 or len(b.dims(labels)) != rank - 1:
        raise ModelError(
            f"labels expected rank {rank - 1}, got {len(b.dims(labels))} for scores of rank {rank}"
        )
    if reduction not in ("none", "sum", "mean"):
        raise ModelError(f"attribute 'reduction' expected none, sum or mean, got {reduction}")
    for i in range(rank - 1):
        at = i + 1 if i else 0
        labels = same_extent(b, labels, i, scores, at, f"labels as long as dim {at} of the scores")
    if weights is not None:
        weights = same_extent(b, weights, 0, scores, 1, "a weight for each class")
    classes = Dim(scores, 1, "the number of classes")
    label = convert(b, within(b, labels, "labels", 0, classes, besides=ignore_index), INT64)
    zero = b.literal(np.zeros((), b.dtype(scores).np))
    # a masked sum and not a gather: an ignored label may be out of range
    places = unsqueeze(b, axis_range(b, scores, 1), range(1, rank - 1))
    hit = compare(b, "equal", unsqueeze(b, label, [1]), places)
    ignored = None if ignore_index is None else compare(b, "equal", label, ignore_index)

    def picked(v: Value) -> Value:
        return squeeze(b, b.reduce_sum(b.where(hit, v, zero), axes=[1]), [1])

    loss = b.neg(picked(scores))
    weight = None
    if weights is not None:
        weight = picked(unsqueeze(b, weights, range(1, rank - 1)))
    elif ignored is not None:
        weight = b.convert(b.not_(ignored), target_type=b.dtype(scores))
    if weight is not None and ignored is not None:
        weight = b.where(ignored, zero, weight)
    if ignored is not None:
        loss = b.where(ignored, zero, loss)
    if weights is not None:
        loss = b.mul(loss, weight)
    if reduction == "none":
        return loss
    axes = list(range(rank - 1))
    total = squeeze(b, b.reduce_sum(loss, axes=axes), axes)
    if reduction == "sum":
        return total
    if weight is None:
        return squeeze(b, b.reduce_mean(loss, axes=axes), axes)
    return b.div(total, squeeze(b, b.reduce_sum(weight, axes=axes), axes))


@onnx_op("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    b: Builder,
    node: Node,
    scores: Value,
    labels: Value,
    weights: Value | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Value:
    """Import NegativeLogLikelihoodLoss."""
    return negative_log_likelihood(b, scores, labels, weights, ignore_index, reduction)


@onnx_op("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    b: Builder,
    node: Node,
    scores: Value,
    labels: Value,
    weights: Value | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Outputs:
    """Import SoftmaxCrossEntropyLoss; output 1 is the log softmax."""
    log = b.logsoftmax(scores, axis=1)
    return negative_log_likelihood(b, log, labels, weights, ignore_index, reduction), log
