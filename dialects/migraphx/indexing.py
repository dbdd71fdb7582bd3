"""Ops that read by index, or convert values to indices: gather, gathernd, onehot, nonzero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import (
    DYN,
    TensorType,
    can_hold,
    compatible,
    merge_dims,
    one_element,
    show_dims,
)
from mgx_mlir.dialects.migraphx.axes import axis_of, check_index_type, check_rank, normalize_axis
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64, ints


def wrapped(indices: np.ndarray, extent: int) -> np.ndarray:
    """Return indices as i64, with the extent added once to negative ones."""
    # unsigned 64-bit indices beyond i64 are out of range for any extent
    big = np.iinfo(np.int64).max
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(big))
    at = indices.astype(np.int64)
    return np.where(at < 0, at + extent, at)


def clamped(indices: np.ndarray, extent: int) -> np.ndarray:
    """Add the extent to negative indices, then clamp to [0, extent), as every lowering does."""
    return np.clip(wrapped(indices, extent), 0, np.maximum(extent, 1) - 1)


class Gather(Op, name="gather"):
    """Slices of `data` along `axis`, at `indices`: a scalar index drops the axis.

    Any dtype; indices of any integer type and rank, result dims are those of `data` with the
    axis replaced by the dims of `indices`. A negative index counts from the end; beyond the
    ends it is clamped. Error: an empty axis with something to gather. MIGraphX `gather`.

    ```mlir
    %0 = "migraphx.gather"(%x, %i) {axis = 1 : i64}
           : (tensor<2x5xf32>, tensor<3x?xi64>) -> tensor<2x3x?xf32>
    ```
    """

    raw = True
    data: Operand
    indices: Operand
    out: Result
    axis = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_index_type(o.indices, "indices")
        axis = normalize_axis(o.axis, o.data.rank)
        dims = o.data.dims
        check(
            can_hold([dims[axis]], o.indices.dims),
            lambda: f"dim {axis} expected at least 1 element to gather, got 0",
        )
        return o.data.with_dims(dims[:axis] + o.indices.dims + dims[axis + 1 :])

    @staticmethod
    def reference(data: np.ndarray, indices: np.ndarray, *, axis: int = 0) -> np.ndarray:
        at = clamped(indices, data.shape[axis])
        if at.size == 0 and data.shape[axis] == 0:
            axis = axis_of(axis, data.ndim)
            dims = data.shape[:axis] + at.shape + data.shape[axis + 1 :]
            return np.zeros(dims, data.dtype)
        return np.take(data, at, axis)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(4, 5), i64(0, 2, -1)),
            example(floats(4, 5), i64(0, 2, -1), axis=1),
            example(floats(4, 5, 2), ints(2, 3, low=-4, high=4), axis=-2),
            example(floats(4, 5), np.array(-1, np.int32), axis=0),
            example(floats(4), np.array(2, np.int64)),
            example(floats(4, 5), i64(9, -9), axis=1),
            example(ints(4, 5), np.array([[3, 1]], np.uint8), axis=0),
            example(floats(4, 5), np.zeros((0, 2), np.int64)),
            example(floats(0, 5), np.zeros(0, np.int64)),
        ]


class GatherND(Op, name="gathernd"):
    """Slices of `data` at index tuples, the rows of the last axis of `indices`.

    Any dtype; indices of any integer type. The first `batch_dims` axes of both are batch axes. A
    tuple of k indices selects on the k axes after them. Result dims: those of `indices` without the
    last, then those of `data` after the selected axes. Negative indices count from the end, beyond
    the ends they are clamped. Errors: k is dynamic or too large, batch dims differ. MIGraphX
    `gathernd`.

    ```mlir
    %0 = "migraphx.gathernd"(%x, %i) {batch_dims = 0 : i64}
           : (tensor<2x5x3xf32>, tensor<4x2xi64>) -> tensor<4x3xf32>
    ```
    """

    raw = True
    data: Operand
    indices: Operand
    out: Result
    batch_dims = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_index_type(o.indices, "indices")
        data, indices, b = o.data.dims, o.indices.dims, o.batch_dims
        check(len(indices) >= 1, "indices expected rank 1 or more, got rank 0")
        check(
            0 <= b < len(indices) and b <= len(data),
            lambda: (
                f"batch_dims expected less than {len(indices)} and at most {len(data)}, got {b}"
            ),
        )
        k = indices[-1]
        check(k != DYN, "indices expected a static last dim, got ?")
        check(
            b + k <= len(data),
            lambda: f"index tuples of {k} expected data of rank {b + k} or more, got {o.data}",
        )
        batch = merge_dims(data[:b], indices[:b])
        check(
            batch is not None,
            lambda: f"batch dims {show_dims(data[:b])} and {show_dims(indices[:b])} do not match",
        )
        assert batch is not None
        check(
            can_hold(data[b : b + k], indices[:-1]),
            lambda: f"data expected elements to gather, got {o.data}",
        )
        return o.data.with_dims(batch + indices[b:-1] + data[b + k :])

    @staticmethod
    def reference(data: np.ndarray, indices: np.ndarray, *, batch_dims: int = 0) -> np.ndarray:
        b, k = batch_dims, indices.shape[-1]
        dims = indices.shape[:-1] + data.shape[b + k :]
        if math.prod(dims) == 0:
            return np.zeros(dims, data.dtype)
        batch = math.prod(data.shape[:b])
        flat = data.reshape(batch, *data.shape[b:])
        tuples = indices.reshape(batch, math.prod(indices.shape[b:-1]), k)
        rows = np.arange(batch)[:, None]
        picked = tuple(clamped(tuples[..., i], data.shape[b + i]) for i in range(k))
        return flat[(np.broadcast_to(rows, tuples.shape[:2]), *picked)].reshape(dims)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 5, 3), ints(4, 2, low=-2, high=2)),
            example(floats(2, 5, 3), ints(4, 3, low=0, high=2)),
            example(floats(2, 5, 3), ints(2, 2, 1, low=-3, high=3), batch_dims=1),
            example(floats(2, 3, 4, 5), ints(2, 3, 1, low=0, high=4), batch_dims=2),
            example(floats(4), i64(2)),
            example(floats(2, 5), np.array([[9, -9]], np.int32)),
            example(floats(2, 5), np.zeros((3, 0), np.int64)),
            example(floats(2, 5), np.zeros((0, 1), np.int64)),
        ]


class OneHot(Op, name="onehot"):
    """A new axis of extent depth at `axis`: `values[1]` at the index, `values[0]` elsewhere.

    `indices` of any integer type; `values` holds off and on value and gives the dtype; the depth is
    the attribute, or an integer operand of one element (then the axis is dynamic). A negative index
    counts from the end; an index out of range has no on value. Errors: both depths or none, the
    number of elements of `values` is not 2. MIGraphX `onehot`.

    ```mlir
    %0 = "migraphx.onehot"(%i, %v) {axis = -1 : i64, depth = 4 : i64}
           : (tensor<3xi64>, tensor<2xf32>) -> tensor<3x4xf32>
    ```
    """

    raw = True
    indices: Operand
    depth_input: Operand | None
    values: Operand
    out: Result
    axis = attr.int_(-1)
    depth = attr.int_(optional=True)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_index_type(o.indices, "indices")
        check_index_type(o.depth_input, "depth")
        check(
            (o.depth is None) != (o.depth_input is None),
            "expected one of attribute 'depth' and operand 'depth_input'",
        )
        check(o.depth is None or o.depth >= 0, lambda: f"depth expected at least 0, got {o.depth}")
        if o.depth_input is not None:
            check(
                one_element(o.depth_input),
                lambda: f"depth expected 1 element, got {o.depth_input.elements}",
            )
        check_rank(o.values, 1, "values")
        check(
            compatible(o.values.dims[0], 2),
            lambda: f"values expected 2 elements, got {o.values.dims[0]}",
        )
        axis = normalize_axis(o.axis, o.indices.rank + 1)
        dims = list(o.indices.dims)
        dims.insert(axis, DYN if o.depth is None else o.depth)
        return o.values.with_dims(dims)

    @staticmethod
    def reference(
        indices: np.ndarray,
        depth_input: np.ndarray | None,
        values: np.ndarray,
        *,
        axis: int = -1,
        depth: int | None = None,
    ) -> np.ndarray:
        if depth_input is not None:
            depth = int(depth_input.reshape(()))
        axis = axis_of(axis, indices.ndim + 1)
        at = np.expand_dims(wrapped(indices, depth or 0), axis)
        places = np.arange(depth or 0).reshape([-1 if i == axis else 1 for i in range(at.ndim)])
        off: np.generic = values[0]
        on: np.generic = values[1]
        return np.where(at == places, on, off)

    @staticmethod
    def examples() -> list[Example]:
        off_on = np.array([-1, 2], np.float32)
        return [
            example(i64(0, 2, -1, 5, -9), None, off_on, depth=4),
            example(ints(2, 3, low=-3, high=3), None, off_on, axis=0, depth=3),
            example(ints(2, 3, low=-3, high=3), None, ints(2), axis=1, depth=3),
            example(i64(0, 2), np.array(3, np.int64), off_on),
            example(np.array(1, np.int32), np.array([3], np.int32), off_on, axis=-1),
            example(np.zeros(0, np.int64), None, off_on, depth=2),
        ]


class NonZero(Op, name="nonzero"):
    """The indices of the elements that are not 0, as i64 columns: {rank, count}.

    Any dims, any dtype; in row-major order. The count is known only at run time. With `padded` the
    result is MIGraphX's {rank, elements}, padded with 0. MIGraphX `nonzero`; `padded` is ours.

    ```mlir
    %0 = "migraphx.nonzero"(%x) {padded = false} : (tensor<2x3xf32>) -> tensor<2x?xi64>
    ```
    """

    raw = True
    input: Operand
    out: Result
    padded = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return TensorType(INT64, (o.input.rank, o.input.elements if o.padded else DYN))

    @staticmethod
    def reference(x: np.ndarray, *, padded: bool = False) -> np.ndarray:
        true = np.asarray(x != 0)
        if x.ndim == 0:
            return np.zeros((0, 1 if padded else int(true)), np.int64)
        found = np.array(np.nonzero(true), np.int64).reshape(x.ndim, -1)
        if not padded:
            return found
        out = np.zeros((x.ndim, x.size), np.int64)
        out[:, : found.shape[1]] = found
        return out

    @staticmethod
    def examples() -> list[Example]:
        x: Sequence[Any] = [[1, 0, -2], [0, 0, 3]]
        return [
            example(np.array(x, np.float32)),
            example(np.array(x, np.int64), padded=True),
            example(np.array(x, np.bool_)),
            example(np.array([0.0, -0.0, np.nan], np.float32)),
            example(np.zeros((2, 2), np.float32)),
            example(np.zeros((0, 2), np.float32)),
            example(np.array(3.0, np.float32)),
            example(ints(3, 4, low=-1, high=2, dtype=np.int32)),
        ]
