"""Sums of products by instructions that multiply neighbours along the depth: bf16, 8-bit integers.

The weights are packed with such neighbours next to each other. Which instruction there is depends
on the processor (isa.py); 8-bit integers have a form without any.

Without an instruction for four bytes there may be one that sums two products of u8 and i8 in 16
bits. It saturates, but not where two weights of a sign are small: those are told apart when they
are packed (byte_pairs.py). The rest are multiplied as words (i16), after every other byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder

PAIR = 2  # neighbours along the depth that an instruction for bf16 multiplies together
SIGN = 0x80808080 - (1 << 32)  # what i8 and u8 less 128 differ by, in each byte of a word


def byte_unit(isa: Isa) -> int:
    """Return how many neighbours along the depth of 8-bit integers are read together."""
    return 4 if isa.byte_dot or isa.byte_pairs else 1


def byte_shift(isa: Isa, *, signed: bool) -> int:
    """Return what is added to 8-bit operands, signed or not, to have the instruction's sign."""
    if byte_unit(isa) == 1 or signed == isa.signed_bytes:
        return 0
    return 128 if signed else -128


def pair_sums(
    k: WorkgroupBuilder,
    isa: Isa,
    operands: tuple[ir.Value, ir.Value],
    rows: Sequence[Index],
    panel: Index,
    depth: Index,
    init: Sequence[ir.Value],
) -> list[ir.Value]:
    """Return the sums over the depth of bf16, two products added to a lane at a time.

    operands: x [row, depth] and the packed weights. init: the sums so far, for each of `rows` those
    of each register.
    """
    x, w = operands
    vectors = len(init) // max(1, len(rows))
    multiply = pair_products(k, isa)

    def step(d: Index, sums: list[ir.Value]) -> list[ir.Value]:
        columns = _columns(k, w, panel, d, PAIR * isa.lanes, vectors)
        out: list[ir.Value] = []
        for i, row in enumerate(rows):
            pair = k.read(x, [row, k.mul(d, PAIR)], PAIR)
            out += multiply(pair, columns, sums[i * vectors : (i + 1) * vectors])
        return out

    return k.loop(0, k.div(depth, PAIR), 1, list(init), step)


Multiply = Callable[[ir.Value, Sequence[ir.Value], Sequence[ir.Value]], list[ir.Value]]


def pair_products(k: WorkgroupBuilder, isa: Isa) -> Multiply:
    """Return what adds the products of one row's pair of bf16 with some registers of weights."""
    pairs = k.vector_type(PAIR * isa.lanes, dtypes.BF16)

    def by_pairs(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        value = vector.BitCastOp(pairs, _word(k, x, isa.lanes)).result
        return [
            _add(k, isa.bf16_dot, total, value, c) for total, c in zip(sums, columns, strict=True)
        ]

    return by_pairs


def byte_products(k: WorkgroupBuilder, isa: Isa, *, signed: bool) -> Multiply:
    """Return what adds the products of one row's neighbours with some registers of weights."""
    lanes, shift = isa.lanes, byte_shift(isa, signed=signed)
    words = k.vector_type(lanes, dtypes.INT32)
    extend = arith.ExtSIOp if signed else arith.ExtUIOp

    def by_bytes(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        value = _shifted(k, x, lanes, dtypes.INT8, shift)
        return [
            _add(k, isa.byte_dot, total, value, c) for total, c in zip(sums, columns, strict=True)
        ]

    def by_words(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        wide = k.vector_type(PAIR * lanes, dtypes.INT16)
        low, byte = k.splat(255, PAIR * lanes, dtypes.INT16), k.splat(8, PAIR * lanes, dtypes.INT16)
        value = _shifted(k, x, lanes, dtypes.INT16, shift)
        even, odd = arith.AndIOp(value, low).result, arith.ShRUIOp(value, byte).result
        out: list[ir.Value] = []
        for total, c in zip(sums, columns, strict=True):
            both = vector.BitCastOp(wide, c).result
            ends = [arith.ShLIOp(both, byte).result, both]
            for v, end in zip((even, odd), ends, strict=True):
                weights = arith.ShRSIOp(end, byte).result
                product = k.intrinsic(isa.word_dot, words, v, weights)
                total = arith.AddIOp(total, product).result
            out.append(total)
        return out

    def one_by_one(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        wide = extend(k.vector_type(1, dtypes.INT32), x).result
        value = vector.BroadcastOp(words, wide).result
        return [
            arith.AddIOp(total, arith.MulIOp(value, arith.ExtSIOp(words, c).result).result).result
            for total, c in zip(sums, columns, strict=True)
        ]

    return by_bytes if isa.byte_dot else by_words if isa.byte_pairs else one_by_one


def pair_byte_products(k: WorkgroupBuilder, isa: Isa, *, signed: bool) -> Multiply:
    """`byte_products` with weights whose products do not saturate, two at a time, in 16 bits."""
    lanes, shift = isa.lanes, byte_shift(isa, signed=signed)
    halves, words = k.vector_type(PAIR * lanes, dtypes.INT16), k.vector_type(lanes, dtypes.INT32)
    ones = k.splat(1, PAIR * lanes, dtypes.INT16)

    def by_pairs(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        value = _shifted(k, x, lanes, dtypes.INT8, shift)
        out: list[ir.Value] = []
        for total, c in zip(sums, columns, strict=True):
            product = k.intrinsic(isa.byte_pairs, halves, value, c)
            product = k.intrinsic(isa.word_dot, words, product, ones)
            out.append(arith.AddIOp(total, product).result)
        return out

    return by_pairs


def _shifted(
    k: WorkgroupBuilder, neighbours: ir.Value, lanes: int, dtype: dtypes.DType, shift: int
) -> ir.Value:
    """Return four bytes in each 32 bits, with the sign that the instruction takes."""
    word = _word(k, neighbours, lanes)
    if shift:
        word = arith.XOrIOp(word, k.splat(SIGN, lanes, dtypes.INT32)).result
    return vector.BitCastOp(k.vector_type(lanes * 32 // dtype.bits, dtype), word).result


def _columns(
    k: WorkgroupBuilder, w: ir.Value, panel: Index, group: Index, lanes: int, count: int
) -> list[ir.Value]:
    """Return registers of packed weights."""
    return [k.read(w, [panel, group, j * lanes], lanes) for j in range(count)]


def _word(k: WorkgroupBuilder, neighbours: ir.Value, lanes: int) -> ir.Value:
    """Return neighbours that fill 32 bits in each lane."""
    one = vector.BitCastOp(k.vector_type(1, dtypes.INT32), neighbours).result
    return vector.BroadcastOp(k.vector_type(lanes, dtypes.INT32), one).result


def _add(k: WorkgroupBuilder, name: str, total: ir.Value, *operands: ir.Value) -> ir.Value:
    """Return an instruction of the processor that adds to `total`."""
    return k.intrinsic(name, total.type, total, *operands)
