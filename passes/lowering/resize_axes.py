"""Axes of a resize: extents, scales, and the input coordinates of result indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.passes.lowering import host
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, widen

_FLOAT, _INT = dtypes.FLOAT, dtypes.INT64


@dataclass
class Axis:
    """One axis: its extents, and the scale as a Python number or a function that reads it."""

    length: Extent
    extent: Extent
    scale: np.float32 | None  # None: extent / length, at run time
    given: ir.Value | None = None  # the run-time scales, read at `index`
    index: int = 0
    at: ir.Value | None = None  # coordinates in the input; None: the axis is unchanged

    def unchanged(self) -> bool:
        return self.scale == 1 and same_extent(self.length, self.extent)


def same_extent(a: Extent, b: Extent) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


def axes_of(op: Resize, ins: tuple[ir.Value, ir.Value | None], e: LoweringContext) -> list[Axis]:
    own, out = e.extents(ins[0]), TensorType.of(op.out)
    if op.target is None:
        found: list[Axis] = []
        for i, d in enumerate(own):
            if op.sizes:
                extent = op.sizes[i] or d
                found.append(Axis(d, extent, _ratio(extent, d)))
            else:
                scale = np.float32(op.scales[i])
                found.append(Axis(d, _scaled(e, d, scale), scale))
        return found
    assert ins[1] is not None
    kind = TensorType.of(op.target)
    if kind.dtype.is_float:
        return [_scaled_axis(e, d, ins[1], kind.dtype, i) for i, d in enumerate(own)]
    if kind.dims[0] == DYN:
        numbers = [indices.read(ins[1], [e.index(i)]) for i in range(len(own))]
        sizes: list[Extent] = [indices.to_index(n, kind.dtype) for n in numbers]
    else:
        sizes = host.extents_of(e, op.target)
    found: list[Axis] = []
    for i, (d, size) in enumerate(zip(own, sizes, strict=True)):
        if isinstance(size, int):
            extent: Extent = d if size < 0 else size
        elif out.dims[i] >= 0:
            extent = out.dims[i]
        else:
            keep = indices.compare(e, indices.SLT, size, 0)
            extent = indices.select(e, keep, d, size)
        found.append(Axis(d, extent, _ratio(extent, d)))
    return found


def _ratio(extent: Extent, length: Extent) -> np.float32 | None:
    if same_extent(extent, length):
        return np.float32(1)
    if isinstance(extent, int) and isinstance(length, int):
        return np.float32(extent) / np.float32(max(length, 1))
    return None


def _scaled(e: LoweringContext, d: Extent, scale: np.float32) -> Extent:
    """floor(extent * scale) in f32."""
    if isinstance(d, int):
        return math.floor(np.float32(d) * scale)
    if scale == 1:
        return d
    exact = Fraction(float(scale))
    if exact.numerator <= 16 and exact.denominator <= 256:
        # exact for extents below 2^20, so the host computes it
        return e.div(e.mul(d, exact.numerator), exact.denominator)

    def body(where: list[ir.Value]) -> ir.Value:
        b = ArithScalars(_FLOAT, _INT)
        length = b.cast(TypedScalar(indices.as_i64(e, d), _INT), _FLOAT)
        return b.cast(b.floor(b.mul(length, float(scale))), _INT).value

    found = indices.from_positions(e, [], _INT, body)
    return indices.to_index(indices.read(found, []), _INT)


def _scaled_axis(e: LoweringContext, d: Extent, scales: ir.Value, dtype: DType, index: int) -> Axis:
    """Return an axis whose scale comes at run time.

    It is read in kernels, the host computes no floats.
    """

    def body(where: list[ir.Value]) -> ir.Value:
        b = ArithScalars(_FLOAT, _INT)
        length = b.cast(TypedScalar(indices.as_i64(e, d), _INT), _FLOAT)
        product = b.floor(b.mul(length, read_scale(e, scales, dtype, index)))
        # NaN and negative scales give extent 0
        safe = b.select(b.cmp("gt", product, 0.0), b.min(product, float(2**31)), 0.0)
        return b.cast(safe, _INT).value

    found = indices.from_positions(e, [], _INT, body)
    extent = indices.to_index(indices.read(found, []), _INT)
    as_float = e.cast_tensor(scales, dtype, _FLOAT)
    return Axis(d, extent, None, as_float, index)


def read_scale(e: LoweringContext, scales: ir.Value, dtype: DType, index: int) -> TypedScalar:
    value = widen(TypedScalar(indices.read(scales, [e.index(index)]), dtype))
    return ArithScalars(_FLOAT, _FLOAT).cast(value, _FLOAT)


def coordinate(
    op: Resize,
    axis: Axis,
    index: int,
    position: Extent,
    number: Callable[[Extent], TypedScalar],
    scale: TypedScalar | None = None,
) -> TypedScalar:
    """Return the coordinate in the input of an index of the result, in f32.

    number: converts an index to f32; scale: the dynamic scale.
    """
    mode = op.coordinate_transformation_mode
    b = ArithScalars(_FLOAT, _FLOAT)
    at, length, extent = number(position), number(axis.length), number(axis.extent)
    if scale is None and axis.scale is not None:
        scale = b.const(float(axis.scale), _FLOAT)
    elif scale is None:
        scale = b.div(extent, b.max(length, 1.0))
    single = b.cmp("le", extent, 1.0)
    zero = b.const(0.0, _FLOAT)
    last, half = b.sub(length, 1.0), b.const(0.5, _FLOAT)
    usual = b.sub(b.div(b.add(at, half), scale), half)
    if mode == "asymmetric":
        found = b.div(at, scale)
    elif mode == "align_corners":
        steps = b.select(single, 1.0, b.sub(extent, 1.0))
        found = b.select(single, zero, b.div(b.mul(at, last), steps))
    elif mode == "pytorch_half_pixel":
        found = b.select(single, zero, usual)
    elif mode == "tf_half_pixel_for_nn":
        found = b.div(b.add(at, half), scale)
    elif mode == "tf_crop_and_resize":
        start, end = (np.float32(op.roi[index + n]) for n in (0, len(op.roi) // 2))
        steps = b.select(single, 1.0, b.sub(extent, 1.0))
        width = b.mul(b.mul(at, float(end - start)), last)
        several = b.add(b.mul(last, float(start)), b.div(width, steps))
        middle = b.mul(last, float(np.float32(0.5) * (start + end)))
        found = b.select(single, middle, several)
    elif mode == "half_pixel_symmetric":
        adjustment = b.div(extent, b.mul(scale, length))
        offset = b.mul(b.div(length, 2.0), b.sub(1.0, adjustment))
        found = b.sub(b.add(offset, b.div(b.add(at, half), scale)), half)
    else:
        found = usual
    if mode != "tf_crop_and_resize":
        # an axis that keeps its extent keeps its elements, whatever the mode rounds to
        same = b.and_(b.cmp("eq", length, extent), b.cmp("eq", scale, 1.0))
        found = b.select(same, at, found)
    return found
