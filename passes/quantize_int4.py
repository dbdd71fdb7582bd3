"""quantize_int4: constant weights in 4 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.errors import PipelineError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.passes.analysis.retype import named_ops, ops_field, ops_option
from mgx_mlir.programs.build import Builder
from mgx_mlir.rewrite.passes import Pass, option

_LEVELS = 15  # of the unsigned 4-bit values 0 .. 15


@dataclass(frozen=True)
class QuantizeInt4(Pass):
    """Round constant weights of the listed ops to 4 bits, and keep them packed.

    f32 and f16 literals with an even last extent pass through quantizelinear (to ui8 of 0 .. 15),
    pack_int4, unpack_int4 and dequantizelinear. A scale and a zero point serve the whole tensor,
    or, of a dot's second operand, `group_size` neighbours along the summed axis of one column,
    where the extent is a multiple of that. A weight changes by at most half a step, of which 15
    span the range from the least to the largest value that share it, 0 included. Steps are rounded
    up to numbers of f16 where they are not too small for that.
    propagate_constant folds what is before unpack_int4, so that the weight is stored packed, and
    its users unpack it.
    """

    name: ClassVar[str] = "quantize_int4"
    ops: tuple[str, ...] = ops_field(("dot", "convolution"))
    group_size: int = option(0, "weights of a dot that share a scale; 0: all of a tensor")

    def __post_init__(self) -> None:
        ops_option(self.ops)
        if self.group_size < 0 or self.group_size == 1:
            raise PipelineError(f"group-size expected 0, or 2 and more, got {self.group_size}")

    def run(self, module: ir.Operation) -> bool:
        b = Builder()
        made: dict[tuple[ir.Value, int], ir.Value] = {}
        for op in named_ops(module, self.ops):
            for i, v in enumerate(op.operands):
                if not fits(v):
                    continue
                group = group_of(v, self.group_size) if i == 1 and is_a(op, Dot) else 0
                if (v, group) not in made:
                    literal = v.owner.operation
                    with literal.location, ir.InsertionPoint.after(literal):
                        made[v, group] = quantised(b, v, group)
                op.operands[i] = made[v, group]
        return bool(made)


def group_of(v: ir.Value, size: int) -> int:
    """Return how many weights of a column share a scale, `size` if that fits; 0: all of them."""
    summed = TensorType.of(v).dims[-2] if TensorType.of(v).rank > 1 else 0
    return size if size and summed >= size and summed % size == 0 else 0


def fits(v: ir.Value) -> bool:
    """Return whether a value is a constant that is rounded to 4 bits."""
    if isinstance(v.owner, ir.Block) or not literals.is_literal(v):
        return False
    t = TensorType.of(v)
    float_ = t.dtype in (dtypes.FLOAT, dtypes.HALF)
    return float_ and t.rank > 0 and t.elements > 0 and t.dims[-1] % 2 == 0


def _short(step: np.ndarray) -> np.ndarray:
    """Return steps that f16 holds, and that are no shorter, where its normal numbers reach."""
    info = np.finfo(np.float16)
    if step.min() < info.smallest_normal or step.max() > info.max / 2:
        return step
    half = step.astype(np.float16)
    return np.where(half < step, np.nextafter(half, np.float16(np.inf)), half)


def quantised(b: Builder, v: ir.Value, group: int) -> ir.Value:
    """Build a literal's values at 16 levels, by way of packed 4-bit codes.

    group: neighbours along the last axis but one that share a scale; 0: all elements do.
    """
    t = TensorType.of(v)
    array = literals.array_of(v.owner).astype(np.float32)
    if group:
        array = array.reshape(*t.dims[:-2], t.dims[-2] // group, group, t.dims[-1])
    axes = -2 if group else None
    low = np.minimum(array.min(axis=axes, keepdims=True), 0)
    high = np.maximum(array.max(axis=axes, keepdims=True), 0)
    step = ((high - low) / _LEVELS).astype(t.dtype.np)
    step = _short(np.where(step == 0, 1, step)).astype(t.dtype.np)
    zero = np.clip(np.rint(-low / step.astype(np.float32)), 0, _LEVELS).astype(np.uint8)

    def spread(numbers: np.ndarray) -> ir.Value:
        if not group:
            return b.multibroadcast(b.literal(numbers.reshape(())), t.dims)
        wide = b.multibroadcast(b.literal(numbers), array.shape)
        return b.op("reshape", wide, dims=list(t.dims))

    scale, shift = spread(step), spread(zero)
    codes = b.op("quantizelinear", v, scale, shift, out_type=dtypes.UINT8)
    return b.op("dequantizelinear", b.op("unpack_int4", b.op("pack_int4", codes)), scale, shift)
