"""An attention in a program: two dots, the softmax between them, and scores."""

from __future__ import annotations

from typing import Protocol, cast

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.normalize import Softmax
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.dialects.migraphx.pointwise_unary import IsNan
from mgx_mlir.passes.analysis.constants import is_splat
from mgx_mlir.passes.analysis.kernel_ops import in_kernel
from mgx_mlir.rewrite.pattern import NoMatch, defined_by, has_one_use, no_match, users


class _Options(Protocol):
    @property
    def fast_math(self) -> bool: ...


@dataclass
class Parts:
    """The ops that an attention consists of."""

    softmax: Softmax
    first: Dot  # dot of the scores
    scores: list[ir.Operation]  # pointwise ops between them, in order
    guarded: bool  # NaN rows of the weights are zeros


def attention_parts(op: Dot, options: _Options) -> Parts | NoMatch:
    """Match an attention that ends in the dot `op`: its softmax, and the dot of its scores."""
    t = TensorType.of(op.out)
    if in_kernel(op.operation):
        return no_match("it is in a kernel")
    if not t.is_static or t.rank < 2 or not t.elements:
        return no_match("{} has unknown extents or no elements", t)
    if not t.dtype.is_float or t.dtype.size > 4 or t.dtype.size == 1:
        return no_match("attention of {} has no kernel", t.dtype)
    weights, guarded = unguarded(op.a)
    softmax = defined_by(weights, Softmax)
    if (view := defined_by(weights, Convert)) is not None:
        softmax = defined_by(view.operation.operands[0], Softmax)
    if softmax is None:
        return no_match("the left operand is no softmax")
    if guarded and not options.fast_math:
        return no_match("NaN weights are replaced by 0, and fast math is off")
    # the NaN guard reads it twice
    if len(users(weights)) != (2 if guarded else 1) or not has_one_use(op.a):
        return no_match("the softmax has other readers")
    if weights != softmax.out and not has_one_use(softmax.out):
        return no_match("the softmax has other readers")
    if softmax.axis % t.rank != t.rank - 1:
        return no_match("the softmax is over axis {}, not over the keys", softmax.axis)
    scores: list[ir.Operation] = []
    first = _first_dot(softmax.operation.operands[0], scores)
    if first is None:
        return no_match("no dot leads to the softmax through single-use pointwise ops")
    return Parts(softmax, first, scores, guarded)


def unguarded(v: ir.Value) -> tuple[ir.Value, bool]:
    """Return (x, True) for where(isnan(x), 0, x), else (v, False)."""
    choice = defined_by(v, Where)
    if choice is None:
        return v, False
    condition, number, x = choice.operation.operands
    test = defined_by(condition, IsNan)
    if test is None or test.operation.operands[0] != x or not is_splat(number, 0):
        return v, False
    return x, True


def _first_dot(v: ir.Value, scores: list[ir.Operation]) -> Dot | None:
    """Return the dot that `v` is computed from by pointwise ops; append those to `scores`."""
    if not has_one_use(v):
        return None
    owner = v.owner
    if isinstance(owner, ir.Block):
        return None
    if is_a(owner, Dot):
        return cast(Dot, owner.opview)
    if not is_a(owner, Pointwise):
        return None
    for x in owner.operands:
        if TensorType.of(x).dims == TensorType.of(v).dims:
            found = _first_dot(x, scores)
            if found is not None:
                scores.append(owner.operation)
                return found
    return None


__all__ = ["Parts", "attention_parts", "unguarded"]
