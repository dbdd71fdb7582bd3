"""Ops that select: nonmaxsuppression and unique."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, compatible, one_element, product
from mgx_mlir.dialects.migraphx.axes import (
    axis_of,
    check_index_type,
    check_rank,
    check_same_dtype,
    normalize_axis,
)
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints


class NonMaxSuppression(Op, name="nonmaxsuppression"):
    """Choose the best boxes of each batch and class that do not overlap a better one.

    `boxes` (batch, box, 4) and `scores` (batch, class, box) of one float type: corners (y1, x1, y2,
    x2) in either order, or with `center_point_box` (x, y, width, height). The optional operands
    have one element: how many boxes per class (absent: 0, that is none), the overlap (intersection
    over union) above which a box is dropped (absent: 0), the score that a box must exceed (absent:
    no limit). Of equal scores the lower index comes first. Result: i64 rows (batch, class, box);
    their number is known only at run time. With `padded` it is MIGraphX's batch * class * box,
    padded with 0. `use_dyn_output` is only kept for files. MIGraphX `nonmaxsuppression`; `padded`
    is ours.

    ```mlir
    %0 = "migraphx.nonmaxsuppression"(%boxes, %scores, %n) {center_point_box = false,
           use_dyn_output = false, padded = false}
           : (tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<1xi64>) -> tensor<?x3xi64>
    ```
    """

    boxes: Operand
    scores: Operand
    max_output_boxes_per_class: Operand | None
    iou_threshold: Operand | None
    score_threshold: Operand | None
    out: Result
    center_point_box = attr.bool_(False)
    use_dyn_output = attr.bool_(False)
    padded = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.boxes, 3, "boxes")
        check_rank(o.scores, 3, "scores")
        dtype = check_same_dtype([o.boxes, o.scores])
        check(dtype.is_float, lambda: f"boxes expected a float type, got {dtype.mlir}")
        (batch, count, four), (batches, classes, scored) = o.boxes.dims, o.scores.dims
        check(compatible(four, 4), lambda: f"boxes expected 4 numbers each, got {four}")
        check(
            compatible(batch, batches) and compatible(count, scored),
            lambda: (
                f"scores expected {batch} batches of {count} boxes as {o.boxes}, got {o.scores}"
            ),
        )
        check_index_type(o.max_output_boxes_per_class, "max_output_boxes_per_class")
        for name in ("iou_threshold", "score_threshold"):
            t = getattr(o, name)
            check(
                t is None or t.dtype.is_float,
                lambda name=name, t=t: f"{name} expected a float type, got {t and t.dtype.mlir}",
            )
        for name in ("max_output_boxes_per_class", "iou_threshold", "score_threshold"):
            t = getattr(o, name)
            check(
                t is None or one_element(t),
                lambda name=name, t=t: f"{name} expected 1 element, got {t and t.elements}",
            )
        rows = product((batch, classes, count)) if o.padded else DYN
        return TensorType(INT64, (rows, 3))

    @staticmethod
    def reference(
        boxes: np.ndarray,
        scores: np.ndarray,
        max_output_boxes_per_class: np.ndarray | None = None,
        iou_threshold: np.ndarray | None = None,
        score_threshold: np.ndarray | None = None,
        *,
        center_point_box: bool = False,
        use_dyn_output: bool = False,
        padded: bool = False,
    ) -> np.ndarray:
        most = _number(max_output_boxes_per_class, 0)
        overlap = _number(iou_threshold, 0.0)
        least = None if score_threshold is None else _number(score_threshold, 0.0)
        rows: list[tuple[int, int, int]] = []
        for b in range(scores.shape[0]):
            corners = _corners(boxes[b], center_point_box)
            for c in range(scores.shape[1]):
                of = scores[b, c]
                order = [int(i) for i in np.argsort(-of, kind="stable")]
                if least is not None:
                    order = [i for i in order if of[i] > least]
                kept: list[int] = []
                for i in order:
                    if len(kept) >= most:
                        break
                    if not kept or not (_overlaps(corners, i, kept) > overlap).any():
                        kept.append(i)
                rows += [(b, c, i) for i in kept]
        found = np.array(rows, np.int64).reshape(-1, 3)
        if not padded:
            return found
        out = np.zeros((scores.size, 3), np.int64)
        out[: len(found)] = found
        return out

    @staticmethod
    def examples() -> list[Example]:
        n, half = np.array([2], np.int64), np.array([0.5], np.float32)
        boxes = np.array(
            [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 0.9, 0, -0.1], [0, 10, 1, 11], [0, 10.1, 1, 11]]],
            np.float32,
        )
        scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5], [0.1, 0.2, 0.2, 0.4, 0.3]]], np.float32)
        many = np.abs(floats(2, 12, 4))
        return [
            example(boxes, scores, n, half),
            example(boxes, scores, n, half, np.array([0.7], np.float32)),
            example(boxes, scores, np.array(9, np.int64), np.array(0.1, np.float32)),
            example(boxes, scores, n),
            example(boxes, scores),
            example(boxes, scores, n, half, padded=True),
            example(boxes, scores, n, None, half),
            example(many, floats(2, 3, 12), np.array([4], np.int64), half, center_point_box=True),
            example(boxes[:, :0], scores[:, :, :0], n),
        ]


Number = TypeVar("Number", int, float)


def _number(x: np.ndarray | None, default: Number) -> Number:
    return default if x is None else x.reshape(()).item()


def _corners(boxes: np.ndarray, center: bool) -> np.ndarray:
    """Return boxes as (low, low, high, high)."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if center:
        return np.concatenate([first - second / 2, first + second / 2], 1)
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], 1)


def _overlaps(corners: np.ndarray, i: int, others: list[int]) -> np.ndarray:
    """Return the intersection over union of box i with others; 0 if one has no area."""
    a, b = corners[i], corners[others]
    sides = np.minimum(a[2:], b[:, 2:]) - np.maximum(a[:2], b[:, :2])
    shared = np.where((sides > 0).all(1), sides.prod(1), 0)
    area, areas = (a[2:] - a[:2]).prod(), (b[:, 2:] - b[:, :2]).prod(1)
    union = area + areas - shared
    valid = (shared > 0) & (area > 0) & (areas > 0) & (union > 0)
    return np.divide(shared, union, out=np.zeros_like(union), where=valid)


class Unique(Op, name="unique"):
    """The distinct elements, or with `axis` the distinct slices, of `input`.

    Any number type or bool. Results: the values in ascending order (`sorted`) or that of their
    first occurrence; the index of the first occurrence of each; for each element (slice) the number
    of its value; how often each occurs. Without an axis the input is taken as flat. Their number is
    known only at run time. Several results in place of MIGraphX's tuple. MIGraphX `unique`.

    ```mlir
    %0:4 = "migraphx.unique"(%x) {sorted = true} : (tensor<6xf32>)
           -> (tensor<?xf32>, tensor<?xi64>, tensor<6xi64>, tensor<?xi64>)
    ```
    """

    input: Operand
    values: Result
    indices: Result
    inverse: Result
    counts: Result
    axis = attr.int_(optional=True)
    sorted = attr.bool_(True)

    @staticmethod
    def infer(o: InferView) -> list[TensorType]:
        dims = o.input.dims
        index = TensorType(INT64, (DYN,))
        if o.axis is None:
            inverse = o.input.elements
            values: tuple[int, ...] = (DYN,)
        else:
            axis = normalize_axis(o.axis, o.input.rank)
            inverse = dims[axis]
            values = (*dims[:axis], DYN, *dims[axis + 1 :])
        return [o.input.with_dims(values), index, TensorType(INT64, (inverse,)), index]

    @staticmethod
    def reference(
        x: np.ndarray, *, axis: int | None = None, sorted: bool = True
    ) -> tuple[np.ndarray, ...]:
        if axis is not None and x.shape[axis] == 0:
            empty = np.zeros(0, np.int64)
            return x, empty, empty, empty
        values, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)
        if not sorted:
            order = np.argsort(first, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            at = 0 if axis is None else axis_of(axis, x.ndim)
            values = np.take(values, order, at)
            first, inverse, counts = first[order], rank[inverse], counts[order]
        return tuple(
            a if a is values else a.astype(np.int64) for a in (values, first, inverse, counts)
        )

    @staticmethod
    def examples() -> list[Example]:
        x = np.array([2, 1, 1, 3, 4, 3], np.float32)
        rows = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4], [0, 9, 9]], np.float32)
        return [
            example(x),
            example(x, sorted=False),
            example(rows, axis=0),
            example(rows[::-1].copy(), axis=0, sorted=False),
            example(rows, axis=-1),
            example(ints(3, 4, low=0, high=4)),
            example(ints(3, 4, low=0, high=2, dtype=np.uint8), axis=1),
            example(np.array([True, False, True])),
            example(np.zeros(0, np.float32)),
            example(np.array(3.0, np.float32)),
        ]
