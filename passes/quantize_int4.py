"""quantize_int4: constant weights in 4 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.retype import named_ops, ops_field, ops_option
from mgx_mlir.programs.build import Builder
from mgx_mlir.rewrite.passes import Pass

_LEVELS = 15  # of the unsigned 4-bit values 0 .. 15


@dataclass(frozen=True)
class QuantizeInt4(Pass):
    """Round constant weights of the listed ops to 4 bits, and keep them packed.

    f32 and f16 literals with an even last extent pass through quantizelinear (to ui8 of 0 .. 15,
    one scale and zero point a tensor), pack_int4, unpack_int4 and dequantizelinear. A weight
    changes by at most half a step, of which 15 span the range from its least to its largest
    value, 0 included. propagate_constant folds what is before unpack_int4, so that the weight is
    stored packed, and its users unpack it.
    """

    name: ClassVar[str] = "quantize_int4"
    ops: tuple[str, ...] = ops_field(("dot", "convolution"))

    def __post_init__(self) -> None:
        ops_option(self.ops)

    def run(self, module: ir.Operation) -> bool:
        b = Builder()
        made: dict[ir.Value, ir.Value] = {}
        for op in named_ops(module, self.ops):
            for i, v in enumerate(op.operands):
                if not _fits(v):
                    continue
                if v not in made:
                    literal = v.owner.operation
                    with literal.location, ir.InsertionPoint.after(literal):
                        made[v] = quantised(b, v)
                op.operands[i] = made[v]
        return bool(made)


def _fits(v: ir.Value) -> bool:
    if isinstance(v.owner, ir.Block) or not literals.is_literal(v):
        return False
    t = TensorType.of(v)
    float_ = t.dtype in (dtypes.FLOAT, dtypes.HALF)
    return float_ and t.rank > 0 and t.elements > 0 and t.dims[-1] % 2 == 0


def quantised(b: Builder, v: ir.Value) -> ir.Value:
    """Build a literal's values at 16 levels, by way of packed 4-bit codes."""
    t = TensorType.of(v)
    array = literals.array_of(v.owner).astype(np.float32)
    low, high = min(float(array.min()), 0.0), max(float(array.max()), 0.0)
    step = (high - low) / _LEVELS or 1.0
    zero = int(np.clip(np.rint(-low / step), 0, _LEVELS))
    scale = b.multibroadcast(b.literal(step, t.dtype), t.dims)
    shift = b.multibroadcast(b.literal(zero, dtypes.UINT8), t.dims)
    codes = b.op("quantizelinear", v, scale, shift, out_type=dtypes.UINT8)
    return b.op("dequantizelinear", b.op("unpack_int4", b.op("pack_int4", codes)), scale, shift)
