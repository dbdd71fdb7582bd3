"""Patterns of simplify_algebra on all slices of one tensor: apply their common op before
slicing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, Pointwise, ReduceOp, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.movement import Slice, cut_of
from mgx_mlir.dialects.migraphx.views import ReshapeOp, Transpose
from mgx_mlir.passes.analysis.constants import can_join, joined
from mgx_mlir.passes.analysis.view_chains import build_map, trace, varying
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Replacement,
    Rewriter,
    defined_by,
    no_match,
    pattern,
    users,
)

_MOST = 64  # slices, and users of a slice, that are examined


@dataclass(frozen=True)
class Split:
    """A tensor that slices partition along `axis`; `bounds` are those of the parts in order."""

    source: ir.Value
    axis: int
    slices: list[ir.Operation]
    bounds: list[tuple[int, int]]

    @property
    def parts(self) -> list[ir.Value]:
        """The results of the slices, in order along the axis."""
        return [s.result for s in self.slices]


def split_at(op: Op) -> Split | NoMatch:
    """Return the split whose first part the slice `op` is."""
    own = cut_of(op)
    if own is None:
        return no_match("it does not slice one axis at static bounds")
    axis, low, high = own
    if low:
        return no_match("it is not the first part")
    x = op.operands[0]
    extent = TensorType.of(x).dims[axis]
    block = op.operation.block
    found: dict[int, tuple[int, ir.Operation]] = {0: (high, op.operation)}
    for i, user in enumerate(users(x)):
        user = user.operation
        if i == 4 * _MOST:
            return no_match("the tensor has more than {} uses", i)
        if user == op.operation or not is_a(user, Slice) or user.block != block:
            continue
        cut = cut_of(user.opview)
        if cut is None or cut[0] != axis or _is_dead(user):
            continue
        if cut[1] in found and found[cut[1]][0] != cut[2]:
            return no_match("two slices begin at {}", cut[1])
        if cut[1] in found:
            return no_match("two slices are equal")
        found[cut[1]] = (cut[2], user)
    slices: list[ir.Operation] = []
    bounds: list[tuple[int, int]] = []
    at = 0
    while at < extent and at in found and found[at][0] > at:
        bounds.append((at, found[at][0]))
        slices.append(found[at][1])
        at = found[at][0]
    if at != extent or len(slices) != len(found) or not 1 < len(slices) <= _MOST:
        return no_match("the slices are not consecutive parts of it")
    return Split(x, axis, slices, bounds)


def _is_dead(op: ir.Operation) -> bool:
    return all(next(iter(r.uses), None) is None for r in op.results)


def first_of(ops: Sequence[ir.Operation]) -> ir.Operation:
    """Return the first of ops of one block."""
    first = ops[0]
    for op in ops[1:]:
        if op.is_before_in_block(first):
            first = op
    return first


def cut_again(
    rw: Rewriter, x: ir.Value, axis: int, bounds: Sequence[tuple[int, int]]
) -> list[ir.Value]:
    """Build the slices of `x` along `axis` for each (low, high) in `bounds`."""
    return [rw.op("slice", x, axes=[axis], starts=[low], ends=[high]) for low, high in bounds]


# ---- pointwise ops and reductions ----------------------------------------------------------------

Plan = list[Callable[[Rewriter], ir.Value]]


@pattern(Slice)
def find_splits(op: Slice, rw: Rewriter) -> Replacement:
    """f(slice(x)) for every part of x -> slices of f(x), f pointwise or a reduction

    Other operands of f are constants, which are joined, parts of another tensor that is cut
    in the same way, or one value that is repeated along the cut axis.
    """
    split = split_at(op)
    if isinstance(split, NoMatch):
        return split
    reason = no_match("no pointwise op or reduction uses the first part")
    for f in _candidates(split.parts[0], split.axis):
        ops = _same_on_all(f, split)
        if ops is None:
            reason = no_match("{} is not applied to every part", f.name)
            continue
        plan = _plan(ops, split)
        if plan is None:
            reason = no_match("other operands of {} cannot be joined", f.name)
            continue
        rw.merge_location(*ops)
        with ir.InsertionPoint(first_of(ops)):
            operands = [build(rw) for build in plan]
            name = mnemonic(f)
            wide = rw.op(name, *operands, **attributes_of(f))
            for o, part in zip(ops, cut_again(rw, wide, split.axis, split.bounds), strict=True):
                o.results[0].replace_all_uses_with(part)
        return rw.updated()
    return reason


def _candidates(part: ir.Value, axis: int) -> list[ir.Operation]:
    """Return the users of a part that work elementwise (or separately for each index of `axis`)."""
    out: list[ir.Operation] = []
    for i, user in enumerate(users(part)):
        user = user.operation
        if i == _MOST:
            break
        cls = op_class(user)
        if cls is None or len(user.results) != 1 or _is_dead(user) or user in out:
            continue
        if is_a(user, ReduceOp) and len(user.operands) == 1:
            rank = TensorType.of(part).rank
            axes = [a % rank for a in user.opview.axes]
            if axes and axis not in axes:
                out.append(user)
        elif issubclass(cls, Pointwise):
            out.append(user)
    return out


def _same_on_all(f: ir.Operation, split: Split) -> list[ir.Operation] | None:
    """Return, for each part, the op that corresponds to `f` of the first."""
    block = split.slices[0].block
    if f.block != block:
        return None
    places = [v == split.parts[0] for v in f.operands]
    ops = [f]
    for part in split.parts[1:]:
        for user in _candidates(part, split.axis):
            same = user.name == f.name and user.block == block
            if same and [v == part for v in user.operands] == places and _same_attributes(f, user):
                ops.append(user)
                break
        else:
            return None
    return ops


def _same_attributes(a: ir.Operation, b: ir.Operation) -> bool:
    return attributes_of(a) == attributes_of(b)


def _plan(ops: Sequence[ir.Operation], split: Split) -> Plan | None:
    """Return how to build each operand of the op on the whole tensor; nothing is built yet."""
    plan: Plan = []
    for values in zip(*(o.operands for o in ops), strict=True):
        build = _whole(values, split)
        if build is None:
            return None
        plan.append(build)
    return plan


def _whole(values: Sequence[ir.Value], split: Split) -> Callable[[Rewriter], ir.Value] | None:
    if all(v == part for v, part in zip(values, split.parts, strict=True)):
        return lambda rw: split.source
    other = _also_split(values, split)
    if other is not None:
        return lambda rw: other
    dims = [TensorType.of(v).dims for v in values]
    if any(d[split.axis] != high - low for d, (low, high) in zip(dims, split.bounds, strict=True)):
        return None
    if can_join(values):
        return lambda rw: _value(joined(rw, values, split.axis))
    return _repeated(values, split)


def _value(v: ir.Value | None) -> ir.Value:
    assert v is not None
    return v


def _also_split(values: Sequence[ir.Value], split: Split) -> ir.Value | None:
    """Return the tensor of the same dims that `values` are parts of."""
    found: ir.Value | None = None
    for v, (low, high) in zip(values, split.bounds, strict=True):
        part = defined_by(v, Slice)
        if part is None or cut_of(part) != (split.axis, low, high):
            return None
        if found is not None and part.operands[0] != found:
            return None
        found = part.operands[0]
    if found is None or TensorType.of(found).dims != TensorType.of(split.source).dims:
        return None
    return found


def _repeated(values: Sequence[ir.Value], split: Split) -> Callable[[Rewriter], ir.Value] | None:
    """Return the one value that all of `values` repeat along the whole cut axis."""
    found = [trace(v) for v in values]
    first = found[0]
    if first is None or split.axis in varying(first[1]):
        return None
    rest = first[1][: split.axis], first[1][split.axis + 1 :]
    for f in found[1:]:
        if f is None or f[0] != first[0] or split.axis in varying(f[1]):
            return None
        if (f[1][: split.axis], f[1][split.axis + 1 :]) != rest:
            return None
    extent = split.bounds[-1][1]
    m = (*rest[0], ((extent, 0),), *rest[1])
    return lambda rw: build_map(rw, first[0], m)


# ---- views ---------------------------------------------------------------------------------------


def _one_view(split: Split, kind: type[Op]) -> list[ir.Operation] | NoMatch:
    """Return the only user of each part, a view of that kind in the block of the slices."""
    ops: list[ir.Operation] = []
    for part in split.parts:
        found = users(part)
        op = found[0].operation if len(found) == 1 else None
        if op is None or not is_a(op, kind) or len(op.operands) != 1:
            return no_match("not every part is used by one such view alone")
        if op.block != split.slices[0].block:
            return no_match("a view in another block")
        ops.append(op)
    return ops


@pattern(Slice)
def find_split_reshape(op: Slice, rw: Rewriter) -> Replacement:
    """reshape(slice(x)) for every part of x -> slices of reshape(x)"""
    split = split_at(op)
    if isinstance(split, NoMatch):
        return split
    ops = _one_view(split, ReshapeOp)
    if isinstance(ops, NoMatch):
        return ops
    found = _whole_dims(split, [TensorType.of(o.result).dims for o in ops])
    if found is None:
        return no_match("the reshapes do not leave the parts along one axis")
    dims, axis, unit = found
    rw.merge_location(*ops)
    with ir.InsertionPoint(first_of(ops)):
        wide = rw.op("reshape", split.source, dims=[-1 if d == DYN else d for d in dims])
        bounds = [
            (low * unit[0] // unit[1], high * unit[0] // unit[1]) for low, high in split.bounds
        ]
        for o, part in zip(ops, cut_again(rw, wide, axis, bounds), strict=True):
            o.result.replace_all_uses_with(part)
    return rw.updated()


def _whole_dims(
    split: Split, dims: Sequence[tuple[int, ...]]
) -> tuple[list[int], int, tuple[int, int]] | None:
    """Return the whole tensor's dims, the parts' axis in them, and the growth of extents along it.

    The growth is what an extent of 1 along the cut axis becomes, as a fraction. None where the
    parts are not along one axis.

    Before the cut axis are `outer` elements, each followed by a run of extent * inner of a part;
    the new axis must divide these runs.
    """
    own = TensorType.of(split.source).dims
    inner = own[split.axis + 1 :]
    if DYN in inner or own.count(DYN) > 1 or 0 in own:
        return None
    size = prod(inner)
    first = dims[0]
    if any(len(d) != len(first) or d.count(DYN) > 1 or 0 in d for d in dims):
        return None
    for axis in range(len(first)):
        tail = first[axis + 1 :]
        if DYN in tail or first[axis] == DYN:
            continue
        unit = prod(tail)
        if all(
            d[:axis] == first[:axis]
            and d[axis + 1 :] == tail
            and d[axis] * unit == (high - low) * size
            and (low * size) % unit == 0
            for d, (low, high) in zip(dims, split.bounds, strict=True)
        ):
            wide = split.bounds[-1][1] * size // unit
            return [*first[:axis], wide, *tail], axis, (size, unit)
    return None


@pattern(Slice)
def find_split_transpose(op: Slice, rw: Rewriter) -> Replacement:
    """transpose(slice(x)) for every part of x -> slices of transpose(x)"""
    split = split_at(op)
    if isinstance(split, NoMatch):
        return split
    ops = _one_view(split, Transpose)
    if isinstance(ops, NoMatch):
        return ops
    permutation = ops[0].opview.permutation
    if any(o.opview.permutation != permutation for o in ops[1:]):
        return no_match("the transposes differ")
    rw.merge_location(*ops)
    with ir.InsertionPoint(first_of(ops)):
        wide = rw.op("transpose", split.source, permutation=permutation)
        axis = list(permutation).index(split.axis)
        for o, part in zip(ops, cut_again(rw, wide, axis, split.bounds), strict=True):
            o.result.replace_all_uses_with(part)
    return rw.updated()
