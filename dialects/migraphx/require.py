"""The op that ends a run with an error unless a condition holds."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.op import HostOp, InferView, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.samples import Example, example, i64


class Require(HostOp, name="require"):
    """`input` itself; the run ends with an error unless every element of `condition` is true.

    For dynamic sizes, bounds and repeats: ops read them from the result, so that they never read
    invalid ones. `condition` is of type i1, of static dims; any dtype of `input`. `expected`
    describes the condition in the error. Errors: RunError at run time; a known false condition is a
    compile error. The op is ours.

    ```mlir
    %0 = "migraphx.require"(%repeats, %not_negative) {expected = "repeats of 0 or more"}
           : (tensor<2xi64>, tensor<2xi1>) -> tensor<2xi64>
    ```
    """

    raw = True
    input: Operand
    condition: Operand
    out: Result
    expected = attr.str_()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            o.condition.dtype.is_bool,
            lambda: f"condition expected type i1, got {o.condition.dtype.mlir}",
        )
        check(
            DYN not in o.condition.dims,
            lambda: f"condition expected static dims, got {o.condition}",
        )
        return o.input

    @staticmethod
    def reference(x: np.ndarray, condition: np.ndarray, *, expected: str) -> np.ndarray:
        if not np.all(condition):
            got = f", got {x.tolist()}" if x.size <= 8 and x.dtype.kind in "iub" else ""
            raise RunError(f"expected {expected}{got}")
        return x

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(i64(2, 3), np.array([True, True]), expected="extents"),
            example(i64(-1), np.array(True), expected="a number"),
            example(i64(), np.zeros(0, np.bool_), expected="nothing"),
        ]
