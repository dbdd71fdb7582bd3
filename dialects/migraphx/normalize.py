"""Operators that relate an element to its neighbours on one axis: softmax, topk, lrn."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, at_most, one_element, show_dims
from mgx_mlir.dialects.migraphx.axes import axis_of, check_index_type, normalize_axis
from mgx_mlir.dialects.migraphx.pointwise_base import FLOAT, check_dtype, common_dims, sample
from mgx_mlir.dialects.migraphx.samples import Example, example


class SoftmaxBase(Op):
    """Base of softmax and logsoftmax: floats, one axis."""

    input: Operand
    out: Result
    axis = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, FLOAT)
        normalize_axis(o.axis, o.input.rank)
        return o.input

    @staticmethod
    def examples() -> list[Example]:
        edge = np.array(
            [[1e4, -1e4, 0], [-np.inf, 0, 1], [-np.inf] * 3, [np.inf, 0, 1], [np.nan, 0, 1]],
            np.float32,
        )
        return [
            *(
                example(sample((2, 3, 4), d, -5, 5), axis=1)
                for d in (dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.DOUBLE)
            ),
            *(example(sample((2, 3, 4), dtypes.FLOAT, -90, 90), axis=a) for a in (0, 2, -1, -3)),
            example(sample((5,), dtypes.FLOAT, -5, 5), axis=0),
            example(edge, axis=1),
            example(sample((2, 0), dtypes.FLOAT, -5, 5), axis=1),
        ]


def _shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """Return x minus its maximum along the axis, so that exp cannot overflow."""
    return x - np.max(x, axis=axis, keepdims=True, initial=-np.inf)


class Softmax(SoftmaxBase, name="softmax"):
    """e^x over its sum along `axis`, computed on x less its maximum.

    Floats of rank >= 1 (16- and 8-bit ones are summed in f32); the result has the operand's type.
    A row of -infinity, or with NaN or +infinity, is NaN. Errors: an axis out of range. MIGraphX
    `softmax`.

    ```mlir
    %0 = "migraphx.softmax"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    @staticmethod
    def reference(x: np.ndarray, *, axis: int) -> np.ndarray:
        e = np.exp(_shifted(x, axis))
        return e / np.sum(e, axis=axis, keepdims=True)


class LogSoftmax(SoftmaxBase, name="logsoftmax"):
    """The logarithm of softmax along `axis`: x - max - log(sum(e^(x - max))).

    Floats of rank >= 1 (16- and 8-bit ones are summed in f32); the result has the operand's type.
    Errors: an axis out of range. MIGraphX `logsoftmax`.

    ```mlir
    %0 = "migraphx.logsoftmax"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    @staticmethod
    def reference(x: np.ndarray, *, axis: int) -> np.ndarray:
        shifted = _shifted(x, axis)
        return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


class TopK(Op, name="topk"):
    """The k largest (or smallest) along `axis`, best first, and their i64 indices.

    Any type of rank >= 1 but bool. Equal elements keep the lower index first; NaN counts as the
    largest. With `indices` (i64, dims of `input`) the second result takes its elements in place
    of positions. An integer `count` of one element, which lies in [0, extent], takes the place of
    k. Errors: an axis out of range, k negative or above the extent. MIGraphX `topk` (there a
    tuple, and without `count`).

    ```mlir
    %v, %i = "migraphx.topk"(%x) {k = 2 : i64, axis = 1 : i64, largest = true}
               : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
    ```
    """

    input: Operand
    indices: Operand | None
    count: Operand | None
    out: Result
    out_indices: Result
    k = attr.int_(1)
    axis = attr.int_(0)
    largest = attr.bool_(True)

    @staticmethod
    def infer(o: InferView) -> list[TensorType]:
        check(not o.input.dtype.is_bool, "expected a float or integer type, got i1")
        axis = normalize_axis(o.axis, o.input.rank)
        dims = list(o.input.dims)
        check_index_type(o.count, "count")
        check(
            o.count is None or one_element(o.count),
            lambda: f"count expected 1 element, got {o.count.elements}",
        )
        check(
            o.count is not None or (o.k >= 0 and at_most(o.k, dims[axis])),
            lambda: (
                f"k expected 0 to "
                f"{'the extent' if dims[axis] == DYN else dims[axis]} of axis {axis}, got {o.k}"
            ),
        )
        if o.indices is not None:
            check_index_type(o.indices, "operand 'indices'")
            common_dims((o.input, o.indices))
        dims[axis] = o.k if o.count is None else DYN
        return [o.input.with_dims(dims), TensorType(dtypes.INT64, tuple(dims))]

    @staticmethod
    def reference(
        x: np.ndarray,
        indices: np.ndarray | None = None,
        count: np.ndarray | None = None,
        *,
        k: int,
        axis: int,
        largest: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        # A stable sort keeps equal elements in order. Largest first: sort the reversed axis
        # ascending and read it backwards, so that of equals the lower index comes first again.
        axis = axis_of(axis, x.ndim)
        if largest:
            rising = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
            order = x.shape[axis] - 1 - np.flip(rising, axis)
        else:
            order = np.argsort(x, axis=axis, kind="stable")
        order = order.take(range(k if count is None else int(count.reshape(()))), axis)
        names = order if indices is None else np.take_along_axis(indices, order, axis)
        return np.take_along_axis(x, order, axis), names.astype(np.int64)

    @staticmethod
    def examples() -> list[Example]:
        ties = np.array([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]], np.float32)
        found = [
            example(sample((3, 5, 2), d, -3, 3), k=3, axis=a, largest=b)
            for d in (dtypes.FLOAT, dtypes.HALF, dtypes.DOUBLE, dtypes.INT32, dtypes.UINT8)
            for a in (0, 1)
            for b in (True, False)
        ]
        for largest in (True, False):
            found.append(example(ties, k=4, axis=1, largest=largest))
            found.append(example(ties, k=0, axis=1, largest=largest))
            nan = np.array([1, np.nan, -np.inf, np.inf, np.nan], np.float32)
            found.append(example(nan, k=5, axis=0, largest=largest))
        names = np.arange(10, dtype=np.int64).reshape(2, 5) * 7
        found.append(example(ties, None, np.array([3]), axis=1))
        return [*found, example(ties, names, k=2, axis=1)]


class Lrn(Op, name="lrn"):
    """x / (bias + alpha / size * the sum of squares over `size` channels around it)^beta.

    Floats of rank >= 2, channels at axis 1; the window of channel c is c - (size - 1) / 2 to
    c + size / 2, cut at the ends. The result has the operand's type. Errors: rank below 2, size
    below 1. MIGraphX `lrn`; ONNX LRN.

    ```mlir
    %0 = "migraphx.lrn"(%x) {size = 3 : i64} : (tensor<1x5x2x2xf32>) -> tensor<1x5x2x2xf32>
    ```
    """

    input: Operand
    out: Result
    alpha = attr.float_(0.0001)
    beta = attr.float_(0.75)
    bias = attr.float_(1.0)
    size = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, FLOAT)
        check(
            o.input.rank >= 2,
            lambda: f"expected channels at axis 1, got dims {show_dims(o.input.dims)}",
        )
        check(o.size >= 1, lambda: f"size expected at least 1, got {o.size}")
        return o.input

    @staticmethod
    def reference(
        x: np.ndarray, *, alpha: float, beta: float, bias: float, size: int
    ) -> np.ndarray:
        total = np.zeros_like(x)
        channels = x.shape[1]
        for c in range(channels):
            window = x[:, max(0, c - (size - 1) // 2) : min(channels, c + size // 2 + 1)]
            total[:, c] = np.sum(np.square(window), axis=1)
        kind = x.dtype.type
        return x / np.power(kind(bias) + kind(alpha / size) * total, kind(beta))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(sample((2, 7, 3, 2), d, -3, 3), size=s, alpha=0.5, beta=0.6, bias=2.0)
            for d, s in (
                (dtypes.FLOAT, 3),
                (dtypes.FLOAT, 4),
                (dtypes.FLOAT, 1),
                (dtypes.FLOAT, 20),
                (dtypes.HALF, 5),
                (dtypes.DOUBLE, 5),
            )
        ]
