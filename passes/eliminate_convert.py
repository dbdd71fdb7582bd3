"""eliminate_convert: remove conversions to the same type, and merge lossless chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.pointwise_other import Clip
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, no_match, pattern


@pattern(Convert, benefit=2)
def find_nop_converts(op: Convert, rw: Rewriter) -> Replacement:
    """convert(x : T, T) -> x"""
    if op.input.type != op.result.type:
        return no_match("{} becomes {}", op.input.type, op.result.type)
    return op.input


@pattern(Convert)
def find_nested_convert(op: Convert, rw: Rewriter) -> Replacement:
    """convert(convert(x : A, B), C) -> convert(x, C) where every A is exactly a B"""
    inner = rw.defining(op.input, Convert)
    if inner is None:
        return no_match("input is not a convert")
    start, middle = rw.dtype(inner.input), rw.dtype(op.input)
    if not holds(middle, start):
        return no_match("{} does not hold every {}", middle, start)
    last = rw.dtype(op.result)
    if start.is_integer and middle.is_float and last.is_integer and not holds(last, start):
        return no_match("{} to {} saturates, {} to it wraps", middle, last, start)
    if inner.input.type == op.result.type:
        return inner.input
    return rw.op("convert", inner.input, target_type=op.target_type, overflow=op.overflow)


@pattern(Convert)
def find_clip_convert(op: Convert, rw: Rewriter) -> Replacement:
    """convert(clip(x, low, high)) -> convert(x) to an integer type of that range, or a smaller one

    A convert saturates, and NaN becomes 0 either way.
    """
    clip = rw.defining(op.input, Clip)
    if clip is None:
        return no_match("input is not a clip")
    to = rw.dtype(op.result)
    if not rw.dtype(op.input).is_float or not to.is_integer or to.is_bool or op.overflow:
        return no_match("it does not saturate a float to an integer type")
    low, high = splat(clip.low), splat(clip.high)
    if low is None or high is None or not (low <= to.lowest() and high >= to.highest()):
        return no_match("the clip is narrower than {}", to)
    return rw.op("convert", clip.input, target_type=op.target_type)


def holds(wide: DType, narrow: DType) -> bool:
    """Say whether every value of `narrow` is a value of `wide`, infinities and NaN included."""
    if wide is narrow:
        return True
    if wide.is_bool:
        return False
    if narrow.is_bool:
        return True
    if narrow.is_integer:
        low, high = int(np.iinfo(narrow.np).min), int(np.iinfo(narrow.np).max)
        if wide.is_integer:
            info = np.iinfo(wide.np)
            return int(info.min) <= low and high <= int(info.max)
        digits = dtypes.float_info(wide.np).nmant + 1
        return narrow.bits - narrow.is_signed <= digits and float(wide.highest()) >= high
    if not wide.is_float:
        return False
    a, b = dtypes.float_info(wide.np), dtypes.float_info(narrow.np)
    return (
        a.nmant >= b.nmant
        and float(a.max) >= float(b.max)
        and float(a.smallest_subnormal) <= float(b.smallest_subnormal)
        and (wide.has_infinity or not narrow.has_infinity)
        # the fnuz types have no -0
        and (not wide.short.endswith("fnuz") or narrow.short.endswith("fnuz"))
    )


@dataclass(frozen=True)
class EliminateConvert(PatternPass):
    """Drop conversions that change nothing, and merge those that lose nothing."""

    name: ClassVar[str] = "eliminate_convert"
    patterns = (find_nop_converts, find_nested_convert, find_clip_convert)
