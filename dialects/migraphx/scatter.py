"""Ops that write updates into a copy of a tensor by index: scatter_* and scatternd_*."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, at_most, can_hold, compatible, show_dims
from mgx_mlir.dialects.migraphx.axes import axis_of, check_index_type, normalize_axis
from mgx_mlir.dialects.migraphx.indexing import clamped, wrapped
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64, ints


def _none(out: np.ndarray, where: Any, updates: np.ndarray) -> None:
    out[where] = updates  # the last of several updates of an element wins


def _add(out: np.ndarray, where: Any, updates: np.ndarray) -> None:
    np.add.at(out, where, updates)


def _mul(out: np.ndarray, where: Any, updates: np.ndarray) -> None:
    np.multiply.at(out, where, updates)


def _min(out: np.ndarray, where: Any, updates: np.ndarray) -> None:
    np.minimum.at(out, where, updates)


def _max(out: np.ndarray, where: Any, updates: np.ndarray) -> None:
    np.maximum.at(out, where, updates)


class ScatterBase(Op):
    """Base of the element scatters; subclasses define `combine`."""

    combine = staticmethod(_none)
    data: Operand
    indices: Operand
    updates: Operand
    out: Result
    axis = attr.int_(0)
    skip_out_of_bounds = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        axis = normalize_axis(o.axis, o.data.rank)
        check_index_type(o.indices, "indices")
        check_updates_type(o)
        rank = o.data.rank
        check(
            o.indices.rank == rank,
            lambda: f"indices expected rank {rank} as the data, got rank {o.indices.rank}",
        )
        same = o.updates.rank == rank and all(
            compatible(a, b) for a, b in zip(o.indices.dims, o.updates.dims, strict=True)
        )
        check(
            same,
            lambda: (
                f"updates expected dims {show_dims(o.indices.dims)} as the indices, "
                f"got {show_dims(o.updates.dims)}"
            ),
        )
        for i, (d, n) in enumerate(zip(o.data.dims, o.indices.dims, strict=True)):
            check(
                i == axis or at_most(n, d),
                lambda i=i, d=d, n=n: f"indices expected at most {d} elements at dim {i}, got {n}",
            )
        check(
            o.skip_out_of_bounds or can_hold([o.data.dims[axis]], o.indices.dims),
            lambda: f"dim {axis} expected at least 1 element to write to, got 0",
        )
        return o.data

    @classmethod
    def reference(
        cls,
        data: np.ndarray,
        indices: np.ndarray,
        updates: np.ndarray,
        *,
        axis: int = 0,
        skip_out_of_bounds: bool = False,
    ) -> np.ndarray:
        out = np.array(data)
        axis = axis_of(axis, data.ndim)
        where: list[np.ndarray] = [g.reshape(-1) for g in np.indices(indices.shape)]
        values = updates.reshape(-1)
        extent = data.shape[axis]
        if skip_out_of_bounds:
            at = wrapped(indices, extent).reshape(-1)
            inside = (at >= 0) & (at < extent)
            where = [g[inside] for g in where]
            at, values = at[inside], values[inside]
        else:
            at = clamped(indices, extent).reshape(-1)
        where[axis] = at
        cls.combine(out, tuple(where), values)
        return out

    @staticmethod
    def examples() -> list[Example]:
        at = np.array([[1, 0, -1], [1, 1, 0]], np.int64)
        far = np.array([[1, 7, -9], [1, 1, 0]], np.int32)
        up = floats(2, 3, seed=1)
        unsigned = np.array([[2, 1, 3]], np.uint8)
        return [
            example(floats(3, 3), np.array([[1, 0, 2], [0, 2, 1]], np.int64), up),
            example(floats(2, 5), np.array([[1, 0, -1], [4, 1, 0]], np.int64), up, axis=1),
            example(floats(3, 3), far, up),
            example(floats(3, 3), far, up, skip_out_of_bounds=True),
            example(ints(3, 3), at, ints(2, 3, seed=1), axis=-1),
            example(floats(3, 3, dtype=np.float16), at, up.astype(np.float16)),
            example(ints(4, 4, dtype=np.int32), unsigned, ints(1, 3, seed=1, dtype=np.int32)),
            example(floats(3, 3), np.zeros((0, 3), np.int64), floats(0, 3)),
        ]


def check_updates_type(o: InferView) -> None:
    """Raise ShapeError unless the updates have the type of the data."""
    check(
        o.updates.dtype is o.data.dtype,
        lambda: (
            f"updates expected type {o.data.dtype.mlir} as the data, got {o.updates.dtype.mlir}"
        ),
    )


class ScatterNone(ScatterBase, name="scatter_none"):
    """Write `updates` over the elements of `data` at `indices` along `axis` (ScatterElements).

    Any dtype; indices of any integer type, with the dims of `updates` and at most those of `data`
    elsewhere. An element of `updates` is written at its own position, except at `axis`, where it is
    its index. A negative index counts from the end; one out of range is clamped, or with
    `skip_out_of_bounds` its update is dropped. Of several updates of an element the last in
    row-major order wins. Errors: dims do not fit. MIGraphX `scatter_none`.

    ```mlir
    %0 = "migraphx.scatter_none"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = false}
           : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
    ```
    """

    raw = True


class ScatterAdd(ScatterBase, name="scatter_add"):
    """scatter_none, but updates are added; several of one element all count.

    Any number type. MIGraphX `scatter_add`.

    ```mlir
    %0 = "migraphx.scatter_add"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = false}
           : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
    ```
    """

    combine = staticmethod(_add)


class ScatterMul(ScatterBase, name="scatter_mul"):
    """scatter_none, but elements are multiplied by the updates.

    Any number type. MIGraphX `scatter_mul`.

    ```mlir
    %0 = "migraphx.scatter_mul"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = false}
           : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
    ```
    """

    combine = staticmethod(_mul)


class ScatterMin(ScatterBase, name="scatter_min"):
    """scatter_none, but the smaller of element and update stays.

    Any number type; NaN stays. MIGraphX `scatter_min`.

    ```mlir
    %0 = "migraphx.scatter_min"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = false}
           : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
    ```
    """

    combine = staticmethod(_min)


class ScatterMax(ScatterBase, name="scatter_max"):
    """scatter_none, but the larger of element and update stays.

    Any number type; NaN stays. MIGraphX `scatter_max`.

    ```mlir
    %0 = "migraphx.scatter_max"(%x, %i, %u) {axis = 0 : i64, skip_out_of_bounds = false}
           : (tensor<3x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<3x3xf32>
    ```
    """

    combine = staticmethod(_max)


class ScatterNDBase(Op):
    """Base of the slice scatters; subclasses define `combine`."""

    combine = staticmethod(_none)
    data: Operand
    indices: Operand
    updates: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_index_type(o.indices, "indices")
        check_updates_type(o)
        data, indices = o.data.dims, o.indices.dims
        check(len(indices) >= 1, "indices expected rank 1 or more, got rank 0")
        k = indices[-1]
        check(k != DYN, "indices expected a static last dim, got ?")
        check(
            k <= len(data),
            lambda: f"index tuples of {k} expected data of rank {k} or more, got {o.data}",
        )
        wanted = indices[:-1] + data[k:]
        same = o.updates.rank == len(wanted) and all(
            compatible(a, b) for a, b in zip(wanted, o.updates.dims, strict=True)
        )
        check(
            same,
            lambda: f"updates expected dims {show_dims(wanted)}, got {show_dims(o.updates.dims)}",
        )
        check(
            can_hold(data[:k], o.indices.dims),
            lambda: f"data expected elements to write to, got {o.data}",
        )
        return o.data

    @classmethod
    def reference(cls, data: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = np.array(data)
        k = indices.shape[-1]
        rows = math.prod(indices.shape[:-1])
        if rows == 0 or out.size == 0:
            return out
        tuples = indices.reshape(rows, k)
        values = updates.reshape(rows, *data.shape[k:])
        if k == 0:
            for value in values:
                cls.combine(out, (...,), value)
            return out
        cls.combine(out, tuple(clamped(tuples[:, i], data.shape[i]) for i in range(k)), values)
        return out

    @staticmethod
    def examples() -> list[Example]:
        at = np.array([[0, 1], [2, -1], [0, 3]], np.int64)
        again = np.array([[1], [1], [-3]], np.int64)
        return [
            example(floats(3, 4), at, floats(3, seed=1)),
            example(floats(3, 4), np.array([[2], [0]], np.int32), floats(2, 4, seed=1)),
            example(floats(3, 4, 2), at.reshape(3, 1, 2), floats(3, 1, 2, seed=1)),
            example(ints(4), i64(2), np.array(5, np.int64)),
            example(floats(3, 4), again[:1], floats(1, 4, seed=1)),
            example(floats(3, 4), np.array([[9, -9]], np.int64), floats(1, seed=1)),
            example(floats(3, dtype=np.float16), again[1:], floats(2, seed=1, dtype=np.float16)),
            example(floats(3), np.zeros((0, 1), np.int64), floats(0)),
        ]


class ScatterNDNone(ScatterNDBase, name="scatternd_none"):
    """Write slices of `updates` over `data` at index tuples (ScatterND).

    Any dtype; indices of any integer type, whose last axis, static, holds tuples of k indices into
    the first k axes of `data`. `updates` has the dims of `indices` without the last, then those of
    `data` behind the k axes. Negative indices count from the end, beyond the ends they are clamped.
    Of several updates of an element the last wins. MIGraphX `scatternd_none`.

    ```mlir
    %0 = "migraphx.scatternd_none"(%x, %i, %u)
           : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    ```
    """

    raw = True


class ScatterNDAdd(ScatterNDBase, name="scatternd_add"):
    """scatternd_none, but updates are added; several of one element all count.

    Any number type. MIGraphX `scatternd_add`.

    ```mlir
    %0 = "migraphx.scatternd_add"(%x, %i, %u)
           : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    ```
    """

    combine = staticmethod(_add)


class ScatterNDMul(ScatterNDBase, name="scatternd_mul"):
    """scatternd_none, but elements are multiplied by the updates.

    Any number type. MIGraphX `scatternd_mul`.

    ```mlir
    %0 = "migraphx.scatternd_mul"(%x, %i, %u)
           : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    ```
    """

    combine = staticmethod(_mul)


class ScatterNDMin(ScatterNDBase, name="scatternd_min"):
    """scatternd_none, but the smaller of element and update stays.

    Any number type; NaN stays. MIGraphX `scatternd_min`.

    ```mlir
    %0 = "migraphx.scatternd_min"(%x, %i, %u)
           : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    ```
    """

    combine = staticmethod(_min)


class ScatterNDMax(ScatterNDBase, name="scatternd_max"):
    """scatternd_none, but the larger of element and update stays.

    Any number type; NaN stays. MIGraphX `scatternd_max`.

    ```mlir
    %0 = "migraphx.scatternd_max"(%x, %i, %u)
           : (tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    ```
    """

    combine = staticmethod(_max)
