"""The literal: a constant held in the IR or, when large, in the weight store beside it."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Result, check
from mgx_mlir.core.shapes import TensorType


class Literal(Op, name="literal"):
    """A constant tensor (MIGraphX `@literal`).

    Exactly one of `value` (a dense constant, small or written by hand) and `key` (the content
    hash of an array in the program's weight store) is set. Any dtype, any static dims.

    ```mlir
    %0 = "migraphx.literal"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %1 = "migraphx.literal"() {key = "9f86d0"} : () -> tensor<768x768xf32>
    ```
    """

    out: Result
    value = attr.elements(optional=True)
    key = attr.str_(optional=True)

    @staticmethod
    def infer(o: InferView) -> TensorType | None:
        check(
            (o.value is None) != (o.key is None),
            "expected one of the attributes 'value' and 'key'",
        )
        return None if o.value is None else TensorType.of(o.value.type)

    @staticmethod
    def reference(**attributes: object) -> np.ndarray:
        raise NotImplementedError("the interpreter reads literals from the weight store")
