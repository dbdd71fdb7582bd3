"""Operators without a domain that ONNX does not list: withdrawn ones, and those of quantisers
(Brevitas, Quark) and PyTorch's Caffe2 exporter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import FLOAT
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.subbyte_types import BY_ONNX
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    along,
    axis_in,
    convert,
    slice_,
    squeeze,
    static_dims,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.casts import to_narrow
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

FP4 = 23  # ONNX's number of float4e2m1
_FP4_TOP_EXPONENT = 2  # exponent of its largest power of two


@onnx_op("ImageScaler")
def image_scaler(
    b: Builder, node: Node, x: Value, *, bias: Sequence[float] = (), scale: float = 1.0
) -> Value:
    """Import ImageScaler, withdrawn from ONNX: x scale, plus a number for each channel."""
    y = b.mul(x, scale)
    if not bias:
        return y
    if len(b.dims(x)) < 2:
        raise ModelError(f"expected rank 2 or more, got {len(b.dims(x))}")
    return b.add(y, along(b, b.literal(np.array(bias, b.dtype(x).np)), x, 1))


@onnx_op("ConstantFill")
def constant_fill(
    b: Builder,
    node: Node,
    x: Value | None = None,
    *,
    dtype: int = 1,
    extra_shape: Sequence[int] = (),
    input_as_shape: int = 0,
    shape: Sequence[int] = (),
    value: float = 0.0,
) -> Value:
    """Import ConstantFill, withdrawn from ONNX: one number, with stated dims, an input's dims, or
    dims in an input's elements.
    """
    kind = cast_number(dtype)
    if x is None:
        if input_as_shape:
            raise ModelError("expected an input with input_as_shape")
        dims: Sequence[int] = shape
    elif shape:
        raise ModelError("expected one of an input and attribute 'shape'")
    elif input_as_shape:
        known = b.const(x)
        if known is None:
            raise NotSupported("dims known only at run time")
        dims = [int(d) for d in known.reshape(-1)]
    else:
        dims = static_dims(b, x, "ConstantFill")
    dims = [*dims, *extra_shape]
    if any(d < 0 for d in dims):
        raise ModelError(f"expected no negative dims, got {dims}")
    limits.table(tuple(dims), "ConstantFill", kind.size)
    return b.literal(np.broadcast_to(np.array(value).astype(kind.np), tuple(dims)))


@onnx_op("ATen")
def aten(
    b: Builder,
    node: Node,
    *inputs: Value,
    operator: str,
    mode: int = 0,
    overload_name: str = "",
    scale_grad_by_freq: int = 0,
    sparse: int = 0,
    include_last_offset: int = 0,
    padding_idx: int = -1,
) -> Value:
    """Import ATen's embedding_bag of one bag: rows of a table, reduced to their sum, mean (mode 1)
    or maximum (2).
    """
    if operator != "embedding_bag":
        raise NotSupported(f"operator {operator}")
    if len(inputs) != 3 or any(v is None for v in inputs):
        raise NotSupported(f"{len(inputs)} inputs")
    table, index, offsets = inputs
    known = b.const(offsets)
    if known is None or known.size != 1 or known.any():
        raise NotSupported("more than one bag")
    if mode not in (0, 1, 2) or include_last_offset or padding_idx != -1:
        raise NotSupported(f"mode {mode}, include_last_offset or padding_idx")
    if len(b.dims(table)) != 2 or len(b.dims(index)) != 1:
        raise ModelError("expected a table of rank 2 and indices of rank 1")
    rows = b.gather(table, index, axis=0)
    reduce = (b.reduce_sum, b.reduce_mean, b.reduce_max)[mode]
    return reduce(rows, axes=[0])


# ---- blocks of 4-bit floats that share a power of two (OCP's MXFP4) ----------------------------


def _blocks(b: Builder, x: Value, axis: int, size: int) -> Value:
    """Split an axis into blocks, {.., blocks, size, ..}; the last block is zero-padded."""
    dims = static_dims(b, x, "blocks of one scale")
    if size < 1:
        raise ModelError(f"expected blocks of 1 or more, got {size}")
    count = -(-dims[axis] // size)
    if missing := count * size - dims[axis]:
        pads = [0] * (2 * len(dims))
        pads[len(dims) + axis] = missing
        x = b.pad(x, pads=pads)
    return b.reshape(x, dims=[*dims[:axis], count, size, *dims[axis + 1 :]])


def _scales(b: Builder, x: Value, axis: int, size: int) -> Value:
    """Return a power of two for each block along `axis`: 2**(floor(log2(largest magnitude)) - 2).

    A block of zeros has the scale 2**-127, the least of MXFP4's.
    """
    top = b.reduce_max(b.abs(_blocks(b, convert(b, x, FLOAT), axis, size)), axes=[axis + 1])
    exponent = b.max(b.sub(b.floor(b.log2(top)), _FP4_TOP_EXPONENT), -127)
    two = b.literal(np.array(2, np.float32))
    return squeeze(b, b.pow(two, exponent), [axis + 1])


@onnx_op("DynamicScale")
def dynamic_scale(
    b: Builder,
    node: Node,
    x: Value,
    *,
    group_dim: int,
    group_size: int,
    output_dtype: int,
    scale_selection_method: str = "floor",
    zero_point_selection_method: str = "None",
) -> Value:
    """Import Brevitas' DynamicScale for MXFP4: a power of two per block, in x's type."""
    methods = scale_selection_method, zero_point_selection_method
    if output_dtype != FP4 or methods != ("floor", "None"):
        raise NotSupported(f"output_dtype {output_dtype} with methods {', '.join(methods)}")
    axis = axis_in(group_dim, len(b.dims(x)))
    return convert(b, _scales(b, x, axis, group_size), b.dtype(x))


@onnx_op("MXQuantizeDequantize", "MXFixNeuron")
def mx_quantize_dequantize(
    b: Builder,
    node: Node,
    x: Value,
    *,
    axis: int = -1,
    block_size: int = 32,
    element_dtype: str = "fp4_e2m1",
    rounding_mode: int = 2,
) -> Value:
    """Import Quark's MXQuantizeDequantize for MXFP4: x rounded to 4-bit floats times a power of two
    per block. Ties go to even; larger magnitudes saturate.
    """
    if element_dtype != "fp4_e2m1" or rounding_mode != 2:
        raise NotSupported(f"element_dtype {element_dtype} with rounding_mode {rounding_mode}")
    dims, dtype = static_dims(b, x, "blocks of one scale"), b.dtype(x)
    axis = axis_in(axis, len(dims))
    wide = convert(b, x, FLOAT)
    blocks = _blocks(b, wide, axis, block_size)
    scale = unsqueeze(b, _scales(b, wide, axis, block_size), [axis + 1])
    codes = to_narrow(b, b.div(blocks, scale), BY_ONNX[FP4])
    y = b.mul(convert(b, codes, FLOAT), scale)
    rows = b.dims(blocks)[axis] * block_size
    y = b.reshape(y, dims=[*dims[:axis], rows, *dims[axis + 1 :]])
    return convert(b, slice_(b, y, [axis], [0], [dims[axis]]), dtype)
