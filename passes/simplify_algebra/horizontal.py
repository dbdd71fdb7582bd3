"""Patterns of simplify_algebra that merge matmuls or convolutions: parallel, summed,
concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, attributes_of, is_a, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.movement import Concat
from mgx_mlir.dialects.migraphx.pointwise_binary import Add
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, QuantDot, QuantizeLinear
from mgx_mlir.dialects.migraphx.views import ReshapeOp
from mgx_mlir.passes.analysis.constants import can_join, is_constant, joined
from mgx_mlir.passes.analysis.view_chains import VIEWS, trace
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Replacement,
    Rewriter,
    defined_by,
    has_one_use,
    no_match,
    pattern,
    users,
)

_MOST = 64  # most ops that are compared
_CONE = 24  # most pointwise ops of an epilogue


@pattern(Dot, QuantDot, BlockedDot, Convolution)
def find_conv_dot_horiz_fusion(
    op: Dot | QuantDot | BlockedDot | Convolution, rw: Rewriter
) -> Replacement:
    """dot(x, w1), dot(x, w2), .. -> slices of dot(x, concat(w1, w2, ..)), the weights constant

    Also quant_dot, and blocked_dot and convolution with equal attributes. Not for wide results
    (`max-columns`, as of a language model's head), or weights with other readers, which would be
    stored twice. Pointwise ops run in the kernel of the dot before them. So dots are merged if all
    have the same epilogue with constants (then `find_splits` merges these; some may lack a bias),
    or if their epilogues meet, as in the gate of an MLP. Not if each is requantised by its own
    scale. `all-forms` merges any, also convolutions, of which slices are copies.
    """
    if is_a(op, Convolution) and not rw.options.all_forms:
        return no_match("slices of channels-last images are copies (all-forms merges them)")
    group = _beside(op, rw.options.max_columns, rw.options.all_forms)
    if isinstance(group, NoMatch):
        return group
    rank = TensorType.of(op.results[0]).rank
    axis, along = _wide_axes(op, rank)
    keep = range(rank) if is_a(op, (Convolution, BlockedDot)) else (rank - 2, rank - 1)
    rw.merge_location(*group[1:])
    weights = [
        joined(rw, [o.operands[i] for o in group], along, keep) for i in range(1, len(op.operands))
    ]
    wide = rw.op(mnemonic(op), op.operands[0], *weights, **attributes_of(op))
    sums = [_biased(o) for o in group]
    summed = [s for s in sums if s is not None]
    if 0 < len(summed) < len(sums):
        biases = [_bias_of(rw, o, s) for o, s in zip(group, sums, strict=True)]
        wide = rw.op("add", wide, joined(rw, biases, axis))
        for o, s in zip(group, sums, strict=True):
            if s is not None:
                s.results[0].replace_all_uses_with(o.results[0])
    at = 0
    parts: list[ir.Value] = []
    for o in group:
        end = at + TensorType.of(o.results[0]).dims[axis]
        parts.append(rw.op("slice", wide, axes=[axis], starts=[at], ends=[end]))
        at = end
    for o, part in zip(group[1:], parts[1:], strict=True):
        o.results[0].replace_all_uses_with(part)
    return parts[0]


def _wide_axes(op: ir.OpView, rank: int) -> tuple[int, int]:
    """Return the axis of the output columns in the result and in the weights."""
    if is_a(op, BlockedDot):
        return rank - 1, 1
    if not is_a(op, Convolution):
        return rank - 1, rank - 1
    return (rank - 1, rank - 1) if op.channels_last else (1, 0)


def _epilogue(value: ir.Value) -> tuple[list[str], set[ir.Value]]:
    """Return the names of the chain of pointwise ops with constants after a matmul, and the readers
    after the chain.


    """
    names: list[str] = []
    while len(names) < _CONE:
        found = users(value)
        pointwise = [u.operation for u in found if is_a(u.operation, Pointwise)]
        if not pointwise:
            return names, set()
        op = pointwise[0]
        if len(found) > 1 or not all(v == value or is_constant(v) for v in op.operands):
            break
        names.append(mnemonic(op))
        value = op.results[0]
    cone: set[ir.Value] = set()
    todo = [value]
    while todo and len(cone) < _CONE:
        for u in users(todo.pop()):
            if is_a(u.operation, Pointwise) and u.operation.results[0] not in cone:
                cone.add(u.operation.results[0])
                todo.append(u.operation.results[0])
    return names, cone


def _biased(op: ir.Operation) -> ir.Operation | None:
    """Return the sum of a matmul with a constant, if it is the matmul's only use."""
    found = users(op.results[0])
    total = found[0].operation if len(found) == 1 else None
    if total is None or not is_a(total, Add) or not TensorType.of(total.result).is_static:
        return None
    return total if any(can_join([v]) for v in total.operands) else None


def _bias_of(rw: Rewriter, op: ir.Operation, total: ir.Operation | None) -> ir.Value:
    """Return what `total` adds to the result of `op`: zeros where there is no sum."""
    if total is not None:
        a, b = total.operands
        return b if a == op.results[0] else a
    t = TensorType.of(op.results[0])
    return rw.multibroadcast(rw.literal(0, t.dtype), t.dims)


def _beside(op: ir.OpView, most_columns: int, any_epilogue: bool) -> list[ir.OpView] | NoMatch:
    """Return the ops that can be merged with `op`, in order, `op` first; or why there are none."""
    reason = _unfit(op, most_columns)
    if reason is not None:
        return reason
    uses = users(op.operands[0])
    if not 1 < len(uses) <= _MOST:
        return no_match("its input has {} uses", len(uses))
    name = op.operation.name
    axis, _ = _wide_axes(op, TensorType.of(op.results[0]).rank)
    block = op.operation.block
    same = op.operation.attributes
    after, cone = _epilogue(op.results[0])
    group: list[ir.Operation] = []
    for o in uses:
        o = o.operation
        if o == op.operation or o.name != name or o.block != block or o in group:
            continue
        if o.operands[0] != op.operands[0] or not _alike(op.operation, o, axis):
            continue
        if any(o.attributes[k] != v for k, v in same.items()):
            continue
        if _unfit(o.opview, most_columns) is not None:  # a refusal is falsy
            continue
        own, met = _epilogue(o.results[0])
        if not any_epilogue and not _fits(own, met, after, cone):
            continue
        if o.is_before_in_block(op.operation):
            return no_match("another matmul of the same input comes first")
        group.append(o)
    columns = TensorType.of(op.results[0]).dims[axis]
    found = [op]
    for o in sorted(group, key=_Position):
        columns += TensorType.of(o.result).dims[axis]
        if columns > most_columns:
            break
        found.append(o.opview)
    if len(found) < 2:
        return no_match("no other matmul of its input has compatible weights and epilogue")
    return found


def _fits(a: list[str], met: set[ir.Value], b: list[str], cone: set[ir.Value]) -> bool:
    """Return whether two epilogues can be merged: they meet, or are equal."""
    if met or cone:
        return not met.isdisjoint(cone)
    return a == b or all(names in ([], ["add"]) for names in (a, b))


class _Position:
    """Order of ops in one block."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op

    def __lt__(self, other: _Position) -> bool:
        return bool(self.op.is_before_in_block(other.op))


def _alike(a: ir.Operation, b: ir.Operation, axis: int) -> bool:
    """Return whether results and weights have one type except for the output columns."""
    s, t = TensorType.of(a.results[0]), TensorType.of(b.results[0])
    v, w = TensorType.of(a.operands[1]), TensorType.of(b.operands[1])
    kinds = [[TensorType.of(x).dtype for x in o.operands] for o in (a, b)]
    if s.dtype is not t.dtype or kinds[0] != kinds[1]:
        return False
    if is_a(a, Convolution) and not _same_kernel(a, v.dims, w.dims):
        return False
    return all(m == n for i, (m, n) in enumerate(zip(s.dims, t.dims, strict=True)) if i != axis)


def _same_kernel(a: ir.Operation, v: Sequence[int], w: Sequence[int]) -> bool:
    return v[:-1] == w[:-1] if a.opview.channels_last else v[1:] == w[1:]


def _unfit(op: ir.OpView, most_columns: int) -> NoMatch | None:
    """Return why an op cannot be merged; None where it can."""
    if is_a(op, BlockedDot):
        if not can_join(list(op.operands)[1:]):
            return no_match("its codes are computed")
    elif len(op.operands) != 2:
        return no_match("it has scales")
    if is_a(op, Convolution) and op.group != 1:
        return no_match("it has {} groups", op.group)
    if next(iter(op.results[0].uses), None) is None:
        return no_match("nothing uses it")
    if is_a(op, QuantDot) and _is_requantised(op.results[0]):
        return no_match("its kernel quantises its sums, which is not possible for slices of them")
    t = TensorType.of(op.results[0])
    axis, _ = _wide_axes(op, t.rank)
    if t.dims[axis] == DYN or t.dims[axis] > most_columns:
        return no_match("it has {} columns, more than {}", t.dims[axis], most_columns)
    found = trace(op.operands[1])
    if found is None or defined_by(found[0], Literal) is None:
        return no_match("its weights are not a literal")
    if not _only_weights(found[0], op.operation.name):
        return no_match("its weights have other uses, and would be stored twice")
    return None


def _is_requantised(value: ir.Value) -> bool:
    """Return whether sums are only requantised to 8 bits, by pointwise ops with constants."""
    for _ in range(_CONE):
        found = users(value)
        if len(found) != 1:
            return False
        op = found[0].operation
        if is_a(op, QuantizeLinear):
            return True
        if not is_a(op, (Pointwise, DequantizeLinear, ReshapeOp)):
            return False
        if not all(v == value or is_constant(v) for v in op.operands):
            return False
        value = op.results[0]
    return False


def _only_weights(value: ir.Value, name: str, depth: int = 4) -> bool:
    """Say whether `value` is read by ops of one name alone, through views, as their weights."""
    for i, use in enumerate(value.uses):
        owner = use.owner.operation
        if i == _MOST:
            return False
        if owner.name == name:
            if owner.operands[0] == value or owner.operands[1] != value:
                return False
            continue
        if not is_a(owner, VIEWS) or not depth:
            return False
        if not _only_weights(owner.results[0], name, depth - 1):
            return False
    return True


# ---- convolutions of several inputs --------------------------------------------------------------


@pattern(Add)
def find_add_convs(op: Add, rw: Rewriter) -> Replacement:
    """conv(x, u) + conv(y, v) -> conv(concat(x, y), concat(u, v)), u and v constant (all-forms)

    Where strides of 1x1 windows differ, the input with the larger stride is subsampled by `step`.
    Here the second convolution adds in its epilogue, and the concat is a copy, so all-forms only.
    """
    if not rw.options.all_forms:
        return no_match("the sum is fused here, the concat is a copy (see all-forms)")
    convs = [c for v in op.operands if (c := defined_by(v, Convolution)) and has_one_use(v)]
    if len(convs) != 2:
        return no_match("the operands are not single-use convolutions")
    a, b = convs
    if a.group != 1 or b.group != 1 or a.channels_last != b.channels_last:
        return no_match("groups, or another layout")
    if not all(is_constant(c.operands[1]) for c in convs):
        return no_match("weights that are not constant")
    first = attributes_of(a)
    strides: list[list[int]] = [list(a.stride), list(b.stride)]
    steps = _steps(a, b)
    if steps is None:
        return no_match("windows or strides differ")
    shared = [min(s) for s in zip(*strides, strict=True)]
    last = a.channels_last
    channel = -1 if last else 1
    xs = [_thinned(rw, c, s) for c, s in zip(convs, steps, strict=True)]
    dims = [list(TensorType.of(x).dims) for x in xs]
    kernels = [list(TensorType.of(c.operands[1]).dims) for c in convs]
    inner = -2 if last else 1
    for d, k in zip(dims, kernels, strict=True):
        d[channel] = k[inner] = 0
    if dims[0] != dims[1] or kernels[0] != kernels[1] or DYN in dims[0]:
        return no_match("images or windows of different sizes")
    rw.merge_location(a, b)
    rank = len(dims[0])
    x = rw.op("concat", xs, axis=channel % rank)
    w = rw.op("concat", [c.operands[1] for c in convs], axis=inner % rank)
    return rw.op("convolution", x, w, **{**first, "stride": shared})


def _steps(a: Convolution, b: Convolution) -> list[list[int]] | None:
    """Return the steps that subsample each input, so that both convolutions have one stride."""
    names = ("padding", "dilation", "padding_mode")
    if tuple(a.stride) == tuple(b.stride):
        same = all(getattr(a, n) == getattr(b, n) for n in names)
        return [[1] * len(a.stride)] * 2 if same else None
    for c in (a, b):
        dims = TensorType.of(c.operands[1]).dims
        kernel = dims[:-2] if c.channels_last else dims[2:]
        if any(k != 1 for k in kernel) or any(c.padding):
            return None
    out: list[list[int]] = []
    for own, other in ((a.stride, b.stride), (b.stride, a.stride)):
        if any(s % min(s, t) for s, t in zip(own, other, strict=True)):
            return None
        out.append([s // min(s, t) for s, t in zip(own, other, strict=True)])
    return out


def _thinned(rw: Rewriter, conv: Convolution, steps: Sequence[int]) -> ir.Value:
    x = conv.operands[0]
    first = 1 if conv.channels_last else 2
    axes = [first + i for i, s in enumerate(steps) if s != 1]
    return rw.op("step", x, axes=axes, steps=[s for s in steps if s != 1]) if axes else x


@pattern(Concat)
def find_concat_conv(op: Concat, rw: Rewriter) -> Replacement:
    """concat(conv(x, u), conv(y, v)) along channels -> grouped conv(concat(x, y), concat(u, v))

    Groups are five times slower than the convolutions one by one here: all-forms only.
    """
    if not rw.options.all_forms:
        return no_match("groups are slower than separate convolutions here (see all-forms)")
    convs = [c for v in op.operands if (c := defined_by(v, Convolution)) and has_one_use(v)]
    if len(convs) < 2 or len(convs) < len(op.operands):
        return no_match("the operands are not single-use convolutions")
    first = convs[0]
    rank = TensorType.of(first.results[0]).rank
    channel, outs = (rank - 1, rank - 1) if first.channels_last else (1, 0)
    if op.axis % rank != channel:
        return no_match("axis {} is not that of the channels", op.axis)
    attributes = attributes_of(first)
    for c in convs[1:]:
        if attributes_of(c) != attributes:
            return no_match("attributes differ")
        if any(a.type != b.type for a, b in zip(c.operands, first.operands, strict=True)):
            return no_match("images or windows of different sizes")
    if not TensorType.of(first.operands[1]).is_static:
        return no_match("dynamic dims")
    rw.merge_location(*convs)
    x = rw.op("concat", [c.operands[0] for c in convs], axis=channel)
    w = rw.op("concat", [c.operands[1] for c in convs], axis=outs)
    return rw.op("convolution", x, w, **{**attributes, "group": first.group * len(convs)})
