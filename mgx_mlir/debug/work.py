"""Work of an instruction: the bytes that it reads and writes, and its arithmetic.

Each operand and result is counted once, which is the least memory traffic. An operation is a
multiplication, an addition, or one evaluation of a function such as exp; moves, views and gathers
have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, ViewOp, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType

_SOFTMAX = 5  # operations on each element: compare, subtract, exp, add, divide
_MOVES = {
    "gather", "gathernd", "concat", "pad", "literal", "yield", "slice", "reverse", "onehot",
    "scatter_none", "scatternd_none", "fill", "allocate", "undefined", "dimensions_of", "step",
    "convert", "bit_cast", "layout", "contiguous", "random_seed",
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """`bytes` and `operations` of one call; None if dynamic dims or loops hide them."""

    bytes: int | None
    operations: int | None


def work_of(op: ir.Operation) -> Work:
    """Count the operations and bytes of an instruction, or of a kernel's region."""
    return Work(_bytes(op), _operations(op))


def _bytes(op: ir.Operation) -> int | None:
    total = 0
    for v in [*dict.fromkeys(op.operands), *op.results]:
        t = TensorType.of(v)
        if not t.is_static:
            return None
        total += t.elements * t.dtype.size
    return total


def _operations(op: ir.Operation) -> int | None:
    if is_a(op, Kernel):
        parts = [_operations(view.operation) for view in op.regions[0].blocks[0].operations]
        known = [p for p in parts if p is not None]
        return sum(known) if len(known) == len(parts) else None
    name, cls = mnemonic(op), op_class(op)
    if name in _MOVES or is_a(op, ViewOp):
        return 0
    if len(op.regions) or cls is None:
        return None
    types = [TensorType.of(v) for v in [*op.operands, *op.results]]
    if not all(t.is_static for t in types):
        return None
    out = TensorType.of(op.results[0])
    special = _COUNTS.get(name)
    if special is not None:
        return special(op, out)
    if getattr(cls, "scalar", None) is not None:
        return out.elements
    if name.startswith(("reduce_", "arg", "prefix_scan")):
        return TensorType.of(op.operands[0]).elements
    return None


def _dot(op: ir.Operation, out: TensorType) -> int:
    return 2 * out.elements * TensorType.of(op.operands[0]).dims[-1]


def _convolution(op: ir.Operation, out: TensorType) -> int:
    # weights: out channels, channels of a group, window; reversed for channels-last
    dims = TensorType.of(op.operands[1]).dims
    last = attributes_of(op).get("channels_last")
    return 2 * out.elements * math.prod(dims[:-1] if last else dims[1:])


def _convolution_backwards(op: ir.Operation, out: TensorType) -> int:
    weights = TensorType.of(op.operands[1]).dims
    return 2 * TensorType.of(op.operands[0]).elements * math.prod(weights[1:])


def _pooling(op: ir.Operation, out: TensorType) -> int:
    attributes = attributes_of(op)
    if attributes["dyn_global"]:
        return TensorType.of(op.operands[0]).elements
    return out.elements * math.prod(attributes["lengths"])


_COUNTS: dict[str, Callable[[ir.Operation, TensorType], int]] = {
    "dot": _dot,
    "quant_dot": _dot,
    "blocked_dot": _dot,
    "convolution": _convolution,
    "quant_convolution": _convolution,
    "convolution_backwards": _convolution_backwards,
    "pooling": _pooling,
    "softmax": lambda _, out: _SOFTMAX * out.elements,
    "logsoftmax": lambda _, out: _SOFTMAX * out.elements,
}
