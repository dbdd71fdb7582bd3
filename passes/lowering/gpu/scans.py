"""Running sums on GPUs: sums of blocks first, then each lane adds the blocks ahead of its element.

IREE's own op is one lane a line, which waits for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, scf
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, constant

_BLOCK = 64  # elements of a block: what a lane adds of each level
_AT_ONCE = 8  # indices of an iteration
_LEVELS = 2  # sums of blocks, and of blocks of blocks


def running_sums(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    axis: int,
    extents: Sequence[Extent],
    *,
    inclusive: bool = True,
) -> ir.Value:
    """Return running sums along `axis` in `dtype`; extents: of `x`."""
    levels = [e.hidden(x)]
    while len(levels) <= _LEVELS and not _is_short(e.extent(levels[-1], axis)):
        levels.append(_block_sums(e, levels[-1], dtype, axis))

    def total(where: list[ir.Value]) -> ir.Value:
        # the last level from its begin, each other from where the block of the one above begins
        found, size = constant(0, dtype).value, _BLOCK ** (len(levels) - 1)
        begin: Extent = 0
        for level in reversed(levels):
            end = e.div(where[axis], size) if size > 1 else where[axis]
            stop = e.add(end, 1) if size == 1 and inclusive else end
            found = _sum(e, level, dtype, axis, where, begin, stop, found)
            begin, size = e.mul(end, _BLOCK), size // _BLOCK
        return found

    return index.from_positions_alone(e, extents, dtype, total)


def _is_short(extent: Extent) -> bool:
    return isinstance(extent, int) and extent <= _BLOCK


def _block_sums(e: LoweringContext, x: ir.Value, dtype: DType, axis: int) -> ir.Value:
    own = e.extents(x)
    blocks = [*own]
    blocks[axis] = index.ceil_div(e, own[axis], _BLOCK)

    def total(where: list[ir.Value]) -> ir.Value:
        begin = e.mul(where[axis], _BLOCK)
        end = e.min(e.add(begin, _BLOCK), own[axis])
        return _sum(e, x, dtype, axis, where, begin, end, constant(0, dtype).value)

    return index.from_positions_alone(e, blocks, dtype, total)


def _sum(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    axis: int,
    where: Sequence[ir.Value],
    begin: Extent,
    end: Extent,
    start: ir.Value,
) -> ir.Value:
    """Return `start` and the elements from `begin` to `end` along the axis."""
    b = ArithScalars(dtype, dtype)

    def add(at: ir.Value, inside: ir.Value, total: ir.Value) -> ir.Value:
        value = TypedScalar(index.read(x, [*where[:axis], at, *where[axis + 1 :]]), dtype)
        own = b.select(TypedScalar(inside, dtypes.BOOL), value, 0)
        return b.add(TypedScalar(total, dtype), own).value

    return folded(e, begin, end, start, add)


def folded(
    e: LoweringContext,
    begin: Extent,
    end: Extent,
    start: ir.Value,
    step: Callable[[ir.Value, ir.Value, ir.Value], ir.Value],
) -> ir.Value:
    """Return the last total of `step(at, inside, total)` over the indices from `begin` to `end`.

    A lane does several at once, so that it waits once for what they load. Indices that are not
    inside repeat the first of theirs.
    """
    loop = scf.ForOp(e.index(begin), e.index(end), e.index(_AT_ONCE), [start])
    with ir.InsertionPoint(loop.body):
        first, total = loop.induction_variable, loop.inner_iter_args[0]
        for i in range(_AT_ONCE):
            at = e.index(e.add(first, i))
            inside = index.compare(e, index.SLT, at, end)
            total = step(index.select(e, inside, at, first), inside, total)
        scf.YieldOp([total])
    return loop.results[0]


__all__ = ["folded", "running_sums"]
