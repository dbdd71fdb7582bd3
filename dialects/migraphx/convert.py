"""Operators that change the representation of elements: convert and bit_cast."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DTYPES, DType
from mgx_mlir.core.op import InferView, Operand, Pointwise, Result, check
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx import scalar_math
from mgx_mlir.dialects.migraphx.pointwise_base import sample, special
from mgx_mlir.dialects.migraphx.samples import Example, example


def saturate(x: np.ndarray, dtype: DType, overflow: bool = False) -> np.ndarray:
    """`convert` in numpy: the values of x in another element type."""
    if dtype.is_bool:
        return x != 0
    source = dtypes.from_numpy(x.dtype)
    if dtype.is_integer:
        if not source.is_float:
            return x.astype(dtype.np)  # integers wrap
        low, high = int(dtype.lowest()), int(dtype.highest())
        over, under = x >= float(high + 1), x < float(low)
        found = np.where(over | under | np.isnan(x), 0, x).astype(dtype.np)
        found[over], found[under] = high, low
        return found
    computed = x.dtype in (np.dtype(np.float32), np.dtype(np.float64))
    wide = x if computed else x.astype(np.float64)
    if dtype.size >= wide.dtype.itemsize or overflow:
        return wide.astype(dtype.np)
    top = wide.dtype.type(dtypes.float_info(dtype.np).max)
    limited = np.clip(wide, -top, top)
    if dtype.size > 1:
        limited = np.where(np.isinf(wide), wide, limited)
    return limited.astype(dtype.np)


class Convert(Pointwise, name="convert"):
    """The same values in the type `target_type`.

    Any type to any other. To an integer: floats truncate toward zero and saturate, NaN gives 0;
    integers wrap. To bool: true where x is not 0. To a float: round to nearest even, finite values
    saturate to the largest finite one; infinities stay, but f8 types take their largest value for
    them; NaN stays NaN. With `overflow` values too large for a float of 16 bits or more become
    infinite, as in ONNX's Cast and in TensorFlow. Errors: `overflow` where `target_type` is an f8
    type or no float. MIGraphX `convert`, which has no `overflow`.

    `%1 = "migraphx.convert"(%0) {target_type = f16} : (tensor<4xf32>) -> tensor<4xf16>`
    """

    discontinuous = True
    input: Operand
    out: Result
    target_type = attr.type_("half")
    overflow = attr.bool_(optional=True)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            not o.overflow or (o.target_type.is_float and o.target_type.size > 1),
            lambda: (
                "overflow expected a target_type that is a float of 16 bits or more, "
                f"got {o.target_type.mlir}"
            ),
        )
        return o.input.with_dtype(o.target_type)

    @staticmethod
    def reference(x: np.ndarray, *, target_type: DType, overflow: bool | None = None) -> np.ndarray:
        return saturate(np.asarray(x)[...,], target_type, bool(overflow))

    @staticmethod
    def scalar(
        b: ScalarBuilder, x: Scalar, *, target_type: DType, overflow: bool | None = None
    ) -> Scalar:
        return convert_scalar(b, x, target_type, bool(overflow))

    @staticmethod
    def examples() -> list[Example]:
        shown = (
            dtypes.FLOAT, dtypes.DOUBLE, dtypes.HALF, dtypes.BF16, dtypes.BOOL, dtypes.INT8,
            dtypes.UINT8, dtypes.INT32, dtypes.UINT32, dtypes.INT64, dtypes.FP8E4M3FN,
            dtypes.FP8E5M2,
        )  # fmt: skip
        found: list[Example] = []
        for source in shown:
            values = np.concatenate([special(source), sample((6,), source, -300, 300)])
            found += [example(values, target_type=t) for t in shown]
        big = np.array([1e10, -1e10, 65519, 65520, 3e38, 2147483648, 255.9, -128.9], np.float32)
        found += [example(big, target_type=t) for t in shown]
        wide = (dtypes.FLOAT, dtypes.DOUBLE, dtypes.HALF, dtypes.BF16)
        found += [example(big, target_type=t, overflow=True) for t in wide]
        huge = np.array([1e300, -1e39, 3.4028235677973366e38, 65519.99, 1e-310])
        return [*found, *(example(huge, target_type=t, overflow=True) for t in wide)]


def convert_scalar(b: ScalarBuilder, x: Scalar, dtype: DType, overflow: bool = False) -> Scalar:
    """`convert` of one scalar."""
    if not x.dtype.is_float:
        if not dtype.is_low_precision or x.dtype.is_bool:
            return b.cast(x, dtype)
        x = b.cast(x, dtypes.FLOAT)
    if overflow:
        return b.cast(x, dtype)
    if dtype.is_bool:
        return b.cmp("ne", x, 0.0)
    if dtype.is_integer:
        return scalar_math.to_integer(b, x, dtype)
    return scalar_math.to_float(b, x, dtype)


class BitCast(Pointwise, name="bit_cast"):
    """The same bits as another type of the same size.

    Any type but bool; errors where the sizes differ. MIGraphX `bit_cast`.

    `%1 = "migraphx.bit_cast"(%0) {target_type = i32} : (tensor<4xf32>) -> tensor<4xi32>`
    """

    raw = True
    input: Operand
    out: Result
    target_type = attr.type_()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        have, want = o.input.dtype, o.target_type
        check(not have.is_bool and not want.is_bool, "expected types other than i1")
        check(
            have.size == want.size,
            lambda: (
                f"expected a target type of {have.size} bytes as {have.mlir}, "
                f"got {want.mlir} of {want.size}"
            ),
        )
        return o.input.with_dtype(want)

    @staticmethod
    def reference(x: np.ndarray, *, target_type: DType) -> np.ndarray:
        return np.ascontiguousarray(x).view(target_type.np).reshape(x.shape)

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, *, target_type: DType) -> Scalar:
        return b.bitcast(x, target_type)

    @staticmethod
    def examples() -> list[Example]:
        found: list[Example] = []
        for source in DTYPES:
            for target in DTYPES:
                if source.size == target.size and not (source.is_bool or target.is_bool):
                    values = [special(source), sample((4,), source, -100, 100)]
                    found.append(example(np.concatenate(values), target_type=target))
        return found
