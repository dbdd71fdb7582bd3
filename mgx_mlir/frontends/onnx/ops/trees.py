"""Ensembles of decision trees (ai.onnx.ml): TreeEnsemble and its two older forms.

The nodes of all trees are stored as one list per field; a leaf's children are itself. Other
comparisons than `<=` are rewritten to nodes with `<=`, which `tree_leaves` and `tree_sums` support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mgx_mlir.core.dtypes import FLOAT, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    compare,
    convert,
    number,
    require_extent,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.scores import (
    ML,
    TRANSFORMS,
    best_label,
    features,
    labels_of,
    pair_of_scores,
    transformed,
    two_labels,
)
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

_MODES = (
    "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ",
    "BRANCH_MEMBER",
)  # fmt: skip
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_DEEPEST = 4096  # most levels of a tree
_MOST_OUTPUTS = 64  # most outputs whose sums are accumulated while trees are traversed


@dataclass
class _Forest:
    """Nodes of all trees, including leaves; `weights` (nodes, outputs), and which of them are
    set.
    """

    feature: np.ndarray
    split: np.ndarray
    mode: np.ndarray
    true: np.ndarray
    false: np.ndarray
    missing: np.ndarray
    roots: np.ndarray
    weights: np.ndarray
    stated: np.ndarray
    members: dict[int, np.ndarray] = field(default_factory=dict)

    def depth(self) -> int:
        """Return the number of steps after which every row is at a leaf."""
        at, steps = np.unique(self.roots), 0
        while True:
            nodes = np.arange(len(self.true))
            inner = at[(self.true[at] != nodes[at]) | (self.false[at] != nodes[at])]
            if not len(inner):
                return steps
            steps += 1
            if steps > min(len(self.true), _DEEPEST):
                raise ModelError(f"trees of more than {_DEEPEST} levels, or with cycles")
            at = np.unique(np.concatenate([self.true[inner], self.false[inner]]))


def _asking_at_most(forest: _Forest, dtype: DType) -> _Forest:
    """Return equivalent trees, whose nodes all test `x <= split`.

    `x < v` becomes `x <= u` with u the number before v. Other comparisons swap their branches, also
    for NaN. `x == v` takes two nodes for each member of a set.
    """
    n = len(forest.mode)
    mode, inner = forest.mode, np.arange(n) != forest.true
    split = forest.split.astype(dtype.np)
    below = _below(split)
    strict, turned = np.isin(mode, (1, 2)), np.isin(mode, (2, 3))
    out = replace(
        forest,
        split=np.where(strict, below, split),
        mode=np.zeros_like(mode),
        true=np.where(turned, forest.false, forest.true),
        false=np.where(turned, forest.true, forest.false),
        missing=forest.missing ^ (turned & inner),
        members={},
    )
    equal = np.flatnonzero(np.isin(mode, (4, 5, 6)) & inner)
    if not len(equal):
        return out
    rows: list[tuple[int, float, int, int, bool]] = []  # feature, split, true, false, missing

    def added(feature: int, split: float, true: int, false: int, missing: bool) -> int:
        rows.append((feature, split, true, false, missing))
        return n + len(rows) - 1

    for i in equal.tolist():
        feature, yes, no = int(forest.feature[i]), int(forest.true[i]), int(forest.false[i])
        if mode[i] == 5:
            yes, no = no, yes
        values = np.asarray(forest.members[i] if mode[i] == 6 else [split[i]]).astype(dtype.np)
        following = no
        for value, lower in zip(values[:0:-1], _below(values[:0:-1]), strict=True):
            hit = added(feature, lower, following, yes, False)
            following = added(feature, value, hit, following, False)
        out.split[i] = values[0]
        out.true[i] = added(feature, _below(values[:1])[0], following, yes, False)
        out.false[i] = following
        out.missing[i] &= mode[i] != 5  # NaN equals nothing, whatever the node says
    more = [np.array(column) for column in zip(*rows, strict=True)]
    for name, values in zip(("feature", "split", "true", "false", "missing"), more, strict=True):
        own = getattr(out, name)
        setattr(out, name, np.concatenate([own, values.astype(own.dtype)]))
    pad = np.zeros((len(rows), forest.weights.shape[1]))
    out.mode = np.zeros(n + len(rows), mode.dtype)
    out.weights = np.concatenate([forest.weights, pad.astype(forest.weights.dtype)])
    out.stated = np.concatenate([forest.stated, pad.astype(bool)])
    return out


def _below(values: np.ndarray) -> np.ndarray:
    """Return the number before each of these; NaN for the lowest, so that the test is always
    false.
    """
    lowest = np.array(-np.inf, values.dtype)
    found = np.nextafter(values, lowest)
    least = -np.finfo(values.dtype).tiny  # compiled code flushes subnormal numbers to 0
    found = np.where((found < 0) & (found > least), least, found)
    return np.where(values == lowest, np.array(np.nan, values.dtype), found)


def _by_output(forest: _Forest) -> tuple[_Forest, np.ndarray] | None:
    """Return trees of one output each, one column of weights, and the roots by outputs.

    None if trees have several outputs, or if the outputs' numbers of trees differ too much. Missing
    trees are leaves of weight 0.
    """
    outputs = forest.weights.shape[1]
    if outputs == 1:
        return None
    found = np.full(len(forest.roots), -1)
    at = {int(root): number for number, root in enumerate(forest.roots)}
    if len(at) != len(found):
        return None
    while at:
        nodes, trees = np.array(list(at)), np.array(list(at.values()))
        leaves = forest.true[nodes] == nodes
        weighing = nodes[leaves]
        stated = forest.stated[weighing]
        if (stated.sum(axis=1) > 1).any():
            return None
        some = stated.any(axis=1)
        outs, own = stated.argmax(axis=1)[some], trees[leaves][some]
        if ((found[own] >= 0) & (found[own] != outs)).any():
            return None
        found[own] = outs
        if (found[own] != outs).any():
            return None
        inner, own = nodes[~leaves], trees[~leaves]
        at = dict(zip(forest.true[inner].tolist(), own.tolist(), strict=True))
        at |= dict(zip(forest.false[inner].tolist(), own.tolist(), strict=True))
    counts = np.bincount(found[found >= 0], minlength=outputs)
    most = int(counts.max())
    if most * outputs > 2 * len(found):
        return None
    nothing = len(forest.true)
    roots = np.full((outputs, most), nothing, np.int32)
    for output in range(outputs):
        own = forest.roots[found == output]
        roots[output, : len(own)] = own
    more = replace(
        forest,
        feature=np.append(forest.feature, 0),
        split=np.append(forest.split, forest.split.dtype.type(0)),
        true=np.append(forest.true, nothing),
        false=np.append(forest.false, nothing),
        missing=np.append(forest.missing, np.False_),
        weights=np.append(forest.weights.sum(axis=1), forest.weights.dtype.type(0))[:, None],
    )
    return more, roots


def _tables(b: Builder, forest: _Forest) -> list[Value]:
    """Return the operands of `tree_leaves`: roots, nodes and splits."""
    columns = [forest.feature, forest.true, forest.false]
    columns += [forest.missing] if forest.missing.any() else []
    nodes = np.stack([c.astype(np.int32) for c in columns], axis=1)
    return [b.literal(forest.roots.astype(np.int32)), b.literal(nodes), b.literal(forest.split)]


def _with_features(b: Builder, x: Value, forest: _Forest) -> Value:
    """Return rows that have every feature that nodes test."""
    if forest.feature.size and forest.feature.min() < 0:
        raise ModelError(f"expected features of 0 or more, got {forest.feature.min()}")
    count = b.dims(x)[1]
    needed = int(forest.feature.max()) + 1 if forest.feature.size else 0
    if count == DYN and needed:
        x = b.slice(x, axes=[1], starts=[0], ends=[needed])
        return b.reshape(require_extent(b, x, 1, needed), dims=[0, needed])
    if needed > count:
        raise ModelError(f"features up to {needed - 1}, but rows of {count}")
    return x


def _aggregated(b: Builder, x: Value, forest: _Forest, how: str, base: np.ndarray) -> Value:
    """Return the outputs (rows, outputs): the aggregated weights of a row's leaves."""
    x = _with_features(b, x, forest)
    forest = _asking_at_most(forest, b.dtype(x))
    tables, depth = _tables(b, forest), forest.depth()
    kind = forest.weights.dtype
    if how in ("SUM", "AVERAGE"):
        grouped = _by_output(forest)
        if grouped is not None:
            forest, roots = grouped
            tables = [b.literal(roots), *_tables(b, forest)[1:]]
            total = b.tree_sums(x, *tables, b.literal(forest.weights), depth=depth)
        elif forest.weights.shape[1] > _MOST_OUTPUTS:
            leaves = b.tree_leaves(x, *tables, depth=depth)
            total = b.reduce_sum(b.gather(b.literal(forest.weights), leaves, axis=0), axes=[1])
            total = b.squeeze(total, axes=[1])
        else:
            tables[0] = b.literal(forest.roots.astype(np.int32)[None])
            total = b.tree_sums(x, *tables, b.literal(forest.weights), depth=depth)
        if how == "AVERAGE":
            total = b.div(total, float(len(forest.roots)))
    else:
        leaves = b.tree_leaves(x, *tables, depth=depth)
        none = np.array(np.inf if how == "MIN" else -np.inf, kind)
        table = np.where(forest.stated, forest.weights, none)
        reduce = b.reduce_min if how == "MIN" else b.reduce_max
        total = b.squeeze(reduce(b.gather(b.literal(table), leaves, axis=0), axes=[1]), axes=[1])
        total = b.where(compare(b, "equal", total, b.literal(none)), number(b, 0, total), total)
    return b.add(total, b.literal(base.astype(kind))) if base.any() else total


# ---- TreeEnsemble --------------------------------------------------------------------------------


@onnx_op("TreeEnsemble", since=5, domain=ML)
def tree_ensemble(
    b: Builder,
    node: Node,
    x: Value,
    *,
    leaf_targetids: Sequence[int],
    leaf_weights: np.ndarray,
    nodes_falseleafs: Sequence[int],
    nodes_falsenodeids: Sequence[int],
    nodes_featureids: Sequence[int],
    nodes_modes: np.ndarray,
    nodes_splits: np.ndarray,
    nodes_trueleafs: Sequence[int],
    nodes_truenodeids: Sequence[int],
    tree_roots: Sequence[int],
    aggregate_function: int = 1,
    membership_values: np.ndarray | None = None,
    n_targets: int | None = None,
    nodes_hitrates: np.ndarray | None = None,
    nodes_missing_value_tracks_true: Sequence[int] | None = None,
    post_transform: int = 0,
) -> Value:
    """Import TreeEnsemble."""
    n, leaves = len(nodes_featureids), len(leaf_targetids)
    outputs = n_targets or max(leaf_targetids, default=0) + 1
    dtype = b.dtype(x)
    x = features(b, x)
    ids = np.array(leaf_targetids)
    _check(0 <= aggregate_function < 4 and 0 <= post_transform < 5, "aggregate or transform")
    _check(leaves > 0 and (ids >= 0).all() and (ids < outputs).all(), "leaf_targetids")

    def targets(numbers: Sequence[int], leaf: Sequence[int]) -> np.ndarray:
        found = np.where(np.array(leaf, bool), np.array(numbers) + n, np.array(numbers))
        _check(len(found) == n and ((found >= 0) & (found < n + leaves)).all(), "node ids")
        return np.concatenate([found, np.arange(n, n + leaves)]).astype(np.int64)

    def padded(values: ArrayLike, what: str, dtype: DTypeLike) -> np.ndarray:
        found = np.asarray(values).reshape(-1)
        _check(len(found) == n, what)
        return np.concatenate([found, np.zeros(leaves)]).astype(dtype)

    kind = b.dtype(x).np
    limits.table((n + leaves, outputs), "weights of leaves")
    weights = np.zeros((n + leaves, outputs), kind)
    weights[n + np.arange(leaves), ids] = leaf_weights.reshape(-1).astype(kind)
    stated = np.zeros(weights.shape, bool)
    stated[n + np.arange(leaves), ids] = True
    missing = nodes_missing_value_tracks_true or [0] * n
    forest = _Forest(
        padded(nodes_featureids, "nodes_featureids", np.int64),
        padded(nodes_splits, "nodes_splits", np.float64),
        padded(nodes_modes, "nodes_modes", np.int64),
        targets(nodes_truenodeids, nodes_trueleafs),
        targets(nodes_falsenodeids, nodes_falseleafs),
        padded(missing, "nodes_missing_value_tracks_true", bool),
        np.array(tree_roots, np.int64),
        weights,
        stated,
    )
    _check(((forest.mode >= 0) & (forest.mode <= 6)).all(), "nodes_modes")
    if membership_values is not None:
        sets = _sets(membership_values.reshape(-1))
        places = np.flatnonzero(forest.mode[:n] == 6)
        _check(len(sets) == len(places), "membership_values")
        forest.members = dict(zip(places.tolist(), sets, strict=True))
    _check(not (forest.mode == 6).any() or bool(forest.members), "membership_values")
    found = _aggregated(b, x, forest, _AGGREGATES[aggregate_function], np.zeros(outputs))
    return convert(b, transformed(b, found, TRANSFORMS[post_transform]), dtype)


def _sets(values: np.ndarray) -> list[np.ndarray]:
    """Return the sets, which end with NaN."""
    ends = np.flatnonzero(np.isnan(values.astype(np.float64)))
    return [part[~np.isnan(part)] for part in np.split(values, ends + 1) if len(part)]


def _check(fits: bool | np.bool_, what: str) -> None:
    if not fits:
        raise ModelError(f"attribute '{what}' does not fit the nodes and leaves")


# ---- TreeEnsembleRegressor, TreeEnsembleClassifier -----------------------------------------------


def _given(*choices: ArrayLike | None) -> np.ndarray | None:
    """Return the first form of an attribute that is set."""
    for c in choices:
        if c is not None and np.size(c):
            return np.asarray(c).reshape(-1)
    return None


def _forest(a: dict[str, Any], kind: np.dtype, outputs: int, what: str) -> _Forest:
    """Return a forest from nodes by tree and number, the form of the older operators."""
    trees, numbers = a["nodes_treeids"] or [], a["nodes_nodeids"] or []
    n = len(trees)
    place = {key: i for i, key in enumerate(zip(trees, numbers, strict=False))}
    _check(len(numbers) == n == len(place) > 0, "nodes_nodeids")
    modes = [_MODES.index(m) if m in _MODES else -1 for m in a["nodes_modes"] or []]
    modes = [-2 if m == "LEAF" else k for m, k in zip(a["nodes_modes"] or [], modes, strict=True)]
    _check(len(modes) == n and -1 not in modes and 6 not in modes, "nodes_modes")
    mode = np.array(modes)
    leaf = mode == -2

    def targets(key: str) -> np.ndarray:
        found = a[key] or []
        _check(len(found) == n, key)
        out = [i if leaf[i] else place.get((trees[i], found[i]), -1) for i in range(n)]
        _check(-1 not in out, key)
        return np.array(out, np.int64)

    def values(key: str, default: ArrayLike) -> np.ndarray:
        found = _given(a.get(key + "_as_tensor"), a[key])
        found = np.full(n, default) if found is None else found
        _check(len(found) == n, key)
        return found

    true, false = targets("nodes_truenodeids"), targets("nodes_falsenodeids")
    reached = set(true[~leaf].tolist()) | set(false[~leaf].tolist())
    first: dict[int, int] = {}
    for i, tree in enumerate(trees):
        if i not in reached:
            first.setdefault(tree, i)
    limits.table((n, outputs), "weights of leaves")
    weights, stated = np.zeros((n, outputs), kind), np.zeros((n, outputs), bool)
    given = _given(a.get(f"{what}_weights_as_tensor"), a[f"{what}_weights"])
    keys = zip(a[f"{what}_treeids"] or [], a[f"{what}_nodeids"] or [], strict=True)
    places = np.array([place.get(key, -1) for key in keys], np.int64)
    ids = np.array(a[f"{what}_ids"] or [], np.int64)
    given = np.zeros(0) if given is None else given
    _check(len(places) == len(ids) == len(given) and (places >= 0).all(), f"{what}_nodeids")
    _check(((ids >= 0) & (ids < outputs)).all(), f"{what}_ids")
    np.add.at(weights, (places, ids), given.astype(kind))
    stated[places, ids] = True
    return _Forest(
        values("nodes_featureids", 0).astype(np.int64) * ~leaf,
        np.where(leaf, 0, values("nodes_values", 0.0)),
        np.where(leaf, 0, mode),
        true,
        false,
        values("nodes_missing_value_tracks_true", 0).astype(bool),
        np.array(list(first.values()), np.int64),
        weights,
        stated,
    )


@dataclass(frozen=True)
class NodeAttributes(Attributes):
    """Attributes of the trees' nodes; each list has one entry per node."""

    nodes_falsenodeids: Sequence[int] | None = None
    nodes_featureids: Sequence[int] | None = None
    nodes_hitrates: Sequence[float] | None = None
    nodes_hitrates_as_tensor: np.ndarray | None = None
    nodes_missing_value_tracks_true: Sequence[int] | None = None
    nodes_modes: Sequence[str] | None = None
    nodes_nodeids: Sequence[int] | None = None
    nodes_treeids: Sequence[int] | None = None
    nodes_truenodeids: Sequence[int] | None = None
    nodes_values: Sequence[float] | None = None
    nodes_values_as_tensor: np.ndarray | None = None


@onnx_op("TreeEnsembleRegressor", since=1, domain=ML)
def tree_ensemble_regressor(
    b: Builder,
    node: Node,
    x: Value,
    *,
    aggregate_function: str = "SUM",
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: np.ndarray | None = None,
    n_targets: int | None = None,
    nodes: NodeAttributes,
    post_transform: str = "NONE",
    target_ids: Sequence[int] | None = None,
    target_nodeids: Sequence[int] | None = None,
    target_treeids: Sequence[int] | None = None,
    target_weights: Sequence[float] | None = None,
    target_weights_as_tensor: np.ndarray | None = None,
) -> Value:
    """Import TreeEnsembleRegressor."""
    given = {**locals(), **vars(nodes)}
    if aggregate_function not in _AGGREGATES:
        raise ModelError(
            f"attribute 'aggregate_function' expected one of {_AGGREGATES}, got "
            f"{aggregate_function}"
        )
    x = features(b, x)
    outputs = n_targets or max(target_ids or [0]) + 1
    forest = _forest(given, b.dtype(x).np, outputs, "target")
    base = _given(base_values_as_tensor, base_values)
    base = np.zeros(1) if base is None else base
    _check(len(base) in (1, outputs), "base_values")
    found = _aggregated(b, x, forest, aggregate_function, base)
    return convert(b, transformed(b, found, post_transform), FLOAT)


@onnx_op("TreeEnsembleClassifier", since=1, domain=ML)
def tree_ensemble_classifier(
    b: Builder,
    node: Node,
    x: Value,
    *,
    base_values: Sequence[float] | None = None,
    base_values_as_tensor: np.ndarray | None = None,
    class_ids: Sequence[int] | None = None,
    class_nodeids: Sequence[int] | None = None,
    class_treeids: Sequence[int] | None = None,
    class_weights: Sequence[float] | None = None,
    class_weights_as_tensor: np.ndarray | None = None,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    nodes: NodeAttributes,
    post_transform: str = "NONE",
) -> Outputs:
    """Import TreeEnsembleClassifier: (label, scores). If the leaves score one of two classes, the
    other has the rest.
    """
    given = {**locals(), **vars(nodes)}
    labels = labels_of(classlabels_int64s, classlabels_strings)
    x = features(b, x)
    forest = _forest(given, b.dtype(x).np, len(labels), "class")
    base = _given(base_values_as_tensor, base_values)
    base = np.zeros(len(labels)) if base is None else base
    scored = sorted(set(class_ids or []))
    if len(labels) != 2 or len(scored) != 1:
        _check(len(base) == len(labels), "base_values")
        scores = _aggregated(b, x, forest, "SUM", base)
        label = best_label(b, scores, labels, classlabels_strings)
        return label, convert(b, transformed(b, scores, post_transform), FLOAT)
    forest.weights, forest.stated = forest.weights[:, scored], forest.stated[:, scored]
    # the second of two base values belongs to the positive class
    score = _aggregated(b, x, forest, "SUM", base[-1:])
    positive = bool((forest.weights >= 0).all())
    label = two_labels(b, score, 0.5 if positive else 0.0, labels, classlabels_strings)
    return label, convert(b, pair_of_scores(b, score, positive, post_transform), FLOAT)
