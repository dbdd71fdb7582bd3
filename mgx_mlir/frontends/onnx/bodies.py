"""Function bodies of operators, from ONNX or the model, made of other operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Held


class UseBody(Exception):
    """Raised by an operator's function for a node that should use ONNX's function body."""


def domain_of(domain: str) -> str:
    """Return the canonical name of a domain: "" is ONNX's own."""
    return "" if domain == "ai.onnx" else domain


def opsets_of(function: onnx.FunctionProto) -> dict[str, int]:
    """Return the opsets of a function's body."""
    return {domain_of(o.domain): o.version for o in function.opset_import}


def has_body(schema: onnx.defs.OpSchema | None) -> bool:
    """Return whether ONNX has a function body for the operator."""
    known: Any = schema  # onnx's stub lacks the functions of a schema
    return known is not None and (known.has_function or known.has_context_dependent_function)


def schema_body(
    schema: Any,  # an OpSchema; onnx's stub lacks its functions
    proto: onnx.NodeProto,
    given: list[onnx.AttributeProto],
    inputs: Sequence[Held | None],
    opset: int,
) -> onnx.FunctionProto:
    """Return ONNX's function body of an operator, for this node's types."""
    function = onnx.FunctionProto()
    versions = [v for v in schema.function_opset_versions if v <= opset]
    if schema.has_function and versions:
        function.ParseFromString(schema.get_function_with_opset_version(max(versions)))
        return function
    versions = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if not versions:
        raise NotSupported("")
    node = onnx.NodeProto()
    node.CopyFrom(proto)
    del node.attribute[:]
    node.attribute.extend(given)
    types = [type_proto(v) for v in inputs]
    data = schema.get_context_dependent_function_with_opset_version(
        max(versions), node.SerializeToString(), [t.SerializeToString() for t in types]
    )
    if not data:
        raise NotSupported("")
    function.ParseFromString(data)
    return function


def type_proto(value: Held | None) -> onnx.TypeProto:
    """Return a value's type as a TypeProto; empty for an absent one."""
    proto = onnx.TypeProto()
    if not isinstance(value, ir.Value):
        return proto
    t = TensorType.of(value)
    proto.tensor_type.elem_type = t.dtype.onnx
    proto.tensor_type.shape.SetInParent()
    for d in t.dims:
        dim = proto.tensor_type.shape.dim.add()
        if d != DYN:
            dim.dim_value = d
    return proto


def without(node: onnx.NodeProto, absent: set[str]) -> onnx.NodeProto:
    """Return the node with the names of absent optional inputs emptied."""
    if not absent.intersection(node.input):
        return node
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    for i, name in enumerate(copy.input):
        if name in absent:
            copy.input[i] = ""
    return copy
