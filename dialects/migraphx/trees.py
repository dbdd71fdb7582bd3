"""Decision trees: the leaf of each tree for a row of features, and the sum of the leaves'
weights.
"""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, merge_dim
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, check_same_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, ints


def _checked(o: InferView, roots: int) -> None:
    check_rank(o.x, 2, "x")
    check_rank(o.roots, roots, "roots")
    check_rank(o.nodes, 2, "nodes")
    check_rank(o.split, 1, "split")
    check_same_dtype([o.x, o.split])
    check_index_type(o.roots, "roots")
    check_index_type(o.nodes, "nodes")
    count, width = o.nodes.dims
    check(width in (3, 4), lambda: f"nodes expected a static 3 or 4 columns, got {o.nodes}")
    check(
        merge_dim(count, o.split.dims[0]) is not None,
        lambda: f"split expected {count} nodes, got {o.split.dims[0]}",
    )
    check(o.depth >= 0, lambda: f"depth expected at least 0, got {o.depth}")


def _leaves(
    x: np.ndarray, roots: np.ndarray, nodes: np.ndarray, split: np.ndarray, depth: int
) -> np.ndarray:
    def held(places: np.ndarray, count: int) -> np.ndarray:
        last = max(count - 1, 0)
        return np.where((places < 0) | (places > last), last, places)

    at = np.broadcast_to(held(roots, len(split)), (len(x), len(roots))).astype(np.int64)
    columns = held(nodes[:, 0], x.shape[1])
    yes, no = (held(nodes[:, i], len(split)) for i in (1, 2))
    for _ in range(depth if at.size else 0):
        value = np.take_along_axis(x, columns[at], axis=1)
        holds = value <= split[at]
        if nodes.shape[1] == 4:
            holds |= (value != value) & (nodes[:, 3][at] != 0)
        at = np.where(holds, yes[at], no[at])
    return at


class TreeLeaves(Op, name="tree_leaves"):
    """Traverse decision trees with each row of `x` (rows, features); return the leaves' node
    numbers.

    A row of `nodes` (nodes, 3 or 4) holds a feature and two nodes, `yes` and `no`; a fourth number
    is 1 if NaN leads to `yes`. The next node is `yes` if `x[row, feature] <= split`, else `no`. A
    leaf's children are itself. `roots` are the first nodes of the trees; a traversal ends after
    `depth` steps. Features and nodes out of range are clamped to the last one. Result: nodes (rows,
    trees).

    ```mlir
    %0 = "migraphx.tree_leaves"(%x, %roots, %nodes, %split) {depth = 3 : i64}
           : (tensor<8x4xf32>, tensor<2xi32>, tensor<10x3xi32>, tensor<10xf32>) -> tensor<8x2xi64>
    ```
    """

    x: Operand
    roots: Operand
    nodes: Operand
    split: Operand
    out: Result
    depth = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        _checked(o, 1)
        return TensorType(INT64, (o.x.dims[0], o.roots.dims[0]))

    @staticmethod
    def reference(
        x: np.ndarray, roots: np.ndarray, nodes: np.ndarray, split: np.ndarray, *, depth: int = 1
    ) -> np.ndarray:
        return _leaves(x, roots, nodes, split, depth)

    @staticmethod
    def examples() -> list[Example]:
        return [example(*operands, depth=depth) for operands, depth in _examples()]


class TreeSums(Op, name="tree_sums"):
    """Sum the weights of the leaves that each row of `x` reaches, tree after tree.

    The trees are those of `tree_leaves`. `roots` (groups, trees): each group has sums of its own.
    `weights` (nodes, outputs). Result: (rows, groups * outputs).

    ```mlir
    %0 = "migraphx.tree_sums"(%x, %roots, %nodes, %split, %weights) {depth = 3 : i64}
           : (tensor<8x4xf32>, tensor<1x2xi32>, tensor<10x3xi32>, tensor<10xf32>, tensor<10x2xf32>)
           -> tensor<8x2xf32>
    ```
    """

    x: Operand
    roots: Operand
    nodes: Operand
    split: Operand
    weights: Operand
    out: Result
    depth = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        _checked(o, 2)
        check_rank(o.weights, 2, "weights")
        check_same_dtype([o.x, o.weights])
        check(
            merge_dim(o.split.dims[0], o.weights.dims[0]) is not None,
            lambda: f"weights expected {o.split.dims[0]} nodes, got {o.weights.dims[0]}",
        )
        groups, outputs = o.roots.dims[0], o.weights.dims[1]
        check(
            DYN not in (groups, outputs),
            lambda: f"expected a static number of groups and outputs, got {o.roots}, {o.weights}",
        )
        return TensorType(o.weights.dtype, (o.x.dims[0], groups * outputs))

    @staticmethod
    def reference(
        x: np.ndarray,
        roots: np.ndarray,
        nodes: np.ndarray,
        split: np.ndarray,
        weights: np.ndarray,
        *,
        depth: int = 1,
    ) -> np.ndarray:
        total = np.zeros((len(x), len(roots), weights.shape[1]), weights.dtype)
        for group, trees in enumerate(roots):
            for leaf in _leaves(x, trees, nodes, split, depth).T:
                total[:, group] += weights[leaf]
        return total.reshape(len(x), len(roots) * weights.shape[1])

    @staticmethod
    def examples() -> list[Example]:
        def case(
            x: np.ndarray, roots: np.ndarray, *tables: np.ndarray, depth: int, outputs: int
        ) -> Example:
            split = tables[1]
            weights = ints(len(split), outputs, low=-4, high=5, seed=9).astype(split.dtype)
            return example(x, np.atleast_2d(roots), *tables, weights, depth=depth)

        found = [case(*o, depth=d, outputs=1 + i % 3) for i, (o, d) in enumerate(_examples())]
        (x, roots, *tables), _ = _examples()[0]
        many = np.tile(roots, 9)
        groups = np.tile(np.array([roots, roots[::-1], roots * 0], np.int32), 5)
        return [
            *found,
            case(x, many, *tables, depth=2, outputs=1),
            case(x, many, *tables, depth=2, outputs=21),
            case(x, groups, *tables, depth=2, outputs=1),
            case(x, groups, *tables, depth=2, outputs=2),
        ]


def _examples() -> list[tuple[tuple[np.ndarray, ...], int]]:
    """Return two trees: 0 -> (1, 2), 2 -> (3, 4); 5 -> (6, 7)."""
    x = ints(6, 3, low=-3, high=4, seed=3).astype(np.float32) / 2
    x[1, 1] = np.nan
    feature = [0, 0, 1, 0, 0, 1, 0, 0]
    yes, no = [1, 1, 3, 3, 4, 6, 6, 7], [2, 1, 4, 3, 4, 7, 6, 7]
    nodes = np.array([feature, yes, no], np.int32).T.copy()
    flags = (np.arange(8)[:, None] % 5 == 0).astype(np.int32)
    unknown = np.concatenate([nodes, flags], axis=1)
    split = np.array([0.5, 0, -0.5, 0, 0, 0, 0, 0], np.float32)
    roots = np.array([0, 5], np.int32)
    outside = nodes * np.array([3, 1, 9], np.int32) - np.array([1, 0, 0], np.int32)
    doubles = (x.astype(np.float64), roots, unknown, split.astype(np.float64))
    return [
        ((x, roots, nodes, split), 2),
        ((x, roots, unknown, split), 2),
        ((x, roots, nodes, split), 1),
        ((x[:0], roots, nodes, split), 2),
        ((x, roots[:0], nodes, split), 2),
        (doubles, 2),
        ((x, roots, outside, split), 2),
    ]
