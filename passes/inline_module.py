"""inline_module: inline branches with known conditions, and loops with at most one iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import as_value
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.control import If, Loop
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, no_match, pattern


@pattern(If)
def inline_if(op: If, rw: Rewriter) -> Replacement:
    """if(constant) {a} {b} -> a, or b"""
    cond = splat(op.cond)
    if cond is None:
        return no_match("the condition is computed at run time")
    region = op.operation.regions[0 if cond else 1]
    types = [TensorType.of(r) for r in op.operation.results]
    yields = _yields(region.blocks[0])
    if any(TensorType.of(v) != t for v, t in zip(yields, types, strict=True)):
        return no_match("the results have other dims than the branch that is taken")
    arguments = list(region.blocks[0].arguments)
    if any(a.type != v.type for a, v in zip(arguments, op.inputs, strict=True)):
        return no_match("the operands have other dims than the branch's arguments")
    return _moved(region.blocks[0], list(op.inputs), op.operation)


@pattern(Loop)
def inline_loop(op: Loop, rw: Rewriter) -> Replacement:
    """loop(0 or 1, cond) {a} -> the carried operands, or a"""
    count, going = splat(op.iterations), splat(op.cond)
    runs = None
    if going is not None and not going:
        runs = 0
    elif count is not None:
        runs = max(int(count), 0)
        if op.padded:
            runs = min(runs, op.max_iterations)
    if runs is None:
        return no_match("the number of iterations is computed at run time")
    if runs > 1:
        return no_match("it runs up to {} times", runs)
    if runs and going is None:
        return no_match("the condition is computed at run time")
    carried = list(op.carried)
    results = [TensorType.of(r) for r in op.operation.results]
    block = op.operation.regions[0].blocks[0]
    yields = _yields(block)[1:]
    scans = results[len(carried) :]
    if any(a.type != v.type for a, v in zip(list(block.arguments)[2:], carried, strict=True)):
        return no_match("the operands have other dims than the body's arguments")
    own = [TensorType.of(v) for v in (yields if runs else carried)[: len(carried)]]
    if any(a != b for a, b in zip(own, results, strict=False)):
        return no_match("the carried values change their dims")
    rows = op.max_iterations if op.padded else runs
    elements = [TensorType.of(v) for v in yields[len(carried) :]]
    if any(not t.is_static for t in elements):
        return no_match("scan outputs of dynamic dims")
    if any(t.dims != (rows, *x.dims) for t, x in zip(scans, elements, strict=True)):
        return no_match("a scan output has another number of elements than {}", rows)
    if not runs:
        zeros = [_zeros(rw, t) for t in scans]
        return [*carried, *zeros]
    number = rw.literal(np.zeros(TensorType.of(block.arguments[0]).dims, np.int64))
    flag = rw.literal(np.ones(TensorType.of(block.arguments[1]).dims, np.bool_))
    found = _moved(block, [number, flag, *carried], op.operation)[1:]
    out = found[: len(carried)]
    for v, t in zip(found[len(carried) :], scans, strict=True):
        row = rw.op("unsqueeze", v, axes=[0])
        if rows > 1:
            rest = _zeros(rw, t.with_dims((rows - 1, *t.dims[1:])))
            row = rw.op("concat", [row, rest], axis=0)
        out.append(as_value(row))
    return out


def _yields(block: ir.Block) -> list[ir.Value]:
    return list(block.operations[len(block.operations) - 1].operation.operands)


def _moved(block: ir.Block, arguments: Sequence[ir.Value], before: ir.Operation) -> list[ir.Value]:
    """Move a block's ops in front of its op; return what they yielded."""
    for argument, v in zip(block.arguments, arguments, strict=True):
        argument.replace_all_uses_with(v)
    *body, last = [view.operation for view in block.operations]
    found = list(last.operands)
    for op in body:
        op.move_before(before)
    return found


def _zeros(rw: Rewriter, t: TensorType) -> ir.Value:
    assert DYN not in t.dims, "checked by the caller"
    return rw.literal(np.zeros(t.dims, t.dtype.np))


@dataclass(frozen=True)
class InlineModule(PatternPass):
    """Inline known branches, and the bodies of loops that run once."""

    name: ClassVar[str] = "inline_module"
    patterns = (inline_if, inline_loop)
