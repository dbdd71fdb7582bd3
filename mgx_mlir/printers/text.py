"""MIGraphX's text form of a program, one line per instruction."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, Literal, TextIO

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.names import safe_name
from mgx_mlir.printers.instructions import ListedInstruction, Listing, Module, static_shape
from mgx_mlir.printers.listing import list_program
from mgx_mlir.programs.layout import TupleShape, braces
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Port, Signature

TextVersion = Literal["seed", "2.16"]
SHOWN_ELEMENTS = 10  # longer literals print as { ... }


def print_text(
    program: ProgramIR,
    stream: TextIO,
    *,
    version: TextVersion = "seed",
    symbols: bool | None = None,
    kernel_prefix: str = "",
) -> None:
    """Write the program to `stream`.

    `version` "seed": one line per instruction, parameters not counted; a submodule is headed by
    its name. "2.16": every module is headed and ended by an empty line, parameters are counted.
    `symbols` shows source node names (None: where the program was read with them).
    `kernel_prefix`: see list_program.
    """
    listing = list_program(program, numbering=version, symbols=symbols, kernel_prefix=kernel_prefix)
    with program.store.active():
        print_listing(listing, stream, version=version)


def print_listing(listing: Listing, stream: TextIO, *, version: TextVersion = "seed") -> None:
    """Write a listing; the program's weight store must be active."""
    for i, module in enumerate(listing.modules):
        if version == "2.16":
            stream.write(f'module: "{safe_name(module.name)}"\n')
        elif i:
            stream.write(f'\nmodule: "{safe_name(module.name)}"\n')
        for line in module.visible():
            stream.write(instruction_text(line) + "\n")
        if version == "2.16":
            stream.write("\n")


def program_text(program: ProgramIR, **options: Any) -> str:
    """Return the text that `print_text` writes, with the same options."""
    stream = io.StringIO()
    print_text(program, stream, **options)
    return stream.getvalue()


def module_text(listing: Listing, module: Module) -> str:
    """Return the lines of one module. The program's weight store must be active."""
    del listing
    return "".join(instruction_text(line) + "\n" for line in module.visible())


def instruction_text(line: ListedInstruction) -> str:
    """Return one line without its end: `@2 = add(x,@0) -> float_type, {2}, {1}`."""
    text = f"{line.lhs} = {operator_text(line)}"
    if line.inputs:
        text += "(" + ",".join(i.lhs for i in line.inputs) + ")"
    if line.modules:
        text += ", [" + ", ".join(m.name for m in line.modules) + "]"
    if line.op != "@return":
        text += " -> " + ("float_type, {}, {}" if line.shape is None else str(line.shape))
    if line.symbols:
        text += " # " + ", ".join(line.symbols)
    return safe_name(text)


def operator_text(line: ListedInstruction) -> str:
    """Write the operator with its attributes, or a literal's elements."""
    if line.op == "@literal":
        large = static_shape(line.shape).elements > SHOWN_ELEMENTS
        return "@literal" + ("{ ... }" if large else literal_text(line.array()))
    if line.op == "@param":
        return f"@param:{line.attributes['parameter']}"
    if line.op.startswith("unknown:"):
        return line.op
    attributes = line.attributes
    if line.op == "load":
        begin = attributes["offset"]
        shape = attributes["shape"]
        attributes = {"offset": begin, "end": begin + shape.elements * shape.dtype.size}
    if not attributes:
        return line.op
    inside = ",".join(f"{k}={value_text(v)}" for k, v in attributes.items())
    return f"{line.op}[{inside}]"


def value_text(value: object) -> str:
    """Write an attribute value: bools and types as numbers, lists in braces, unset `nullopt`."""
    if value is None:
        return "nullopt"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, DType):
        return str(value.number)
    if isinstance(value, list | tuple):
        return "{" + ", ".join(map(value_text, value)) + "}"
    return str(value)


def number_text(value: float) -> str:
    """Write a float in the default form of a C++ stream: 6 significant digits, and a NaN's sign."""
    return "-nan" if value != value and math.copysign(1, value) < 0 else f"{value:g}"


def literal_text(array: np.ndarray) -> str:
    """Write the elements in braces, or `{ ... }` for more than ten."""
    if array.size > SHOWN_ELEMENTS:
        return "{ ... }"
    return "{" + ", ".join(element_texts(array)) + "}"


def element_texts(array: np.ndarray) -> list[str]:
    """Return each element as text: integers and bool as integers, floats as number_text."""
    flat = array.reshape(-1)
    if array.dtype.kind in "biu":
        return [str(int(v)) for v in flat]
    return [number_text(float(v)) for v in flat]


def print_parameters(program: ProgramIR, stream: TextIO, *, outputs: bool = False) -> None:
    """Write a line per input, `name: shape`; with `outputs` also one per output.

    After the shape come the model's names of dynamic dims, and `strings` if the elements are
    indices of strings.
    """
    listing, signature = list_program(program), Signature.of(program.main())
    shapes = {i.lhs: i.shape for i in listing.main.instructions if i.op == "@param"}
    for port in signature.inputs:
        stream.write(safe_name(f"{port.name}: {shapes[port.name]}{_behind(port)}") + "\n")
    if outputs:
        found = output_shapes(listing)
        for port, shape in zip(signature.outputs, found, strict=True):
            stream.write(safe_name(f"{port.name}: {shape}{_behind(port)}") + "\n")


def _behind(port: Port) -> str:
    """Return additions to a shape: ", named {batch, 3}", ", strings"."""
    named = any(r.symbol is not None for r in port.ranges)
    names = [
        str(d) if d >= 0 else r.symbol or "?" for d, r in zip(port.dims, port.ranges, strict=False)
    ]
    return (f", named {braces(names)}" if named else "") + (", strings" if port.text else "")


def output_shapes(listing: Listing) -> Sequence[Any]:
    """Return the shapes of the values that main returns."""
    last = listing.main.instructions[-1]
    assert last.op == "@return"
    assert last.operation is not None
    return [listing.layout.shape(v) for v in last.operation.operands]


__all__ = [
    "TextVersion",
    "TupleShape",
    "instruction_text",
    "literal_text",
    "module_text",
    "output_shapes",
    "print_listing",
    "print_parameters",
    "print_text",
    "program_text",
    "value_text",
]
