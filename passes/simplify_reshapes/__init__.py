"""simplify_reshapes: chains of views, slices and concatenations in their shortest form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.op import Op, attributes_of, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast, Scalar
from mgx_mlir.dialects.migraphx.movement import Concat, Pad, Slice
from mgx_mlir.dialects.migraphx.movement import Step as StepOp
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import (
    Contiguous,
    Flatten,
    Reshape,
    ReshapeLazy,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from mgx_mlir.passes.analysis.view_chains import VIEWS, Step, compose, steps_for, trace
from mgx_mlir.passes.simplify_reshapes.concats import (
    find_concat_multibroadcasts,
    find_concat_reshape,
    find_concat_transpose,
    find_nested_concat,
)
from mgx_mlir.passes.simplify_reshapes.gathers import (
    find_gather,
    find_gather_gather,
    find_gather_scalar,
)
from mgx_mlir.passes.simplify_reshapes.pointwise import (
    find_mul_add_shape_op_dot,
    find_op_shape_transform_op,
    find_reshape_cont,
    find_reshape_dot,
    find_unary_shape_transforms,
)
from mgx_mlir.passes.simplify_reshapes.slices import (
    find_concat_slice,
    find_nested_slice,
    find_slice_shape_transforms,
    find_slice_transpose,
    find_transpose_slice,
)
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

# ---- ops that do nothing ------------------------------------------------------------------------


@pattern(
    Reshape, ReshapeLazy, Squeeze, Unsqueeze, Flatten, Transpose, Contiguous,
    Broadcast, Multibroadcast, Scalar, Slice, StepOp, Pad, Concat, NumberReduction,
    benefit=3,
)  # fmt: skip
def find_nop_reshapes(op: Op, rw: Rewriter) -> Replacement:
    """view(x : T) : T -> x where no element moves"""
    x = op.operands[0]
    if x.type != op.results[0].type:
        return no_match("{} becomes {}", x.type, op.results[0].type)
    dims = TensorType.of(x).dims
    if is_a(op, Transpose):
        moving = [p for p in op.permutation if dims[p] != 1]
        return x if moving == sorted(moving) else no_match("{} moves axes", op.permutation)
    if is_a(op, NumberReduction):
        axes = op.axes or range(len(dims))
        ones = len(op.operands) == 1 and all(dims[a] == 1 for a in axes)
        return x if ones else no_match("it reduces more than one element")
    if is_a(op, StepOp):
        steps = attributes_of(op)["steps"]
        return x if all(s == 1 for s in steps) else no_match("steps {}", steps)
    if is_a(op, Pad):  # even if types are equal: with dynamic extents, or negative padding
        none = len(op.operands) == 1 and not any(op.pads)
        return x if none else no_match("it pads by {}", op.pads)
    if is_a(op, Contiguous):
        return x
    if is_a(op, Concat):
        alone = len(op.operands) == 1
        return x if alone else no_match("it has {} operands", len(op.operands))
    if len(op.operands) > 1 and is_a(op, (Slice, Reshape)):
        return no_match("its bounds are known at run time only")
    # one unknown extent follows from the others, but two could be exchanged
    if sum(d == DYN for d in dims) > (0 if is_a(op, (Slice, Multibroadcast, Broadcast)) else 1):
        return no_match("{} has unknown extents", x.type)
    return x


@pattern(Flatten)
def find_flatten(op: Flatten, rw: Rewriter) -> Replacement:
    """flatten(x) -> reshape(x)"""
    t = TensorType.of(op.result)
    if t.dims.count(DYN) > 1 or 0 in t.dims:
        return no_match("reshape cannot express dims {}", t.dims)
    return rw.op("reshape", op.input, dims=[-1 if d == DYN else d for d in t.dims])


# ---- chains of views ----------------------------------------------------------------------------


def _transposes(steps: list[Step]) -> int:
    return sum(s.kind == "transpose" for s in steps)


@pattern(Transpose, benefit=2)
def find_transpose(op: Transpose, rw: Rewriter) -> Replacement:
    """transpose(transpose(x, p), q) -> transpose(x, p[q])"""
    inner = rw.defining(op.input, Transpose)
    if inner is None:
        return no_match("input is not a transpose")
    both = [inner.permutation[i] for i in op.permutation]
    if both == sorted(both):
        return inner.input
    return rw.op("transpose", inner.input, permutation=both)


@pattern(*VIEWS)
def find_nested_shape_transforms(op: Op, rw: Rewriter) -> Replacement:
    """view(...view(x)) -> the fewest reshapes, transposes and broadcasts of x"""
    if defined_by(op.operands[0], *VIEWS) is None:
        return no_match("it is the first view of its chain")
    if any(is_a(use.owner, VIEWS) for use in op.results[0].uses):
        return no_match("it is not the last view of its chain")
    found = trace(op.results[0])
    if found is None:
        return no_match("{} has unknown or empty extents", op.results[0].type)
    source, m, ops = found
    if len(ops) < 2:
        return no_match("it cannot join the view before it")
    steps = steps_for(TensorType.of(source).dims, m)
    shared = max((i for i, o in enumerate(ops[:-1]) if not has_one_use(o.result)), default=-1)
    if _transposes(steps) > sum(is_a(o, Transpose) for o in ops[shared + 1 :]):
        # a value with other users stays, and transposing it twice moves the data twice
        moved = max((i for i, o in enumerate(ops) if is_a(o, Transpose)), default=-1)
        for begin in sorted({min(moved, shared), shared} - {-1}):
            source, rest = ops[begin].result, ops[begin + 1 :]
            own = compose(source, rest) if len(rest) > 1 else None
            if own is None:
                continue
            steps = steps_for(TensorType.of(source).dims, own)
            if _transposes(steps) <= sum(is_a(o, Transpose) for o in rest):
                ops = rest
                break
        else:
            return no_match("its source has other users, and would be transposed twice")
    if len(steps) >= len(ops):
        return no_match("{} views are the fewest", len(ops))
    rw.merge_location(*ops[:-1])
    for step in steps:
        source = step.build(rw, source)
    return source


@dataclass(frozen=True)
class SimplifyReshapes(PatternPass):
    """Cancel and merge views, slices, concatenations and regular gathers.

    Results are bit for bit the same. Views move after computing ops, reshapes before slices, and
    transposes to where one replaces several.
    """

    name: ClassVar[str] = "simplify_reshapes"
    op_shape_transform_op: bool = option(False, "also run find_op_shape_transform_op")
    fast_math: bool = option(False, "find_mul_add_shape_op_dot may round once less")
    patterns = (
        find_nop_reshapes,
        find_flatten,
        find_gather_gather,
        find_gather_scalar,
        find_gather,
        find_transpose,
        find_slice_shape_transforms,
        find_nested_shape_transforms,
        find_nested_slice,
        find_concat_slice,
        find_nested_concat,
        find_concat_transpose,
        find_concat_reshape,
        find_concat_multibroadcasts,
        find_transpose_slice,
        find_slice_transpose,
        find_unary_shape_transforms,
        find_reshape_cont,
        find_reshape_dot,
        find_mul_add_shape_op_dot,
        find_op_shape_transform_op,
    )
