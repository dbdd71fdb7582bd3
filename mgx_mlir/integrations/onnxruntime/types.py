"""Types of values under onnxruntime's names, and descriptions of inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from mgx_mlir.core import dtypes
from mgx_mlir.core.subbyte_types import NARROW
from mgx_mlir.integrations.onnxruntime.errors import BindingError

STRING = onnx.TensorProto.STRING
# ONNX's number -> onnxruntime's name of the element type, where it is not ONNX's in lower case
_NAMES = {n: v.lower() for v, n in onnx.TensorProto.DataType.items() if v != "UNDEFINED"}
_ARRAYS = {d.onnx: d.np for d in dtypes.DTYPES} | {n.onnx: n.np for n in NARROW}
_NUMBERS = {np_type: number for number, np_type in _ARRAYS.items()}


@dataclass(frozen=True)
class NodeArg:
    """An input or output of a model: its name, its type ("tensor(float)"), its shape.

    A dim of the shape is a size, the model's name of the dim, or None. Values without a shape in
    the model, and values that are no tensors, have [].
    """

    name: str
    type: str
    shape: list[int | str | None] = field(default_factory=list)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def element_name(number: int) -> str:
    """Return the name of an ONNX element type: "float", "bfloat16"."""
    return _NAMES.get(number, "undefined")


def type_name(kind: onnx.TypeProto) -> str:
    """Return the name of a type: "tensor(float)", "seq(map(string,tensor(float)))"."""
    stated = kind.WhichOneof("value")
    if stated == "tensor_type":
        return f"tensor({element_name(kind.tensor_type.elem_type)})"
    if stated == "sparse_tensor_type":
        return f"sparse_tensor({element_name(kind.sparse_tensor_type.elem_type)})"
    if stated == "sequence_type":
        return f"seq({type_name(kind.sequence_type.elem_type)})"
    if stated == "optional_type":
        return f"optional({type_name(kind.optional_type.elem_type)})"
    if stated == "map_type":
        key, value = element_name(kind.map_type.key_type), type_name(kind.map_type.value_type)
        return f"map({key},{value})"
    return ""


def shape_of(kind: onnx.TypeProto) -> list[int | str | None]:
    """Return the shape of a tensor or of an optional's: sizes, names, None."""
    if kind.WhichOneof("value") == "optional_type":
        return shape_of(kind.optional_type.elem_type)
    found: list[int | str | None] = []
    for d in kind.tensor_type.shape.dim:
        known = d.WhichOneof("value") == "dim_value" and d.dim_value >= 0
        found.append(d.dim_value if known else d.dim_param or None)
    return found


def node_arg(info: onnx.ValueInfoProto) -> NodeArg:
    """Return the description of a graph's value."""
    return NodeArg(info.name, type_name(info.type), shape_of(info.type))


def array_dtype(element: object) -> np.dtype:
    """Return the array type for the number of an ONNX element type, or for any numpy dtype.

    Errors: BindingError.
    """
    if isinstance(element, int) and not isinstance(element, bool):
        found = _ARRAYS.get(element)
        if found is None:
            raise BindingError(f"expected the number of an ONNX element type, got {element}")
        return found
    try:
        return np.dtype(element)  # type: ignore[arg-type]  (what is no type is refused here)
    except TypeError:
        raise BindingError(f"expected an element type, got {element!r}") from None


def element_number(dtype: np.dtype) -> int:
    """Return ONNX's number of an array's element type. Errors: BindingError."""
    if dtype.kind in "OUT":
        return STRING
    found = _NUMBERS.get(dtype)
    if found is None:
        raise BindingError(f"ONNX has no element type {dtype.name}")
    return found


def value_type(value: object) -> str:
    """Return the name of a value's type, as sessions state it."""
    if isinstance(value, np.ndarray):
        return f"tensor({element_name(element_number(value.dtype))})"
    if isinstance(value, dict):
        key = "string" if any(isinstance(k, str) for k in value) else "int64"
        return f"map({key},tensor(float))"
    if isinstance(value, Sequence):
        return f"seq({value_type(value[0]) if value else 'tensor(float)'})"
    return "optional(tensor(float))"
