"""Control-flow regions: values that are small integers kept on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Pointwise, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf
from mgx_mlir.dialects.migraphx.control import If, Loop
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.movement import Concat, Reverse, Slice, Step
from mgx_mlir.dialects.migraphx.reduce import ReduceMax, ReduceMin, ReduceProd, ReduceSum
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.dialects.migraphx.views import Contiguous, Identity, ReshapeOp, Transpose

CONTROL = (If, Loop)
SCALARS = 8  # elements of a carried value, or of a branch's result, that is kept as scalars
_ELEMENTS = 64
_STRUCTURAL = (
    ReshapeOp, Identity, Contiguous, Transpose, Concat, BroadcastOp, Slice, Step, Gather, Reverse,
    Require, ReduceProd, ReduceSum, ReduceMax, ReduceMin,
)  # fmt: skip

IsHost = Callable[[ir.Value], bool]


def stays_on_host(op: ir.Operation, known: IsHost) -> bool:
    """Return whether the lowering keeps the op's result as host scalars, given which operands
    are.
    """
    if is_a(op, DimensionsOf):
        return True
    if len(op.results) != 1 or len(op.regions):
        return False
    t = TensorType.of(op.results[0])
    if t.dtype.is_float or not t.is_known or t.elements > _ELEMENTS:
        return False
    if is_literal(op):
        return True
    pointwise = is_a(op, Pointwise) and getattr(op_class(op), "scalar", None) is not None
    if not pointwise and not is_a(op, _STRUCTURAL):
        return False
    return bool(len(op.operands)) and all(known(v) for v in op.operands)


def host_arguments(op: ir.Operation, known: IsHost) -> set[ir.Value]:
    """Return the arguments of a loop's body that are scalars on the host.

    They are the iteration number, the condition if it is computed on the host, and carried host
    scalars.
    """
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    body = [view.operation for view in block.operations]
    yields = list(body[-1].operands)
    held: set[ir.Value] = {arguments[0], arguments[1]}
    for argument, v in zip(arguments[2:], list(op.operands)[2:], strict=True):
        t = TensorType.of(argument)
        if t.is_known and t.elements <= SCALARS and not t.dtype.is_float and known(v):
            held.add(argument)
    while True:
        inside = set(held)
        for inner in body[:-1]:
            if stays_on_host(inner, lambda v, inside=inside: v in inside or known(v)):
                inside.update(inner.results)
        lost = {
            a
            for a, y in zip(arguments[2:], yields[1:], strict=False)
            if a in held and y not in inside and not known(y)
        }
        if not lost:
            return held
        held -= lost


def host_arguments_of(op: ir.Operation, known: IsHost) -> Iterator[tuple[ir.Block, set[ir.Value]]]:
    """Return the blocks of an `if` or a loop, each with its arguments that are host scalars."""
    for block in inner_blocks(op):
        if is_a(op, Loop):
            yield block, host_arguments(op, known)
        else:
            operands = list(op.operands)[1:]
            yield block, {a for a, v in zip(block.arguments, operands, strict=True) if known(v)}


def host_results(op: ir.Operation, known: IsHost) -> set[ir.Value]:
    """Return the results of a branch or a loop that come out as scalars."""
    blocks = list(host_arguments_of(op, known))
    if is_a(op, Loop):
        arguments = list(blocks[0][0].arguments)[2:]
        return {r for r, a in zip(op.results, arguments, strict=False) if a in blocks[0][1]}
    held: list[list[bool]] = []
    for block, inside in blocks:
        body = [view.operation for view in block.operations]
        for inner in body[:-1]:
            if stays_on_host(inner, lambda v, inside=inside: v in inside or known(v)):
                inside.update(inner.results)
        held.append([v in inside or known(v) for v in body[-1].operands])
    types = [TensorType.of(r) for r in op.results]
    return {
        r
        for r, t, both in zip(op.results, types, zip(*held, strict=True), strict=True)
        if all(both) and t.is_known and t.elements <= SCALARS
    }


def inner_blocks(op: ir.Operation) -> Iterator[ir.Block]:
    """Return the blocks of a branch or a loop."""
    for region in op.regions:
        yield from region.blocks


def values_read(op: ir.Operation) -> Iterator[ir.Value]:
    """Return the operands of an op and of everything in its regions."""
    yield from op.operands
    for block in inner_blocks(op):
        for inner in block.operations:
            yield from values_read(inner.operation)


def captured(op: ir.Operation) -> list[ir.Value]:
    """Return the values from outside that the regions of `op` read, at any depth."""
    found: dict[ir.Value, None] = {}
    own: set[ir.Value] = set()

    def visit(block: ir.Block) -> None:
        own.update(block.arguments)
        for view in block.operations:
            inner = view.operation
            for v in inner.operands:
                if v not in own:
                    found[v] = None
            for region in inner.regions:
                for b in region.blocks:
                    visit(b)
            own.update(inner.results)

    for b in inner_blocks(op):
        visit(b)
    return list(found)


def is_static(op: ir.Operation) -> bool:
    """Return whether all values of the regions of `op`, at any depth, have static dims."""
    return all(
        TensorType.of(v).is_static
        for block in inner_blocks(op)
        for inner in (view.operation for view in block.operations)
        for v in (*block.arguments, *inner.operands, *inner.results)
    ) and all(is_static(view.operation) for block in inner_blocks(op) for view in block.operations)
