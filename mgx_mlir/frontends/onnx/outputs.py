"""Outputs of an ONNX graph: names of the program's results, and the lists that they form."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import onnx

from mgx_mlir.core.errors import MgxError, UnsupportedModel
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.subbyte_types import BY_ONNX, ELEMENT
from mgx_mlir.frontends.onnx.inputs import Input
from mgx_mlir.frontends.onnx.kinds import Kinds
from mgx_mlir.frontends.onnx.structures import (
    TENSOR,
    DynamicList,
    Maps,
    Texts,
    TextTable,
    form_of,
    tensors_of,
)
from mgx_mlir.frontends.onnx.tensors import tensor_dtype
from mgx_mlir.frontends.onnx.unit_axes import UnitAxes
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.groups import ROWS, TensorGroup, set_groups
from mgx_mlir.programs.program_ir import NAME
from mgx_mlir.programs.shown import SHOWN, Shown
from mgx_mlir.programs.texts import TEXT


def results(
    graph: onnx.GraphProto, outputs: Sequence[Held], kinds: Kinds, ones: UnitAxes
) -> list[tuple[Value, ir.Attribute]]:
    """Return the program's results with their attributes; elements of a list are separate
    results.
    """
    found = []
    for info, value in zip(graph.output, outputs, strict=True):
        if isinstance(value, DynamicList) and DYN in TensorType.of(value.stack).dims[1:]:
            raise UnsupportedModel(
                f"output '{info.name}' is {value.describe()}",
                notes=["its elements have dynamic dims, in which they may differ"],
            )
        several = _count(value) not in (TENSOR, ROWS)
        for i, v in enumerate(tensors_of(value)):
            name = f"{info.name}[{i}]" if several else info.name
            number = info.type.tensor_type.elem_type or kinds.of(v)
            table = value.table if isinstance(value, Texts) else ()
            shown = Shown(ones.of(v), () if isinstance(table, TextTable) else table)
            found.append((v, _attribute(name, number, shown, isinstance(table, TextTable))))
    return found


def state_groups(
    function: ir.OpView, inputs: Sequence[Input], graph: onnx.GraphProto, outputs: Sequence[Held]
) -> None:
    """Set on the program which parameters and results form lists and optionals."""
    given = [TensorGroup(i.name, i.form) for i in inputs if i.value is None]
    made = [
        TensorGroup(o.name, _count(v), v.keys if isinstance(v, Maps) else ())
        for o, v in zip(graph.output, outputs, strict=True)
    ]
    set_groups(function, given, made)


def _count(value: Held) -> int | None:
    if isinstance(value, Texts | Maps):
        return TENSOR
    return ROWS if isinstance(value, DynamicList) else form_of(value)


def _attribute(name: str, number: int, shown: Shown, text: bool) -> ir.Attribute:
    """Return {migraphx.name, migraphx.element?, migraphx.shown?, migraphx.text?}; the element type
    is the file's, or the inferred one.
    """
    entries: dict[str, ir.Attribute] = {NAME: ir.StringAttr.get(name)}
    kind = BY_ONNX.get(number)
    if kind is not None:
        entries[ELEMENT] = ir.StringAttr.get(kind.name)
    if text:
        entries[TEXT] = ir.UnitAttr.get()
    if shown != Shown():
        entries[SHOWN] = shown.attribute()
    return ir.DictAttr.get(entries)


def declared_types(proto: onnx.ModelProto) -> dict[str, TensorType]:
    """Return the types of values that the file states or ONNX's own inference finds."""
    inferred = proto
    with contextlib.suppress(Exception):  # optional: inference may fail, and only adds types
        inferred = onnx.shape_inference.infer_shapes(proto)
    out = {}
    for info in (*inferred.graph.value_info, *inferred.graph.output):
        t = info.type.tensor_type
        with contextlib.suppress(MgxError):
            dims = [
                d.dim_value if d.WhichOneof("value") == "dim_value" else DYN for d in t.shape.dim
            ]
            out[info.name] = TensorType(tensor_dtype(t.elem_type, info.name), tuple(dims))
    return out
