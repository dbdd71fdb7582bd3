"""Patterns of simplify_algebra on concatenations of values computed by the same op."""

from __future__ import annotations

from math import prod

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.movement import Concat, Slice, cut_of
from mgx_mlir.dialects.migraphx.quant import UnpackFp4, UnpackInt4
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.view_chains import Map, build_map, trace, varying
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
)

_UNPACK = (UnpackInt4, UnpackFp4)


@pattern(Concat, benefit=3)
def find_concat_same_input(op: Concat, rw: Rewriter) -> Replacement:
    """concat(x, x, ..) -> multibroadcast(x), x of extent 1 along the axis"""
    x = op.operands[0]
    out = TensorType.of(op.results[0])
    t = TensorType.of(x)
    if len(op.operands) < 2 or any(v != x for v in op.operands):
        return no_match("the operands differ")
    if not out.is_static or t.dims[op.axis % t.rank] != 1:
        return no_match("the extent along axis {} is not 1, or dynamic dims", op.axis)
    return rw.multibroadcast(x, out.dims)


@pattern(Concat, benefit=2)
def find_split_concat(op: Concat, rw: Rewriter) -> Replacement:
    """concat(.., slice(x, 0:2), slice(x, 2:3), ..) -> concat(.., slice(x, 0:3), ..), or x"""
    axis = op.axis % TensorType.of(op.results[0]).rank
    runs: list[tuple[ir.Value, tuple[int, int] | None, ir.Value]] = []
    joined = False
    for v in op.operands:
        part = defined_by(v, Slice)
        cut = None if part is None else cut_of(part)
        if part is None or cut is None or cut[0] != axis:
            runs.append((v, None, v))
            continue
        x, (_, low, high) = part.operands[0], cut
        last = runs[-1] if runs else None
        if last is not None and last[1] is not None and last[0] == x and last[1][1] == low:
            runs[-1] = (x, (last[1][0], high), v)
            joined = True
            rw.merge_location(part)
        else:
            runs.append((x, (low, high), v))
    if not joined:
        return no_match("no two operands are consecutive slices of one tensor")
    parts = [_cut(rw, x, axis, bounds, v) for x, bounds, v in runs]
    return parts[0] if len(parts) == 1 else rw.op("concat", parts, axis=axis)


def _cut(
    rw: Rewriter, x: ir.Value, axis: int, bounds: tuple[int, int] | None, like: ir.Value
) -> ir.Value:
    if bounds is None or bounds == (0, TensorType.of(x).dims[axis]):
        return x
    part = defined_by(like, Slice)
    if part is not None and part.operands[0] == x and cut_of(part) == (axis, *bounds):
        return like
    return rw.op("slice", x, axes=[axis], starts=[bounds[0]], ends=[bounds[1]])


@pattern(Concat)
def find_concat_op(op: Concat, rw: Rewriter) -> Replacement:
    """concat(f(x), f(y), ..) -> f(concat(x, y, ..)), f a broadcast or unpack_int4

    Also f pointwise, with `all-forms`: here the kernels of x and y fuse such an f, which would be a
    pass over memory after the concatenation.
    """
    if len(op.operands) < 2:
        return no_match("it has one operand")
    axis = op.axis % TensorType.of(op.results[0]).rank
    found = _repeated(op, rw, axis)
    if not isinstance(found, NoMatch):
        return found
    first = op.operands[0].owner
    if isinstance(first, ir.Block):
        return no_match("the first operand is an argument")
    first = first.operation
    cls = op_class(first)
    packed = is_a(first, _UNPACK)
    if cls is None or not (packed or issubclass(cls, Pointwise)):
        return found
    if not packed and not rw.options.all_forms and not all(map(is_constant, op.operands)):
        return no_match(
            "pointwise ops stay in the kernels of their operands (all-forms moves them)"
        )
    attributes = attributes_of(first)
    ops: list[ir.Operation] = []
    for v in op.operands:
        o = v.owner
        if isinstance(o, ir.Block) or o.operation.name != first.name or not has_one_use(v):
            return no_match("an operand is not {} used here alone", first.name)
        o = o.operation
        if attributes_of(o) != attributes or len(o.operands) != len(first.operands):
            return no_match("{} with other attributes", first.name)
        if any(a.type.element_type != b.type.element_type for a, b in zip(
            o.operands, first.operands, strict=True)):  # fmt: skip
            return no_match("{} of other types", first.name)
        ops.append(o)
    rw.merge_location(*ops)
    joined = [
        rw.op("concat", list(vs), axis=axis) for vs in zip(*(o.operands for o in ops), strict=True)
    ]
    return rw.op(mnemonic(first), *joined, **attributes)


def _repeated(op: ir.Operation, rw: Rewriter, axis: int) -> ir.Value | NoMatch:
    """Rewrite a concat of values that repeat along an axis together to a repeated concat."""
    out = TensorType.of(op.results[0])
    if not out.is_static:
        return no_match("dims are dynamic")
    sources: list[tuple[ir.Value, Map, list[ir.Operation]]] = []
    kept = {axis}
    for v in op.operands:
        found = trace(v)
        if found is None:
            return no_match("an operand has empty dims")
        if not found[2]:
            return no_match("an operand is neither a view nor an op that can be moved after")
        sources.append(found)
        kept |= varying(found[1])
    small = [d if i in kept else 1 for i, d in enumerate(out.dims)]
    if prod(small) == prod(out.dims):
        return no_match("the operands are not repeated along an axis together, nor made alike")
    rw.merge_location(*(o for _, _, ops in sources for o in ops))
    parts = [
        build_map(rw, x, tuple(atoms if i in kept else () for i, atoms in enumerate(m)))
        for x, m, _ in sources
    ]
    return rw.multibroadcast(rw.op("concat", parts, axis=axis), out.dims)
