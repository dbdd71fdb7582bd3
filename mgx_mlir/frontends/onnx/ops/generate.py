"""Tensors from nothing or from a shape: constants, ranges, identity matrices, windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from mgx_mlir.core.dtypes import FLOAT, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import within
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    convert,
    single,
    static_dims,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@onnx_op("Constant", since=1)
def constant(
    b: Builder,
    node: Node,
    *,
    value: np.ndarray | None = None,
    sparse_value: np.ndarray | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
) -> Value:
    """Import Constant, from the one attribute that is set."""
    given = {
        "value": value,
        "sparse_value": sparse_value,
        "value_float": None if value_float is None else np.float32(value_float),
        "value_floats": None if value_floats is None else np.array(value_floats, np.float32),
        "value_int": None if value_int is None else np.int64(value_int),
        "value_ints": None if value_ints is None else np.array(value_ints, np.int64),
    }
    found = [v for v in given.values() if v is not None]
    if len(found) != 1:
        raise ModelError(f"expected one of the attributes {', '.join(given)}, got {len(found)}")
    return b.literal(np.asarray(found[0]))


@onnx_op("ConstantOfShape", since=9)
def constant_of_shape(
    b: Builder, node: Node, shape: Value, *, value: np.ndarray | None = None
) -> Value:
    """Import ConstantOfShape: a tensor filled with one value."""
    one = np.zeros(1, np.float32) if value is None else value
    if one.size != 1:
        raise ModelError(f"attribute 'value' expected one element, got {one.size}")
    known = b.const(shape)
    if known is None:
        dims = static_dims(b, shape, "shape")
        return b.broadcast_with_dims(
            b.literal(one.reshape([1] * dims[0] if dims else [])), convert(b, shape, INT64)
        )
    return b.literal(_filled([int(d) for d in known.reshape(-1)], one.reshape(())))


def _filled(dims: list[int], value: np.ndarray) -> np.ndarray:
    if any(d < 0 for d in dims):
        raise ModelError(f"shape {dims} is negative")
    limits.filled(dims)
    return np.broadcast_to(value, dims)


@onnx_op("Range", since=27)
def range_27(
    b: Builder, node: Node, start: Value, limit: Value, delta: Value, *, stash_type: int = 1
) -> Value:
    """Import Range of opset 27: 16-bit floats are computed in the type of `stash_type`."""
    dtype = b.dtype(start)
    if not (dtype.is_float and dtype.is_low_precision):
        return range_op(b, node, start, limit, delta)
    if stash_type != TensorProto.FLOAT:
        raise NotSupported(f"stash_type {stash_type} with {dtype}, expected 1 (f32)")
    numbers = (convert(b, v, FLOAT) for v in (start, limit, delta))
    return convert(b, range_op(b, node, *numbers), dtype)


@onnx_op("Range", since=11)
def range_op(b: Builder, node: Node, start: Value, limit: Value, delta: Value) -> Value:
    """Import Range, as a literal where its three numbers are known."""
    known = [b.const(single(b, v, "Range input")) for v in (start, limit, delta)]
    if all(k is not None for k in known):
        first, last, step = (k.reshape(()) for k in known if k is not None)
        return b.literal(_range(first, last, step))
    scalars = [single(b, v, "Range input") for v in (start, limit, delta)]
    return b.dynamic_range(*scalars)


def _range(start: np.ndarray, limit: np.ndarray, delta: np.ndarray) -> np.ndarray:
    if delta == 0:
        raise ModelError("delta expected another number than 0")
    dtype = start.dtype
    hold = np.float64 if dtype.kind not in "iu" else object
    first, last, step = (np.asarray(v, hold).item() for v in (start, limit, delta))
    count = limits.steps(first, last, step)
    if dtype.kind in "iu":
        return (int(first) + np.arange(count, dtype=np.int64) * int(step)).astype(dtype)
    return (first + np.arange(count) * step).astype(dtype)


@onnx_op("EyeLike", since=9)
def eye_like(b: Builder, node: Node, x: Value, *, dtype: int | None = None, k: int = 0) -> Value:
    """Import EyeLike: 1 on the diagonal `k` of a matrix with the dims of x."""
    dims = b.dims(x)
    if len(dims) != 2:
        raise ModelError(f"expected rank 2, got {len(dims)}")
    kind = b.dtype(x) if dtype is None else cast_number(dtype)
    if DYN not in dims:
        limits.table(dims, "a diagonal")
        return b.literal(np.eye(*dims, k=k).astype(kind.np))
    distance = b.sub(axis_range(b, x, 1), unsqueeze(b, axis_range(b, x, 0), [1]))
    return convert(b, compare(b, "equal", distance, k), kind)


# ---- windows of signal processing --------------------------------------------------------------


def _register_window(name: str, coefficients: Sequence[float]) -> None:
    @onnx_op(name, since=17)
    def window(
        b: Builder, node: Node, size: Value, *, output_datatype: int = 1, periodic: int = 1
    ) -> Value:
        """Sum over k of c_k cos(2 pi k i / n), with n - 1 for a symmetric window.

        A symmetric window of one element is 0 / 0, NaN, as in the operator's function body.
        """
        kind = cast_number(output_datatype)
        known = b.const(size)
        if known is not None:
            n = int(known.reshape(-1)[0])
            if n < 0:
                raise ModelError(f"size {n} is negative")
            limits.table((n,), "a window")
            with np.errstate(invalid="ignore"):
                angle = 2 * np.pi * np.arange(n) / np.float64(n if periodic else n - 1)
                terms = [c * np.cos(k * angle) for k, c in enumerate(coefficients)]
            return b.literal(np.sum(terms, axis=0).astype(kind.np))
        n = convert(b, within(b, single(b, size, "size"), "size", 0), INT64)
        span = n if periodic else b.sub(n, 1)
        angle = b.div(b.mul(arange(b, n, FLOAT), 2 * np.pi), convert(b, span, FLOAT))
        total = None
        for k, c in enumerate(coefficients[1:], 1):
            term = b.mul(b.cos(b.mul(angle, k) if k > 1 else angle), c)
            total = term if total is None else b.add(total, term)
        return convert(b, b.add(total, coefficients[0]), kind)


_register_window("HannWindow", (0.5, -0.5))
_register_window("HammingWindow", (25 / 46, -21 / 46))
_register_window("BlackmanWindow", (0.42, -0.5, 0.08))
