"""Ops about buffers and placeholders: views of scratch memory, absent values, captures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dtypes import FLOAT
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.op import HostOp, InferView, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, at_most, compatible, product, standard_strides
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints
from mgx_mlir.dialects.migraphx.views import View


class AsShape(View, name="as_shape"):
    """Show a standard buffer as another shape of as many elements. MIGraphX `as_shape`.

    The element type stays. Values are those of `reshape`.

    ```mlir
    %0 = "migraphx.as_shape"(%x) {shape = tensor<6xf32>} : (tensor<2x3xf32>) -> tensor<6xf32>
    ```
    """

    shape = attr.tensor_type()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            o.shape.dtype is o.input.dtype,
            lambda: f"shape expected type {o.input.dtype.mlir}, got {o.shape.dtype.mlir}",
        )
        have, want = o.input.elements, o.shape.elements
        check(
            compatible(product(o.input.dims), product(o.shape.dims)),
            lambda: f"shape expected {have} elements, got {want}",
        )
        return o.shape

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return standard_strides(o.shape.dims)

    @staticmethod
    def reference(x: np.ndarray, *, shape: TensorType) -> np.ndarray:
        if not shape.is_static:
            return x.reshape([-1 if d == DYN else d for d in shape.dims])
        return x.reshape(shape.dims)

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(2, 3), shape=_f32(6)), example(floats(), shape=_f32(1))]


class Load(View, name="load"):
    """A tensor at byte `offset` of a scratch buffer. MIGraphX `load`.

    `input` is a 1-D i8 buffer, `shape` static. Errors: the tensor ends beyond the buffer, or
    `offset` is not a multiple of its element size.

    ```mlir
    %0 = "migraphx.load"(%buffer) {shape = tensor<4xf32>, offset = 16 : i64}
           : (tensor<64xi8>) -> tensor<4xf32>
    ```
    """

    shape = attr.tensor_type()
    offset = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            o.input.rank == 1 and o.input.dtype.mlir == "i8",
            lambda: f"buffer expected tensor<?xi8>, got {o.input}",
        )
        check(o.shape.is_static, lambda: f"shape expected static dims, got {o.shape}")
        size = o.shape.dtype.size
        check(
            o.offset >= 0 and o.offset % size == 0,
            lambda: f"offset expected a multiple of {size}, got {o.offset}",
        )
        end = o.offset + o.shape.elements * size
        check(
            at_most(end, o.input.dims[0]),
            lambda: f"buffer expected at least {end} bytes, got {o.input.dims[0]}",
        )
        return o.shape

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return standard_strides(o.shape.dims)

    @staticmethod
    def reference(x: np.ndarray, *, shape: TensorType, offset: int = 0) -> np.ndarray:
        size = shape.elements * shape.dtype.size
        data = np.ascontiguousarray(x)[offset : offset + size].tobytes()
        return np.frombuffer(data, shape.dtype.np).reshape(shape.dims)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(ints(64, dtype=np.int8), shape=_f32(2, 2), offset=16),
            example(ints(8, dtype=np.int8), shape=_f32(0)),
        ]


class Undefined(HostOp, name="undefined"):
    """The absent optional input of an operator. MIGraphX `undefined`.

    Its type is the builder's, by default tensor<0xf32>; its elements must not be read.

    ```mlir
    %0 = "migraphx.undefined"() : () -> tensor<0xf32>
    ```
    """

    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType | None:
        return None if o.results else TensorType(FLOAT, (0,))

    @staticmethod
    def reference() -> np.ndarray:
        return np.zeros(0, np.float32)

    @staticmethod
    def examples() -> list[Example]:
        return [example()]


class Outline(HostOp, name="outline"):
    """A placeholder of a type without values; zeros in the reference. MIGraphX `outline`.

    ```mlir
    %0 = "migraphx.outline"() {shape = tensor<2x3xf32>} : () -> tensor<2x3xf32>
    ```
    """

    out: Result
    shape = attr.tensor_type()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(o.shape.is_static, lambda: f"shape expected static dims, got {o.shape}")
        return o.shape

    @staticmethod
    def reference(*, shape: TensorType) -> np.ndarray:
        return np.zeros(shape.dims, shape.dtype.np)

    @staticmethod
    def examples() -> list[Example]:
        return [example(shape=_f32(2, 3)), example(shape=_f32())]


class Capture(HostOp, name="capture", pure=False):
    """Return `input`, and show it to the calibration as value `ins_index`. MIGraphX `capture`.

    Any dims, any dtype. Not pure: calibration needs it even if its result is unused.

    ```mlir
    %0 = "migraphx.capture"(%x) {ins_index = 3 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    raw = True
    input: Operand
    out: Result
    ins_index = attr.int_()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(o.ins_index >= 0, lambda: f"ins_index expected at least 0, got {o.ins_index}")
        return o.input

    @staticmethod
    def reference(x: np.ndarray, *, ins_index: int) -> np.ndarray:
        return x

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(2, 3), ins_index=0)]


class Unknown(HostOp, name="unknown", pure=False):
    """A source node without an importer, kept so that the graph can be shown.

    `op` is the node's operator. The builder states the results; there is no reference and no
    lowering. MIGraphX `unknown:<op>`.

    ```mlir
    %0 = "migraphx.unknown"(%x) {op = "MyOp"} : (tensor<2xf32>) -> tensor<2xf32>
    ```
    """

    inputs: Sequence[Operand]
    outs: Sequence[Result]
    op = attr.str_()

    @staticmethod
    def infer(o: InferView) -> None:
        return None

    @staticmethod
    def reference(inputs: Sequence[np.ndarray], *, op: str) -> np.ndarray:
        raise RunError(f"operator '{op}' is unknown, it cannot be run")


def _f32(*dims: int) -> TensorType:
    return TensorType(FLOAT, dims)
