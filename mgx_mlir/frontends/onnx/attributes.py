"""Node attributes as Python values, checked against the operator's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.onnx.tensors import TensorReader
from mgx_mlir.frontends.signatures import REQUIRED

_A = onnx.AttributeProto


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ModelError(f"attribute '{name}' is not UTF-8 text") from None


def value_of(a: onnx.AttributeProto, reader: TensorReader) -> Any:
    """Return the attribute as float, int, str, array, graph, type, or a list of them."""
    if a.type == _A.FLOAT:
        return a.f
    if a.type == _A.INT:
        return a.i
    if a.type == _A.STRING:
        return _text(a.s, a.name)
    if a.type == _A.TENSOR:
        return reader.read(a.t, f"attribute '{a.name}'")
    if a.type == _A.SPARSE_TENSOR:
        return reader.sparse(a.sparse_tensor, f"attribute '{a.name}'")
    if a.type == _A.GRAPH:
        return a.g
    if a.type == _A.TYPE_PROTO:
        return a.tp
    if a.type == _A.FLOATS:
        return list(a.floats)
    if a.type == _A.INTS:
        return list(a.ints)
    if a.type == _A.STRINGS:
        return [_text(s, a.name) for s in a.strings]
    known = a.type in _A.AttributeType.values()
    kind = _A.AttributeType.Name(a.type) if known else a.type
    raise ModelError(f"attribute '{a.name}' of kind {kind} is not supported")


def strings_of(given: list[onnx.AttributeProto]) -> onnx.TensorProto | None:
    """Return the value of a Constant as a tensor of strings, None if it has another type."""
    for a in given:
        if a.name == "value" and a.t.data_type == onnx.TensorProto.STRING:
            return a.t
        if a.name in ("value_string", "value_strings"):
            found = [a.s] if a.name == "value_string" else list(a.strings)
            dims = [] if a.name == "value_string" else [len(found)]
            return onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=dims, string_data=found)
    return None


def resolved(
    node: onnx.NodeProto, bound: Mapping[str, onnx.AttributeProto]
) -> list[onnx.AttributeProto]:
    """Return the node's attributes; references to attributes of the enclosing function are
    replaced.
    """
    out = []
    for a in node.attribute:
        if not a.ref_attr_name:
            out.append(a)
        elif a.ref_attr_name in bound:
            copy = onnx.AttributeProto()
            copy.CopyFrom(bound[a.ref_attr_name])
            copy.name = a.name
            out.append(copy)
    return out


def schema_of(domain: str, name: str, opset: int) -> onnx.defs.OpSchema | None:
    """Return the operator's schema at this opset, or None if ONNX has none."""
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except Exception:  # onnx raises SchemaError, or other exceptions by version
        return None


def _as_stated(a: onnx.AttributeProto, kind: int) -> onnx.AttributeProto:
    """Convert an attribute to the kind of its schema if nothing is lost: an INT for a FLOAT, a list
    of one number for the number.
    """
    if a.type == _A.INT and kind == _A.FLOAT and int(float(a.i)) == a.i:
        return onnx.AttributeProto(name=a.name, type=_A.FLOAT, f=float(a.i))
    if a.type == _A.INTS and kind == _A.INT and len(a.ints) == 1:
        return onnx.AttributeProto(name=a.name, type=_A.INT, i=a.ints[0])
    if a.type == _A.FLOATS and kind == _A.FLOAT and len(a.floats) == 1:
        return onnx.AttributeProto(name=a.name, type=_A.FLOAT, f=a.floats[0])
    return a


def keywords(
    given: list[onnx.AttributeProto],
    op: OnnxOp,
    schema: onnx.defs.OpSchema | None,
    reader: TensorReader,
) -> dict[str, Any]:
    """Return the keyword arguments for an operator's function: checked attributes, then defaults.

    Raises ModelError for an attribute the operator does not have, of a wrong kind, or missing.
    """
    values: dict[str, Any] = {}
    for a in given:
        if a.name in values:
            raise ModelError(f"attribute '{a.name}' is given twice")
        stated = schema.attributes.get(a.name) if schema is not None else None
        if stated is None and a.name not in op.attributes:
            known = ", ".join(sorted(op.attributes)) or "none"
            raise ModelError(f"has no attribute '{a.name}', it has: {known}")
        # an enum; onnx's stub lacks it
        kind: Any = None if stated is None else stated.type
        if kind is not None:
            a = _as_stated(a, int(kind.value))
        if kind is not None and int(kind.value) != a.type:
            got = _A.AttributeType.Name(a.type) if a.type in _A.AttributeType.values() else a.type
            raise ModelError(f"attribute '{a.name}' expected {kind.name}, got {got}")
        if a.name not in op.attributes:
            raise ModelError(f"attribute '{a.name}' is not supported")
        values[a.name] = value_of(a, reader)
    for name, default in op.attributes.items():
        if name in values:
            continue
        if default is REQUIRED:
            raise ModelError(f"requires attribute '{name}'")
        values[name] = default
    return op.arguments(values)
