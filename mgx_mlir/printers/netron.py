"""A program as an ONNX model for Netron, for display only."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.text import value_text
from mgx_mlir.programs.layout import AnyShape, Shape, TupleShape
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import DimRange

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto


IR_VERSION = 8  # MIGraphX states its file's version
DOMAIN = "migraphx"


def print_netron(program: ProgramIR, stream: BinaryIO, *, kernel_prefix: str = "") -> None:
    """Write main as an ONNX ModelProto, in bytes.

    Parameters are inputs, results outputs, literals initializers of their dims without data,
    attributes strings; kernels stand under their printed names. `kernel_prefix`: see list_program.
    """
    stream.write(netron_model(program, kernel_prefix=kernel_prefix).SerializeToString())


def netron_model(program: ProgramIR, *, kernel_prefix: str = "") -> ModelProto:
    """Return the ModelProto that `print_netron` writes."""
    import onnx  # onnx takes long to load

    listing = list_program(
        program, numbering="2.16", kernel_prefix=kernel_prefix, device_lines=False
    )
    model = onnx.ModelProto(
        ir_version=IR_VERSION, producer_name="mgx_mlir", domain=DOMAIN,
        opset_import=[onnx.OperatorSetIdProto(domain="", version=18)],
    )  # fmt: skip
    graph = model.graph
    graph.name = listing.main.name
    lines = list(listing.main.instructions)
    for i in lines:
        if i.op == "@param":
            _value(graph.input.add(), i.lhs, i.shape)
        elif i.is_literal:
            held = graph.initializer.add(name=i.lhs, data_type=_type(i.shape))
            held.dims.extend(i.shape.lens if isinstance(i.shape, Shape) else ())
        elif i.op == "@return":
            for x in i.inputs:
                _value(graph.output.add(), x.lhs, x.shape)
        else:
            _node(graph, i)
    return model


def _node(graph: GraphProto, i: ListedInstruction) -> None:
    import onnx  # onnx takes long to load

    node = graph.node.add(name=i.lhs, op_type=i.op, output=[i.lhs])
    node.input.extend(x.lhs for x in i.inputs)
    attributes = {k: value_text(v) for k, v in i.attributes.items()}
    if i.modules:
        attributes["modules"] = ", ".join(m.name for m in i.modules)
    if i.symbols:
        attributes["debug_symbols"] = ", ".join(i.symbols)
    for name, text in attributes.items():
        kind = onnx.AttributeProto.STRING
        node.attribute.add(name=name, type=kind, s=text.encode(errors="replace"))
    _value(graph.value_info.add(), i.lhs, i.shape)


def _value(info: ValueInfoProto, name: str, shape: AnyShape | None) -> None:
    """Name a value and state its type; for a tuple, or no value, only the name."""
    info.name = name
    if not isinstance(shape, Shape) or isinstance(shape, TupleShape):
        return
    tensor = info.type.tensor_type
    tensor.elem_type = _type(shape)
    tensor.shape.SetInParent()
    for d in shape.dims if shape.is_dynamic else shape.lens:
        dim = tensor.shape.dim.add()
        if isinstance(d, DimRange):
            dim.dim_param = d.symbol or str(d)
        else:
            dim.dim_value = int(d)


def _type(shape: AnyShape | None) -> int:
    """Return ONNX's number of an element type."""
    return shape.dtype.onnx if isinstance(shape, Shape) else 0
