"""Ops that only rename elements (broadcasts, transposes, reshapes), lazy until needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.op import Op, attributes_of
from mgx_mlir.core.shapes import DYN, TensorType, product
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast, Scalar
from mgx_mlir.dialects.migraphx.views import Flatten, Squeeze, Transpose, Unsqueeze
from mgx_mlir.passes.lowering import host, symbols
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import (
    DimMap,
    Expr,
    Extent,
    Leaf,
    Splat,
    View,
    broadcast_map,
)
from mgx_mlir.passes.lowering.iree import iree_ops

ViewLowering = Callable[..., Expr]
VIEWS: dict[str, ViewLowering] = {}


def _view(*names: str) -> Callable[[ViewLowering], ViewLowering]:
    def register(f: ViewLowering) -> ViewLowering:
        for name in names:
            VIEWS[name] = f
        return f

    return register


def _operand(op: Op, i: int = 0) -> ir.Value:
    return op.operation.operands[i]


def _result(op: Op) -> TensorType:
    return TensorType.of(op.operation.results[0])


def _remap(
    e: LoweringContext, x: Expr, t: TensorType, entries: DimMap, extents: list[Extent]
) -> Expr:
    if isinstance(x, Splat):
        return Splat(t, x.number, extents)
    return View(t, x, entries, extents)


@_view("identity", "contiguous", "layout", "capture")
def alias(e: LoweringContext, op: Op) -> Expr:
    """Return the same elements: memory layout is not part of a tensor."""
    return e.expr(_operand(op))


@_view("multibroadcast")
def multibroadcast(e: LoweringContext, op: Multibroadcast) -> Expr:
    """Right-aligned; extents come from `out_lens`, or from the other operands."""
    x, t = e.expr(_operand(op)), _result(op)
    extents: list[Extent] = list(t.dims)
    if DYN in t.dims:
        for other in op.operation.operands:
            have = e.expr_extents(e.expr(other))
            shift = t.rank - len(have)
            for i, d in enumerate(have):
                current = extents[i + shift]
                if (
                    isinstance(current, int)
                    and current == DYN
                    and not (isinstance(d, int) and d == 1)
                ):
                    extents[i + shift] = d
        # dims that are 1 in all operands, unknown to their types
        extents = [1 if isinstance(d, int) and d == DYN else d for d in extents]
        t = t.with_dims(e.static_dims(extents))
    # a dynamic extent is not broadcast, even if it is 1 at run time
    check_read(e, x, broadcast_map(x.type, t), extents)
    return _remap(e, x, t, broadcast_map(x.type, t), extents)


@_view("broadcast")
def broadcast(e: LoweringContext, op: Broadcast) -> Expr:
    """Dims of the operand stand from `axis` on."""
    x, t, axis = e.expr(_operand(op)), _result(op), op.axis
    extents: list[Extent] = list(t.dims)
    if DYN in t.dims:
        sources = [e.expr_extents(e.expr(o)) for o in list(op.operation.operands)[1:]]
        own = e.expr_extents(x)
        for i, d in enumerate(t.dims):
            if d == DYN:
                inside = axis <= i < axis + x.type.rank
                extents[i] = own[i - axis] if inside and not sources else sources[0][i]
    entries = tuple(
        None if d == 1 and t.dims[i + axis] != 1 else i + axis for i, d in enumerate(x.type.dims)
    )
    check_read(e, x, entries, extents)
    return _remap(e, x, t, entries, extents)


def check_read(e: LoweringContext, x: Expr, entries: DimMap, extents: Sequence[Extent]) -> None:
    """Check that a view reads all of `x` along each dim."""
    for own, at in zip(e.sizes.of_expr(x), entries, strict=True):
        if at is not None:
            e.sizes.equal(own, extents[at])


@_view("scalar")
def scalar(e: LoweringContext, op: Scalar) -> Expr:
    """Return one element everywhere."""
    x, t = e.expr(_operand(op)), _result(op)
    return _remap(e, x, t, (None,) * x.type.rank, list(t.dims))


@_view("transpose")
def transpose(e: LoweringContext, op: Transpose) -> Expr:
    """Return a permuted view; alone it is a copy."""
    x, t = e.expr(_operand(op)), _result(op)
    perm: Sequence[int] = op.permutation
    own = e.expr_extents(x)
    extents = [own[p] for p in perm]
    if isinstance(x, Splat):
        return Splat(t, x.number, extents)
    inverse = [0] * len(perm)
    for i, p in enumerate(perm):
        inverse[p] = i

    # a generic, not linalg.transpose, which is slow (docs/iree-hazards.md, hazard 3)
    view = View(t, x, tuple(inverse), extents)
    # outside a kernel a transpose is a separate copy, made here
    return view if e.in_kernel else Leaf(t, e.tensor(view))


@_view("squeeze", "unsqueeze", "flatten", "reshape", "reshape_lazy")
def reshape(e: LoweringContext, op: Op) -> Expr:
    """Row-major regrouping; insertions and removals of 1s stay index maps."""
    x, t = e.expr(_operand(op)), _result(op)
    extents = reshape_extents(e, op, x, t)
    if isinstance(x, Splat):
        return Splat(t, x.number, extents)
    entries = unit_map(x.type.dims, t.dims)
    kept = _kept_axes(op, x.type.dims, t) if entries is None and e.in_kernel else None

    def make() -> ir.Value:
        if kept is not None:
            return _without_flow(e, e.tensor(x), t, extents, kept)
        return reshape_tensor(e, e.tensor(x), t, extents)

    if kept is not None:
        longer = tuple(kept.index(i) if i in kept else None for i in range(x.type.rank))
        entries = tuple(kept) if t.rank > x.type.rank else longer
    if entries is None:
        return Leaf(t, make())
    return View(t, x, entries, extents, make)


def unit_map(source: Sequence[int], result: Sequence[int]) -> DimMap | None:
    """Return the map of a reshape that only inserts or removes extents of 1, else None."""
    out: list[int | None] = []
    j = 0
    for d in source:
        if d == 1:
            out.append(None)
            continue
        while j < len(result) and result[j] == 1:
            j += 1
        if j == len(result) or result[j] != d or d == DYN:
            return None
        out.append(j)
        j += 1
    return tuple(out) if all(d == 1 for d in result[j:]) else None


def _kept_axes(op: Op, source: Sequence[int], t: TensorType) -> list[int] | None:
    """Return the axes that an unsqueeze or squeeze keeps, of whichever side has more.

    Its other dims may be dynamic; None for other reshapes, and where an extent may not be 1.
    """
    rank = max(len(source), t.rank)
    if isinstance(op, Unsqueeze):
        steps: Sequence[int] = op.steps
        axes = {a % rank for a in op.axes}
        if set(steps) - {1}:
            return None
    elif isinstance(op, Squeeze):
        units = {i for i, d in enumerate(source) if d == 1}
        axes = {a % rank for a in op.axes} or units
        if axes - units:
            return None
    else:
        return None
    return [i for i in range(rank) if i not in axes] or None


def _without_flow(
    e: LoweringContext, value: ir.Value, t: TensorType, extents: Sequence[Extent], kept: list[int]
) -> ir.Value:
    """Insert or remove axes of 1: IREE refuses a flow reshape of what the same kernel computes."""
    rank = ir.RankedTensorType(value.type).rank
    ends = [*kept[1:], max(rank, t.rank)]
    groups = [list(range(a, b)) for a, b in zip([0, *kept[1:]], ends, strict=True)]
    if t.rank < rank:
        return e.refine(tensor.CollapseShapeOp(e.mlir_type(t), value, groups).result, t)
    dynamic, static = e.dynamic_values(extents), e.static_dims(extents)
    return e.refine(tensor.ExpandShapeOp(e.mlir_type(t), value, groups, dynamic, static).result, t)


def reshape_extents(e: LoweringContext, op: Op, x: Expr, t: TensorType) -> list[Extent]:
    """Return the result extents of a reshape-like op, dynamic ones as index values."""
    if t.is_static and x.type.is_static:
        return list(t.dims)
    if t.is_static:
        e.sizes.equal(symbols.product(e.sizes.of_expr(x)), t.elements)
        return list(t.dims)
    own = e.expr_extents(x)
    operands = list(op.operation.operands)
    if isinstance(op, Squeeze):
        axes = [a % len(own) for a in op.axes]
        return [
            d
            for i, d in enumerate(own)
            if (i not in axes if axes else not (isinstance(d, int) and d == 1))
        ]
    if isinstance(op, Flatten):
        axis = op.axis if op.axis >= 0 else op.axis + len(own)
        return [e.product(own[:axis]), e.product(own[axis:])]
    if isinstance(op, Unsqueeze):
        return _unsqueezed(
            e, own, [a % t.rank for a in op.axes], attributes_of(op.operation)["steps"], t.rank
        )
    if len(operands) > 1:
        wanted = host.extents_of(e, operands[1])
    else:
        wanted = list(op.dims)
    copies = not (len(operands) > 1 and attributes_of(op.operation)["allowzero"])
    out = [own[i] if copies and isinstance(w, int) and w == 0 else w for i, w in enumerate(wanted)]
    out = [d if d != DYN else w for d, w in zip(t.dims, out, strict=True)]
    if len(operands) > 1:
        out = _resolve_run_time(e, own, out, copies=copies)
    out = _solve(e, own, out)
    for d in e.dynamic_values(out):
        e.sizes.at_most(0, d)
    have, want = (symbols.product(e.sizes.of(d) for d in dims) for dims in (own, out))
    e.sizes.equal(have, want)
    return out


def _unsqueezed(
    e: LoweringContext, own: Sequence[Extent], axes: Sequence[int], steps: Sequence[int], rank: int
) -> list[Extent]:
    """Insert axes of extent `steps`, by which the following dim is divided."""
    left, at = list(own), 0
    out: list[Extent] = []
    for i in range(rank):
        if i not in axes:
            out.append(left[at])
            at += 1
            continue
        step = steps[axes.index(i)] if steps else 1
        if step != 1:
            left[at] = e.div(left[at], step)
        out.append(step)
    return out


def _static(extents: Sequence[Extent]) -> list[int]:
    return [d for d in extents if isinstance(d, int)]


def _solve(e: LoweringContext, own: Sequence[Extent], out: list[Extent]) -> list[Extent]:
    """Replace the one -1 (or unknown) extent by the element count divided by the others."""
    unknown = [i for i, d in enumerate(out) if isinstance(d, int) and d in (-1, DYN)]
    if not unknown:
        return out
    # equal factors cancel, so that a copied extent stays the value it is
    left, right = list(own), [d for i, d in enumerate(out) if i != unknown[0]]
    for d in list(left):
        if d in right:
            left.remove(d)
            right.remove(d)
    above, below = product(_static(left)), product(_static(right))
    if below and above % below == 0:
        left = [above // below, *(d for d in left if not isinstance(d, int))]
        right = [d for d in right if not isinstance(d, int)]
    out[unknown[0]] = e.div(e.product(left), e.product(right))
    return out


def _resolve_run_time(
    e: LoweringContext, own: Sequence[Extent], out: list[Extent], *, copies: bool
) -> list[Extent]:
    """Resolve dynamic dims: a 0 copies the input's extent, a -1 is inferred.

    A 0 means extent 0 if the op does not copy, or if the tensor is empty and copied extents would
    not be.
    """
    dynamic = {i: d for i, d in enumerate(out) if not isinstance(d, int)}
    if not dynamic:
        return out
    zero, one, minus = e.index(0), e.index(1), e.index(-1)
    result = list(out)
    for i, d in dynamic.items():
        if copies and i < len(own):
            is_zero = arith.CmpIOp(0, d, zero).result
            result[i] = arith.SelectOp(is_zero, e.index(own[i]), d).result
    if any(isinstance(d, int) and d == -1 for d in result):
        return result
    total = e.index(e.product(own))
    known: Extent = 1
    literal = arith.CmpIOp(0, total, zero).result
    for d in result:
        if isinstance(d, int):
            known = e.mul(known, d)
        else:
            negative = arith.CmpIOp(0, d, minus).result
            known = e.mul(known, arith.SelectOp(negative, one, d).result)
            literal = arith.AndIOp(literal, arith.CmpIOp(1, d, minus).result).result
    literal = arith.AndIOp(literal, arith.CmpIOp(1, e.index(known), zero).result).result
    guard = arith.MaxSIOp(e.index(known), one).result
    rest = arith.DivSIOp(total, guard).result
    for i, d in dynamic.items():
        own_or_copied = e.index(result[i])
        negative = arith.CmpIOp(0, own_or_copied, minus).result
        copied = arith.SelectOp(negative, rest, own_or_copied).result
        result[i] = arith.SelectOp(literal, d, copied).result
    return result


# ---- reshaping tensors ---------------------------------------------------------------------------


def reshaped(e: LoweringContext, value: ir.Value, extents: Sequence[Extent]) -> ir.Value:
    """Return a tensor with other dims, of its own element type."""
    dtype = dtypes.from_mlir(ir.RankedTensorType(value.type).element_type)
    return reshape_tensor(e, value, TensorType(dtype, tuple(e.static_dims(extents))), extents)


def reshape_tensor(
    e: LoweringContext, value: ir.Value, t: TensorType, extents: Sequence[Extent]
) -> ir.Value:
    """`value` with other dims: collapse and expand where the dims group, else a flow reshape."""
    source = tuple(ir.RankedTensorType(value.type).shape)
    if source == t.dims and t.is_static:
        return value
    if t.elements == 0:
        return e.empty(list(t.dims), t.dtype)
    if t.is_static and (not source or not t.dims) and product(source) == 1:
        if not t.dims:
            return tensor.CollapseShapeOp(e.mlir_type(t), value, []).result
        return tensor.ExpandShapeOp(e.mlir_type(t), value, [], [], list(t.dims)).result
    groups = _groups(source, t.dims)
    if groups is None:
        return _flow_reshape(e, value, t, extents)
    middle_dims = [product(source[i] for i in a) if a else 1 for a, _ in groups]
    current = value
    if any(len(a) != 1 for a, _ in groups):
        kind = ir.RankedTensorType.get(middle_dims, ir.RankedTensorType(value.type).element_type)
        if any(not a for a, _ in groups):
            return _flow_reshape(e, value, t, extents)
        current = tensor.CollapseShapeOp(kind, current, [list(a) for a, _ in groups]).result
    if any(len(b) != 1 for _, b in groups):
        if any(not b for _, b in groups):
            return _flow_reshape(e, value, t, extents)
        current = tensor.ExpandShapeOp(
            e.mlir_type(t),
            current,
            [list(b) for _, b in groups],
            e.dynamic_values(extents),
            e.static_dims(extents),
        ).result
    return e.refine(current, t)


def _groups(
    source: Sequence[int], result: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    """Dims of both sides in groups of equal products; None where they do not group."""
    if not source or not result or 0 in source or 0 in result:
        return None
    if list(source).count(DYN) != list(result).count(DYN) or list(source).count(DYN) > 1:
        return None
    out: list[tuple[list[int], list[int]]] = []
    if DYN not in source:
        return _static_groups(list(range(len(source))), list(range(len(result))), source, result)
    i, j = list(source).index(DYN), list(result).index(DYN)
    # equal static products on both sides, so the dynamic extents are equal
    left = _static_groups(list(range(i)), list(range(j)), source, result)
    right = _static_groups(
        list(range(i + 1, len(source))), list(range(j + 1, len(result))), source, result
    )
    if left is not None and right is not None:
        out = [*left, ([i], [j]), *right]
        return out
    return [(list(range(len(source))), list(range(len(result))))]


def _static_groups(
    a: list[int], b: list[int], source: Sequence[int], result: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    if product(source[i] for i in a) != product(result[j] for j in b):
        return None
    if not a or not b:
        return [] if not a and not b else None
    out: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        ga, gb = [a[i]], [b[j]]
        pa, pb = source[a[i]], result[b[j]]
        i, j = i + 1, j + 1
        while pa != pb:
            if pa < pb:
                pa *= source[a[i]]
                ga.append(a[i])
                i += 1
            else:
                pb *= result[b[j]]
                gb.append(b[j])
                j += 1
        out.append((ga, gb))
    out[-1][0].extend(a[i:])
    out[-1][1].extend(b[j:])
    return out


def _flow_reshape(
    e: LoweringContext, value: ir.Value, t: TensorType, extents: Sequence[Extent]
) -> ir.Value:
    source = e.dynamic_values(e.extents(value))
    target = e.dynamic_values(extents)
    dims = e.static_dims(extents)
    kind = ir.RankedTensorType.get(dims, ir.RankedTensorType(value.type).element_type)
    if kind == value.type and kind.has_static_shape:
        return value
    return e.refine(iree_ops.reshaped(value, kind, source, target), t)
