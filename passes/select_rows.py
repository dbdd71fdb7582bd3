"""select_rows: rows that a gather selects are selected ahead of the ops that compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Pointwise, attributes_of, is_a, mnemonic
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import normalize_axes
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.indexing import Gather, GatherND
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.dialects.migraphx.normalize import SoftmaxBase
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.dialects.migraphx.views import ReshapeOp, Transpose
from mgx_mlir.programs.program_ir import DISTINCT, argument_attributes
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import (
    NoMatch,
    Pattern,
    Replacement,
    Rewriter,
    no_match,
    pattern,
    users,
)

_MOST = 64  # readers of a value that are examined


@pattern(GatherND)
def find_tuples_of_one(op: GatherND, rw: Rewriter) -> Replacement:
    """gathernd(x, tuples of one index) -> gather(x, indices) along the first axis"""
    dims = TensorType.of(op.indices).dims
    if op.batch_dims or dims[-1] != 1 or DYN in dims:
        return no_match("its tuples have several indices, or dynamic dims without a name")
    flat = rw.op("reshape", op.indices, dims=list(dims[:-1]))
    return rw.op("gather", op.data, flat, axis=0)


@pattern(Gather)
def find_selected_rows(op: Gather, rw: Rewriter) -> Replacement:
    """gather(rowwise(x), i) -> rowwise(gather(x, i)), i along an axis that rowwise keeps apart

    Row by row are pointwise ops, matmuls along the rows of their first operand, reductions and
    softmax of other axes, transposes, reshapes, slices and concatenations of others. Only where
    each reader of the rows selects the same ones, and fewer than there are: distinct constants, or
    an argument with `migraphx.distinct`. So the last layer of a decoder computes the tokens whose
    logits are wanted.
    """
    data, indices = TensorType.of(op.data), TensorType.of(op.indices)
    if indices.rank != 1 or DYN in (*data.dims, *indices.dims):
        return no_match("its indices are no list, or dims are dynamic without a name")
    axis: int = op.axis % data.rank
    if not _are_fewer(op.indices, data.dims[axis]):
        return no_match("its indices may select no fewer rows")
    owner = op.data.owner
    if isinstance(owner, ir.Block) or len(owner.results) != 1:
        return no_match("its rows are not computed by an op of one result")
    same = _equal_gathers(op, axis)
    if isinstance(same, NoMatch):
        return same
    rows = _Rows(rw, op.indices, axis, indices.dims[0])
    build = rows.computed(owner.operation)
    if isinstance(build, NoMatch):
        return build
    first = min(same, key=_Place)
    rw.merge_location(owner.operation)
    with ir.InsertionPoint(first):
        made = build()
    for other in same:
        if other != op.operation:
            other.results[0].replace_all_uses_with(made)
    return made


class _Place:
    """Order of ops in a block."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op

    def __lt__(self, other: _Place) -> bool:
        return bool(self.op.is_before_in_block(other.op))


def _are_fewer(indices: ir.Value, extent: int) -> bool:
    """Return whether a list selects each row once at most, and not all of known ones."""
    v = indices
    while not isinstance(v.owner, ir.Block):
        if literals.is_literal(v):
            array = literals.seen_of(v)
            return array.size < extent and len(np.unique(array % extent)) == array.size
        if not is_a(v.owner, (ReshapeOp, Require)):
            return False
        v = v.owner.operands[0]
    function = v.owner.owner
    if function.operation.name != "func.func":
        return False
    return DISTINCT in argument_attributes(function)[ir.BlockArgument(v).arg_number]


def _equal_gathers(op: Gather, axis: int) -> list[ir.Operation] | NoMatch:
    """Return the readers of a gather's rows, if all are gathers like it."""
    found = users(op.data)
    if len(found) > _MOST:
        return no_match("its rows have {} readers", len(found))
    for user in found:
        if not is_a(user, Gather) or user.operation.block != op.operation.block:
            return no_match("'{}' reads all of its rows", user.name)
        other = user.opview
        rank = TensorType.of(other.data).rank
        if other.data != op.data or other.axis % rank != axis or other.indices != op.indices:
            return no_match("another gather selects other rows")
    return list(dict.fromkeys(user.operation for user in found))


@dataclass(frozen=True)
class _Rows:
    """Ops on rows that a list of `count` indices selects along an axis."""

    rw: Rewriter
    indices: ir.Value
    axis: int
    count: int

    def computed(self, op: ir.Operation) -> Callable[[], ir.Value] | NoMatch:
        """Return a function that builds an op on its selected rows, or why there is none."""
        axis, out = self.axis, TensorType.of(op.results[0])
        if is_a(op, Multibroadcast):
            return self._broadcast(op)
        if is_a(op, Pointwise):
            return self._of(op, dict.fromkeys(range(len(op.operands)), axis))
        if is_a(op, BlockedDot) and axis < out.rank - 1:
            return self._of(op, {0: axis})
        if is_a(op, Dot) and axis == out.rank - 2:
            return self._of(op, {0: axis})
        if is_a(op, NumberReduction) and len(op.operands) == 1:
            axes = normalize_axes(op.opview.axes, out.rank) or range(out.rank)
            return self._of(op, {0: axis}) if axis not in axes else _along(op)
        if is_a(op, SoftmaxBase):
            return self._of(op, {0: axis}) if op.opview.axis % out.rank != axis else _along(op)
        if is_a(op, Transpose):
            return self._of(op, {0: op.opview.permutation[axis]})
        if is_a(op, Slice) and len(op.operands) == 1:
            axes = normalize_axes(op.opview.axes, out.rank)
            return self._of(op, {0: axis}) if axis not in axes else _along(op)
        if is_a(op, Concat):
            if op.opview.axis % out.rank == axis:
                return _along(op)
            return self._of(op, dict.fromkeys(range(len(op.operands)), axis))
        if is_a(op, ReshapeOp) and len(op.operands) == 1:
            return self._reshaped(op)
        return no_match("'{}' does not compute row by row", op.name)

    def gathered(self, v: ir.Value, axis: int) -> ir.Value:
        """Build the selected rows of a value."""
        return self.rw.op("gather", v, self.indices, axis=axis)

    def _of(self, op: ir.Operation, axes: dict[int, int]) -> Callable[[], ir.Value]:
        """Build an op whose operands are selected along these axes, by their numbers."""

        def build() -> ir.Value:
            made: dict[ir.Value, ir.Value] = {}
            operands = list(op.operands)
            for i, axis in axes.items():
                v = operands[i]
                if v not in made:
                    made[v] = self.gathered(v, axis)
                operands[i] = made[v]
            given = [operands] if is_a(op, Concat) else operands
            return self.rw.op(mnemonic(op), *given, **attributes_of(op))

        return build

    def _selected(self, t: TensorType) -> list[int]:
        """Return the dims of a result with the selected rows."""
        dims = list(t.dims)
        dims[self.axis] = self.count
        return dims

    def _broadcast(self, op: ir.Operation) -> Callable[[], ir.Value] | NoMatch:
        if len(op.operands) != 1:
            return no_match("its rows are broadcast to dims of another operand")
        x, out = TensorType.of(op.operands[0]), TensorType.of(op.results[0])
        axis = self.axis - (out.rank - x.rank)
        own = axis >= 0 and x.dims[axis] != 1

        def build() -> ir.Value:
            v = self.gathered(op.operands[0], axis) if own else op.operands[0]
            return self.rw.op("multibroadcast", [v], out_lens=self._selected(out))

        return build

    def _reshaped(self, op: ir.Operation) -> Callable[[], ir.Value] | NoMatch:
        """Build a reshape whose dims up to the rows stay, or that has as many elements ahead."""
        x, out = TensorType.of(op.operands[0]).dims, TensorType.of(op.results[0])
        ones = [d for d in out.dims[: self.axis] if d != 1]
        axis = next(
            (i for i, d in enumerate(x) if d == out.dims[self.axis]
             and [n for n in x[:i] if n != 1] == ones), None,
        )  # fmt: skip
        if axis is None or DYN in x or out.dims[self.axis] == 1:
            return no_match("a reshape joins its rows with others")

        def build() -> ir.Value:
            v = self.gathered(op.operands[0], axis)
            return self.rw.op("reshape", v, dims=self._selected(out))

        return build


def _along(op: ir.Operation) -> NoMatch:
    return no_match("'{}' computes along the rows", op.name)


@dataclass(frozen=True)
class SelectRows(PatternPass):
    """Rows that a gather selects are selected first, so that the others are not computed."""

    name: ClassVar[str] = "select_rows"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_tuples_of_one, find_selected_rows)
