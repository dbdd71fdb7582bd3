"""The form of a program that updates its caches in the input's memory.

A result that is an input with new rows (`concat_past_present`) is written into that input, if the
caller passes its memory for the result. Then no call copies the cache. A second function beside
@main does that; @main leaves its inputs unchanged.
"""

from __future__ import annotations

from mgx_mlir.compiler.variants import settle
from mgx_mlir.core.dtypes import BOOL, INT64
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.attention import ConcatPastPresent
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.passes.simplify_dyn_ops import refine
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR, entry_block, result_types
from mgx_mlir.programs.signature import Pair

_ROWS = 2  # the axis of a cache along which it has rows


def caches_of(program: ProgramIR) -> tuple[Pair, ...]:
    """Return pairs of a result and the input whose memory it can use."""
    with program.ctx:
        block = entry_block(program.main())
        returned = list(block.operations[len(block.operations) - 1].operands)
        found: list[Pair] = []
        for k, value in enumerate(returned):
            cache = _cache(value)
            if cache is None or cache.owner != block or returned.count(value) > 1:
                continue
            readers = [use.owner for use in cache.uses]
            if sum(not is_a(r, DimensionsOf) for r in readers) == 1:
                found.append((ir.BlockArgument(cache).arg_number, k))
    return tuple(found)


def in_place(program: ProgramIR, trusted: bool = False) -> ProgramIR:
    """Copy a program into the in-place form; a run whose cache lacks rows raises an error.

    trusted: values of inputs are valid, and caches have rows; nothing is checked.
    """
    copy = program.clone()
    with copy.ctx, ir.Location.unknown(), copy.store.active():
        block = entry_block(copy.main())
        for _, k in caches_of(copy):
            value = block.operations[len(block.operations) - 1].operands[k]
            _without_growth(value.owner.opview)
        for op in [o.operation for o in block.operations if trusted and is_a(o, Require)]:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
        refine(copy.module.operation)
    settle(copy)
    return copy


def may_replace(form: ProgramIR, program: ProgramIR) -> bool:
    """Return whether the in-place form gives results of the program's types; caches may lack
    rows.
    """
    pairs = zip(result_types(form.main()), result_types(program.main()), strict=True)
    dims = (pair for a, b in pairs for pair in zip(a.dims, b.dims, strict=True))
    return all(DYN in pair or pair[0] == pair[1] for pair in dims)


def _cache(value: ir.Value) -> ir.Value | None:
    """Return the argument that a value extends by new rows, None for other values."""
    if isinstance(value.owner, ir.Block) or not is_a(value.owner, ConcatPastPresent):
        return None
    past = value.owner.opview.past
    rows, have = (TensorType.of(v).dims[_ROWS] for v in (value, past))
    if not isinstance(past.owner, ir.Block) or (DYN not in (rows, have) and rows != have):
        return None  # computed, or known to lack rows
    return past


def _without_growth(op: ConcatPastPresent) -> None:
    """Replace an update that grows a cache by one that does not."""
    if op.rows is None:
        return
    b = Builder()
    with ir.InsertionPoint(op), op.location:
        wanted = b.reshape(b.convert(op.rows, target_type=INT64), dims=[])
        have = b.reshape(b.shape(op.past, _ROWS, _ROWS + 1), dims=[])
        fits = b.not_(b.convert(b.greater(wanted, have), target_type=BOOL))
        rows = "a cache in whose memory the new rows fit"
        seqlens = b.op("require", op.seqlens_k, fits, expected=rows)
        new = b.concat_past_present(op.input, seqlens, op.past, kv_num_heads=op.kv_num_heads)
    op.out.replace_all_uses_with(new)
    op.operation.erase()
