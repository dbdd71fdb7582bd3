"""Quantised operators: conversions to and from scaled integers, packed 4-bit values, integer
matmuls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.scalar import Scalar, ScalarBuilder
from mgx_mlir.core.shapes import DYN, TensorType, is_multiple
from mgx_mlir.dialects.migraphx.axes import axis_of, normalize_axis
from mgx_mlir.dialects.migraphx.convert import convert_scalar, saturate
from mgx_mlir.dialects.migraphx.linear import Convolution, conv_dims, dot_dims
from mgx_mlir.dialects.migraphx.pointwise_base import (
    FLOAT,
    INTEGER,
    check_dtype,
    common_dims,
    sample,
)
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints
from mgx_mlir.dialects.migraphx.windows import PADDING_MODES

FLOAT8 = frozenset(d for d in dtypes.DTYPES if d.is_float and d.size == 1)
INT8 = frozenset({dtypes.INT8, dtypes.UINT8})
QUANTISED = INTEGER | FLOAT8


def _present(*types: TensorType | None) -> list[TensorType]:
    return [t for t in types if t is not None]


class QuantizeLinear(Op, name="quantizelinear"):
    """x / scale, rounded to even, plus the zero point, saturated to the result's type.

    `input` and `scale` are of one float type, all operands have equal dims. The result is of
    `out_type` (integers or an f8 type, which is rounded to but once), else of the integer zero
    point's type, else ui8. Errors: a zero point of another type than `out_type`; an f8 zero
    point without `out_type`. MIGraphX `quantizelinear`; ONNX QuantizeLinear.

    ```mlir
    %0 = "migraphx.quantizelinear"(%x, %s, %z)
           : (tensor<4xf32>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xi8>
    ```
    """

    pointwise = True
    discontinuous = True
    input: Operand
    scale: Operand
    zero_point: Operand | None
    out: Result
    out_type = attr.type_(optional=True)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, FLOAT)
        check(
            o.scale.dtype is o.input.dtype,
            lambda: (
                f"scale expected the input's type {o.input.dtype.mlir}, got {o.scale.dtype.mlir}"
            ),
        )
        out = o.out_type
        if o.zero_point is not None:
            check_dtype(o.zero_point, QUANTISED, "zero_point")
            check(
                out is None or out is o.zero_point.dtype,
                lambda: f"zero_point expected type {out.mlir}, got {o.zero_point.dtype.mlir}",
            )
            check(
                out is not None or o.zero_point.dtype.is_integer,
                lambda: f"requires attribute 'out_type' for a {o.zero_point.dtype.mlir} zero_point",
            )
            out = o.zero_point.dtype
        if out is None:
            out = dtypes.UINT8
        check(
            out in QUANTISED,
            lambda: f"out_type expected an integer or f8 type, got {out.mlir}",
        )
        return TensorType(out, common_dims(_present(o.input, o.scale, o.zero_point)))

    @staticmethod
    def reference(
        x: np.ndarray,
        scale: np.ndarray,
        zero_point: np.ndarray | None = None,
        *,
        out_type: DType | None = None,
    ) -> np.ndarray:
        if out_type is None:
            given = zero_point is not None
            out_type = dtypes.from_numpy(zero_point.dtype) if given else dtypes.UINT8
        y = x / scale
        if out_type.is_integer:
            y = np.rint(y)
        if zero_point is not None:
            y = y + zero_point.astype(y.dtype)
        return saturate(np.asarray(y), out_type)

    @staticmethod
    def scalar(
        b: ScalarBuilder, x: Scalar, scale: Scalar, *zero: Scalar, out_type: DType | None = None
    ) -> Scalar:
        target = out_type or b.result_dtype
        y = b.div(x, scale)
        if target.is_integer:
            y = b.round_even(y)
        for z in zero:
            y = b.add(y, b.cast(z, y.dtype))
        return convert_scalar(b, y, target)

    @staticmethod
    def examples() -> list[Example]:
        x = np.array([[0.5, 1.5, 2.5, -0.5, -1.5], [6e4, -6e4, np.inf, -np.inf, 127.4]], np.float32)
        ones, half = np.ones((2, 5), np.float32), np.full((2, 5), 0.5, np.float32)
        u8, i8 = np.full((2, 5), 128, np.uint8), np.full((2, 5), -3, np.int8)
        f8 = np.zeros((2, 5), ml_dtypes.float8_e4m3fn)
        return [
            example(x, ones),
            example(x, half, u8),
            example(x, half, i8),
            example(x, half, i8, out_type=dtypes.INT8),
            example(x, ones, out_type=dtypes.INT16),
            example(x, ones, out_type=dtypes.INT32),
            example(x, ones, f8, out_type=dtypes.FP8E4M3FN),
            example(x, ones, out_type=dtypes.FP8E5M2),
            example(x.astype(np.float16), half.astype(np.float16), u8),
            example(x.astype(np.float64), half.astype(np.float64), i8),
            example(floats(2, 5) * np.float32(50), half, u8),
        ]


class DequantizeLinear(Op, name="dequantizelinear"):
    """(x - zero point) scale, computed in the scale's type, which the result has.

    `input` is of an integer or f8 type, `zero_point` of the same, `scale` of a float type; all
    have equal dims. MIGraphX `dequantizelinear`; ONNX DequantizeLinear.

    ```mlir
    %0 = "migraphx.dequantizelinear"(%x, %s, %z)
           : (tensor<4xi8>, tensor<4xf32>, tensor<4xi8>) -> tensor<4xf32>
    ```
    """

    pointwise = True
    input: Operand
    scale: Operand
    zero_point: Operand | None
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, INTEGER | FLOAT)
        check_dtype(o.scale, FLOAT, "scale")
        if o.zero_point is not None:
            check(
                o.zero_point.dtype is o.input.dtype,
                lambda: (
                    f"zero_point expected the input's type {o.input.dtype.mlir}, "
                    f"got {o.zero_point.dtype.mlir}"
                ),
            )
        return TensorType(o.scale.dtype, common_dims(_present(o.input, o.scale, o.zero_point)))

    @staticmethod
    def reference(
        x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None = None
    ) -> np.ndarray:
        value = x.astype(scale.dtype)
        if zero_point is not None:
            value = value - zero_point.astype(scale.dtype)
        return value * scale

    @staticmethod
    def scalar(b: ScalarBuilder, x: Scalar, scale: Scalar, *zero: Scalar) -> Scalar:
        value = b.cast(x, scale.dtype)
        for z in zero:
            value = b.sub(value, b.cast(z, scale.dtype))
        return b.mul(value, scale)

    @staticmethod
    def examples() -> list[Example]:
        scale = sample((2, 6), dtypes.FLOAT, 0.01, 1)
        found: list[Example] = []
        for d in (dtypes.INT8, dtypes.UINT8, dtypes.INT32, dtypes.INT16, dtypes.FP8E4M3FN):
            x, z = sample((2, 6), d, -128, 127), sample((2, 6), d, -9, 9, seed=1)
            found += [example(x, scale), example(x, scale, z)]
        x = sample((2, 6), dtypes.INT8, -128, 127)
        return [
            *found,
            example(x, scale.astype(np.float16), x),
            example(x, scale.astype(np.float64), x),
        ]


# ---- packed values -------------------------------------------------------------------------------


def _halved(t: TensorType, axis: int) -> TensorType:
    axis = normalize_axis(axis, t.rank)
    extent = t.dims[axis]
    check(
        is_multiple(extent, 2),
        lambda: f"expected an even extent along axis {axis}, got {extent}",
    )
    half = DYN if extent == DYN else extent // 2
    return t.with_dims(half if i == axis else d for i, d in enumerate(t.dims))


def _doubled(t: TensorType, axis: int) -> TensorType:
    axis = normalize_axis(axis, t.rank)
    return t.with_dims(d * 2 if i == axis and d != DYN else d for i, d in enumerate(t.dims))


def pack(codes: np.ndarray, axis: int) -> np.ndarray:
    """Pairs of 4-bit codes along the axis as bytes, the first in the low half."""
    at = [slice(None)] * codes.ndim
    at[axis] = slice(0, None, 2)
    low = codes[tuple(at)] & 0xF
    at[axis] = slice(1, None, 2)
    return (low | (codes[tuple(at)] << 4)).astype(np.uint8, copy=False)


def unpack(packed: np.ndarray, axis: int) -> np.ndarray:
    """Return the 4-bit codes of bytes along the axis, the low half first."""
    both = np.stack([packed & 0xF, packed >> 4], axis_of(axis, packed.ndim) + 1)
    dims = list(packed.shape)
    dims[axis] *= 2
    return both.reshape(dims)


class PackInt4(Op, name="pack_int4"):
    """Pairs of values along `axis` as the halves of one byte, the first in the low half.

    i8 values saturate to -8 .. 7, ui8 ones to 15; the extent along `axis` is even and halves.
    Errors: another type, an odd extent. MIGraphX `pack_int4`.

    ```mlir
    %0 = "migraphx.pack_int4"(%x) {axis = -1 : i64} : (tensor<2x4xi8>) -> tensor<2x2xi8>
    ```
    """

    input: Operand
    out: Result
    axis = attr.int_(-1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, INT8)
        return _halved(o.input, o.axis)

    @staticmethod
    def reference(x: np.ndarray, *, axis: int) -> np.ndarray:
        low, high = (-8, 7) if x.dtype == np.int8 else (0, 15)
        return pack(np.clip(x, low, high).view(np.uint8), axis).view(x.dtype)

    @staticmethod
    def examples() -> list[Example]:
        x = np.array([[-8, 7, -1, 0], [127, -128, 3, 4]], np.int8)
        drawn = ints(3, 6, low=-8, high=8, dtype=np.int8)
        return [
            example(x),
            example(x, axis=0),
            example(np.abs(x // 2).view(np.uint8)),
            example(drawn),
        ]


class UnpackInt4(Op, name="unpack_int4"):
    """The 4-bit halves of bytes as values along `axis`, the low half first.

    i8 bytes give -8 .. 7, ui8 ones 0 .. 15; the extent along `axis` doubles. Errors: another type.
    MIGraphX `unpack_int4`.

    ```mlir
    %0 = "migraphx.unpack_int4"(%x) {axis = -1 : i64} : (tensor<2x2xui8>) -> tensor<2x4xui8>
    ```
    """

    input: Operand
    out: Result
    axis = attr.int_(-1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, INT8)
        return _doubled(o.input, o.axis)

    @staticmethod
    def reference(x: np.ndarray, *, axis: int) -> np.ndarray:
        codes = unpack(x.view(np.uint8), axis)
        return codes if x.dtype == np.uint8 else (codes << 4).view(np.int8) >> 4

    @staticmethod
    def examples() -> list[Example]:
        x = np.array([[0x78, 0x0F], [0xF0, 0x21]], np.uint8)
        drawn = ints(3, 3, low=0, high=256, dtype=np.uint8)
        return [
            example(x),
            example(x.view(np.int8)),
            example(x.view(np.int8), axis=0),
            example(drawn),
        ]


class PackFp4(Op, name="pack_fp4"):
    """Pairs of floats along `axis` as two e2m1 values in one byte, the first in the low half.

    Any float type; values round to even among 0, 0.5, 1, 1.5, 2, 3, 4, 6 and saturate, NaN gives
    0. The result is ui8 (MIGraphX's fp4x2_type); the extent along `axis` is even and halves.
    MIGraphX `pack_fp4`.

    ```mlir
    %0 = "migraphx.pack_fp4"(%x) {axis = -1 : i64} : (tensor<2x4xf32>) -> tensor<2x2xui8>
    ```
    """

    input: Operand
    out: Result
    axis = attr.int_(-1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, FLOAT)
        return _halved(o.input, o.axis).with_dtype(dtypes.UINT8)

    @staticmethod
    def reference(x: np.ndarray, *, axis: int) -> np.ndarray:
        clean = np.where(np.isnan(x), 0, x)
        return pack(clean.astype(ml_dtypes.float4_e2m1fn).view(np.uint8), axis)

    @staticmethod
    def examples() -> list[Example]:
        x = np.array(
            [0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 1e9, -0.3, -6, -np.inf, np.nan], np.float32
        )
        return [
            example(x),
            example(x.reshape(2, 7), axis=0),
            example(x[:4].astype(ml_dtypes.float8_e4m3fn)),
            example(floats(3, 6)),
        ]


class UnpackFp4(Op, name="unpack_fp4"):
    """The e2m1 halves of bytes as f8E4M3FN values along `axis`, the low half first.

    ui8 in (MIGraphX's fp4x2_type), f8E4M3FN out, exact; the extent along `axis` doubles. MIGraphX
    `unpack_fp4`.

    ```mlir
    %0 = "migraphx.unpack_fp4"(%x) {axis = -1 : i64} : (tensor<2xui8>) -> tensor<4xf8E4M3FN>
    ```
    """

    input: Operand
    out: Result
    axis = attr.int_(-1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, frozenset({dtypes.UINT8}))
        return _doubled(o.input, o.axis).with_dtype(dtypes.FP8E4M3FN)

    @staticmethod
    def reference(x: np.ndarray, *, axis: int) -> np.ndarray:
        codes = unpack(x, axis)
        return codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)

    @staticmethod
    def examples() -> list[Example]:
        x = (np.arange(8, dtype=np.uint8) * 2 + 1) * 16 + np.arange(8, dtype=np.uint8) * 2
        drawn = ints(3, 3, low=0, high=256, dtype=np.uint8)
        return [example(x), example(x.reshape(2, 4), axis=0), example(drawn)]


# ---- matmuls -------------------------------------------------------------------------------------


def _product_type(o: InferView, first: TensorType, second: TensorType) -> DType:
    """Return i32 for 8-bit integers (of either sign), f32 for f8 values; f8 operands may have two
    scales.
    """
    check_dtype(first, INT8 | FLOAT8)
    mixed = first.dtype in INT8 and second.dtype in INT8
    check(
        mixed or first.dtype is second.dtype,
        lambda: f"expected operands of one type, got {first.dtype.mlir} and {second.dtype.mlir}",
    )
    check(len(o.scales) in (0, 2), lambda: f"expected no scales or two, got {len(o.scales)}")
    for scale, scaled, name in zip(o.scales, (first, second), ("first", "second"), strict=False):
        check(first.dtype in FLOAT8, lambda: f"expected f8 operands beside scales, got {first}")
        check_dtype(scale, FLOAT, f"{name} scale")
        common_dims((scaled, scale))
    return dtypes.FLOAT if first.dtype in FLOAT8 else dtypes.INT32


def _scaled(x: np.ndarray, scales: Sequence[np.ndarray], i: int) -> np.ndarray:
    # 8-bit integers are multiplied in f64, which represents every sum exactly
    if x.dtype.kind != "f":
        return x.astype(np.float64)
    return x * scales[i].astype(x.dtype) if scales else x


def _to_i32(total: np.ndarray, x: np.ndarray) -> np.ndarray:
    return total if x.dtype.kind == "f" else total.astype(np.int64).astype(np.int32)


class QuantDot(Op, name="quant_dot"):
    """The batched matmul of 8-bit operands: integers sum in i32, f8 values in f32.

    `a` (.., M, K) and `b` (.., K, N) are i8 or ui8 (each of either), or of one f8 type; equal
    rank >= 2 and batch dims. `scales` are none, or one for each operand and of its dims, which
    multiply f8 operands. Errors: other types, dims that do not fit. MIGraphX `quant_dot`.

    ```mlir
    %0 = "migraphx.quant_dot"(%a, %b) : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
    ```
    """

    a: Operand
    b: Operand
    scales: Sequence[Operand]
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return TensorType(_product_type(o, o.a, o.b), dot_dims(o.a, o.b))

    @staticmethod
    def reference(a: np.ndarray, b: np.ndarray, scales: Sequence[np.ndarray] = ()) -> np.ndarray:
        return _to_i32(np.matmul(_scaled(a, scales, 0), _scaled(b, scales, 1)), a)

    @staticmethod
    def examples() -> list[Example]:
        i8, u8, f8 = dtypes.INT8, dtypes.UINT8, dtypes.FP8E4M3FN
        x, y = sample((3, 4), f8, -3, 3), sample((4, 5), f8, -3, 3, seed=1)
        s, t = sample((3, 4), dtypes.FLOAT, 0.1, 2), sample((4, 5), dtypes.FLOAT, 0.1, 2)
        return [
            example(sample((3, 4), i8, -128, 127), sample((4, 5), i8, -128, 127)),
            example(sample((2, 3, 4), u8, 0, 255), sample((2, 4, 5), u8, 0, 255)),
            example(sample((3, 4), u8, 0, 255), sample((4, 5), i8, -128, 127)),
            example(x, y),
            example(x, y, [s, t]),
        ]


class QuantConvolution(Op, name="quant_convolution"):
    """Convolution of 8-bit operands: integers sum in i32, f8 values in f32.

    Types and scales as `quant_dot`, dims, attributes and errors as `convolution`. Padding is
    `pad_value`, as a rule the zero point. MIGraphX `quant_convolution`; `channels_last` and
    `pad_value` are ours.

    ```mlir
    %0 = "migraphx.quant_convolution"(%x, %w) {padding = array<i64: 1, 1>}
           : (tensor<1x3x8x8xi8>, tensor<4x3x3x3xi8>) -> tensor<1x4x8x8xi32>
    ```
    """

    input: Operand
    weights: Operand
    scales: Sequence[Operand]
    out: Result
    padding = attr.ints((0, 0))
    stride = attr.ints((1, 1))
    dilation = attr.ints((1, 1))
    padding_mode = attr.enum(PADDING_MODES, "default_")
    group = attr.int_(1)
    channels_last = attr.bool_(False)
    pad_value = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        dtype = _product_type(o, o.input, o.weights)
        kind = o.input.dtype
        low, high = (kind.lowest(), kind.highest()) if kind.is_integer else (0, 0)
        check(
            low <= o.pad_value <= high,
            lambda: f"pad_value expected a value of {kind.mlir}, got {o.pad_value}",
        )
        alike = InferView(**vars(o))
        alike.weights = o.weights.with_dtype(o.input.dtype)
        return TensorType(dtype, conv_dims(alike))

    @staticmethod
    def reference(
        x: np.ndarray, w: np.ndarray, scales: Sequence[np.ndarray] = (), pad_value: int = 0,
        **attributes: Any,
    ) -> np.ndarray:  # fmt: skip
        image, window = _scaled(x, scales, 0), _scaled(w, scales, 1)
        if not pad_value:
            return _to_i32(Convolution.reference(image, window, **attributes), x)
        # the padding minus itself is 0
        total = Convolution.reference(image - pad_value, window, **attributes)
        if attributes.get("channels_last"):
            sums = window.sum(tuple(range(window.ndim - 1)))
        else:
            sums = window.sum(tuple(range(1, window.ndim))).reshape(-1, *[1] * (window.ndim - 2))
        total = total + pad_value * sums
        return _to_i32(total, x)

    @staticmethod
    def examples() -> list[Example]:
        i8, u8, f8 = dtypes.INT8, dtypes.UINT8, dtypes.FP8E4M3FN
        w = sample((4, 3, 3, 3), i8, -128, 127, seed=1)
        x, y = sample((1, 3, 4, 4), f8, -3, 3), sample((2, 3, 3, 3), f8, -3, 3, seed=1)
        s, t = (sample(v.shape, dtypes.FLOAT, 0.1, 2) for v in (x, y))
        return [
            example(sample((1, 3, 6, 5), i8, -128, 127), w, padding=[1, 1]),
            example(sample((2, 3, 6, 5), u8, 0, 255), w, stride=[2, 1]),
            example(sample((1, 6, 6, 5), u8, 0, 255), w.view(np.uint8), group=2),
            example(sample((2, 3, 6, 5), u8, 0, 255), w, padding=[1, 2], pad_value=200),
            example(
                sample((1, 5, 4, 3), i8, -128, 127),
                sample((2, 3, 3, 4), i8, -128, 127),
                padding=[1, 0],
                channels_last=True,
                pad_value=-128,
            ),
            example(x, y),
            example(x, y, [s, t], padding=[1, 0]),
        ]
