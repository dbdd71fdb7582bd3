"""Ensembles of decision trees (ai.onnx.ml): TreeEnsemble and its older two forms.

The nodes of all trees are one list of each of their fields; a leaf leads to itself. Where all nodes
compare alike, `tree_leaves` walks. Else all rows walk all trees at once, one level at a step: the
numbers of the nodes they stand at are a tensor (rows, trees), and what a node holds is gathered by
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mgx_mlir.core.dtypes import BOOL, FLOAT
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    compare,
    convert,
    greater_equal,
    less_equal,
    number,
    unsqueeze,
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
_COMPARED = ("le", "lt", "ge", "gt", "eq", "ne")  # of the modes but the last
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_DEEPEST = 512  # levels: each is a step of its own in the program


@dataclass
class _Forest:
    """Nodes of all trees, leaves among them; `weights` (nodes, outputs) and which are stated."""

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
        """Return how many steps it takes until every row is at a leaf."""
        at, steps = np.unique(self.roots), 0
        while True:
            nodes = np.arange(len(self.true))
            inner = at[(self.true[at] != nodes[at]) | (self.false[at] != nodes[at])]
            if not len(inner):
                return steps
            steps += 1
            if steps > min(len(self.true), _DEEPEST):
                raise ModelError(f"trees of more than {_DEEPEST} levels, or in circles")
            at = np.unique(np.concatenate([self.true[inner], self.false[inner]]))


def _walk(b: Builder, x: Value, forest: _Forest) -> Value:
    """Return the leaf of each row in each tree."""
    dtype = b.dtype(x)
    rows, count = b.dims(x)[0], len(forest.roots)
    if forest.feature.size and (forest.feature.min() < 0 or forest.feature.max() >= b.dims(x)[1]):
        raise ModelError(f"features up to {forest.feature.max()}, but rows of {b.dims(x)[1]}")
    modes = np.unique(forest.mode)
    if len(modes) == 1 and modes[0] < len(_COMPARED):
        tables = (forest.roots, forest.feature, forest.split, forest.true, forest.false)
        kinds = (np.int32, np.int32, dtype.np, np.int32, np.int32)
        fields = [b.literal(t.astype(k)) for t, k in zip(tables, kinds, strict=True)]
        missing = b.literal(forest.missing) if forest.missing.any() else None
        mode = _COMPARED[int(modes[0])]
        return b.tree_leaves(x, *fields, missing, depth=forest.depth(), mode=mode)
    roots = b.literal(forest.roots[None, :])
    if rows == DYN:
        dims = b.concat([b.shape(x, 0, 1), b.ints([count])], axis=0)
        at = b.broadcast_with_dims(roots, dims)
    else:
        at = b.multibroadcast(roots, [rows, count])

    def held(table: np.ndarray) -> Value:
        same = table.size and (table == table.reshape(-1)[0]).all()
        if same:
            return b.literal(table.reshape(-1)[0])
        return b.gather(b.literal(table), at, axis=0)

    split = forest.split.astype(dtype.np)
    for _ in range(forest.depth()):
        feature = unsqueeze(b, b.gather(b.literal(forest.feature), at, axis=0), [2])
        value = b.gathernd(x, feature, batch_dims=1)
        taken = _taken(b, forest, value, held(split), held, at)
        if forest.missing.any():
            unknown = b.logical_and(convert(b, b.isnan(value), BOOL), held(forest.missing))
            taken = b.logical_or(taken, unknown)
        at = b.where(taken, held(forest.true), held(forest.false))
    return at


def _taken(
    b: Builder,
    forest: _Forest,
    value: Value,
    split: Value,
    held: Callable[[np.ndarray], Value],
    at: Value,
) -> Value:
    """Return whether the true branch is taken, by each node's mode."""
    out = None
    for mode in np.unique(forest.mode).tolist():
        if mode == 6:
            width = max(len(v) for v in forest.members.values())
            limits.table((len(forest.mode), width), "members of sets")
            table = np.full((len(forest.mode), width), np.nan, b.dtype(value).np)
            for i, members in forest.members.items():
                table[i, : len(members)] = members
            equal = compare(
                b, "equal", unsqueeze(b, value, [2]), b.gather(b.literal(table), at, axis=0)
            )
            some = b.reduce_max(convert(b, equal, FLOAT), axes=[2])
            found = compare(b, "greater", b.squeeze(some, axes=[2]), 0)
        else:
            found = _compared(b, mode, value, split)
        out = found if out is None else b.where(held(forest.mode == mode), found, out)
    assert out is not None
    return out


def _compared(b: Builder, mode: int, x: Value, y: Value) -> Value:
    if mode == 0:
        return less_equal(b, x, b.broadcast(x, y)[1])
    if mode == 2:
        return greater_equal(b, x, b.broadcast(x, y)[1])
    if mode in (1, 3):
        return compare(b, "less" if mode == 1 else "greater", x, y)
    equal = compare(b, "equal", x, y)
    return equal if mode == 4 else b.not_(equal)


def _aggregated(b: Builder, forest: _Forest, leaves: Value, how: str, base: np.ndarray) -> Value:
    """Return the outputs (rows, outputs): what the leaves of a row weigh together."""
    kind = forest.weights.dtype
    if how in ("SUM", "AVERAGE"):
        total = b.reduce_sum(b.gather(b.literal(forest.weights), leaves, axis=0), axes=[1])
        total = b.squeeze(total, axes=[1])
        if how == "AVERAGE":
            total = b.div(total, float(len(forest.roots)))
    else:
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
    found = _aggregated(
        b, forest, _walk(b, x, forest), _AGGREGATES[aggregate_function], np.zeros(outputs)
    )
    return convert(b, transformed(b, found, TRANSFORMS[post_transform]), dtype)


def _sets(values: np.ndarray) -> list[np.ndarray]:
    """Return the sets that NaNs end."""
    ends = np.flatnonzero(np.isnan(values.astype(np.float64)))
    return [part[~np.isnan(part)] for part in np.split(values, ends + 1) if len(part)]


def _check(fits: bool | np.bool_, what: str) -> None:
    if not fits:
        raise ModelError(f"attribute '{what}' does not fit the nodes and leaves")


# ---- TreeEnsembleRegressor, TreeEnsembleClassifier -----------------------------------------------


def _given(*choices: ArrayLike | None) -> np.ndarray | None:
    """Return the first of the forms of an attribute that is given."""
    for c in choices:
        if c is not None and np.size(c):
            return np.asarray(c).reshape(-1)
    return None


def _forest(a: dict[str, Any], kind: np.dtype, outputs: int, what: str) -> _Forest:
    """Return a forest of nodes by tree and number in it, as the older operators state it."""
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
        np.where(leaf, mode[~leaf][0] if (~leaf).any() else 0, mode),
        true,
        false,
        values("nodes_missing_value_tracks_true", 0).astype(bool),
        np.array(list(first.values()), np.int64),
        weights,
        stated,
    )


@dataclass(frozen=True)
class NodeAttributes(Attributes):
    """The nodes of the trees, an entry of each list to a node."""

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
    found = _aggregated(b, forest, _walk(b, x, forest), aggregate_function, base)
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
    """(label, scores). Two classes of which the leaves score one: the other's is what is left."""
    given = {**locals(), **vars(nodes)}
    labels = labels_of(classlabels_int64s, classlabels_strings)
    x = features(b, x)
    forest = _forest(given, b.dtype(x).np, len(labels), "class")
    base = _given(base_values_as_tensor, base_values)
    base = np.zeros(len(labels)) if base is None else base
    leaves = _walk(b, x, forest)
    scored = sorted(set(class_ids or []))
    if len(labels) != 2 or len(scored) != 1:
        _check(len(base) == len(labels), "base_values")
        scores = _aggregated(b, forest, leaves, "SUM", base)
        label = best_label(b, scores, labels, classlabels_strings)
        return label, convert(b, transformed(b, scores, post_transform), FLOAT)
    forest.weights, forest.stated = forest.weights[:, scored], forest.stated[:, scored]
    # two base values: the second is that of the positive class
    score = _aggregated(b, forest, leaves, "SUM", base[-1:])
    positive = bool((forest.weights >= 0).all())
    label = two_labels(b, score, 0.5 if positive else 0.0, labels, classlabels_strings)
    return label, convert(b, pair_of_scores(b, score, positive, post_transform), FLOAT)
