"""Linear models and support vector machines (ai.onnx.ml)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    compare,
    convert,
    greater_equal,
    number,
    require,
    require_extent,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.onnx.coupling import coupled_probabilities
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.linear import matmul_op
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.scores import (
    ML,
    best_label,
    features,
    labels_of,
    pair_of_scores,
    transformed,
    two_labels,
)
from mgx_mlir.frontends.onnx.structures import Maps, Texts
from mgx_mlir.frontends.onnx.texts import numbers_of, tensor_of
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.products import squared_distances
from mgx_mlir.frontends.values import Held, Outputs, Value
from mgx_mlir.programs.build import Builder

_SPREAD = 4  # most entries of a lookup table for each key


def _table(values: Sequence[float] | None, rows: int, what: str) -> np.ndarray:
    """`rows` rows of coefficients."""
    flat = np.array(values or [], np.float32)
    if not rows or not flat.size or flat.size % rows:
        raise ModelError(f"{what} expected rows for {rows} outputs, got {flat.size} numbers")
    return flat.reshape(rows, -1)


def _linear(
    b: Builder, node: Node, x: Value, table: np.ndarray, added: Sequence[float] | None
) -> Value:
    x = convert(b, features(b, x), FLOAT)
    out = matmul_op(b, node, x, b.literal(np.ascontiguousarray(table.T)))
    if added is None or not any(added):
        return out
    if len(added) not in (1, len(table)):
        raise ModelError(f"intercepts expected {len(table)} numbers, got {len(added)}")
    return b.add(out, b.literal(np.array(added, np.float32)))


@onnx_op("LinearRegressor", since=1, domain=ML)
def linear_regressor(
    b: Builder,
    node: Node,
    x: Value,
    *,
    coefficients: Sequence[float] | None = None,
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Value:
    """Import LinearRegressor: x coefficients + intercepts, then the transform."""
    table = _table(coefficients, targets, "coefficients")
    return transformed(b, _linear(b, node, x, table, intercepts), post_transform)


@onnx_op("LinearClassifier", since=1, domain=ML)
def linear_classifier(
    b: Builder,
    node: Node,
    x: Value,
    *,
    coefficients: Sequence[float],
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> Outputs:
    """Import LinearClassifier: (label, scores); one row of coefficients is the second class's
    score.

    Coefficients beyond the features of `x` are ignored, as in onnxruntime: the classifier of its
    own examples has two features and coefficients for four.
    """
    labels = labels_of(classlabels_ints, classlabels_strings)
    rows = len(intercepts) if intercepts else len(labels)
    width = b.dims(x)[-1] if b.dims(x) else DYN
    read = coefficients if width == DYN else coefficients[: width * rows]
    scores = _linear(b, node, x, _table(read, rows, "coefficients"), intercepts)
    if rows == 1 and len(labels) == 2:
        label = two_labels(b, scores, 0.0, labels, classlabels_strings)
        return label, pair_of_scores(b, scores, True, post_transform)
    if rows != len(labels):
        raise ModelError(f"{rows} rows of coefficients do not fit {len(labels)} labels")
    return best_label(b, scores, labels, classlabels_strings), transformed(
        b, scores, post_transform
    )


# ---- support vector machines ---------------------------------------------------------------------


def _kernel(
    b: Builder, node: Node, x: Value, vectors: np.ndarray, kind: str, params: Sequence[float] | None
) -> Value:
    """Return the kernel of each row with each support vector."""
    gamma, added, degree = [*(params or []), 0.0, 0.0, 0.0][:3]
    if kind == "RBF":
        return b.exp(b.mul(squared_distances(b, x, b.literal(vectors)), -gamma))
    dot = matmul_op(b, node, x, b.literal(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return dot
    if kind == "POLY":
        return b.pow(b.add(b.mul(dot, gamma), added), number(b, degree, dot))
    if kind == "SIGMOID":
        return b.tanh(b.add(b.mul(dot, gamma), added))
    raise ModelError(f"attribute 'kernel_type' has unknown value {kind}")


@onnx_op("SVMRegressor", since=1, domain=ML)
def svm_regressor(
    b: Builder,
    node: Node,
    x: Value,
    *,
    coefficients: Sequence[float] | None = None,
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] | None = None,
    support_vectors: Sequence[float] | None = None,
) -> Value:
    """Import SVMRegressor: a weighted sum of the kernel of x and each support vector."""
    x = convert(b, features(b, x), FLOAT)
    if n_supports:
        vectors = _table(support_vectors, n_supports, "support_vectors")
        x = _kernel(b, node, x, vectors, kernel_type, kernel_params)
    out = _linear(b, node, x, _table(coefficients, 1, "coefficients"), list(rho or [0.0])[:1])
    if one_class:
        one = number(b, 1, out)
        out = b.where(compare(b, "greater", out, 0), one, b.neg(one))
    return transformed(b, out, post_transform)


@onnx_op("SVMClassifier", since=1, domain=ML)
def svm_classifier(
    b: Builder,
    node: Node,
    x: Value,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float] | None = None,
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] | None = None,
    prob_b: Sequence[float] | None = None,
    rho: Sequence[float] | None = None,
    support_vectors: Sequence[float] | None = None,
    vectors_per_class: Sequence[int] | None = None,
) -> Outputs:
    """Import SVMClassifier: (label, scores). Without support vectors scores are linear, else one
    per pair of classes.

    The label is the class that wins most pairs. For two classes, probabilities follow from the
    pair's score.
    """
    labels = labels_of(classlabels_ints, classlabels_strings)
    count = len(labels)
    x = convert(b, features(b, x), FLOAT)
    if not vectors_per_class:
        scores = _linear(b, node, x, _table(coefficients, count, "coefficients"), rho)
        return best_label(b, scores, labels, classlabels_strings), transformed(
            b, scores, post_transform
        )
    if len(vectors_per_class) != count or count < 2:
        raise ModelError(f"vectors_per_class expected {count} numbers, got {vectors_per_class}")
    ends = np.cumsum([0, *vectors_per_class])
    vectors = _table(support_vectors, int(ends[-1]), "support_vectors")
    weights = _table(coefficients, count - 1, "coefficients")
    limits.table((count, count), "pairs of classes")
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if weights.shape[1] != ends[-1] or len(rho or []) < len(pairs):
        raise ModelError("coefficients or rho do not fit the support vectors of the classes")
    limits.table((len(pairs), max(int(ends[-1]), count)), "coefficients")
    mixed = np.zeros((len(pairs), int(ends[-1])), np.float32)
    for row, (i, j) in enumerate(pairs):
        mixed[row, ends[i] : ends[i + 1]] = weights[j - 1, ends[i] : ends[i + 1]]
        mixed[row, ends[j] : ends[j + 1]] = weights[i, ends[j] : ends[j + 1]]
    kernels = _kernel(b, node, x, vectors, kernel_type, kernel_params)
    scores = _linear(b, node, kernels, mixed, list(rho or [])[: len(pairs)])
    if (prob_a and len(prob_a) != len(pairs)) or len(prob_b or []) != len(prob_a or []):
        raise ModelError(f"prob_a and prob_b expected {len(pairs)} numbers each")
    won = np.zeros((len(pairs), count), np.float32)
    lost = np.zeros((len(pairs), count), np.float32)
    for row, (i, j) in enumerate(pairs):
        won[row, i], lost[row, j] = 1, 1
    first = convert(b, compare(b, "greater", scores, 0), FLOAT)
    votes = b.add(
        matmul_op(b, node, first, b.literal(won)),
        matmul_op(b, node, b.sub(number(b, 1, first), first), b.literal(lost)),
    )
    label = best_label(b, votes, labels, classlabels_strings)
    if prob_a:
        first = _svm_probability(b, scores, prob_a, prob_b or [])
        coupled = coupled_probabilities(b, node, first, count)
        return label, transformed(b, coupled, post_transform)
    if count == 2:
        return label, pair_of_scores(b, scores, False, post_transform)
    return label, transformed(b, scores, post_transform)


def _svm_probability(
    b: Builder, scores: Value, slopes: Sequence[float], added: Sequence[float]
) -> Value:
    """Return Platt's sigmoid of each pair's score, clipped to avoid 0 and 1."""
    slope, more = (b.literal(np.array(v, np.float32)) for v in (slopes, added))
    raw = b.sigmoid(b.neg(b.add(b.mul(scores, slope), more)))
    return b.clip(raw, number(b, 1e-7, raw), number(b, 1 - 1e-7, raw))


# ---- features ------------------------------------------------------------------------------------


def _per_feature(b: Builder, x: Value, values: Sequence[float], what: str) -> Value:
    width = b.dims(x)[-1] if b.dims(x) else 1
    if len(values) not in (1, width):
        raise ModelError(f"{what} expected 1 or {width} numbers, got {len(values)}")
    return b.literal(np.array(values, b.dtype(x).np))


@onnx_op("Scaler", since=1, domain=ML)
def scaler(
    b: Builder,
    node: Node,
    x: Value,
    *,
    offset: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
) -> Value:
    """Import Scaler: (x - offset) scale, by feature."""
    x = convert(b, x, FLOAT)
    if offset:
        x = b.sub(x, _per_feature(b, x, offset, "offset"))
    return b.mul(x, _per_feature(b, x, scale, "scale")) if scale else x


@onnx_op("Normalizer", since=1, domain=ML)
def normalizer(b: Builder, node: Node, x: Value, *, norm: str = "MAX") -> Value:
    """Import Normalizer: rows divided by their norm; a row of zeros stays."""
    x = convert(b, x, FLOAT)
    axis = [len(b.dims(x)) - 1]
    if norm == "MAX":
        size = b.reduce_max(x, axes=axis)
    elif norm == "L1":
        size = b.reduce_sum(b.abs(x), axes=axis)
    elif norm == "L2":
        size = b.sqrt(b.reduce_sum(b.mul(x, x), axes=axis))
    else:
        raise ModelError(f"attribute 'norm' expected MAX, L1 or L2, got {norm}")
    return b.where(compare(b, "equal", size, 0), x, b.div(x, size))


@onnx_op("Imputer", since=1, domain=ML)
def imputer(
    b: Builder,
    node: Node,
    x: Value,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Value:
    """Import Imputer: replace one number in x by another."""
    floats = b.dtype(x).is_float
    values: Any = imputed_value_floats if floats else imputed_value_int64s
    if not values:
        raise ModelError(f"expected imputed values for elements of type {b.dtype(x)}, got none")
    replaced = replaced_value_float if floats else replaced_value_int64
    if floats and np.isnan(replaced):
        missing = b.convert(b.isnan(x), target_type="bool")
    else:
        missing = compare(b, "equal", x, replaced)
    return b.where(missing, _per_feature(b, x, values, "imputed values"), x)


@onnx_op("FeatureVectorizer", since=1, domain=ML)
def feature_vectorizer(
    b: Builder, node: Node, *xs: Value, inputdimensions: Sequence[int] | None = None
) -> Value:
    """Import FeatureVectorizer: features side by side, cut or zero-padded to the stated numbers."""
    parts = []
    for i, x in enumerate(xs):
        x = convert(b, x, FLOAT)
        x = b.reshape(x, dims=[1, -1] if len(b.dims(x)) < 2 else [b.dims(x)[0], -1])
        have = b.dims(x)[1]
        want = inputdimensions[i] if inputdimensions and i < len(inputdimensions) else have
        if want < have:
            x = b.slice(x, axes=[1], starts=[0], ends=[want])
        elif want > have:
            x = b.concat([x, zeros(b, [b.dims(x)[0], want - have], FLOAT)], axis=1)
        parts.append(x)
    if not parts:
        raise ModelError("expected one input or more, got none")
    return parts[0] if len(parts) == 1 else b.concat(parts, axis=1)


@onnx_op("OneHotEncoder", since=1, domain=ML, structures=True)
def one_hot_encoder(
    b: Builder,
    node: Node,
    x: Held,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Value:
    """Import OneHotEncoder: a new last axis that is 1 at the category of the element.

    With `zeros` 0 a run fails if an element has no category.
    """
    if cats_strings:
        index, categories = numbers_of(x, cats_strings)
    elif cats_int64s:
        index, categories = convert(b, tensor_of(x), INT64), np.array(cats_int64s)
    else:
        raise NotSupported("no categories")
    last = b.unsqueeze(index, axes=[len(b.dims(index))])
    hot = convert(b, compare(b, "equal", last, b.literal(categories)), FLOAT)
    if zeros:
        return hot
    rank = len(b.dims(index))
    found = b.reduce_min(b.reduce_max(hot, axes=[rank]), axes=list(range(rank)))
    return require(b, hot, compare(b, "greater", found, 0), "elements that are in a category")


@onnx_op("CategoryMapper", since=1, domain=ML, structures=True)
def category_mapper(
    b: Builder,
    node: Node,
    x: Held,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Held:
    """Import CategoryMapper: a map from strings to integers, or from integers to strings."""
    if not cats_int64s or not cats_strings or len(cats_int64s) != len(cats_strings):
        counts = [len(cats_int64s or ()), len(cats_strings or ())]
        raise ModelError(
            "expected cats_int64s and cats_strings of one length, at least 1, got lengths "
            f"{counts[0]} and {counts[1]}"
        )
    if isinstance(x, Texts):
        keys, values = {"keys_strings": cats_strings}, {"values_int64s": cats_int64s}
    else:
        keys, values = {"keys_int64s": cats_int64s}, {"values_strings": cats_strings}
    defaults = {"default_int64": default_int64, "default_string": default_string}
    stated: dict[str, Any] = {**keys, **values, **defaults}
    return label_encoder(b, node, x, **stated)


@onnx_op("LabelEncoder", since=1, domain=ML, structures=True)
def label_encoder_of_classes(
    b: Builder,
    node: Node,
    x: Held,
    *,
    classes_strings: Sequence[str] | None = None,
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Held:
    """Import the LabelEncoder of ai.onnx.ml 1: a CategoryMapper of classes and their indices."""
    names = classes_strings or ()
    return category_mapper(
        b, node, x, cats_int64s=range(len(names)), cats_strings=names,
        default_int64=default_int64, default_string=default_string,
    )  # fmt: skip


@onnx_op("LabelEncoder", since=2, domain=ML, structures=True)
def label_encoder(
    b: Builder,
    node: Node,
    x: Held,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: np.ndarray | None = None,
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    keys_tensor: np.ndarray | None = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
    values_tensor: np.ndarray | None = None,
) -> Held:
    """Import LabelEncoder: the value of the key that equals the element.

    Integer keys that lie close use a lookup table; other keys are sorted, and searched by
    bisection.
    """
    if keys_strings:
        x, keys = numbers_of(x, keys_strings)
    else:
        x, keys = tensor_of(x), np.array(keys_floats or keys_int64s or [])
        keys = keys if keys_tensor is None else keys_tensor
    kind, texts = b.dtype(x).np, ()
    if values_tensor is not None:
        values, default = values_tensor, default_tensor
        default = np.array(-1, values.dtype) if default is None else default.reshape(-1)[0]
    elif values_floats:
        values, default = np.array(values_floats, np.float32), np.float32(default_float)
    elif values_strings:
        texts = tuple(dict.fromkeys([*values_strings, default_string]))
        values = np.array([texts.index(s) for s in values_strings], np.int64)
        default = np.int64(texts.index(default_string))
    else:
        values, default = np.array(values_int64s or [], np.int64), np.int64(default_int64)
    keys, values = keys.reshape(-1).astype(kind), values.reshape(-1)
    if not keys.size or keys.size != values.size:
        raise ModelError(f"expected as many keys as values, got {keys.size} and {values.size}")
    # sorted, NaN last; the first of equal keys wins, as in onnxruntime (onnx.reference: the last)
    keys, first = np.unique(keys, return_index=True)
    values = values[first]
    fill = np.array(default).astype(values.dtype)
    span = int(keys[-1]) - int(keys[0]) if keys.dtype.kind == "i" else np.inf
    most = np.iinfo(np.int32).max  # the largest number of the type has no successor
    if span < _SPREAD * (keys.size + 16) and abs(int(keys[0])) + span < most:
        out = _at_places(b, x, keys, values, fill)
        return Texts(out, texts) if texts else out
    numbers = keys[keys == keys]
    count = int(numbers.size)
    table, low = b.literal(keys), None
    for step in [1 << i for i in reversed(range(max(count - 1, 0).bit_length()))]:
        if low is None:  # the first step is from index 0
            low = b.mul(convert(b, greater_equal(b, x, keys[step].item()), INT64), step)
            continue
        probe = b.add(low, step)
        element = b.gather(table, b.min(probe, count - 1), axis=0)
        fits = b.logical_and(compare(b, "less", probe, count), greater_equal(b, x, element))
        low = b.where(fits, probe, low)
    if low is None:
        low = b.literal(np.int64(0))
    found = compare(b, "equal", x, b.gather(table, low, axis=0))
    held = b.gather(b.literal(values), low, axis=0)
    out = b.where(found, held, b.literal(fill))
    if numbers.size < keys.size:
        missing = b.convert(b.isnan(x), target_type="bool")
        out = b.where(missing, b.literal(values[numbers.size]), out)
    return Texts(out, texts) if texts else out


def _at_places(
    b: Builder, x: Value, keys: np.ndarray, values: np.ndarray, fill: np.ndarray
) -> Value:
    """Look up x among sorted integers that lie close, in a table with one entry beyond each end."""
    low, high = int(keys[0]) - 1, int(keys[-1]) + 1
    table = np.full(high - low + 1, fill)
    table[keys.astype(np.int64) - low] = values
    near = b.max(b.min(x, high), low)
    return b.gather(b.literal(table), b.sub(near, low), axis=0)


@onnx_op("ZipMap", since=1, domain=ML)
def zip_map(
    b: Builder,
    node: Node,
    x: Value,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> Held:
    """Import ZipMap: rows of x, which the user sees as maps from the labels."""
    keys = tuple(classlabels_strings or classlabels_int64s or ())
    rows = unsqueeze(b, x, [0]) if len(b.dims(x)) == 1 else x
    if len(b.dims(rows)) != 2 or b.dims(rows)[1] not in (DYN, len(keys)):
        raise ModelError(f"expected rows of {len(keys)} numbers, got dims {show_dims(b.dims(x))}")
    if b.dims(rows)[1] == DYN:
        rows = require_extent(b, rows, 1, len(keys))
    return Maps(rows, keys)
