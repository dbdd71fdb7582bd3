"""What the frontends share, and ONNX's numbers of element types."""

from __future__ import annotations

from onnx import TensorProto

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.narrow import BY_ONNX as NARROW
from mgx_mlir.frontends.helpers import (
    Value,
    along,
    arange,
    axes_in,
    axis_in,
    axis_range,
    channel_dims,
    compare,
    concat,
    convert,
    extent,
    extent_as,
    greater_equal,
    known_extents,
    less_equal,
    number,
    reshape,
    reshape_like,
    reshape_to,
    single,
    slice_,
    squeeze,
    static_dims,
    transpose,
    trial_values,
    unsqueeze,
    wide,
    zeros,
)
from mgx_mlir.frontends.onnx.tensors import tensor_dtype
from mgx_mlir.frontends.problems import NotSupported

__all__ = [
    "Value",
    "along",
    "arange",
    "axes_in",
    "axis_in",
    "axis_range",
    "cast_number",
    "channel_dims",
    "compare",
    "concat",
    "convert",
    "extent",
    "extent_as",
    "greater_equal",
    "known_extents",
    "less_equal",
    "number",
    "reshape",
    "reshape_like",
    "reshape_to",
    "single",
    "slice_",
    "squeeze",
    "static_dims",
    "transpose",
    "trial_values",
    "unsqueeze",
    "wide",
    "zeros",
]


def cast_number(number: int) -> DType:
    """The element type of an ONNX type number in an attribute; narrower types are refused."""
    if number in NARROW:
        raise NotSupported(f"element type {TensorProto.DataType.Name(number)}")
    try:
        return tensor_dtype(number, "attribute")
    except ModelError:
        known = number in TensorProto.DataType.values()
        kind = TensorProto.DataType.Name(number) if known else f"number {number}"
        raise NotSupported(f"element type {kind}") from None
