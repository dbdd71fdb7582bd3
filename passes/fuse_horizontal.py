"""fuse_horizontal: lookups in several tables as one lookup in their concatenation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.control_flow import values_read
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import functions
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.pattern import Rule, has_one_use, op_names, rule

GATHERS = rule(
    "gather_horizontal_fusion",
    "gather(table_1, i_1), gather(table_2, i_2), ... -> slices of gather(concat(tables), indices)",
)


@dataclass(frozen=True)
class FuseHorizontal(Pass):
    """Independent gathers of rows of constant tables become one gather of one table.

    The tables have one element type and width, the indices one type and the same dims except the
    first. Each index is clamped to its own table before the offset of the table's first row is
    added. A table with other readers would be stored twice, so it is not merged.
    """

    name: ClassVar[str] = "fuse_horizontal"
    rules: ClassVar[tuple[Rule, ...]] = (GATHERS,)
    least: int = option(4, "least number of gathers")

    def run(self, module: ir.Operation) -> bool:
        if not GATHERS.enabled or op_names(module).count(Gather.OPERATION_NAME) < self.least:
            return False
        changed = False
        for function in list(functions(module)):
            for block in list(_blocks(function)):
                for gathers in _groups(block, self.least):
                    _fuse(block, gathers)
                    changed = True
        return changed


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    """Return the blocks in an op, except bodies of kernels."""
    if is_a(op, Kernel):
        return
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                if len(inner.operation.regions):
                    yield from _blocks(inner.operation)


def _groups(block: ir.Block, least: int) -> list[list[Any]]:
    """Return groups of gathers that can be one; none depends on another of its group."""
    level: dict[ir.Value, int] = {}
    found: dict[Any, list[Any]] = {}
    for view in block.operations:
        op = view.operation
        depth = max((level.get(v, 0) for v in values_read(op)), default=0)
        key = _key(op)
        if key is not None:
            found.setdefault((depth, *key), []).append(op)
            depth += 1
        if depth:
            for r in op.results:
                level[r] = depth
    for gathers in found.values():
        if len(gathers) < least:
            reason = "{} independent gathers of such tables, fewer than {}"
            GATHERS.refused(gathers[0], reason, len(gathers), least)
    return [gathers for gathers in found.values() if len(gathers) >= least]


def _key(op: ir.Operation) -> tuple[Any, ...] | None:
    """Return the key that gathers of one group share; None where `op` is none of them."""
    if not is_a(op, Gather):
        return None
    gather: Any = op.opview
    table, indices = TensorType.of(gather.data), TensorType.of(gather.indices)
    if table.rank != 2 or gather.axis % 2 or not is_constant(gather.data):
        GATHERS.refused(op, "it does not gather rows of a constant table")
    elif not has_one_use(gather.data):
        GATHERS.refused(op, "the table has other readers")
    elif not indices.rank or not _is_known(indices) or 0 in (*indices.dims, *table.dims):
        GATHERS.refused(op, "the indices are one, none, or have dynamic dims")
    elif indices.dtype is dtypes.UINT64:
        GATHERS.refused(op, "the indices may be beyond 64 bits with a sign")
    elif is_constant(gather.indices):
        GATHERS.refused(op, "the indices are constant")
    else:
        return table.dtype, table.dims[1], indices.dtype, indices.dims[1:]
    return None


def _is_known(t: TensorType) -> bool:
    """Return whether all dims are numbers: neither `?` nor a name."""
    return t.is_static and not any(map(is_named, t.dims))


def _fuse(block: ir.Block, operations: Sequence[ir.Operation]) -> None:
    """Build the merged gather at the last one, and move the readers of the others after it."""
    last = operations[-1]
    late = _between(block, operations)
    b = Builder()
    views: list[Any] = [op.opview for op in operations]
    tables = [v.data for v in views]
    rows = [TensorType.of(t).dims[0] for t in tables]
    counts = [TensorType.of(v.indices).dims[0] for v in views]
    with ir.InsertionPoint(last), ir.Location.fused([op.location for op in operations]):
        table = b.op("concat", tables, axis=0)
        wide = [b.op("convert", v.indices, target_type="int64") for v in views]
        at = _in_range(b, b.op("concat", wide, axis=0), rows, counts)
        every = b.op("gather", table, at, axis=0)
        start = 0
        for op, count in zip(operations, counts, strict=True):
            part = b.op("slice", every, axes=[0], starts=[start], ends=[start + count])
            start += count
            GATHERS.applied(op)
            op.results[0].replace_all_uses_with(part)
    for op in late:
        op.move_before(last)
    for op in operations:
        op.erase()


def _in_range(b: Builder, at: ir.Value, rows: list[int], counts: list[int]) -> ir.Value:
    """Build each index as a row of the concatenation.

    Negative ones count from the end of their own table, and out-of-range ones are clamped to it, as
    in gather.
    """
    dims = b.dims(at)

    def along(numbers: Sequence[int]) -> ir.Value:
        each = np.repeat(np.array(numbers, np.int64), counts)
        return b.op("broadcast", b.literal(each), axis=0, out_lens=list(dims))

    extent = along(rows)
    first = along([sum(rows[:i]) for i in range(len(rows))])
    zero = b.multibroadcast(b.literal(np.int64(0)), dims)
    below = b.op("convert", b.op("less", at, zero), target_type="bool")
    wrapped = b.op("where", below, b.op("add", at, extent), at)
    inside = b.op("clip", wrapped, zero, along([n - 1 for n in rows]))
    return b.op("add", inside, first)


def _between(block: ir.Block, operations: Sequence[ir.Operation]) -> list[ir.Operation]:
    """Return the ops before the last gather that depend on one of the others, in order."""
    last = operations[-1]
    moved: list[ir.Operation] = []
    gathered = {op.results[0] for op in operations}
    known: set[ir.Value] = set()
    for view in block.operations:
        op = view.operation
        if op == last:
            break
        if len(op.results) == 1 and op.results[0] in gathered:
            known.add(op.results[0])
        elif known and any(v in known for v in values_read(op)):
            known.update(op.results)
            moved.append(op)
    return moved
