"""Instructions that multiply neighbours along the depth: one f32, two bf16, four 8-bit integers.

B is packed with such neighbours next to each other. The instructions depend on the CPU (isa.py).
8-bit integers have a form without any.

Without an instruction for four bytes there may be one that sums two products of u8 and i8 in 16
bits. It saturates unless the two weights are small, which packing finds out (byte_panels.py). The
rest are multiplied as i16 words, even and odd bytes separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder

PAIR = 2  # neighbours along the depth that an instruction for bf16 multiplies together
SIGN = 0x80808080 - (1 << 32)  # difference of i8 and u8 less 128, in each byte of a word

# multiply(x, columns, sums): multiply one row's neighbours with registers of B, and add to the sums
Multiply = Callable[[ir.Value, Sequence[ir.Value], Sequence[ir.Value]], list[ir.Value]]


def byte_unit(isa: Isa) -> int:
    """Return how many neighbours along the depth of 8-bit integers are read together."""
    return 4 if isa.byte_dot or isa.byte_pairs else 1


def unit_of(isa: Isa, dtype: DType) -> int:
    """Return how many neighbours along the depth an instruction multiplies together."""
    if dtype.is_integer:
        return byte_unit(isa)
    return PAIR if dtype is dtypes.BF16 else 1


def byte_shift(isa: Isa, *, signed: bool) -> int:
    """Return the offset that converts 8-bit operands to the instruction's signedness."""
    if byte_unit(isa) == 1 or signed == isa.signed_bytes:
        return 0
    return 128 if signed else -128


def products(k: WorkgroupBuilder, isa: Isa, dtype: DType) -> Multiply:
    """Return the multiplication for a type: f32 one by one, bf16 in pairs, bytes."""
    if dtype.is_integer:
        return byte_products(k, isa, signed=dtype.is_signed)
    if dtype is dtypes.BF16:
        return pair_products(k, isa)
    return _multiply(
        lambda x: k.broadcast(x, isa.lanes), lambda total, value, c: k.fma(value, c, total)
    )


def pair_products(k: WorkgroupBuilder, isa: Isa) -> Multiply:
    """Return the multiplication of pairs of bf16, with f32 sums."""
    pairs = k.vector_type(PAIR * isa.lanes, dtypes.BF16)
    return _multiply(
        lambda x: vector.BitCastOp(pairs, _word(k, x, isa.lanes)).result,
        lambda total, value, c: k.intrinsic(isa.bf16_dot, total.type, total, value, c),
    )


def byte_products(k: WorkgroupBuilder, isa: Isa, *, signed: bool) -> Multiply:
    """Return the multiplication of `byte_unit` bytes of A, signed or not, with i32 sums."""
    lanes, shift = isa.lanes, byte_shift(isa, signed=signed)
    words = k.vector_type(lanes, dtypes.INT32)
    if isa.byte_dot:
        return _multiply(
            lambda x: _shifted(k, x, lanes, dtypes.INT8, shift),
            lambda total, value, c: k.intrinsic(isa.byte_dot, total.type, total, value, c),
        )
    if not isa.byte_pairs:  # one by one
        extend = arith.ExtSIOp if signed else arith.ExtUIOp

        def spread(x: ir.Value) -> ir.Value:
            wide = extend(k.vector_type(1, dtypes.INT32), x).result
            return vector.BroadcastOp(words, wide).result

        def added(total: ir.Value, value: ir.Value, c: ir.Value) -> ir.Value:
            product = arith.MulIOp(value, arith.ExtSIOp(words, c).result).result
            return arith.AddIOp(total, product).result

        return _multiply(spread, added)
    wide = k.vector_type(PAIR * lanes, dtypes.INT16)
    low, byte = k.splat(255, PAIR * lanes, dtypes.INT16), k.splat(8, PAIR * lanes, dtypes.INT16)

    def halves(x: ir.Value) -> tuple[ir.Value, ir.Value]:
        value = _shifted(k, x, lanes, dtypes.INT16, shift)
        return arith.AndIOp(value, low).result, arith.ShRUIOp(value, byte).result

    def added_halves(total: ir.Value, value: tuple[ir.Value, ir.Value], c: ir.Value) -> ir.Value:
        both = vector.BitCastOp(wide, c).result
        for v, end in zip(value, (arith.ShLIOp(both, byte).result, both), strict=True):
            weights = arith.ShRSIOp(end, byte).result
            product = k.intrinsic(isa.word_dot, words, v, weights)
            total = arith.AddIOp(total, product).result
        return total

    return _multiply(halves, added_halves)


def pair_byte_products(k: WorkgroupBuilder, isa: Isa, *, signed: bool) -> Multiply:
    """`byte_products` with weights whose products do not saturate, two at a time, in 16 bits."""
    lanes, shift = isa.lanes, byte_shift(isa, signed=signed)
    halves, words = k.vector_type(PAIR * lanes, dtypes.INT16), k.vector_type(lanes, dtypes.INT32)
    ones = k.splat(1, PAIR * lanes, dtypes.INT16)

    def added(total: ir.Value, value: ir.Value, c: ir.Value) -> ir.Value:
        product = k.intrinsic(isa.byte_pairs, halves, value, c)
        product = k.intrinsic(isa.word_dot, words, product, ones)
        return arith.AddIOp(total, product).result

    return _multiply(lambda x: _shifted(k, x, lanes, dtypes.INT8, shift), added)


def _multiply(
    spread: Callable[[ir.Value], Any], added: Callable[[ir.Value, Any, ir.Value], ir.Value]
) -> Multiply:
    """spread(x): neighbours of a row in every lane. added(total, spread, column): one register."""

    def multiply(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        value = spread(x)
        return [added(total, value, c) for total, c in zip(sums, columns, strict=True)]

    return multiply


def _shifted(k: WorkgroupBuilder, x: ir.Value, lanes: int, dtype: DType, shift: int) -> ir.Value:
    """Return four bytes in each 32 bits, with the sign that the instruction takes."""
    word = _word(k, x, lanes)
    if shift:
        word = arith.XOrIOp(word, k.splat(SIGN, lanes, dtypes.INT32)).result
    return vector.BitCastOp(k.vector_type(lanes * 32 // dtype.bits, dtype), word).result


def _word(k: WorkgroupBuilder, x: ir.Value, lanes: int) -> ir.Value:
    """Return neighbours that fill 32 bits in each lane."""
    one = vector.BitCastOp(k.vector_type(1, dtypes.INT32), x).result
    return vector.BroadcastOp(k.vector_type(lanes, dtypes.INT32), one).result
