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
from mgx_mlir.dialects.migraphx.samples import Example, example, ints

BYTES = frozenset((dtypes.INT8, dtypes.UINT8))
SIZE = 256


class ByteTable(Pointwise, name="byte_table"):
    """Look 8-bit integers up in `table`, whose numbers are those for the bits 0 to 255.

    i8 and ui8; the result is of `out_type`, one of these. The entry for -1 of i8 is the last one.
    Pointwise ops between two 8-bit values of a quantised program form such a function. Errors: a
    table of another size, or with a number that is not of `out_type`. An extension of the dialect,
    not an op of MIGraphX.

    ```mlir
    %1 = "migraphx.byte_table"(%0) {out_type = ui8, table = array<i64:
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
      32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
      48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
      64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79,
      80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95,
      96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111,
      112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127,
      128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143,
      144, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159,
      160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 175,
      176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191,
      192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207,
      208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223,
      224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239,
      240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255
      >} : (tensor<4xui8>) -> tensor<4xui8>
    ```
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
            example(
                ints(3, 5, low=0, high=SIZE, dtype=np.uint8), table=squares, out_type=dtypes.UINT8
            ),
        ]
