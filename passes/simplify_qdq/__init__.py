"""simplify_qdq: matmuls of quantised values, with fewer quantise and dequantise ops between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import PipelineError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, Pointwise, attributes_of, is_a, mnemonic, names_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.movement import Concat, Pad, Slice
from mgx_mlir.dialects.migraphx.quant import (
    DequantizeLinear,
    PackFp4,
    PackInt4,
    QuantizeLinear,
    UnpackFp4,
    UnpackInt4,
)
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.analysis.qdq_values import QUANTISERS, is_zero, moved, same_constant
from mgx_mlir.passes.analysis.view_chains import VIEWS, VIEWS_AND_SLICE
from mgx_mlir.passes.simplify_qdq.gathered import find_gathered_table
from mgx_mlir.passes.simplify_qdq.products import (
    find_widened_convolution,
    find_widened_dot,
    match_find_mx_quantizable_ops,
    match_find_quantizable_ops,
)
from mgx_mlir.passes.simplify_qdq.requantised import (
    find_integer_bias,
    find_pooled,
    find_quantised_again,
    find_requantised,
)
from mgx_mlir.passes.simplify_qdq.tables import find_byte_table
from mgx_mlir.rewrite.passes import PatternPass, make_pass, option, run_pass
from mgx_mlir.rewrite.pattern import (
    Pattern,
    PatternSet,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    op_names,
    pattern,
)

_DEPTH = 16  # most ops between a quantizelinear and its dequantizelinear
_MOVES = (*VIEWS_AND_SLICE, Pad)
_PACKS = {"unpack_int4": "pack_int4", "unpack_fp4": "pack_fp4"}
# ops between int4 data and a quantizelinear
_TO_INT4 = (*VIEWS, Convert)


@pattern(DequantizeLinear, benefit=2)
def remove_zero_scales(op: DequantizeLinear, rw: Rewriter) -> Replacement:
    """dequantizelinear(x, 0, z) -> 0, x of integers"""
    scale = splat(op.scale)
    if scale is None or scale != 0:
        return no_match("the scale is not 0")
    t = TensorType.of(op.result)
    if TensorType.of(op.input).dtype.is_float:
        return no_match("an f8 input may be NaN, and NaN * 0 is NaN")
    if not t.is_static:
        return no_match("the dims are known only at run time")
    return rw.multibroadcast(rw.literal(0.0, t.dtype), t.dims)


@pattern(DequantizeLinear)
def remove_zero_point(op: DequantizeLinear, rw: Rewriter) -> Replacement:
    """dequantizelinear(x, s, 0) -> dequantizelinear(x, s)"""
    if op.zero_point is None:
        return no_match("it has no zero point")
    if not is_zero(op.zero_point):
        return no_match("the zero point is not the constant 0")
    return rw.op("dequantizelinear", op.input, op.scale)


@pattern(DequantizeLinear)
def add_int4_pack_unpack_pair(op: DequantizeLinear, rw: Rewriter) -> Replacement:
    """dq(quantizelinear(x)) of int4 parameters -> dq(unpack_int4(pack_int4(quantizelinear(x))))

    A scale or zero point from unpack_int4 shows that the model quantises to 4 bits, in an 8-bit
    type here. The pair saturates to 4 bits and keeps the data packed.
    """
    q = defined_by(op.input, QuantizeLinear)
    if q is None:
        return no_match("the input is not a quantizelinear")
    if not any(_is_int4(v) for v in q.operation.operands):
        return no_match("no operand of the quantizelinear is 4-bit data")
    t = TensorType.of(op.input)
    if t.dtype not in (dtypes.INT8, dtypes.UINT8):
        return no_match("the quantised type is {}", t.dtype)
    if not t.rank or t.dims[-1] % 2 or not t.is_static:
        return no_match("the last extent is not even")
    rw.merge_location(q)
    packed = rw.op("unpack_int4", rw.op("pack_int4", op.input))
    return rw.op("dequantizelinear", packed, op.scale, op.zero_point)


def _is_int4(value: ir.Value) -> bool:
    for _ in range(_DEPTH):
        owner = value.owner
        if isinstance(owner, ir.Block):
            return False
        if is_a(owner, UnpackInt4):
            return True
        if not is_a(owner, _TO_INT4):
            return False
        value = owner.operands[0]
    return False


# ---- pairs ---------------------------------------------------------------------------------------


@pattern(DequantizeLinear)
def remove_qdq_pairs(op: DequantizeLinear, rw: Rewriter) -> Replacement:
    """dequantizelinear(quantizelinear(x, s, z), s, z) -> clip(x, low, high)

    Also through views, slices, pads, and pairs of packing and unpacking. Scale and zero point must
    be equal, and all users of the quantised value dequantizelinears: a value that a matmul reads in
    8 bits is kept. The rounding of the pair is dropped, which changes results by at most half a
    step (for f8 half an ulp). Values out of range are clipped as before, as models rely on that
    instead of a Relu or a Clip. NaN stays NaN instead of becoming 0.
    """
    if not rw.options.pairs:
        return no_match("the option pairs is off")
    found = _pair(op)
    if isinstance(found, str):
        return no_match(found)
    q, moves, packed = found
    if moves and (splat(op.scale) is None or not is_splat_or_none(op.zero_point)):
        return no_match("scale or zero point is not one number, and elements move between")
    if not (same_constant(q.scale, op.scale) and same_constant(q.zero_point, op.zero_point)):
        return no_match("scales or zero points differ")
    t = TensorType.of(op.result)
    if TensorType.of(q.input).dtype is not t.dtype:
        return no_match("{} becomes {}", TensorType.of(q.input).dtype, t.dtype)
    if not t.is_static:
        return no_match("the dims are known only at run time")
    pads = [m for m in moves if is_a(m, Pad)]
    zero = 0 if op.zero_point is None else splat(op.zero_point)
    for pad in pads:
        if pad.opview.mode == "constant" and pad.opview.value != zero:
            return no_match("it is padded with another value than the zero point")
    rw.merge_location(q)
    x = q.input
    for move in moves:
        # padded with the zero point, which means 0
        given = {"value": 0.0} if is_a(move, Pad) else {}
        x = moved(rw, [move], x) if not given else rw.op(
            "pad", x, **{**attributes_of(move), **given}
        )  # fmt: skip
    quantised = TensorType.of(op.input).dtype
    bounds = [
        rw.op("dequantizelinear", _full(rw, number, quantised, t), op.scale, op.zero_point)
        for number in _range(packed, quantised)
    ]
    return rw.op("clip", x, *bounds)


def is_splat_or_none(value: ir.Value | None) -> bool:
    """Say whether a scale or zero point is absent, or one number."""
    return value is None or splat(value) is not None


def _full(rw: Rewriter, number: float, dtype: DType, like: TensorType) -> ir.Value:
    return rw.multibroadcast(rw.literal(number, dtype), like.dims)


def _range(packed: str, dtype: DType) -> tuple[float, float]:
    """Return the numbers between which quantised values are."""
    if packed == "pack_int4":
        return (0, 15) if dtype.is_unsigned else (-8, 7)
    if packed == "pack_fp4":
        return -6.0, 6.0
    if dtype.is_float:
        top = float(dtypes.float_info(dtype.np).max)
        return -top, top
    return dtype.lowest(), dtype.highest()


def _pair(op: Op) -> tuple[QuantizeLinear, list[ir.Operation], str] | str:
    """Return the quantizelinear before a dequantizelinear, the moves between in order, and the
    packing.

    Where there is no such pair, return the reason.
    """
    moves: list[ir.Operation] = []
    packed = ""
    value = op.input
    for _ in range(_DEPTH):
        owner = value.owner
        if isinstance(owner, ir.Block):
            return "there is no quantizelinear before it"
        step = owner.operation
        for use in value.uses:
            if not is_a(use.owner, (*_MOVES, DequantizeLinear, PackInt4, PackFp4)):
                return f"{use.owner.name} uses the quantised value too"
        if is_a(step, QuantizeLinear):
            return step.opview, _settled(list(reversed(moves))), packed
        if is_a(step, (UnpackInt4, UnpackFp4)):
            packing = _PACKS[mnemonic(step)]
            inner = defined_by(step.operands[0], packing)
            if inner is None or inner.axis != step.opview.axis:
                return "the unpacked value was not packed along the same axis"
            if not has_one_use(step.operands[0]):
                return "the packed value has other uses"
            packed, value = packing, inner.input
        elif is_a(step, _MOVES) and len(step.operands) == 1:
            moves.append(step)
            value = step.operands[0]
        else:
            return "there is no quantizelinear before it"
    return "the quantizelinear is too far away"


def _settled(moves: list[ir.Operation]) -> list[ir.Operation]:
    """Return the moves, without a pad at the ends whose slice brings the dims back."""
    if len(moves) != 2 or not is_a(moves[0], Pad) or not is_a(moves[1], Slice):
        return moves
    pad, cut = moves
    before = TensorType.of(pad.operands[0])
    rank = before.rank
    starts = list(cut.opview.starts or [1])
    same = TensorType.of(cut.results[0]).dims == before.dims
    return [] if same and not any(pad.opview.pads[:rank]) and not any(starts) else moves


# ---- fewer quantised forms -----------------------------------------------------------------------


@pattern(QuantizeLinear)
def match_qlinear_reused(op: QuantizeLinear, rw: Rewriter) -> Replacement:
    """f(x), quantizelinear(x) -> f(dequantizelinear(q)), q, where q = quantizelinear(x)

    If x has only these two uses, f is pointwise and comes later, and q is used once: then x is not
    stored. Only with the option `reuse`, since f reads x rounded to the quantised type, unlike in
    the model.
    """
    if not rw.options.reuse:
        return no_match("the option reuse is off")
    if not has_one_use(op.result):
        return no_match("the quantised value is used more than once, or not at all")
    found = [use.owner for use in islice(op.input.uses, 3)]
    if len(found) != 2:
        return no_match("the input is used {}", "once" if len(found) < 2 else "more than twice")
    other = next((u for u in found if u.operation != op.operation), None)
    if other is None:
        return no_match("it uses the input twice")
    if not is_a(other, Pointwise) or len(other.operation.regions):
        return no_match("{} is not pointwise", other.operation.name)
    if is_a(other, QUANTISERS):
        return no_match("{} uses the input too", other.operation.name)
    if not _comes_later(op.operation, other.operation):
        return no_match("{} comes before it", other.operation.name)
    if TensorType.of(op.scale).dtype is not TensorType.of(op.input).dtype:
        return no_match("the scale is of another type than the input")
    # after the op, before all that follow
    with ir.InsertionPoint.after(op.operation):
        back = rw.op("dequantizelinear", op.result, op.scale, op.zero_point)
    for i, v in enumerate(other.operation.operands):
        if v == op.input:
            other.operation.operands[i] = back
    return rw.updated()


def _comes_later(first: ir.Operation, second: ir.Operation) -> bool:
    """Say whether `second` follows `first` in the same block."""
    return first.block == second.block and first.is_before_in_block(second)


@pattern(QuantizeLinear)
def match_concat_qlinear(op: QuantizeLinear, rw: Rewriter) -> Replacement:
    """quantizelinear(concat(x, ..)) -> concat(quantizelinear(x), ..)

    If some x is a pointwise result, whose kernel fuses its quantizelinear; then the concat moves
    8-bit values.
    """
    concat = defined_by(op.input, Concat)
    if concat is None:
        return no_match("the input is not a concat")
    if not has_one_use(op.input):
        return no_match("the concat is used more than once")
    parts = list(concat.operation.operands)
    if not any(is_a(v.owner, Pointwise) for v in parts):
        return no_match("no part of the concat is a pointwise result")
    t = TensorType.of(op.input)
    types = [TensorType.of(v) for v in parts]
    if not t.is_static or not all(p.is_static for p in types):
        return no_match("the dims are known only at run time")
    axis: int = concat.axis % t.rank
    rw.merge_location(concat)
    out: list[ir.Value] = []
    at = 0
    for value, part in zip(parts, types, strict=True):
        end = at + part.dims[axis]
        given = [
            None if v is None else _cut(rw, v, axis, at, end, part.dims)
            for v in (op.scale, op.zero_point)
        ]
        kind = TensorType.of(op.result).dtype
        out.append(rw.op("quantizelinear", value, *given, out_type=kind))
        at = end
    return rw.op("concat", out, axis=axis)


def _cut(
    rw: Rewriter, v: ir.Value, axis: int, start: int, end: int, dims: Sequence[int]
) -> ir.Value:
    """Cut elements start .. end out of a scale or zero point along the axis."""
    number = splat(v)
    if number is not None:
        return rw.multibroadcast(rw.literal(np.asarray(number)), dims)
    return rw.op("slice", v, axes=[axis], starts=[start], ends=[end])


# ---- the pass ------------------------------------------------------------------------------------

# in sequence, as each set works on the result of the one before
_STAGES: tuple[tuple[Pattern, ...], ...] = (
    (remove_zero_scales, add_int4_pack_unpack_pair, find_gathered_table),
    (match_find_quantizable_ops, find_widened_dot, find_widened_convolution),
    (find_integer_bias, find_pooled),
    (find_requantised,),
    (match_find_mx_quantizable_ops,),
    (remove_qdq_pairs,),
    (match_qlinear_reused,),
    (match_concat_qlinear,),
    (find_quantised_again,),
    (find_byte_table,),
    (remove_zero_point,),
)


@dataclass(frozen=True)
class SimplifyQdq(PatternPass):
    """Multiply quantised values as they are, and drop pairs of quantising and dequantising.

    On a CPU (one thread of a shared Zen 4, the least of 30 runs; relu after the dot, constant
    weights; f32 without the pair, then i8): a dot of 128x768 by 768x3072 takes 6.3 and 3.1 ms,
    by 768x768 1.4 and 0.8 ms, of one row 0.19 and 0.12 ms; of ui8 512x256 by 256x256 0.66 and
    0.48 ms; a batch of 12 dots of 128x64 by 64x128 with no constant operand 0.32 and 0.43 ms.
    Convolutions by linalg take 4 to 14 times as long in i8, so there only dots use i8. Convolutions
    by vector loops take a quarter of f32's time; `vector` excludes the others.
    Dropping pairs saves nothing there, and is left to GPUs.
    """

    name: ClassVar[str] = "simplify_qdq"
    patterns: ClassVar[tuple[Pattern, ...]] = tuple(p for stage in _STAGES for p in stage)
    products: tuple[str, ...] = option(("dot", "convolution"), "ops that multiply 8-bit values")
    pairs: bool = option(True, "drop the remaining pairs, with their rounding")
    mixed: bool = option(False, "ui8 first operands are not shifted to i8")
    mx: bool = option(False, "dots of f8 values whose scales vary in blocks (gfx950)")
    widened: bool = option(True, "also dots of 8-bit integers that are widened to i32")
    vector: bool = option(False, "only convolutions that become 8-bit vector loops")
    requantised: bool = option(False, "requantise 8-bit sums by one factor")
    tables: bool = option(False, "replace ops between 8-bit values by lookup tables")
    reuse: bool = option(False, "pointwise ops read a quantised value instead of a second one")

    def __post_init__(self) -> None:
        for name in self.products:
            if name not in ("dot", "convolution"):
                raise PipelineError(f"products expected dot and convolution, got '{name}'")

    def run(self, module: ir.Operation) -> bool:
        names = set(op_names(module))
        products = not names.isdisjoint(names_of(Dot, Convolution))
        widened = self.widened and products and Convert.OPERATION_NAME in names
        if names.isdisjoint(names_of(*QUANTISERS)) and not widened:
            return False
        changed = False
        for stage in _STAGES:
            if PatternSet(stage).apply(module, self, self.max_iterations):
                run_pass(make_pass("dead_code_elimination"), module)
                changed = True
        return changed
