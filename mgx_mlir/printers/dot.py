"""A program as a graph for Graphviz, a cluster for each module."""

from __future__ import annotations

import html
from typing import TextIO

from mgx_mlir.core.names import safe_name
from mgx_mlir.core.op import OPS, HostOp, Kernel, Op, Pointwise, ReduceOp, ViewOp
from mgx_mlir.dialects.migraphx.fused import FusedReduce, SplitFusedReduce
from mgx_mlir.dialects.migraphx.normalize import SoftmaxBase
from mgx_mlir.dialects.migraphx.reduce import ArgExtreme, PrefixScanSum
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.text import operator_text
from mgx_mlir.programs.layout import AnyShape, Shape, TupleShape, braces
from mgx_mlir.programs.program_ir import ProgramIR

COLOURS = {
    "param": "khaki",
    "literal": "lightblue",
    "pointwise": "yellowgreen",
    "reduce": "lightgreen",
    "view": "palegreen",
    "kernel": "yellow",
    "host": "orange",
    "return": "white",
    "other": "lightgray",
}
# the first class of an operator sets its colour
_KINDS: dict[str, tuple[type[Op], ...]] = {
    "reduce": (ReduceOp, ArgExtreme, SoftmaxBase, PrefixScanSum, FusedReduce, SplitFusedReduce),
    "kernel": (Kernel,),
    "pointwise": (Pointwise,),
    "view": (ViewOp,),
    "host": (HostOp,),
}


def print_dot(
    program: ProgramIR, stream: TextIO, *, brief: bool = False, kernel_prefix: str = ""
) -> None:
    """Write all modules as a digraph, a cluster for each.

    A node shows operator, attributes and shape, coloured by the operator's class; an edge the
    shape of the value that is read; a dashed one leads from an instruction to its modules.
    `brief` shows operator names alone. `kernel_prefix`: see list_program.
    """
    listing = list_program(
        program, numbering="2.16", kernel_prefix=kernel_prefix, device_lines=False
    )
    lines = [i for m in listing.modules for i in m.visible()]
    ids = {id(i): f"n{n}" for n, i in enumerate(lines)}
    clusters = {m.name: f"cluster_{n}" for n, m in enumerate(listing.modules)}
    with program.store.active():
        stream.write("digraph {\n    peripheries=0;\n    rankdir=TB;\n    compound=true;\n")
        for m in listing.modules:
            stream.write(f"    subgraph {clusters[m.name]} {{\n")
            if m is not listing.main:
                label = _escaped(m.name)
                stream.write(f'        label="{label}" peripheries=1 style="rounded"\n')
            for i in m.visible():
                stream.write(f"        {ids[id(i)]}[{_brief(i) if brief else _full(i)}];\n")
            stream.write("    }\n")
        for i in lines:
            for x in i.inputs:
                if id(x) in ids:
                    label = "" if brief else f'[label="{_escaped(shape_text(x.shape))}"]'
                    stream.write(f"    {ids[id(x)]} -> {ids[id(i)]}{label};\n")
            for m in i.modules:
                first = next(iter(m.visible()), None)
                if first is not None and m.name in clusters:
                    how = f'[style="dashed" lhead="{clusters[m.name]}"]'
                    stream.write(f"    {ids[id(i)]} -> {ids[id(first)]}{how};\n")
        stream.write("}\n")


def _brief(i: ListedInstruction) -> str:
    name = i.attributes["parameter"] if i.op == "@param" else i.op
    return f'label="{_escaped(name)}" style="filled" fillcolor="{COLOURS[kind_of(i)]}"'


def _full(i: ListedInstruction) -> str:
    colour = COLOURS[kind_of(i)]
    title = i.attributes["parameter"] if i.op == "@param" else i.op
    rows = [f"<TR ALIGN='center'><TD><B>{_html(title)}</B></TD></TR>"]
    if i.op not in ("@param", "@return") and (i.is_literal or i.attributes):
        rows.append(f"<TR ALIGN='center'><TD>{_html(operator_text(i))}</TD></TR>")
    rows += [f"<TR ALIGN='center'><TD>{_html(t)}</TD></TR>" for t in shape_lines(i.shape)]
    rows += [f"<TR ALIGN='center'><TD><I>{_html(s)}</I></TD></TR>" for s in i.symbols]
    table = f"<TABLE BORDER='0' CELLBORDER='0' CELLSPACING='0'>{''.join(rows)}</TABLE>"
    return f'label=<{table}> style="filled" fillcolor="{colour}" shape="rectangle"'


def kind_of(i: ListedInstruction) -> str:
    """Return the class of an instruction, which sets its colour."""
    if i.op in ("@param", "@literal", "@return"):
        return i.op.removeprefix("@")
    if "::" in i.op:
        return "kernel"
    cls = OPS.get(i.op)
    if cls is None:
        return "view" if i.op == "get_tuple_elem" else "host"
    return next((name for name, kinds in _KINDS.items() if issubclass(cls, kinds)), "other")


def shape_text(shape: AnyShape | None) -> str:
    """Write a shape, "" for none."""
    return "" if shape is None else str(shape)


def shape_lines(shape: AnyShape | None) -> list[str]:
    """Write a shape on up to three lines: type, lengths, strides."""
    if isinstance(shape, TupleShape):
        return [str(s) for s in shape.parts]
    if not isinstance(shape, Shape):
        return []
    if shape.is_dynamic:
        return [shape.dtype.name, braces(shape.dims)]
    return [shape.dtype.name, braces(shape.lens), braces(shape.shown_strides)]


def _html(text: str) -> str:
    return html.escape(safe_name(text))


def _escaped(text: str) -> str:
    return safe_name(text).replace("\\", "\\\\").replace('"', '\\"')
