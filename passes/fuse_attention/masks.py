"""find_masks: merge the masks of an attention's scores, added or selected, to one added mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType, float_info
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.normalize import Softmax
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Mul
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.fuse_attention.parts import attention_parts
from mgx_mlir.rewrite.pattern import NoMatch, Replacement, Rewriter, no_match, pattern, users

if TYPE_CHECKING:
    from mgx_mlir.passes.fuse_attention import FuseAttention

# scores below the first number count as masked beside any visible score; below the second also
# beside other masks, which may mask all others
_HIDES, _LOWEST = -1e4, -1e30
# number added for a finite mask: in f32 a score vanishes beside it, and it stays finite times 1.44,
# as kernels compute in powers of two
_LOW = -1e38


@dataclass(frozen=True)
class _Mask:
    """One op that masks scores."""

    value: ir.Value  # tensor that is added, or bools of the keys; without its broadcasts
    low: float | None = None  # score of a masked key; None where `value` is added
    seen: bool = True  # bool in `value` for a key that keeps its score


@pattern(Softmax)
def find_masks(op: Softmax, rw: Rewriter) -> Replacement:
    """softmax(where(c, s, low)) of an attention -> softmax(add(s, where(c, 0, low)))

    For a kernel with one added mask. Several masks are merged to one, in f32, of their broadcast
    dims. Finite masking numbers are equivalent: fully masked rows have equal weights with them, as
    before, and are NaN with -inf. Only with fast math, which assumes that masked scores are not
    NaN.
    """
    if not (rw.options.flash and rw.options.fast_math):
        return no_match("the kernel supports any scores, or fast math is off")
    if not _ends_in_attention(op, rw.options):
        return no_match("it is no softmax of an attention")
    chain = _masks(op.operation.operands[0])
    if isinstance(chain, NoMatch):
        return chain
    scores, product, masks = chain
    if len(masks) < 2 and all(m.low is None for m in masks):
        return no_match("at most one mask is added")
    own = TensorType.of(op.out)
    lowest = max(_LOWEST, float(float_info(TensorType.of(product).dtype.np).min))
    if len(masks) > 1 and any(m.low is not None and m.low > lowest for m in masks):
        return no_match("beside another mask the masking number must be the lowest")
    wide = rw.multibroadcast(_joined(rw, masks), own.dims)
    found = rw.op("softmax", rw.op("add", _as(rw, scores, dtypes.FLOAT), wide), axis=op.axis)
    return [_as(rw, found, own.dtype)]


def _ends_in_attention(op: Softmax, options: FuseAttention) -> bool:
    """Return whether a softmax's weights multiply values, by a dot that an attention ends in."""
    found, todo = list[ir.Operation](), [op.out]
    while todo:
        for user in users(todo.pop()):
            if is_a(user, Dot):
                found.append(user)
            elif is_a(user, (Convert, Where)):
                todo.append(user.results[0])
    for dot in found:
        parts = attention_parts(cast(Dot, dot.opview), options)
        if not isinstance(parts, NoMatch) and parts.softmax.operation == op.operation:
            return True
    return False


def _masks(v: ir.Value) -> tuple[ir.Value, ir.Value, list[_Mask]] | NoMatch:
    """Return the scores before their masks, the dot that computes them, and the masks in order.

    Before the masks, scores may be scaled and converted.
    """
    masks: list[_Mask] = []
    while True:
        if is_a(v.owner, Convert) and TensorType.of(v.owner.operands[0]).dtype.is_float:
            v = v.owner.operands[0]
            continue
        step = _mask(v)
        if step is None:
            break
        v, mask = step
        masks.append(mask)
    x = v
    while not is_a(x.owner, Dot):
        if not is_a(x.owner, (Convert, Mul)):
            return no_match("the scores are more than scaled and masked")
        others = [a for a in x.owner.operands if splat(a) is None]
        if len(others) != 1:
            return no_match("the scores are scaled by more than a number")
        x = others[0]
    return v, x, masks[::-1]


def _mask(v: ir.Value) -> tuple[ir.Value, _Mask] | None:
    """Return the unmasked scores of `v`, and the mask; None for other ops."""
    owner = v.owner
    if is_a(owner, Add):
        a, b = owner.operands
        lead = _leads_to_dot(a)
        return (a, _Mask(_small(b))) if lead else (b, _Mask(_small(a)))
    if not is_a(owner, Where):
        return None
    condition, a, b = owner.operands
    for x, number, seen in ((a, splat(b), True), (b, splat(a), False)):
        if number is not None and float(number) <= _HIDES:
            return x, _Mask(_small(condition), float(number), seen)
    return None


def _leads_to_dot(v: ir.Value) -> bool:
    """Return whether `v` is scores after scaling and masking."""
    if isinstance(v.owner, ir.Block):
        return False
    if is_a(v.owner, Dot):
        return True
    is_step = is_a(v.owner, (Convert, Mul, Add, Where))
    return is_step and any(_leads_to_dot(x) for x in v.owner.operands)


def _small(v: ir.Value) -> ir.Value:
    """Return the source of a mask's right-aligned broadcast."""
    while is_a(v.owner, Multibroadcast) and len(v.owner.operands) == 1:
        v = v.owner.operands[0]
    return v


def _joined(rw: Rewriter, masks: Sequence[_Mask]) -> ir.Value:
    """Build the one mask, in f32."""
    if all(literals.is_literal(m.value.owner) for m in masks):
        return _constant(rw, masks)
    shapes = [TensorType.of(m.value).dims for m in masks]
    rank = max(map(len, shapes))
    filled = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    dims = tuple(next((d for d in each if d != 1), 1) for each in zip(*filled, strict=True))
    several = len(masks) > 1

    def number(n: float) -> ir.Value:
        return rw.multibroadcast(rw.literal(np.float32(n)), dims)

    total: ir.Value | None = None
    for m in masks:
        x = rw.multibroadcast(m.value, dims)
        if m.low is not None:
            so_far, low = number(0) if total is None else total, number(_number(m.low))
            total = rw.op("where", x, *((so_far, low) if m.seen else (low, so_far)))
            continue
        x = _as(rw, x, dtypes.FLOAT)
        if several:  # keep a sum of two masking numbers finite
            endless = _as(rw, rw.op("equal", x, number(-np.inf)), dtypes.BOOL)
            x = rw.op("where", endless, x, rw.op("max", x, number(_LOW)))
        total = x if total is None else rw.op("add", total, x)
    assert total is not None
    return total


def _constant(rw: Rewriter, masks: Sequence[_Mask]) -> ir.Value:
    """Join constant masks as `_joined` does."""
    total = np.zeros((), np.float32)
    for m in masks:
        array = np.asarray(literals.array_of(m.value.owner))
        if m.low is not None:
            total = np.where((array != 0) == m.seen, total, np.float32(_number(m.low)))
            continue
        x = array.astype(np.float32)
        x = np.where(x == -np.inf, x, np.maximum(x, np.float32(_LOW))) if len(masks) > 1 else x
        total = total + x
    return rw.literal(np.asarray(total, np.float32))


def _number(low: float) -> float:
    """Return the number to add for a masking number that replaces a score."""
    return _LOW if np.isfinite(low) else low


def _as(rw: Rewriter, x: ir.Value, dtype: DType) -> ir.Value:
    return x if TensorType.of(x).dtype is dtype else rw.op("convert", x, target_type=dtype)


__all__ = ["find_masks"]
