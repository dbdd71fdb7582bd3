"""What patterns ask about constants: is it one, is it one number, along which axes does it vary."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ext, ir
from mgx_mlir.core.op import op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.shape_chain import BROADCASTS, NOPS, RESHAPES, Map, trace

_DEPTH = 8  # ops between a literal and a value that still counts as constant
_SPLAT_VIEWS = RESHAPES | NOPS | BROADCASTS | {"migraphx.transpose", "migraphx.slice"}


def is_constant(value: ir.Value, depth: int = _DEPTH) -> bool:
    """Whether `value` depends on literals alone."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    if owner.name == "migraphx.literal":
        return True
    cls = op_class(owner)
    if cls is None or depth == 0 or not len(owner.operands) or len(owner.operation.regions):
        return False
    return ext.Pure in cls._traits and all(is_constant(v, depth - 1) for v in owner.operands)


def splat(value: ir.Value) -> Any:
    """The one number that all elements of a constant are, through views; None when not so."""
    owner = value.owner
    for _ in range(_DEPTH):
        if isinstance(owner, ir.Block):
            return None
        if owner.name == "migraphx.literal":
            break
        if owner.name not in _SPLAT_VIEWS:
            return None
        owner = owner.operands[0].owner
    else:
        return None
    if not TensorType.of(owner.results[0]).elements:
        return None
    if "key" in owner.attributes:
        array = literals.array_of(owner)
        return array.reshape(-1)[0] if array.size == 1 else None
    array = literals.array_of(owner)
    first = array.reshape(-1)[0]
    same = array.size == 1 or bool(np.all(array == first))
    return first if same else None


def is_splat(value: ir.Value, number: float) -> bool:
    """Whether every element of `value` is the constant `number`."""
    found = splat(value)
    return found is not None and bool(found == number)


def constant_map(value: ir.Value) -> tuple[ir.Value, Map] | None:
    """The constant that `value` repeats and permutes, and how; None when not constant."""
    if not is_constant(value):
        return None
    found = trace(value)
    return None if found is None else (found[0], found[1])
