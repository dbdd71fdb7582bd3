"""The operator `roll`."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import normalize_axis
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints


class Roll(Op, name="roll"):
    """Shift the elements along `axis` by `shift`; what leaves one end comes in at the other.

    ```mlir
    %0 = "migraphx.roll"(%x) {axis = 0 : i64, shift = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
    ```
    """

    raw = True  # `reference` moves elements of any type as they are
    input: Operand
    out: Result
    axis = attr.int_(0)
    shift = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        normalize_axis(o.axis, o.input.rank)  # ShapeError where it is out of range
        return o.input

    @staticmethod
    def reference(x: np.ndarray, *, axis: int, shift: int) -> np.ndarray:
        return np.roll(x, shift, axis)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 5)),
            example(floats(2, 5), axis=-1, shift=-7),
            example(ints(0, 3), axis=0, shift=2),
        ]
