"""Lowering of require: a check on the host, before uses of the value."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import TypedScalar, constant

_FAR = 64  # limit of ops on the path


@lowers(Require)
def require(op: Require, ins: tuple[ir.Value, ir.Value], e: LoweringContext) -> ir.Value:
    """Check a condition that a kernel computes: it is read back."""
    followed = e.elements(op.condition)
    if followed is not None:
        require_elements(e, op.operation, np.empty(0), followed)
        return ins[0]
    condition, dims = ins[1], TensorType.of(op.condition).dims
    with e.sizes.showing(_inputs_behind(op.operation)):
        for position in np.ndindex(dims):
            held = index.read(condition, [e.index(i) for i in position])
            e.sizes.truth(held, op.expected)
    return ins[0]


def require_elements(
    e: LoweringContext, op: ir.Operation, elements: np.ndarray, condition: np.ndarray
) -> np.ndarray:
    """Check a condition whose elements are followed as scalars."""
    expected: str = attributes_of(op)["expected"]
    with e.sizes.showing(_inputs_behind(op)):
        for held in condition.flat:
            if not isinstance(held, TypedScalar):
                held = constant(bool(held), dtypes.BOOL)
            e.sizes.truth(held.value, expected)
    return elements


def _inputs_behind(op: ir.Operation) -> list[int]:
    """Return the function's inputs whose values, not only dims, decide the condition."""
    found: dict[int, None] = {}
    seen: set[ir.Operation] = set()
    waiting = [op]
    while waiting and len(seen) < _FAR:
        here = waiting.pop()
        if here in seen or here.name == "migraphx.dimensions_of":
            continue
        seen.add(here)
        for v in here.operands:
            if not isinstance(v.owner, ir.Block):
                waiting.append(v.owner.operation)
            elif v.owner.owner.operation.name == "func.func":
                found[ir.BlockArgument(v).arg_number] = None
    return sorted(found)
