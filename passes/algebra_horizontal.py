"""Patterns of simplify_algebra that make one product of several: beside, summed, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of
from mgx_mlir.core.pattern import NoMatch, Rewriter, defined_by, no_match, pattern, users
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.constants import joined
from mgx_mlir.passes.shape_chain import VIEWS, trace

_MOST = 64  # ops that are looked at together


@pattern("dot", "quant_dot", "convolution")
def find_conv_dot_horiz_fusion(op: Any, rw: Rewriter) -> Any:
    """dot(x, w1), dot(x, w2), .. -> slices of dot(x, concat(w1, w2, ..)), the weights constant

    Also quant_dot, and convolution with equal attributes. Wide results (`max-columns`, of a
    language model's head) stay on their own, and weights that other ops read, which would be
    kept twice. Convolutions only with `all-forms`: channels-last, each slice is a copy.
    """
    name = op.operation.name.removeprefix("migraphx.")
    if name == "convolution" and not rw.options.all_forms:
        return no_match("slices of channels-last images are copies (all-forms merges them)")
    group = _beside(op, rw.options.max_columns)
    if isinstance(group, NoMatch):
        return group
    rank = TensorType.of(op.results[0]).rank
    axis, along = _wide_axes(op, name, rank)
    keep = range(rank) if name == "convolution" else (rank - 2, rank - 1)
    rw.merge_location(*group[1:])
    w = joined(rw, [o.operands[1] for o in group], along, keep)
    wide = rw.op(name, op.operands[0], w, **attributes_of(op))
    at, parts = 0, []
    for o in group:
        end = at + TensorType.of(o.results[0]).dims[axis]
        parts.append(rw.op("slice", wide, axes=[axis], starts=[at], ends=[end]))
        at = end
    for o, part in zip(group[1:], parts[1:], strict=True):
        o.results[0].replace_all_uses_with(part)
    return parts[0]


def _wide_axes(op: Any, name: str, rank: int) -> tuple[int, int]:
    """The axis of the output columns in the result and in the weights."""
    if name != "convolution":
        return rank - 1, rank - 1
    return (rank - 1, rank - 1) if op.channels_last else (1, 0)


def _beside(op: Any, most_columns: int) -> list[Any] | NoMatch:
    """The ops that can run as one with `op`, in their order, `op` first; or why there are none."""
    reason = _unfit(op, most_columns)
    if reason is not None:
        return reason
    uses = users(op.operands[0])
    if not 1 < len(uses) <= _MOST:
        return no_match("its input has {} uses", len(uses))
    name = op.operation.name
    axis, _ = _wide_axes(op, name.removeprefix("migraphx."), TensorType.of(op.results[0]).rank)
    block = op.operation.block
    same = op.operation.attributes
    group: list[Any] = []
    for o in uses:
        o = o.operation
        if o == op.operation or o.name != name or o.block != block or o in group:
            continue
        if o.operands[0] != op.operands[0] or not _alike(op.operation, o, axis):
            continue
        if any(o.attributes[k] != v for k, v in same.items()):
            continue
        if _unfit(o.opview, most_columns) is not None:  # what refuses is falsy
            continue
        if o.is_before_in_block(op.operation):
            return no_match("another one of the same input comes first")
        group.append(o)
    columns = TensorType.of(op.results[0]).dims[axis]
    found = [op]
    for o in sorted(group, key=_Position):
        columns += TensorType.of(o.result).dims[axis]
        if columns > most_columns:
            break
        found.append(o.opview)
    if len(found) < 2:
        return no_match("no other one of its input has constant weights that fit beside it")
    return found


class _Position:
    """Orders ops of one block by where they stand."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op

    def __lt__(self, other: _Position) -> bool:
        return bool(self.op.is_before_in_block(other.op))


def _alike(a: ir.Operation, b: ir.Operation, axis: int) -> bool:
    """Whether results and weights are of one type but for the output columns."""
    s, t = TensorType.of(a.results[0]), TensorType.of(b.results[0])
    v, w = TensorType.of(a.operands[1]), TensorType.of(b.operands[1])
    if s.dtype is not t.dtype or v.dtype is not w.dtype or len(b.operands) != 2:
        return False
    if a.name == "migraphx.convolution" and not _same_kernel(a, v.dims, w.dims):
        return False
    return all(m == n for i, (m, n) in enumerate(zip(s.dims, t.dims, strict=True)) if i != axis)


def _same_kernel(a: ir.Operation, v: Sequence[int], w: Sequence[int]) -> bool:
    return v[:-1] == w[:-1] if a.opview.channels_last else v[1:] == w[1:]


def _unfit(op: Any, most_columns: int) -> NoMatch | None:
    """Why an op cannot be one of several, or None."""
    if len(op.operands) != 2:
        return no_match("it has scales")
    name = op.operation.name.removeprefix("migraphx.")
    if name == "convolution" and op.group != 1:
        return no_match("it has {} groups", op.group)
    if next(iter(op.results[0].uses), None) is None:
        return no_match("nothing uses it")
    t = TensorType.of(op.results[0])
    axis, _ = _wide_axes(op, name, t.rank)
    if t.dims[axis] == DYN or t.dims[axis] > most_columns:
        return no_match("it has {} columns, more than {}", t.dims[axis], most_columns)
    found = trace(op.operands[1])
    if found is None or defined_by(found[0], "literal") is None:
        return no_match("its weights are not a constant that is ready")
    if not _only_weights(found[0], op.operation.name):
        return no_match("its weights are used otherwise too, and would be kept twice")
    return None


def _only_weights(value: ir.Value, name: str, depth: int = 4) -> bool:
    """Whether `value` is read by ops of one name alone, through views, as their weights."""
    for i, use in enumerate(value.uses):
        owner = use.owner.operation
        if i == _MOST:
            return False
        if owner.name == name:
            if owner.operands[0] == value or owner.operands[1] != value:
                return False
            continue
        if owner.name not in VIEWS or not depth:
            return False
        if not _only_weights(owner.results[0], name, depth - 1):
            return False
    return True
