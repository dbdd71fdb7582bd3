"""Patterns of simplify_reshapes that move views past pointwise ops and dots.

Normal form: computing ops are adjacent, and views come after them. layout_convolution and
rewrite_dot move transposes and reshapes in that direction too. Only constants that can be folded
into a dot's weights move the other way (find_mul_add_shape_op_dot).
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, Pointwise, as_value, attributes_of, is_a, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.normalize import SoftmaxBase
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Mul
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import (
    DequantizeLinear,
    QuantConvolution,
    QuantDot,
    QuantizeLinear,
)
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import Contiguous, ReshapeOp, Transpose
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.view_chains import (
    VIEWS,
    Dims,
    Map,
    build_map,
    extents,
    merged,
    reshaped,
    start,
    trace,
    varying,
)
from mgx_mlir.rewrite.pattern import (
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

_MOVES = (ReshapeOp, Transpose, Contiguous)
# ops whose kernel fuses the following pointwise ops
_COMPUTES = (
    Dot, QuantDot, BlockedDot, Convolution, QuantConvolution, Pooling, SoftmaxBase,
    NumberReduction, Pointwise, QuantizeLinear, DequantizeLinear,
)  # fmt: skip


def joins(value: ir.Value) -> bool:
    """Say whether a pointwise op of `value` runs in the kernel that computes `value`."""
    owner = value.owner
    if isinstance(owner, ir.Block) or len(owner.operation.results) != 1:
        return False
    return is_a(owner, _COMPUTES)


def _is_plain(op: Op) -> bool:
    """Return whether a pointwise op has one result and is not a kernel."""
    return len(op.results) == 1 and not len(op.operation.regions)


def _only_in(value: ir.Value, op: ir.Operation) -> bool:
    """Return whether `op` is the only user of `value`."""
    return all(use.owner.operation == op.operation for use in value.uses)


def _again(rw: Rewriter, op: ir.Operation, *operands: ir.Value) -> ir.Value:
    """Build the same pointwise op or view on other operands."""
    given = [list(operands)] if is_a(op, Multibroadcast) else operands
    return rw.op(mnemonic(op), *given, **attributes_of(op))


# ---- pointwise ops ------------------------------------------------------------------------------


@pattern(Pointwise)
def find_unary_shape_transforms(op: Pointwise, rw: Rewriter) -> Replacement:
    """f(views(x)) -> views(f(x)), f of one operand that joins the kernel of x"""
    if len(op.operands) != 1 or not _is_plain(op):
        return no_match("it has {} operands", len(op.operands))
    views: list[ir.Operation] = []
    x = op.operands[0]
    while (view := defined_by(x, *VIEWS)) is not None and len(view.operands) == 1:
        if not has_one_use(x):
            return no_match("a view has other users")
        views.append(view)
        x = view.operands[0]
    if not views:
        return no_match("the operand is not a view of one tensor")
    if not joins(x) or not has_one_use(x):
        return no_match("what is viewed is no kernel's result, or has other users")
    rw.merge_location(*views)
    value = _again(rw, op, x)
    for view in reversed(views):
        value = _again(rw, view, value)
    return value


@pattern(Pointwise)
def find_reshape_cont(op: Pointwise, rw: Rewriter) -> Replacement:
    """f(reshape(x), reshape(y)) -> reshape(f(x, y)), x and y of the same dims, or y constant

    MIGraphX requires a contiguous before the reshape; tensors here have no strides.
    """
    if len(op.operands) < 2 or not _is_plain(op):
        return no_match("it has {} operands", len(op.operands))
    sources = [_reshaped_source(v, op) for v in op.operands]
    below = next((x for x in sources if x is not None and joins(x)), None)
    if below is None:
        return no_match("no operand is a kernel's result, reshaped, without other users")
    if is_constant(below):
        # otherwise each operand could be reshaped to the dims of the other, endlessly
        return no_match("it is constant, and will be folded")
    dims = TensorType.of(below).dims
    out = TensorType.of(op.results[0]).dims
    if DYN in dims or DYN in out or 0 in out:
        return no_match("dims are unknown or empty")
    constants: list[tuple[ir.Value, Map] | None] = []
    for v, x in zip(op.operands, sources, strict=True):
        if x is not None and TensorType.of(x).dims == dims:
            constants.append(None)
            continue
        found = _reshaped_constant(v, dims)
        if found is None:
            return no_match("an operand is neither reshaped from dims {} nor constant", dims)
        constants.append(found)
    rw.merge_location(*(v.owner for v, c in zip(op.operands, constants, strict=True) if c is None))
    operands = [
        build_map(rw, *constant) if constant is not None else as_value(x)
        for x, constant in zip(sources, constants, strict=True)
    ]
    return rw.op("reshape", _again(rw, op, *operands), dims=out)


def _reshaped_source(v: ir.Value, op: ir.Operation) -> ir.Value | None:
    """Return what `v` is reshaped from for `op` alone."""
    view = defined_by(v, ReshapeOp)
    if view is None or len(view.operands) != 1 or not _only_in(v, op):
        return None
    return view.operands[0]


def _reshaped_constant(v: ir.Value, dims: Dims) -> tuple[ir.Value, Map] | None:
    """Return the constant below `v`, and its map to `v` reshaped to `dims`: nothing is repeated."""
    found = trace(v) if is_constant(v) else None
    m = None if found is None else reshaped(found[1], dims)
    return None if found is None or m is None else (found[0], m)


# ---- dots ---------------------------------------------------------------------------------------


@pattern(Dot)
def find_reshape_dot(op: Dot, rw: Rewriter) -> Replacement:
    """dot(reshape(x), reshape(y)) -> reshape(dot(x, y)) where the reshapes regroup the batch

    Only to as many dims or fewer: a batched dot of rank 3 is the normal form (rewrite_dot).
    One of the two may be a constant.
    """
    a, b = op.operands
    out = TensorType.of(op.results[0])
    if out.rank < 3 or not out.is_static or 0 in out.dims:
        return no_match("rank below 3, or dims unknown or empty")
    sources = [_batch_source(v, op) for v in (a, b)]
    known = [x for x in sources if x is not None]
    if not known:
        return no_match("no operand has its batch regrouped by a reshape")
    lead = TensorType.of(known[0]).dims[:-2]
    if any(TensorType.of(x).dims[:-2] != lead for x in known):
        return no_match("the reshaped tensors have other batch dims")
    operands: list[ir.Value] = []
    for v, x in zip((a, b), sources, strict=True):
        if x is None and defined_by(v, Literal) is None:
            return no_match("an operand is neither reshaped nor constant")
        operands.append(rw.op("reshape", v, dims=[*lead, *rw.dims(v)[-2:]]) if x is None else x)
    rw.merge_location(*(v.owner for v, x in zip((a, b), sources, strict=True) if x is not None))
    return rw.op("reshape", rw.op("dot", *operands), dims=out.dims)


def _batch_source(v: ir.Value, op: ir.Operation) -> ir.Value | None:
    x = _reshaped_source(v, op)
    if x is None:
        return None
    t, dims = TensorType.of(x), TensorType.of(v).dims
    same = t.is_static and 3 <= t.rank <= len(dims) and t.dims[-2:] == dims[-2:]
    return x if same else None


@pattern(Dot)
def find_mul_add_shape_op_dot(op: Dot, rw: Rewriter) -> Replacement:
    """dot(transpose(x * c), w) -> dot(transpose(x) * transpose(c), w), c and w constant

    Then find_dot_mul and find_dot_add fold c into w. The same for x + c, and for a widening convert
    instead of the transpose with `fast_math` (then the product has one rounding less). For a
    product, c must be constant along each row of w.
    """
    for side in (0, 1):
        view = defined_by(op.operands[side], Transpose, Convert)
        if view is None or not is_constant(op.operands[1 - side]):
            continue
        inner = defined_by(view.operands[0], Mul, Add)
        if inner is None or not (has_one_use(view.result) and has_one_use(inner.result)):
            continue
        if isinstance(view, Convert) and not _may_widen(view, rw):
            continue
        a, b = inner.operands
        for x, c in ((a, b), (b, a)):
            found = trace(c) if is_constant(c) and not is_constant(x) else None
            if found is None:
                continue
            source, m = found[0], _moved(found[1], view)
            columns = len(m) - 1 - side
            if is_a(inner, Mul) and not varying(m) <= {columns}:
                continue
            rw.merge_location(view, inner)
            if is_a(view, Convert):
                source = _again(rw, view, source)
            name = mnemonic(inner)
            new = rw.op(name, _again(rw, view, x), build_map(rw, source, m))
            operands = list(op.operands)
            operands[side] = new
            return rw.op("dot", *operands)
    return no_match("no operand is a transposed sum or product with a constant, the other constant")


def _may_widen(view: Convert, rw: Rewriter) -> bool:
    have, want = (TensorType.of(v).dtype for v in (view.operands[0], view.result))
    return rw.options.fast_math and have.is_float and want.is_float and have.size < want.size


def _moved(m: Map, view: Convert | Transpose) -> Map:
    """Return the map of a constant after `view`."""
    if isinstance(view, Convert):
        return m
    permutation: Sequence[int] = view.permutation
    return tuple(m[p] for p in permutation)


# ---- one index space for two kernels (an option) ------------------------------------------------


@pattern(Pointwise)
def find_op_shape_transform_op(op: Pointwise, rw: Rewriter) -> Replacement:
    """f(views(g(x)), y) -> views(f(g(x), views back(y))), so that f and g are one kernel

    The other operands are transposed to the dims of g, which must cost less than the fusion saves.
    The option `op_shape_transform_op` enables it.
    """
    if not rw.options.op_shape_transform_op:
        return no_match("the option op_shape_transform_op is off")
    if len(op.operands) < 2 or not _is_plain(op):
        return no_match("it has {} operands", len(op.operands))
    if any(joins(v) for v in op.operands):
        return no_match("an operand is a kernel's result without a view")
    for v in op.operands:
        if defined_by(v, *_MOVES) is None or not _only_in(v, op):
            continue
        found = trace(v, _MOVES)
        if found is None or not joins(found[0]) or not _single(found[2][:-1]):
            continue
        source, m, views = found
        back = inverse(TensorType.of(source).dims, m)
        if back is None:
            continue
        rw.merge_location(*views)
        operands = [source if w == v else build_map(rw, w, back) for w in op.operands]
        return build_map(rw, _again(rw, op, *operands), m)
    return no_match("no operand is a reshaped or transposed kernel's result, used by it alone")


def _single(views: list[ir.Operation]) -> bool:
    return all(has_one_use(v.results[0]) for v in views)


def inverse(dims: Dims, m: Map) -> Map | None:
    """Return the inverse of the map `m`, a permutation of a tensor of `dims`."""
    flat = merged([a for atoms in m for a in atoms])
    if any(not s for _, s in flat):
        return None
    # each atom's stride in the result, then the atoms in the order of the tensor
    own = [a for atoms in start([n for n, _ in flat]) for a in atoms]
    order = sorted(range(len(flat)), key=lambda i: -flat[i][1])
    back = reshaped(tuple((own[i],) for i in order), dims)
    return back if back is not None and extents(back) == dims else None
