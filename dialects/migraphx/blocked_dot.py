"""The matmul with a constant matrix of 4, 8 or 16 bits, whose blocks have separate scales."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, compatible
from mgx_mlir.dialects.migraphx.pointwise_base import check_dtype, sample
from mgx_mlir.dialects.migraphx.quant import FLOAT8, INT8, unpack
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints

MIDDLE = 8  # code of 0 in 4 bits without zero points
CODES = frozenset({dtypes.INT8}) | FLOAT8
NUMBERS = frozenset({dtypes.FLOAT, dtypes.HALF})
INPUTS = NUMBERS | {dtypes.BF16}
HALVES = frozenset({dtypes.HALF, dtypes.BF16})
_CODES = {4: frozenset({dtypes.UINT8}), 8: CODES, 16: HALVES}


class BlockedDot(Op, name="blocked_dot"):
    """The matmul of `input` (.., K) and a matrix K x N of 4- to 16-bit codes, in the input's type.

    Element (k, n) of the matrix is (code - zero point) * scale, with the scale and the zero point
    (block, n) of block k / `block_size`. With `minima` it is code * scale + zero point: zero points
    are what codes 0 stand for. Codes of 8 bits are `codes` (K, N): i8 or an f8 type.
    Those of 16 bits are f16 or bf16.
    Codes of 4 bits are 0 .. 15, two of a column in a byte of `codes` (K / 2 rounded up, N), ui8,
    the first in the low half. Zero points are 8 for 4 bits and else 0 if not given. Input: f32,
    f16 or bf16; the matrix and the sums are f32. pack_weights makes it for matmuls whose kernels
    widen such weights.

    ```mlir
    %0 = "migraphx.blocked_dot"(%x, %codes, %scales) {block_size = 32 : i64}
           : (tensor<1x64xf32>, tensor<32x5xui8>, tensor<2x5xf32>) -> tensor<1x5xf32>
    ```
    """

    input: Operand
    codes: Operand
    scales: Operand
    zero_points: Operand | None
    out: Result
    block_size = attr.int_()
    bits = attr.int_(4)
    minima = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_dtype(o.input, INPUTS)
        check(o.bits in _CODES, lambda: f"bits expected 4, 8 or 16, got {o.bits}")
        check(o.block_size > 0, lambda: f"block_size expected 1 or more, got {o.block_size}")
        check_dtype(o.codes, _CODES[o.bits], "codes")
        check_dtype(o.scales, NUMBERS, "scales")
        check(o.input.rank >= 2, lambda: f"input expected rank 2 or more, got {o.input}")
        depth = o.input.dims[-1]
        check(depth != DYN, "input expected a known last extent")
        rows = -(-depth // 2) if o.bits == 4 else depth
        check(
            o.codes.rank == 2 and compatible(o.codes.dims[0], rows),
            lambda: f"codes expected {rows} rows, got {o.codes}",
        )
        columns = o.codes.dims[1]
        check(columns != DYN, lambda: f"codes expected a known last extent, got {o.codes}")
        per_block = (-(-depth // o.block_size), columns)
        for given, name in ((o.scales, "scales"), (o.zero_points, "zero_points")):
            check(
                given is None or given.dims == per_block,
                lambda n=name, g=given: f"{n} expected {per_block[0]} x {per_block[1]}, got {g}",
            )
        given = o.zero_points is not None
        check(given or not o.minima, "minima expected zero_points, which are not given")
        if o.zero_points is not None:
            check_dtype(o.zero_points, INT8 | NUMBERS, "zero_points")
        return TensorType(o.input.dtype, (*o.input.dims[:-1], columns))

    @staticmethod
    def reference(
        x: np.ndarray,
        codes: np.ndarray,
        scales: np.ndarray,
        zero_points: np.ndarray | None = None,
        *,
        block_size: int,
        bits: int = 4,
        minima: bool = False,
    ) -> np.ndarray:
        weights = matrix(
            x.shape[-1], codes, scales, zero_points, block_size, bits, minima=minima
        )  # fmt: skip
        return np.matmul(x.astype(np.float32), weights).astype(x.dtype)

    @staticmethod
    def examples() -> list[Example]:
        packed = ints(32, 5, low=0, high=256, dtype=np.uint8)
        scales = floats(2, 5)
        zeros = ints(2, 5, low=0, high=16, dtype=np.uint8)
        whole = ints(24, 3, low=-128, high=128, dtype=np.int8)
        f8 = sample((16, 3), dtypes.FP8E4M3FN, -3, 3)
        return [
            example(floats(2, 64), packed, scales, block_size=32),
            example(floats(2, 3, 64), packed, scales, zeros, block_size=32),
            example(floats(2, 64).astype(np.float16), packed, scales, zeros, block_size=32),
            example(floats(1, 63), packed, scales.astype(np.float16), floats(2, 5), block_size=32),
            example(floats(2, 64), packed, scales, floats(2, 5), block_size=32, minima=True),
            example(floats(4, 24), whole, floats(1, 3), block_size=24, bits=8),
            example(floats(2, 16), f8, floats(2, 3), block_size=8, bits=8),
            example(
                floats(2, 16),
                sample((16, 3), dtypes.BF16, -3, 3),
                floats(1, 3),
                block_size=16,
                bits=16,
            ),
        ]


def matrix(
    depth: int,
    codes: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray | None,
    block_size: int,
    bits: int,
    *,
    minima: bool = False,
) -> np.ndarray:
    """Return the matrix of codes and scales, in f32."""
    flat = unpack(codes, 0)[:depth] if bits == 4 else codes
    middle = MIDDLE if bits == 4 else 0
    zero = np.float32(middle) if zero_points is None else _spread(zero_points, block_size, depth)
    scale = _spread(scales, block_size, depth)
    if minima:
        return flat.astype(np.float32) * scale + zero
    return (flat.astype(np.float32) - zero) * scale


def _spread(x: np.ndarray, block_size: int, depth: int) -> np.ndarray:
    """Return the blocks' numbers repeated for each of their rows, in f32."""
    return np.repeat(x.astype(np.float32), block_size, axis=0)[:depth]
