"""Creation of kernel ops, whose region runs as one dispatch, from inside a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Kernel, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf

Known = dict[ir.Value, ir.Value]


def make_kernel(
    kind: str,
    inputs: Sequence[ir.Value],
    types: Sequence[ir.Type],
    build: Callable[[list[ir.Value]], Sequence[ir.Value]],
    **attributes: object,
) -> ir.Operation:
    """Build a kernel op with results of `types` at the insertion point.

    `build(block arguments)` fills its body and returns the values that it yields.
    """
    new = OPS[kind](list(inputs), results=list(types), **attributes).operation
    block = new.regions[0].blocks.append(
        *[v.type for v in inputs], arg_locs=[ir.Location.unknown()] * len(inputs)
    )
    with ir.InsertionPoint(block):
        OPS["yield"](list(build(list(block.arguments))))
    return new


def in_kernel(op: ir.Operation) -> bool:
    """Return whether an op is in the body of a kernel, including kernels made by the running
    pass.
    """
    return is_a(op.parent, Kernel)


def copy_op(op: ir.Operation, known: Known) -> None:
    """Clone an op at the insertion point with its operands replaced."""
    new = op.clone(ir.InsertionPoint.current).operation
    for n, v in enumerate(op.operands):
        new.operands[n] = known[v]
    for old, result in zip(op.results, new.results, strict=True):
        known[old] = result


def copy_ops(ops: Iterable[ir.Operation], known: Known) -> None:
    """Clone ops in order, except those in `known`."""
    for op in ops:
        if any(r not in known for r in op.results):
            copy_op(op, known)


def copy_body(kernel: ir.Operation, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """Copy the ops of a kernel's body onto other arguments; return the values that it yields."""
    block = kernel.regions[0].blocks[0]
    known: Known = dict(zip(block.arguments, arguments, strict=True))
    inner = [o.operation for o in block.operations]
    copy_ops(inner[:-1], known)
    return [known[v] for v in inner[-1].operands]


def is_uniform(op: ir.Operation) -> bool:
    """Return whether a literal is a splat, which a kernel can contain."""
    if "value" not in op.attributes:
        return False
    array = literals.array_of(op)
    return bool(array.size) and literals.is_uniform(array)


def shape_ops(body: ir.Block) -> set[ir.Operation]:
    """Return the ops of a body that compute dims for others from extents."""
    found: set[ir.Operation] = set()
    for o in (view.operation for view in body.operations):
        shape = is_a(o, DimensionsOf) or any(v.owner in found for v in o.operands)
        if shape and all(TensorType.of(r).dtype is dtypes.INT64 for r in o.results):
            found.add(o)
    return found
