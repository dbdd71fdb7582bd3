"""propagate_precision: ops next to a convert compute in the wider of its two types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, Pointwise, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import BitCast, Convert
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Pattern,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)


@pattern(Convert)
def find_upcast(op: Convert, rw: Rewriter) -> Replacement:
    """convert(f(x, constant)), to a wider type -> f(convert(x), convert(constant))

    f is pointwise or a reduction with no other reader. The convert moves up to the next op
    that is neither.
    """
    narrow, wide = TensorType.of(op.input).dtype, op.target_type
    if not _widens(narrow, wide):
        return no_match("{} to {} does not widen a 16- or 8-bit float to f32", narrow, wide)
    f = defined_by(op.input)
    if f is None or not has_one_use(op.input):
        return no_match("the input is an argument, or has other readers")
    found = _widened(f, rw, None, wide)
    if isinstance(found, NoMatch):
        return found
    rw.merge_location(f)
    return found


@pattern(Pointwise, NumberReduction)
def find_downcast(op: Pointwise | NumberReduction, rw: Rewriter) -> Replacement:
    """f(convert(x), constant), from a wider type -> convert(f(x, convert(constant)))

    f is pointwise or a reduction. The convert moves down to the next op that is neither, or that
    reads another value too.
    """
    cast = next((c for v in op.operands if (c := defined_by(v, Convert)) is not None), None)
    if cast is None:
        return no_match("no operand is a convert")
    narrow, wide = cast.target_type, TensorType.of(cast.input).dtype
    if not _widens(narrow, wide):
        return no_match("{} to {} does not narrow f32 to 16 or 8 bits", wide, narrow)
    value = cast.result
    if any(use.owner.operation != op.operation for use in value.uses):
        return no_match("the converted value has other readers")
    found = _widened(op, rw, value, wide)
    if isinstance(found, NoMatch):
        return found
    rw.merge_location(cast)
    return rw.op("convert", found, target_type=narrow, overflow=cast.overflow)


def _widens(narrow: DType, wide: DType) -> bool:
    """Return whether computing in `wide` is more precise and not more expensive.

    Not for integers, which would no longer wrap, nor for f64 instead of f32, which costs several
    times as much.
    """
    return narrow.is_low_precision and wide.is_float and wide.size == 4


def _widened(f: Op, rw: Rewriter, cast: ir.Value | None, wide: DType) -> ir.Value | NoMatch:
    """Return `f` in the type `wide`, on the input of `cast` if given, and on converts of other
    operands.

    At most one operand is not constant, so at most one tensor is converted.
    """
    operation = f.operation
    name = mnemonic(operation)
    cls = op_class(f)
    # discontinuous op: an unrounded operand may be on the other side of a jump
    pointwise = cls is not None and issubclass(cls, Pointwise) and not cls.discontinuous
    continuous = pointwise and not is_a(f, BitCast)
    if not (continuous or is_a(f, NumberReduction)) or len(operation.regions):
        return no_match("'{}' is neither continuous and pointwise nor a reduction", name)
    operands, t = list(operation.operands), TensorType.of(operation.results[0])
    if any(TensorType.of(v).dtype is not t.dtype for v in operands):
        return no_match("the operands of '{}' are not all of {}", name, t.dtype)
    if len({v for v in operands if not is_constant(v)}) != 1:
        return no_match("'{}' has several operands, or none, that are not constant", name)
    if cast is not None and is_constant(cast):
        return no_match("the convert is of a constant")
    source = None if cast is None else cast.owner.operands[0]
    wider: dict[ir.Value, ir.Value] = {}
    for v in operands:
        if v in wider:
            continue
        wider[v] = source if source is not None and v == cast else _as(rw, v, wide)
    return rebuild(f, [wider[v] for v in operands], t.with_dtype(wide))


def _as(rw: Rewriter, v: ir.Value, dtype: DType) -> ir.Value:
    return rw.op("convert", v, target_type=dtype)


@dataclass(frozen=True)
class PropagatePrecision(PatternPass):
    """Move converts between float types so that more is computed in the wider one.

    It moves them over chains of pointwise ops and reductions whose other operands are constants:
    those before an upcast and those after a downcast. Values that overflowed in the narrow type no
    longer do.
    """

    name: ClassVar[str] = "propagate_precision"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_upcast, find_downcast)
