"""quantize_int4: constant weights in 4 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.errors import PipelineError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.passes.analysis.repeated import Repeated, repeated
from mgx_mlir.passes.analysis.retype import named_ops, ops_field, ops_option
from mgx_mlir.passes.pack_weights import UNIT
from mgx_mlir.programs.build import Builder
from mgx_mlir.rewrite.passes import Pass, option

_LEVELS = 15  # steps of the unsigned 4-bit values 0 .. 15


@dataclass(frozen=True)
class QuantizeInt4(Pass):
    """Round constant weights of the listed ops to 4 bits, and keep them packed.

    f32 and f16 literals with an even last extent pass through quantizelinear (to ui8 of 0 .. 15),
    pack_int4, unpack_int4 and dequantizelinear. A scale and a zero point are per tensor, or, for a
    dot's second operand, per `group_size` adjacent weights of a column along the reduced axis
    (`group_of`). A weight changes by at most half a step; 15 steps span the group's range, which
    includes 0. Steps are rounded up to f16 if they are in its range. If a dot's second operand
    broadcasts a matrix along leading dims, the matrix is rounded.
    propagate_constant folds the ops before unpack_int4, so the weight is stored packed, and its
    users unpack it.
    """

    name: ClassVar[str] = "quantize_int4"
    ops: tuple[str, ...] = ops_field(("dot", "convolution"))
    group_size: int = option(0, "weights of a dot that share a scale; 0: all weights of a tensor")

    def __post_init__(self) -> None:
        ops_option(self.ops)
        if self.group_size < 0 or self.group_size == 1:
            raise PipelineError(f"group-size expected 0, or 2 and more, got {self.group_size}")

    def run(self, module: ir.Operation) -> bool:
        b = Builder()
        made: dict[tuple[ir.Value, int], ir.Value] = {}
        for op in named_ops(module, self.ops):
            for i, operand in enumerate(op.operands):
                of_dot = i == 1 and is_a(op, Dot)
                found = repeated(operand) if of_dot else Repeated(operand)
                if found is None or not fits(found.literal):
                    continue
                v = found.literal
                if not _is_finite(v):
                    continue
                group = group_of(v, self.group_size) if of_dot else 0
                if (v, group) not in made:
                    literal = v.owner.operation
                    with literal.location, ir.InsertionPoint.after(literal):
                        made[v, group] = quantised(b, v, group)
                with op.location, ir.InsertionPoint(op):
                    op.operands[i] = found.of(made[v, group])
        return bool(made)


def group_of(v: ir.Value, size: int) -> int:
    """Return how many weights of a column share a scale; 0: all of the tensor do.

    It is `size`, or the column length if that is shorter. If `size` does not divide the column, it
    is a smaller divisor that is at least half of `size` and a multiple of the unit of packed
    matmuls.
    """
    summed = TensorType.of(v).dims[-2] if TensorType.of(v).rank > 1 else 0
    if not size or summed < 2:
        return 0
    less = range(size // UNIT * UNIT, max(UNIT, -(-size // 2)) - 1, -UNIT)
    return next((g for g in (min(size, summed), *less) if summed % g == 0), 0)


def fits(v: ir.Value) -> bool:
    """Return whether a value is a constant of a type and dims that are rounded to 4 bits."""
    if isinstance(v.owner, ir.Block) or not literals.is_literal(v):
        return False
    t = TensorType.of(v)
    float_ = t.dtype in (dtypes.FLOAT, dtypes.HALF, dtypes.BF16)
    return float_ and t.rank > 0 and t.elements > 0 and t.dims[-1] % 2 == 0


def _is_finite(v: ir.Value) -> bool:
    """Return whether a literal has codes, which NaN and infinities do not have."""
    return bool(np.isfinite(literals.array_of(v.owner)).all())


def _no_shorter(step: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return positive steps rounded up to bf16, so that 15 of them span the weights."""
    made = step.astype(dtype)
    up = (made.view(np.uint16) + np.uint16(1)).view(dtype)
    return np.where(made.astype(np.float32) < step, up, made)


def _short(step: np.ndarray) -> np.ndarray:
    """Return steps rounded up to f16, where they are in its normal range."""
    info = np.finfo(np.float16)
    if step.min() < info.smallest_normal or step.max() > info.max / 2:
        return step
    half = step.astype(np.float16)
    return np.where(half < step, np.nextafter(half, np.float16(np.inf)), half)


@dataclass(frozen=True)
class Grid:
    """Scales and zero points of 4-bit weights, each for `group` rows; 0: for all."""

    step: np.ndarray
    zero: np.ndarray
    group: int

    def codes_of(self, w: np.ndarray) -> np.ndarray:
        """Return weights as codes, rounded to nearest."""
        step = self.step.astype(np.float32)
        found = np.rint(_parted(w, self.group) / step) + self.zero
        return np.clip(found, 0, _LEVELS).astype(np.uint8).reshape(w.shape)

    def restored(self, codes: np.ndarray) -> np.ndarray:
        """Return the values of codes, in f32."""
        offset = _parted(codes, self.group).astype(np.float32) - self.zero
        return (offset * self.step.astype(np.float32)).reshape(codes.shape)


def _parted(w: np.ndarray, group: int) -> np.ndarray:
    """Return weights with an axis for those that share a scale, the last but one."""
    if not group:
        return w
    return w.reshape(*w.shape[:-2], w.shape[-2] // group, group, w.shape[-1])


def grid_of(w: np.ndarray, group: int, dtype: np.dtype[Any], part: float = 1.0) -> Grid:
    """Choose steps, rounded to a type, that span the fraction `part` of a group's range, and 0."""
    w = w.astype(np.float32)
    axes = -2 if group else None
    array = _parted(w, group)
    low = np.minimum(array.min(axis=axes, keepdims=True), 0) * np.float32(part)
    high = np.maximum(array.max(axis=axes, keepdims=True), 0) * np.float32(part)
    step = (high - low) / _LEVELS
    if dtype == dtypes.BF16.np:
        step = _no_shorter(np.where(step == 0, np.float32(1), step), dtype)
    else:
        step = step.astype(dtype)
        step = _short(np.where(step == 0, 1, step)).astype(dtype)
    zero = np.clip(np.rint(-low / step.astype(np.float32)), 0, _LEVELS).astype(np.uint8)
    return Grid(step, zero, group)


def quantised(b: Builder, v: ir.Value, group: int) -> ir.Value:
    """Build a literal's values rounded to 16 levels, as packed 4-bit codes.

    group: adjacent weights along the second-last axis that share a scale; 0: all elements do.
    """
    t = TensorType.of(v)
    grid = grid_of(literals.array_of(v.owner), group, t.dtype.np)
    scale, shift = _spread(b, grid.step, t, group), _spread(b, grid.zero, t, group)
    codes = b.op("quantizelinear", v, scale, shift, out_type=dtypes.UINT8)
    return _unpacked(b, codes, scale, shift)


def coded(b: Builder, v: ir.Value, grid: Grid, codes: np.ndarray) -> ir.Value:
    """Build a literal's values as codes that were chosen for it, as `quantised`."""
    t = TensorType.of(v)
    scale, shift = _spread(b, grid.step, t, grid.group), _spread(b, grid.zero, t, grid.group)
    return _unpacked(b, b.literal(codes), scale, shift)


def _unpacked(b: Builder, codes: ir.Value, scale: ir.Value, shift: ir.Value) -> ir.Value:
    return b.op("dequantizelinear", b.op("unpack_int4", b.op("pack_int4", codes)), scale, shift)


def _spread(b: Builder, numbers: np.ndarray, t: TensorType, group: int) -> ir.Value:
    """Build scales or zero points at the dims of the weights."""
    if not group:
        return b.multibroadcast(b.literal(numbers.reshape(())), t.dims)
    dims = (*t.dims[:-2], t.dims[-2] // group, group, t.dims[-1])
    return b.op("reshape", b.multibroadcast(b.literal(numbers), dims), dims=list(t.dims))
