"""Patterns of simplify_qdq that multiply quantised values: dot and convolution as quant ops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, attributes_of, is_a, mnemonic
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.pointwise_binary import Sub
from mgx_mlir.passes.analysis.constants import is_splat, splat
from mgx_mlir.passes.analysis.qdq_values import Dequantised, dequantised, is_zero, map_after, moved
from mgx_mlir.passes.analysis.view_chains import VIEWS, Atom, Map, build_map, varying
from mgx_mlir.passes.lowering import select
from mgx_mlir.rewrite.pattern import NoMatch, Replacement, Rewriter, defined_by, no_match, pattern

_DEPTH = 16  # most ops between a dot and its widened source


@dataclass(frozen=True)
class _Side:
    """One dequantised operand of a matmul or convolution."""

    found: Dequantised
    dims: tuple[int, ...]
    dtype: DType  # type of the quantised values
    scale: tuple[ir.Value, Map]  # source of the scale, and its map to the operand's dims
    zero: tuple[ir.Value, Map] | None  # zero point likewise, None where it is 0
    # zero point is not 0 in the multiplied type (ui8 that becomes i8: not 128)
    affine: bool
    stays: bool = False  # ui8 is multiplied without a shift to i8

    def values(self, rw: Rewriter) -> ir.Value:
        """Build the quantised operand itself, of ui8 as i8 unless it stays."""
        found = self.found.apply(rw, self.found.op.input)
        return found if self.stays else _signed(rw, found)

    def zero_point(self, rw: Rewriter) -> tuple[ir.Value, Map] | None:
        """Return the zero point of `values`, where that is affine."""
        if not self.affine:
            return None
        if self.zero is not None and self.stays:
            return self.zero
        if self.zero is None:
            return rw.literal(np.int8(-128)), _everywhere(self.dims)
        return _signed(rw, self.zero[0]), self.zero[1]


def _signed(rw: Rewriter, x: ir.Value) -> ir.Value:
    """Shift ui8 values by -128 to i8; return others as they are."""
    if TensorType.of(x).dtype is not dtypes.UINT8:
        return x
    wide = rw.op("convert", x, target_type=dtypes.INT16)
    return rw.op("convert", rw.sub(wide, 128), target_type=dtypes.INT8)


def _side(rw: Rewriter, value: ir.Value, which: str, stays: bool = False) -> _Side | NoMatch:
    found = dequantised(value)
    if found is None:
        return no_match("the {} operand is not dequantised", which)
    t = TensorType.of(value)
    if DYN in t.dims or any(d == 0 for d in t.dims):
        return no_match("dims of the {} operand are empty or known only at run time", which)
    scale = _parameter(rw, found, found.op.scale, t.dims)
    if scale is None:
        return no_match("the {} scale cannot be mapped through the views on its operand", which)
    dtype, given, zero = TensorType.of(found.op.input).dtype, found.op.zero_point, None
    if given is not None and not is_zero(given):
        zero = _parameter(rw, found, given, t.dims)
        if zero is None:
            return no_match("the {} zero point cannot be mapped through the views", which)
    affine = zero is not None
    if dtype is dtypes.UINT8 and not stays:
        affine = zero is None or not is_splat(zero[0], 128)
    return _Side(found, t.dims, dtype, scale, zero, affine, stays)


def _parameter(
    rw: Rewriter, found: Dequantised, value: ir.Value, dims: tuple[int, ...]
) -> tuple[ir.Value, Map] | None:
    """Return a scale or zero point as (source, map to `dims`); a number's source has rank 0."""
    number = splat(value)
    if number is not None:
        return rw.literal(np.asarray(number)), _everywhere(dims)
    return found.scale_map(value)


def _everywhere(dims: Sequence[int]) -> Map:
    """Return the map that repeats one element over `dims`."""
    return tuple(((d, 0),) if d != 1 else () for d in dims)


def _check_types(a: _Side, b: _Side) -> NoMatch | None:
    if {a.dtype, b.dtype} <= {dtypes.INT8, dtypes.UINT8}:
        return None
    if a.dtype.is_float and a.dtype.size == 1 and a.dtype is b.dtype:
        return no_match("an f8 zero point is not 0") if a.affine or b.affine else None
    return no_match("there is no quantised op of {} and {}", a.dtype, b.dtype)


@pattern(Dot, Convolution)
def match_find_quantizable_ops(op: Dot | Convolution, rw: Rewriter) -> Replacement:
    """dot(dq(x, s), dq(w, t)) -> dq(quant_dot(x, w), s * t); convolution likewise

    i8 and ui8 operands (ui8 as i8 minus 128; with `mixed` the first operand unchanged), or f8 of
    one type. Scales must not vary along the reduced axis: at most one per row and column for a dot,
    one for the input and one per output channel for a convolution. Sums of affine operands are
    corrected in i32, which is exact: (x - p)(w - q) = xw - p sum(w) - q (sum(x) - p n).
    Integer sums are exact, so the result differs from the program's only by the rounding of f32
    sums.
    """
    x, w = op.operands[0], op.operands[1]
    name = mnemonic(op)
    if name not in rw.options.products:
        return no_match("the option `products` excludes {}", name)
    if _left_out(op, rw):
        return no_match("there are no CPU vector loops for it")
    a, b = _side(rw, x, "first", rw.options.mixed), _side(rw, w, "second")
    for side in (a, b):
        if isinstance(side, NoMatch):
            return side
    assert isinstance(a, _Side)
    assert isinstance(b, _Side)
    wrong = _check_types(a, b)
    if wrong is not None:
        return wrong
    is_dot = is_a(op, Dot)
    plan = _plan_dot(a, b) if is_dot else _plan_convolution(op, a, b)
    if isinstance(plan, NoMatch):
        return plan
    out = TensorType.of(op.result)
    if DYN in out.dims:
        return no_match("dims of the result are known only at run time")
    rw.merge_location(a.found.op, b.found.op)
    left, right = (_Operand(s.values(rw), s.zero_point(rw), s.dims) for s in (a, b))
    if is_dot:
        total = rw.op("quant_dot", left.value, right.value)
        total = _correct_dot(rw, total, left, right)
    else:
        total = convolved(rw, op, left, right)
    wide = _wide(out.dtype, a, b)
    value = rw.op("dequantizelinear", total, _combined_scale(rw, plan, wide, out.dims))
    if wide is not out.dtype:
        value = rw.op("convert", value, target_type=out.dtype)
    return value


def _left_out(op: Op, rw: Rewriter) -> bool:
    """Return whether a convolution is not to be quantised, as it has no 8-bit CPU loops."""
    if not rw.options.vector or not isinstance(op, Convolution):
        return False
    return select.refusal("cpu", "convolution", op, in_bytes=True) is not None


def _wide(out: DType, *sides: _Side) -> DType:
    """Return the type to scale in: products of 16-bit scales, and i32 sums, do not fit 16 bits."""
    kinds = {out, *(TensorType.of(s.scale[0]).dtype for s in sides)}
    return dtypes.DOUBLE if dtypes.DOUBLE in kinds else dtypes.FLOAT


Plan = tuple[tuple[ir.Value, Map], tuple[ir.Value, Map]]


def _combined_scale(rw: Rewriter, plan: Plan, dtype: DType, dims: tuple[int, ...]) -> ir.Value:
    """Build the product of both scales at the result's dims."""
    numbers = [splat(source) for source, _ in plan]
    if numbers[0] is not None and numbers[1] is not None:
        product = np.array(numbers[0]).astype(dtype.np) * np.array(numbers[1]).astype(dtype.np)
        return rw.multibroadcast(rw.literal(product), dims)
    for number, (source, m) in ((numbers[0], plan[1]), (numbers[1], plan[0])):
        if number is not None and literals.is_literal(source):
            scaled = literals.array_of(source.owner).astype(dtype.np) * dtype.np.type(number)
            return build_map(rw, rw.literal(scaled), m)
    parts = [build_map(rw, _converted(rw, source, dtype), m) for source, m in plan]
    return rw.op("mul", *parts)


def _converted(rw: Rewriter, value: ir.Value, dtype: DType) -> ir.Value:
    if TensorType.of(value).dtype is dtype:
        return value
    return rw.op("convert", value, target_type=dtype)


def _repeat(m: Map, axis: int, extent: int) -> Map:
    """Return the map with one axis repeated to another extent."""
    axis %= len(m)
    atoms = () if extent == 1 else ((extent, 0),)
    return (*m[:axis], atoms, *m[axis + 1 :])


# ---- dot -----------------------------------------------------------------------------------------


def _plan_dot(a: _Side, b: _Side) -> Plan | NoMatch:
    """Return the scales as maps to the result's dims."""
    rank = len(a.dims)
    for side, axis, which in ((a, rank - 1, "first"), (b, rank - 2, "second")):
        for found, what in ((side.scale, "scale"), (side.zero, "zero point")):
            if found is not None and axis in varying(found[1]):
                return no_match("the {} {} varies along the reduced axis", which, what)
    rows, columns = a.dims[-2], b.dims[-1]
    return (
        (a.scale[0], _repeat(a.scale[1], -1, columns)),
        (b.scale[0], _repeat(b.scale[1], -2, rows)),
    )


@dataclass(frozen=True)
class _Operand:
    """An operand of a quantised matmul or convolution."""

    value: ir.Value
    zero: tuple[ir.Value, Map] | None  # source of the zero point, and its map; None without one
    dims: tuple[int, ...]


def _correct_dot(rw: Rewriter, total: ir.Value, a: _Operand, b: _Operand) -> ir.Value:
    """Correct the sums of affine operands: subtract p sum(w) and q (sum(x) - p n)."""
    dims = TensorType.of(total).dims
    row, column = len(dims) - 2, len(dims) - 1
    if a.zero is not None:
        sums = _sums(rw, b.value, row)
        total = _less(rw, total, sums, a.zero[0], _repeat(a.zero[1], column, dims[column]), row)
    if b.zero is not None:
        depth = a.dims[-1]
        if a.zero is not None and (depth == DYN or is_named(depth)):
            # the depth n is dynamic
            own = rw.multibroadcast(_zero(rw, *a.zero), a.dims)
            less = rw.op("sub", _converted(rw, a.value, dtypes.INT32), own)
            sums = rw.op("reduce_sum", less, axes=[column])
        else:
            sums = _sums(rw, a.value, column)
            if a.zero is not None:
                own = _zero(rw, a.zero[0], _repeat(a.zero[1], column, 1))
                sums = rw.sub(sums, rw.mul(own, depth))
        total = _less(rw, total, sums, b.zero[0], _repeat(b.zero[1], row, dims[row]), column)
    return total


def _sums(rw: Rewriter, value: ir.Value, axis: int) -> ir.Value:
    """Build the i32 sums of a matrix along an axis; one that is repeated is summed once."""
    dims = TensorType.of(value).dims
    view = defined_by(value, Multibroadcast)
    below = value if view is None else view.operands[0]
    own = TensorType.of(below).dims
    at = axis - (len(dims) - len(own))
    if at < 0 or own[at] != dims[axis]:
        below, at = value, axis
    sums = rw.op("reduce_sum", _converted(rw, below, dtypes.INT32), axes=[at])
    return rw.multibroadcast(sums, (*dims[:axis], 1, *dims[axis + 1 :]))


def _less(
    rw: Rewriter, total: ir.Value, sums: ir.Value, source: ir.Value, m: Map, axis: int
) -> ir.Value:
    """Build total - zero * sums, the sums of extent 1 along `axis`."""
    dims = TensorType.of(total).dims
    if axis in varying(m):
        sums = rw.multibroadcast(sums, dims)
    else:
        m = _repeat(m, axis, 1)  # one row, or column, serves for all
    return rw.op("sub", total, rw.multibroadcast(rw.op("mul", _zero(rw, source, m), sums), dims))


def _zero(rw: Rewriter, source: ir.Value, m: Map) -> ir.Value:
    return build_map(rw, _converted(rw, source, dtypes.INT32), m)


# ---- dots of widened integers --------------------------------------------------------------------


@pattern(Dot)
def find_widened_dot(op: Dot, rw: Rewriter) -> Replacement:
    """dot(convert(x) - p, convert(w) - q) -> quant_dot(x, w) in i32, corrected

    8-bit integers that are widened to i32, as MatMulInteger has them. A zero point must not vary
    along the reduced axis. Sums wrap in both forms, so the results are equal.
    """
    if not rw.options.widened or "dot" not in rw.options.products:
        return no_match("the options `products` and `widened` exclude it")
    if TensorType.of(op.result).dtype is not dtypes.INT32:
        return no_match("the sums are not i32")
    sides: list[_Widened] = []
    stays = (rw.options.mixed, False)
    for which, value, summed in (("first", op.operands[0], -1), ("second", op.operands[1], -2)):
        found = _widened(value)
        if found is None:
            return no_match("the {} operand is not a widened 8-bit integer of known dims", which)
        if len(found.dims) + summed in varying(found.zero[1]):
            return no_match("the {} zero point varies along the reduced axis", which)
        sides.append(found)
    a, b = (side.narrow(rw, stays=kept) for side, kept in zip(sides, stays, strict=True))
    return _correct_dot(rw, rw.op("quant_dot", a.value, b.value), a, b)


@pattern(Convolution)
def find_widened_convolution(op: Convolution, rw: Rewriter) -> Replacement:
    """convolution(convert(x) - p, convert(w) - q) -> quant_convolution(x, w) in i32, corrected

    8-bit integers that are widened to i32, as ConvInteger and QLinearConv have them: p one number,
    q one for each output channel at most.
    """
    if not rw.options.widened or "convolution" not in rw.options.products:
        return no_match("the options `products` and `widened` exclude it")
    if TensorType.of(op.result).dtype is not dtypes.INT32 or op.channels_last:
        return no_match("the sums are not i32, or the image is channels-last")
    if _left_out(op, rw):
        return no_match("there are no CPU vector loops for it")
    sides = [_widened(v) for v in op.operands]
    if sides[0] is None or sides[1] is None:
        return no_match("an operand is not a widened 8-bit integer of known dims")
    if varying(sides[0].zero[1]) or not varying(sides[1].zero[1]) <= {0}:
        return no_match("a zero point varies along more than output channels")
    if not _is_byte(sides[0]):
        return no_match("the input's zero point is not in the range of its type")
    if sides[1].is_affine(stays=False) and op.group != 1:
        return no_match("the weights of {} groups have a zero point", op.group)
    x = sides[0].narrow(rw, stays=rw.options.mixed)
    return convolved(rw, op, x, sides[1].narrow(rw, stays=False))


def _is_byte(side: _Widened) -> bool:
    """Say whether a zero point is one of the 8-bit type that is widened."""
    dtype, zero = TensorType.of(side.source).dtype, side.zero[0]
    if isinstance(zero, int):
        return dtype.lowest() <= zero <= dtype.highest()
    wide = defined_by(zero, Convert)
    return wide is not None and TensorType.of(wide.operands[0]).dtype is dtype


@dataclass(frozen=True)
class _Widened:
    """An i32 operand that is an 8-bit integer minus a zero point, through views."""

    source: ir.Value  # 8-bit integers
    moves: tuple[ir.Operation, ...]  # views on the source, the first one first
    zero: tuple[int | ir.Value, Map]  # i32 zero point: a number or its source, and its map
    dims: tuple[int, ...]

    def is_affine(self, *, stays: bool) -> bool:
        """Say whether the operand of an 8-bit matmul has a zero point."""
        shifted = not stays and TensorType.of(self.source).dtype is dtypes.UINT8
        return self.zero[0] != (128 if shifted else 0)

    def narrow(self, rw: Rewriter, *, stays: bool) -> _Operand:
        """Build the operand of an 8-bit matmul; ui8 becomes i8 unless `stays`."""
        value = moved(rw, self.moves, self.source)
        value = value if stays else _signed(rw, value)
        offset = 128 if TensorType.of(value).dtype is not TensorType.of(self.source).dtype else 0
        zero, m = self.zero
        if not isinstance(zero, int):
            return _Operand(value, (rw.sub(zero, offset) if offset else zero, m), self.dims)
        less = zero - offset
        return _Operand(value, (rw.literal(np.int32(less)), m) if less else None, self.dims)


def _widened(value: ir.Value) -> _Widened | None:
    dims = TensorType.of(value).dims
    if DYN in dims or 0 in dims:
        return None
    moves: list[ir.Operation] = []
    zero: tuple[int | ir.Value, Map] | None = None
    for _ in range(_DEPTH):
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if is_a(op, Convert):
            kind = TensorType.of(op.operands[0]).dtype
            if kind not in (dtypes.INT8, dtypes.UINT8):
                return None
            own = (0, _everywhere(dims)) if zero is None else zero
            return _Widened(op.operands[0], tuple(reversed(moves)), own, dims)
        if is_a(op, VIEWS) and len(op.operands) == 1:
            moves.append(op)
        elif is_a(op, Sub) and zero is None:
            zero = _zero_after(op.operands[1], moves, dims)
            if zero is None:
                return None
        else:
            return None
        value = op.operands[0]
    return None


def _zero_after(
    value: ir.Value, moves: Sequence[ir.Operation], dims: tuple[int, ...]
) -> tuple[int | ir.Value, Map] | None:
    """Return a zero point after views, the last one first, as (number or source, map to `dims`)."""
    source = value
    while is_a(source.owner, Convert) or (is_a(source.owner, VIEWS) and splat(source) is None):
        if is_a(source.owner, Convert) and TensorType.of(source.owner.operands[0]).dtype.is_float:
            break
        source = source.owner.operands[0]
    number = splat(source)
    if number is not None:
        return int(number), _everywhere(dims)
    return map_after(value, reversed(moves))


# ---- convolution ---------------------------------------------------------------------------------


def _plan_convolution(op: Op, x: _Side, w: _Side) -> Plan | NoMatch:
    """Return the scales as maps to the result's dims."""
    if op.channels_last:
        return no_match("it is channels-last")
    for found, what in ((x.scale, "scale"), (x.zero, "zero point")):
        if found is not None and varying(found[1]):
            return no_match("the input's {} is not one number", what)
    for found, what in ((w.scale, "scale"), (w.zero, "zero point")):
        if found is not None and not varying(found[1]) <= {0}:
            return no_match("the weights' {} varies along more than output channels", what)
    if w.affine and op.group != 1:
        return no_match("the weights of {} groups have a zero point", op.group)
    dims = TensorType.of(op.result).dims
    return (x.scale[0], _channels((), dims)), (w.scale[0], _channels(w.scale[1][0], dims))


def _channels(atoms: Sequence[Atom], dims: tuple[int, ...]) -> Map:
    """Return the map to `dims` that follows `atoms` along axis 1 and repeats along the others."""
    return tuple(
        tuple(atoms) if i == 1 and atoms else (((d, 0),) if d != 1 else ())
        for i, d in enumerate(dims)
    )


def convolved(rw: Rewriter, op: Op, x: _Operand, w: _Operand) -> ir.Value:
    """Build the sums of a convolution of 8-bit operands, with corrections for affine ones.

    The program pads with 0, which is the input's zero point. If that is a scalar, the image is
    padded with it, and its multiple of the weights' sum is subtracted per output channel. Else the
    terms are padded with 0, and the zero point is convolved at the input's size.
    """
    attributes: dict[str, Any] = attributes_of(op)
    number = None if x.zero is None else splat(x.zero[0])
    if number is not None:
        attributes["pad_value"] = int(number)
    total = rw.op("quant_convolution", x.value, w.value, **attributes)
    out = TensorType.of(total)
    plain = None
    if number is not None:
        wide = _converted(rw, w.value, dtypes.INT32)
        sums = rw.op("reduce_sum", wide, axes=list(range(1, len(w.dims))))
        sums = rw.op("reshape", rw.mul(sums, int(number)), dims=[w.dims[0]])
        total = rw.op("sub", total, rw.op("broadcast", sums, axis=1, out_lens=list(out.dims)))
    elif x.zero is not None:
        plain = _zero_image(rw, op, x, w.dims)
        term = rw.op("quant_convolution", plain, w.value, **attributes)
        total = rw.op("sub", total, rw.multibroadcast(term, out.dims))
    if w.zero is not None:
        ones = rw.literal(np.ones((1, *w.dims[1:]), np.int8))
        sums = rw.op("quant_convolution", x.value, ones, **attributes)
        if plain is not None:
            none = rw.op("quant_convolution", plain, ones, **attributes)
            sums = rw.op("sub", sums, rw.multibroadcast(none, TensorType.of(sums).dims))
        elif number is not None:
            sums = rw.sub(sums, int(number) * math.prod(w.dims[1:]))
        own = _zero(rw, w.zero[0], _channels(w.zero[1][0], out.dims))
        total = rw.op("sub", total, rw.op("mul", own, rw.multibroadcast(sums, out.dims)))
    return total


def _zero_image(rw: Rewriter, op: Op, x: _Operand, kernel: tuple[int, ...]) -> ir.Value:
    """Build an image of the zero point: of the input's size, or one window where nothing pads."""
    assert x.zero is not None
    spatial = x.dims[2:]
    if op.padding_mode == "default_" and not any(op.padding):
        spatial = [(k - 1) * d + 1 for k, d in zip(kernel[2:], op.dilation, strict=True)]
    dims = (1, x.dims[1], *spatial)
    kind = TensorType.of(x.value).dtype
    return build_map(rw, _converted(rw, x.zero[0], kind), _everywhere(dims))


# ---- block-scaled dot ----------------------------------------------------------------------------


@pattern(Dot)
def match_find_mx_quantizable_ops(op: Dot, rw: Rewriter) -> Replacement:
    """dot(dq(x, s), dq(w, t)) -> quant_dot(x, w, s, t), f8 values whose scales vary in blocks

    Under the option `mx`, for devices that multiply such values (gfx950). Only where a scale varies
    along the reduced axis; other dots become dq(quant_dot).
    """
    if not rw.options.mx:
        return no_match("the option mx is off")
    found: list[Dequantised] = []
    for value, which in ((op.operands[0], "first"), (op.operands[1], "second")):
        side = dequantised(value)
        if side is None:
            return no_match("the {} operand is not dequantised", which)
        dtype = TensorType.of(side.op.input).dtype
        if not dtype.is_float or dtype.size != 1:
            return no_match("the {} operand is of {}, not f8", which, dtype)
        if side.op.zero_point is not None and not is_zero(side.op.zero_point):
            return no_match("the {} operand has a zero point", which)
        if not TensorType.of(value).is_static:
            return no_match("dims of the {} operand are known only at run time", which)
        found.append(side)
    a, b = found
    if a.op.input.type.element_type != b.op.input.type.element_type:
        return no_match("the operands are of two f8 types")
    rank = TensorType.of(op.result).rank
    blocks = [
        (scale := side.scale_map(side.op.scale)) is None or axis in varying(scale[1])
        for side, axis in ((a, rank - 1), (b, rank - 2))
    ]
    if not any(blocks):
        return no_match("no scale varies along the reduced axis")
    rw.merge_location(a.op, b.op)
    operands = [side.apply(rw, side.op.input) for side in found]
    scales = [side.apply(rw, side.op.scale) for side in found]
    value = rw.op("quant_dot", *operands, scales)
    out = TensorType.of(op.result).dtype
    if out is not dtypes.FLOAT:
        value = rw.op("convert", value, target_type=out)
    return value
