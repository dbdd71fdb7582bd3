"""Functions of one 8-bit integer as a table of their 256 values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.op import InferView, Operand, Pointwise, Result, check
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.pointwise_base import check_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example

BYTES = frozenset((dtypes.INT8, dtypes.UINT8))
SIZE = 256


class ByteTable(Pointwise, name="byte_table"):
    """Look 8-bit integers up in `table`, whose numbers are those for the bits 0 to 255.

    i8 and ui8; the result is of `out_type`, one of these. The entry for -1 of i8 is the last one.
    What a quantised program computes between two values of 8 bits is such a function. Errors:
    a table of another size, or with a number that is not of `out_type`. An extension of the
    dialect, not an op of MIGraphX.

    `%1 = "migraphx.byte_table"(%0) {out_type = i8, table = array<i64: 1, 2, ...>}
       : (tensor<4xui8>) -> tensor<4xi8>`
    """

    TYPES = BYTES
    input: Operand
    out: Result
    table = attr.ints()
    out_type = attr.type_()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, BYTES)
        out = o.out_type
        check(out in BYTES, lambda: f"out_type expected i8 or ui8, got {out.mlir}")
        count = len(o.table)
        check(count == SIZE, lambda: f"table expected {SIZE} numbers, got {count}")
        low, high = out.lowest(), out.highest()
        wrong = next((n for n in o.table if not low <= n <= high), None)
        check(wrong is None, lambda: f"table expected numbers of {out.mlir}, got {wrong}")
        return o.input.with_dtype(out)

    @staticmethod
    def reference(x: np.ndarray, *, table: Sequence[int], out_type: DType) -> np.ndarray:
        at = np.asarray(x).astype(np.int64) & (SIZE - 1)
        return np.asarray(table, np.int64)[at].astype(out_type.np)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, *, table: Sequence[int], out_type: DType) -> Scalar:
        return b.lookup(x, table, out_type)

    @staticmethod
    def examples() -> list[Example]:
        every = np.arange(SIZE, dtype=np.uint8).reshape(4, 64)
        squares = [n * n % SIZE for n in range(SIZE)]
        folded = [n % 251 - 128 for n in range(SIZE)]
        return [
            example(every, table=squares, out_type=dtypes.UINT8),
            example(every, table=folded, out_type=dtypes.INT8),
            example(every.view(np.int8), table=squares, out_type=dtypes.UINT8),
            example(np.array(-1, np.int8), table=folded, out_type=dtypes.INT8),
        ]
