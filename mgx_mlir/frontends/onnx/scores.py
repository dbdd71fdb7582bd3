"""Scores of classical models (ai.onnx.ml): their transforms, and labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, FLOAT
from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import compare, convert, number
from mgx_mlir.frontends.onnx.structures import Texts
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def features(b: Builder, x: Value) -> Value:
    """Return rows of features: a vector is one row; integers become f32, f64 stays."""
    if len(b.dims(x)) == 1:
        x = b.unsqueeze(x, axes=[0])
    if len(b.dims(x)) != 2:
        raise ModelError(f"expected rows of features, got rank {len(b.dims(x))}")
    return x if b.dtype(x) in (FLOAT, DOUBLE) else convert(b, x, FLOAT)


def transformed(b: Builder, scores: Value, kind: str) -> Value:
    """Return `post_transform` of rows of scores."""
    if kind not in TRANSFORMS:
        raise ModelError(f"attribute 'post_transform' expected one of {TRANSFORMS}, got {kind}")
    if kind == "NONE":
        return scores
    if kind == "SOFTMAX":
        return b.softmax(scores, axis=1)
    if kind == "LOGISTIC":
        return b.sigmoid(scores)
    if kind == "PROBIT":
        return _probit(b, scores)
    top = b.reduce_max(scores, axes=[1])
    nothing = b.not_(compare(b, "greater", b.abs(scores), 1e-7))
    powers = b.exp(b.sub(scores, top))
    parts = b.where(nothing, b.mul(scores, b.exp(b.neg(top))), powers)
    total = b.reduce_sum(b.where(nothing, number(b, 0, powers), powers), axes=[1])
    return b.div(parts, total)


def _probit(b: Builder, p: Value) -> Value:
    """Return the normal quantile, by the approximation of erf's inverse in onnxruntime
    (Winitzki).
    """
    x = b.sub(b.mul(p, 2), 1)
    log = b.log(b.mul(b.sub(number(b, 1, x), x), b.add(x, 1)))
    v = b.add(b.mul(log, 0.5), 2 / (math.pi * 0.147))
    size = b.sqrt(b.sub(b.sqrt(b.sub(b.mul(v, v), b.mul(log, 1 / 0.147))), v))
    return b.mul(b.where(compare(b, "less", x, 0), b.neg(size), size), math.sqrt(2.0))


def labels_of(numbers: Sequence[int] | None, strings: Sequence[str] | None) -> np.ndarray:
    """Return the class labels: integers, or indices of strings."""
    if strings:
        return np.arange(len(strings))
    if not numbers:
        raise ModelError("expected class labels, got none")
    return np.array(numbers, np.int64)


def best_label(
    b: Builder, scores: Value, labels: np.ndarray, strings: Sequence[str] | None
) -> Held:
    """Return the label of the first largest score of each row.

    With strings, the labels are their indices.
    """
    place = b.squeeze(b.argmax(scores, axis=1), axes=[1])
    if np.array_equal(labels, np.arange(b.dims(scores)[1])):  # each label is its own index
        return _named(place, strings)
    return _named(b.gather(b.literal(labels), place, axis=0), strings)


def two_labels(
    b: Builder, score: Value, limit: float, labels: np.ndarray, strings: Sequence[str] | None
) -> Held:
    """Return the second label where the one score (rows, 1) exceeds a limit, else the first."""
    high = b.squeeze(compare(b, "greater", score, limit), axes=[1])
    first, second = (b.literal(labels[i]) for i in (0, 1))
    return _named(b.where(high, second, first), strings)


def _named(label: Value, strings: Sequence[str] | None) -> Held:
    return Texts(label, tuple(strings)) if strings else label


def pair_of_scores(b: Builder, score: Value, probability: bool, transform: str) -> Value:
    """Return scores of two classes from the second's: a probability, or a distance."""
    if transform == "PROBIT":
        return transformed(b, score, transform)
    both = b.mul(score, b.literal(np.array([[-1, 1]], b.dtype(score).np)))
    if transform == "LOGISTIC":
        return b.sigmoid(both)
    if probability:  # the scores are 1 - p and p
        return b.add(both, b.literal(np.array([[1, 0]], b.dtype(score).np)))
    return both
