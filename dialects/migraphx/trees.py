"""Decision trees: which leaf of each tree a row of features comes to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dtypes import BOOL, INT64
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import TensorType, merge_dim
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, check_same_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, ints

COMPARED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "le": np.less_equal,
    "lt": np.less,
    "ge": np.greater_equal,
    "gt": np.greater,
    "eq": np.equal,
    "ne": np.not_equal,
}


class TreeLeaves(Op, name="tree_leaves"):
    """Walk decision trees with each row of `x` (rows, features); the result names their leaves.

    A node goes on to `yes` where `x[row, feature] mode split` holds, or where that feature is NaN
    and `missing`, else to `no`. A leaf is a node whose `yes` is itself. `roots` are the nodes that
    trees begin at; a walk ends after `depth` steps. Numbers of features and of nodes that there
    are not are taken for the nearest that there is. Result: nodes (rows, trees).

    ```mlir
    %0 = "migraphx.tree_leaves"(%x, %roots, %feature, %split, %yes, %no) {depth = 3 : i64,
           mode = "le"} : (tensor<8x4xf32>, tensor<2xi32>, tensor<10xi32>, tensor<10xf32>,
           tensor<10xi32>, tensor<10xi32>) -> tensor<8x2xi64>
    ```
    """

    x: Operand
    roots: Operand
    feature: Operand
    split: Operand
    yes: Operand
    no: Operand
    missing: Operand | None
    out: Result
    depth = attr.int_(1)
    mode = attr.enum(tuple(COMPARED), "le")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.x, 2, "x")
        check_same_dtype([o.x, o.split])
        nodes = o.split.dims[0]
        for what, t in (("roots", o.roots), ("feature", o.feature), ("yes", o.yes), ("no", o.no)):
            check_index_type(t, what)
        for what in ("roots", "feature", "split", "yes", "no", "missing"):
            t = getattr(o, what)
            if t is None:
                continue
            check_rank(t, 1, what)
            fits = what == "roots" or merge_dim(nodes, t.dims[0]) is not None
            check(fits, lambda w=what, t=t: f"{w} expected {nodes} nodes, got {t.dims[0]}")
        check(
            o.missing is None or o.missing.dtype is BOOL,
            lambda: f"missing expected i1, got {o.missing.dtype.mlir}",
        )
        check(o.depth >= 0, lambda: f"depth expected at least 0, got {o.depth}")
        return TensorType(INT64, (o.x.dims[0], o.roots.dims[0]))

    @staticmethod
    def reference(
        x: np.ndarray,
        roots: np.ndarray,
        feature: np.ndarray,
        split: np.ndarray,
        yes: np.ndarray,
        no: np.ndarray,
        missing: np.ndarray | None = None,
        *,
        depth: int = 1,
        mode: str = "le",
    ) -> np.ndarray:
        last = max(len(split) - 1, 0)
        at = np.broadcast_to(np.clip(roots, 0, last), (len(x), len(roots))).astype(np.int64)
        columns = np.clip(feature, 0, max(x.shape[1] - 1, 0))
        for _ in range(depth if at.size else 0):
            value = np.take_along_axis(x, columns[at], axis=1)
            holds = COMPARED[mode](value, split[at])
            if missing is not None:
                holds |= (value != value) & missing[at]
            at = np.where(yes[at] == at, at, np.clip(np.where(holds, yes[at], no[at]), 0, last))
        return at

    @staticmethod
    def examples() -> list[Example]:
        x = ints(6, 3, low=-3, high=4, seed=3).astype(np.float32) / 2
        x[1, 1] = np.nan
        # two trees: 0 -> (1, 2), 2 -> (3, 4); 5 -> (6, 7)
        yes, no = (
            np.array(v, np.int32) for v in ([1, 1, 3, 3, 4, 6, 6, 7], [2, 1, 4, 3, 4, 7, 6, 7])
        )
        feature = np.array([0, 0, 1, 0, 0, 1, 0, 0], np.int32)
        split = np.array([0.5, 0, -0.5, 0, 0, 0, 0, 0], np.float32)
        roots = np.array([0, 5], np.int32)
        missing = np.arange(8) % 5 == 0
        tables = (roots, feature, split, yes, no)
        return [
            *(example(x, *tables, depth=2, mode=mode) for mode in COMPARED),
            example(x, *tables, missing, depth=2),
            example(x, *tables, missing, depth=1, mode="gt"),
            example(x[:0], *tables, depth=2),
            example(x, roots[:0], *tables[1:], depth=2),
            example(
                x.astype(np.float64), roots, feature, split.astype(np.float64), yes, no, depth=2
            ),
            example(x, roots, feature + 5, split, yes, no * 9, depth=2),
        ]
