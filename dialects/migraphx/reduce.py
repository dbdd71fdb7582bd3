"""Reductions over axes, the indices of extrema, and the prefix sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.op import InferView, Op, Operand, ReduceOp, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, can_hold
from mgx_mlir.dialects.migraphx.axes import (
    axis_of,
    check_index_type,
    check_rank,
    normalize_axes,
    normalize_axis,
)
from mgx_mlir.dialects.migraphx.pointwise_base import ANY, LOGICAL, NUMBER, check_dtype, sample
from mgx_mlir.dialects.migraphx.samples import Example, example, i64


class Reduction(ReduceOp):
    """Base of the reductions over `axes`, which stay in the result with extent 1.

    No axes reduce all of them. With the operand `axes_tensor` (integers, rank 1) the axes are
    known at run time: then the attribute is empty and the result's extents are dynamic.
    """

    TYPES = NUMBER
    input: Operand
    axes_tensor: Operand | None
    out: Result
    axes = attr.ints(())

    @classmethod
    # the base's method is static; both are called on the class
    def infer(cls, o: InferView) -> TensorType:  # pyright: ignore[reportIncompatibleMethodOverride]
        check_dtype(o.input, cls.TYPES)
        if o.axes_tensor is not None:
            check(not o.axes, "expected no attribute 'axes' where the axes are an operand")
            check_index_type(o.axes_tensor, "operand 'axes_tensor'")
            check_rank(o.axes_tensor, 1, "operand 'axes_tensor'")
            if o.axes_tensor.dims[0] == 0:
                return o.input.with_dims([1] * o.input.rank)
            return o.input.with_dims([1 if d == 1 else DYN for d in o.input.dims])
        axes = normalize_axes(o.axes, o.input.rank) or range(o.input.rank)
        return o.input.with_dims(1 if i in axes else d for i, d in enumerate(o.input.dims))

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """Return the reduction in numpy, extents kept as 1."""
        raise NotImplementedError

    @classmethod
    def reference(
        cls, x: np.ndarray, axes_tensor: np.ndarray | None = None, *, axes: Sequence[int]
    ) -> np.ndarray:
        if axes_tensor is not None:
            axes = [int(a) for a in axes_tensor]
        found = tuple(axis_of(a, x.ndim) for a in axes) or tuple(range(x.ndim))
        return np.asarray(cls.reduce(x, found))

    @classmethod
    def examples(cls) -> list[Example]:
        found: list[Example] = []
        for d in (
            dtypes.FLOAT,
            dtypes.HALF,
            dtypes.DOUBLE,
            dtypes.INT32,
            dtypes.UINT8,
            dtypes.BOOL,
        ):
            if d in cls.TYPES:
                found.append(example(sample((2, 3, 4), d, -2, 3), axes=(1,)))
        d = dtypes.FLOAT if dtypes.FLOAT in cls.TYPES else dtypes.BOOL
        x = sample((2, 3, 4), d, -2, 3)
        return [
            *found,
            *(example(x, axes=a) for a in ((0,), (-1,), (0, 2), (), (0, 1, 2))),
            example(x, i64(1, 2)),
            example(sample((2, 0, 3), d, -2, 3), axes=(1,)),
            example(sample((), d, -2, 3)),
        ]


class NumberReduction(Reduction):
    """Base of the reductions of numbers, which patterns handle together."""


class ReduceSum(NumberReduction, name="reduce_sum"):
    """The sum over `axes`; 0 of nothing; integers wrap; 16- and 8-bit floats are summed in f32.

    Floats and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_sum`.

    ```mlir
    %0 = "migraphx.reduce_sum"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
    """

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)


class ReduceMean(NumberReduction, name="reduce_mean"):
    """The mean over `axes`; NaN of nothing. Integers sum in 64 bits and truncate; 0 of nothing.

    Floats and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_mean`.

    ```mlir
    %0 = "migraphx.reduce_mean"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
    """

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        n = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        if x.dtype.kind == "f":
            return np.sum(x, axis=axes, keepdims=True, dtype=x.dtype) / x.dtype.type(n)
        wide = np.uint64 if x.dtype.kind == "u" else np.int64
        total = np.sum(x, axis=axes, keepdims=True, dtype=wide)
        if n == 0:
            return np.asarray(total)
        magnitude = np.abs(total) // wide(n)
        return np.where(total < 0, -magnitude.astype(np.int64), magnitude).astype(wide)

    @classmethod
    def examples(cls) -> list[Example]:
        wraps = np.full((2, 100), 100, np.int8)
        negative = np.array([[-3, -4], [7, -2]], np.int32)
        empty = np.zeros((2, 0), np.int32)
        return [*super().examples(), *(example(x, axes=(1,)) for x in (wraps, negative, empty))]


class ReduceMax(NumberReduction, name="reduce_max"):
    """The largest over `axes`; the type's smallest value (-infinity) of nothing; NaN wins.

    Floats and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_max`.

    ```mlir
    %0 = "migraphx.reduce_max"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
    """

    TYPES = ANY

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        lowest = dtypes.from_numpy(x.dtype).lowest()
        return np.max(x, axis=axes, keepdims=True, initial=x.dtype.type(lowest))


class ReduceMin(NumberReduction, name="reduce_min"):
    """The smallest over `axes`; the type's largest value (infinity) of nothing; NaN wins.

    Floats and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_min`.

    ```mlir
    %0 = "migraphx.reduce_min"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
    """

    TYPES = ANY

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        highest = dtypes.from_numpy(x.dtype).highest()
        return np.min(x, axis=axes, keepdims=True, initial=x.dtype.type(highest))


class ReduceProd(NumberReduction, name="reduce_prod"):
    """The product over `axes`; 1 of nothing; integers wrap.

    Floats and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_prod`.

    ```mlir
    %0 = "migraphx.reduce_prod"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
    """

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.prod(x, axis=axes, keepdims=True, dtype=x.dtype)


class ReduceAll(Reduction, name="reduce_all"):
    """1 where no element over `axes` is 0, else 0; 1 of nothing.

    Bool and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_all`.

    ```mlir
    %0 = "migraphx.reduce_all"(%x) {axes = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2x1xi1>
    ```
    """

    TYPES = LOGICAL

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.all(x, axis=axes, keepdims=True)


class ReduceAny(Reduction, name="reduce_any"):
    """1 where some element over `axes` is not 0, else 0; 0 of nothing.

    Bool and integers of any dims; the result has the operand's type, axes with extent 1. Errors:
    an axis out of range or twice. MIGraphX `reduce_any`.

    ```mlir
    %0 = "migraphx.reduce_any"(%x) {axes = array<i64: 1>} : (tensor<2x3xi1>) -> tensor<2x1xi1>
    ```
    """

    TYPES = LOGICAL

    @staticmethod
    def reduce(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.any(x, axis=axes, keepdims=True)


class ArgExtreme(Op):
    """Base of argmax and argmin: the index along one axis, which stays with extent 1."""

    input: Operand
    out: Result
    axis = attr.int_(0)
    select_last_index = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        axis = normalize_axis(o.axis, o.input.rank)
        dims = list(o.input.dims)
        check(can_hold([dims[axis]], [1]), f"expected elements along axis {axis}, got none")
        dims[axis] = 1
        return TensorType(dtypes.INT64, tuple(dims))

    @staticmethod
    def extreme(x: np.ndarray, axis: int) -> np.ndarray:
        """Return the first index of the extreme."""
        raise NotImplementedError

    @classmethod
    def reference(cls, x: np.ndarray, *, axis: int, select_last_index: bool) -> np.ndarray:
        if not select_last_index:
            return np.expand_dims(cls.extreme(x, axis), axis)
        last = x.shape[axis] - 1
        return np.expand_dims(last - cls.extreme(np.flip(x, axis), axis), axis)

    @staticmethod
    def examples() -> list[Example]:
        ties = np.array([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]], np.float32)
        nans = np.array([[1, np.nan, 3, np.nan, 0], [-np.inf, np.inf, 0, np.inf, -np.inf]])
        found = [
            example(sample((2, 3, 4), d, -5, 5), axis=a)
            for d in (dtypes.FLOAT, dtypes.HALF, dtypes.DOUBLE, dtypes.INT32, dtypes.UINT8)
            for a in (0, -1)
        ]
        for last in (False, True):
            found.append(example(ties, axis=1, select_last_index=last))
            found.append(example(nans.astype(np.float32), axis=1, select_last_index=last))
        return found


class ArgMax(ArgExtreme, name="argmax"):
    """The index of the largest along `axis`: the first of equals, or the last; NaN is the largest.

    Any type of rank >= 1; the result is i64 with extent 1 at `axis`. Errors: an axis out of range,
    or without elements. MIGraphX `argmax`.

    ```mlir
    %0 = "migraphx.argmax"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xi64>
    ```
    """

    @staticmethod
    def extreme(x: np.ndarray, axis: int) -> np.ndarray:
        return np.argmax(x, axis=axis)


class ArgMin(ArgExtreme, name="argmin"):
    """The index of the smallest along `axis`: the first of equals, or the last; NaN wins.

    Any type of rank >= 1; the result is i64 with extent 1 at `axis`. Errors: an axis out of range,
    or without elements. MIGraphX `argmin`.

    ```mlir
    %0 = "migraphx.argmin"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x1xi64>
    ```
    """

    @staticmethod
    def extreme(x: np.ndarray, axis: int) -> np.ndarray:
        return np.argmin(x, axis=axis)


class PrefixScanSum(Op, name="prefix_scan_sum"):
    """The running sum along `axis`; `exclusive` leaves the element itself out, `reverse` runs back.

    Floats and integers (wrapping) of rank >= 1; the result has the operand's type. Errors: an
    axis out of range. MIGraphX `prefix_scan_sum`; ONNX CumSum.

    ```mlir
    %0 = "migraphx.prefix_scan_sum"(%x) {axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    input: Operand
    out: Result
    axis = attr.int_()
    exclusive = attr.bool_(False)
    reverse = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, NUMBER)
        normalize_axis(o.axis, o.input.rank)
        return o.input

    @staticmethod
    def reference(x: np.ndarray, *, axis: int, exclusive: bool, reverse: bool) -> np.ndarray:
        axis = axis_of(axis, x.ndim)
        x = np.flip(x, axis) if reverse else x
        total = np.cumsum(x, axis=axis, dtype=x.dtype)
        if exclusive:
            zero = np.zeros_like(x.take(range(min(1, x.shape[axis])), axis))
            total = np.concatenate([zero, total], axis).take(range(x.shape[axis]), axis)
        return np.flip(total, axis) if reverse else total

    @staticmethod
    def examples() -> list[Example]:
        found = [
            example(sample((2, 3, 4), dtypes.FLOAT, -3, 3), axis=a, exclusive=e, reverse=r)
            for a in (0, 1, -1)
            for e in (False, True)
            for r in (False, True)
        ]
        kinds = (dtypes.HALF, dtypes.DOUBLE, dtypes.INT32, dtypes.INT8, dtypes.UINT8)
        return [*found, *(example(sample((3, 4), d, -99, 99), axis=1) for d in kinds)]
