"""Sums of products by instructions that multiply neighbours along the depth: bf16, 8-bit integers.

The weights are packed with such neighbours next to each other. Which instruction there is depends
on the processor (isa.py); 8-bit integers have a form without any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.passes.lower.cpu.isa import Isa
from mgx_mlir.passes.lower.cpu.workgroup_builder import Index, WorkgroupBuilder

PAIR = 2  # neighbours along the depth that an instruction for bf16 multiplies together
SIGN = 0x80808080 - (1 << 32)  # what i8 and u8 less 128 differ by, in each byte of a word


def byte_unit(isa: Isa) -> int:
    """Return how many neighbours along the depth of 8-bit integers are read together."""
    return 4 if isa.byte_dot else 2 if isa.word_dot else 1


def byte_start(weights: np.ndarray, isa: Isa, *, signed: bool) -> np.ndarray | None:
    """Return what the sums of each column of weights [K, N] begin with, i32; None for 0.

    The instruction for bytes takes u8 times i8: i8 operands come to it with 128 added.
    """
    if not signed or not isa.byte_dot:
        return None
    return -128 * weights.sum(0, dtype=np.int32)


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


def byte_sums(
    k: WorkgroupBuilder,
    isa: Isa,
    operands: tuple[ir.Value, ir.Value],
    rows: Sequence[Index],
    panel: Index,
    depth: Index,
    init: Sequence[ir.Value],
    *,
    signed: bool,
) -> list[ir.Value]:
    """Return `pair_sums` of 8-bit integers, x signed or not and i8 weights, in i32.

    Where `byte_start` gives something, it stands behind the depth of each packed panel.
    """
    x, w = operands
    unit, lanes, vectors = byte_unit(isa), isa.lanes, len(init) // max(1, len(rows))
    assert isinstance(depth, int)
    multiply = byte_products(k, isa, signed=signed)
    groups = depth // unit

    def step(d: Index, sums: list[ir.Value], masked: float | None = None) -> list[ir.Value]:
        columns = _columns(k, w, panel, d, unit * lanes, vectors)
        out: list[ir.Value] = []
        for i, row in enumerate(rows):
            bytes_ = k.read(x, [row, k.mul(d, unit)], unit, masked=masked)
            out += multiply(bytes_, columns, sums[i * vectors : (i + 1) * vectors])
        return out

    sums = list(init)
    if signed and isa.byte_dot:
        starts = _columns(k, w, panel, -(-depth // unit), unit * lanes, vectors)
        kind = k.vector_type(lanes, dtypes.INT32)
        sums = [vector.BitCastOp(kind, v).result for v in starts] * len(rows)
    sums = k.loop(0, groups, 1, sums, step)
    return step(groups, sums, 0.0) if depth % unit else sums


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
    lanes = isa.lanes
    words = k.vector_type(lanes, dtypes.INT32)
    extend = arith.ExtSIOp if signed else arith.ExtUIOp

    def by_bytes(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        word = _word(k, x, lanes)
        if signed:
            word = arith.XOrIOp(word, k.splat(SIGN, lanes, dtypes.INT32)).result
        value = vector.BitCastOp(k.vector_type(4 * lanes, dtypes.INT8), word).result
        return [
            _add(k, isa.byte_dot, total, value, c) for total, c in zip(sums, columns, strict=True)
        ]

    def by_words(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        wide = k.vector_type(2 * lanes, dtypes.INT16)
        word = _word(k, extend(k.vector_type(2, dtypes.INT16), x).result, lanes)
        value = vector.BitCastOp(wide, word).result
        return [
            arith.AddIOp(
                total, k.intrinsic(isa.word_dot, words, value, arith.ExtSIOp(wide, c).result)
            ).result
            for total, c in zip(sums, columns, strict=True)
        ]

    def one_by_one(
        x: ir.Value, columns: Sequence[ir.Value], sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        wide = extend(k.vector_type(1, dtypes.INT32), x).result
        value = vector.BroadcastOp(words, wide).result
        return [
            arith.AddIOp(total, arith.MulIOp(value, arith.ExtSIOp(words, c).result).result).result
            for total, c in zip(sums, columns, strict=True)
        ]

    return by_bytes if isa.byte_dot else by_words if isa.word_dot else one_by_one


def _columns(
    k: WorkgroupBuilder, w: ir.Value, panel: Index, group: Index, lanes: int, count: int
) -> list[ir.Value]:
    """Return registers of packed weights."""
    return [k.read(w, [panel, group, j * lanes], lanes) for j in range(count)]


def _word(k: WorkgroupBuilder, neighbours: ir.Value, lanes: int) -> ir.Value:
    """Return neighbours that fill 32 bits in each lane."""
    one = vector.BitCastOp(k.vector_type(1, dtypes.INT32), neighbours).result
    return vector.BroadcastOp(k.vector_type(lanes, dtypes.INT32), one).result


def with_start(packed: np.ndarray, start: np.ndarray | None, width: int) -> np.ndarray:
    """Return packed weights of bytes with what the sums of their columns begin with behind each
    panel."""
    if start is None:
        return packed
    count = len(packed)
    filled = np.zeros((count, 1, width), "<i4")
    filled.reshape(-1)[: len(start)] = start
    return np.concatenate([packed, filled.view(np.int8)], 1)


def _add(k: WorkgroupBuilder, name: str, total: ir.Value, *operands: ir.Value) -> ir.Value:
    """Return an instruction of the processor that adds to `total`."""
    return k.intrinsic(name, total.type, total, *operands)
