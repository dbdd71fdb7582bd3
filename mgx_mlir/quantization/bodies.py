"""Values in the bodies of If and Loop: their indices in a program, and as additional results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, attributes_of, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.control import If, Loop, joined
from mgx_mlir.programs.build import Builder


def values_of(block: ir.Block) -> Iterator[ir.Value]:
    """Return the values of a block and of the bodies in it, in program order."""
    yield from block.arguments
    for view in block.operations:
        op = view.operation
        yield from op.results
        for region in op.regions:
            for body in region.blocks:
                yield from values_of(body)


def why_not_calibrated(value: ir.Value, block: ir.Block) -> str | None:
    """Return why a body's value cannot become a result, None if it can."""
    inner, branch = block_of(value), False
    while inner != block:
        op = inner.owner.operation
        if is_a(op, Loop):
            if branch:  # an iteration that skips the branch has no element
                return "it is in a branch in the body of a Loop"
            if op.opview.padded:
                return "it is in the body of a Loop that pads its results with zeros"
            if not TensorType.of(value).is_static:
                return "it is in the body of a Loop, whose iterations may differ in dims"
        elif not is_a(op, If):
            return "its operands are no tensors of the program's main function"
        branch = branch or is_a(op, If)
        inner = op.block
    return None


def block_of(value: ir.Value) -> ir.Block:
    """Return the block that defines a value."""
    owner = value.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def lifted(block: ir.Block, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Return values of a block for values in it or in bodies inside it.

    A value in a branch that is not taken has no element, or is 0 if it is a scalar. Values in the
    body of a Loop are stacked along a new first axis, by iteration.
    """
    found = list(values)
    while True:
        depths = [_depth(v, block) for v in found]
        deepest = max(depths, default=0)
        if not deepest:
            return found
        first = found[depths.index(deepest)]
        op = block_of(first).owner.operation
        taken = [i for i, v in enumerate(found) if block_of(v).owner.operation == op
                 and depths[i] == deepest]  # fmt: skip
        old: list[ir.Value] = list(op.results)
        made, own = (_more_of_if if is_a(op, If) else _more_of_loop)(op, [found[i] for i in taken])
        for i, v in enumerate(found):
            if v in old:
                found[i] = own[old.index(v)]
        for i, v in zip(taken, made, strict=True):
            found[i] = v
        op.erase()


def _depth(value: ir.Value, block: ir.Block) -> int:
    depth, inner = 0, block_of(value)
    while inner != block:
        inner, depth = inner.owner.operation.block, depth + 1
    return depth


def _more_of_if(
    op: ir.Operation, values: Sequence[ir.Value]
) -> tuple[list[ir.Value], list[ir.Value]]:
    """Rebuild the If with additional results; return these, and its former results."""
    view = op.opview
    blocks = [r.blocks[0] for r in op.regions]
    types = [TensorType.of(r) for r in op.results]
    with op.location:
        for block in blocks:
            _yield_also(block, [v if block_of(v) == block else _nothing(v, block) for v in values])
        more = [joined(TensorType.of(v), _nothing_of(TensorType.of(v))) for v in values]
        with ir.InsertionPoint(op):
            made = OPS["if"](view.cond, list(view.inputs), results=[*types, *more]).operation
    return _moved(op, made)


def _more_of_loop(
    op: ir.Operation, values: Sequence[ir.Value]
) -> tuple[list[ir.Value], list[ir.Value]]:
    """Rebuild the Loop with additional scan outputs; return these, and its former results."""
    view = op.opview
    types = [TensorType.of(r) for r in op.results]
    more = [t.with_dims((DYN, *t.dims)) for t in map(TensorType.of, values)]
    attributes = attributes_of(op)
    if attributes["scan_output_directions"]:
        attributes["scan_output_directions"] += (0,) * len(values)
    with op.location:
        _yield_also(op.regions[0].blocks[0], values)
        with ir.InsertionPoint(op):
            made = OPS["loop"](
                view.iterations, view.cond, list(view.carried), results=[*types, *more],
                **attributes,
            ).operation  # fmt: skip
    return _moved(op, made)


def _yield_also(block: ir.Block, values: Sequence[ir.Value]) -> None:
    end = block.operations[len(block.operations) - 1].operation
    with ir.InsertionPoint(end):
        OPS["yield"]([*end.operands, *values])
    end.erase()


def _moved(op: ir.Operation, made: ir.Operation) -> tuple[list[ir.Value], list[ir.Value]]:
    """Move the bodies of an op to its copy, which replaces it."""
    for old, new in zip(op.regions, made.regions, strict=True):
        old.blocks[0].append_to(new)
    every: list[ir.Value] = list(made.results)
    own = every[: len(op.results)]
    for before, after in zip(op.results, own, strict=True):
        before.replace_all_uses_with(after)
    return every[len(own) :], own


def _nothing(value: ir.Value, block: ir.Block) -> ir.Value:
    t = _nothing_of(TensorType.of(value))
    with ir.InsertionPoint(block.operations[len(block.operations) - 1]):
        return Builder().literal(np.zeros(t.dims, t.dtype.np))


def _nothing_of(t: TensorType) -> TensorType:
    dims = [0 if d == DYN else d for d in t.dims]
    if dims and 0 not in dims:
        dims[0] = 0
    return t.with_dims(dims)
