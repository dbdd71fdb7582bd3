"""Python code that builds a program through the API."""

from __future__ import annotations

import io
import json
import keyword
import os
import re
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np

from mgx_mlir.core.attrs import REQUIRED
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.names import identifier, quoted_unicode, safe_name
from mgx_mlir.core.op import OPS
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.weight_files import write_weights
from mgx_mlir.printers.instructions import ListedInstruction, Listing, Module, static_shape
from mgx_mlir.printers.listing import list_program, stated_types
from mgx_mlir.printers.value_tree import UNBOUNDED
from mgx_mlir.programs.layout import AnyShape, Shape
from mgx_mlir.programs.migraphx_names import Enum, NestedOp, attributes_out
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import DimRange

FULL_ELEMENTS = 1024  # literals with fewer elements are written in full


def print_python(program: ProgramIR, stream: TextIO, *, weights: str | None = None) -> None:
    """Write Python code that builds the program.

    Literals of 1024 elements and more become generated numbers, as MIGraphX writes them. With
    `weights`, the path of an .npz, they are written there, and the code reads them from the file
    of that name beside it. FileError where that cannot be written.
    """
    listing = list_program(program, numbering="2.16")
    with program.store.active():
        writer = _Writer(listing, stream, None if weights is None else os.path.basename(weights))
        writer.run()
        if weights is not None and writer.stored:
            write_weights(weights, writer.stored)


def python_text(program: ProgramIR, **options: Any) -> str:
    """Return the code that `print_python` writes, with the same options."""
    stream = io.StringIO()
    print_python(program, stream, **options)
    return stream.getvalue()


class _Writer:
    def __init__(self, listing: Listing, stream: TextIO, weights: str | None) -> None:
        self.listing, self.stream, self.weights = listing, stream, weights
        self.names: dict[int, str] = {}
        self.taken: set[str] = {"p", "migraphx", "Path", "weights", "float", *keyword.kwlist}
        self.stored: dict[str, np.ndarray] = {}
        self.written: set[str] = set()
        self.generated = 0

    def line(self, text: str = "") -> None:
        self.stream.write(text + "\n")

    def run(self) -> None:
        large = any(map(self.is_large, (i for m in self.listing.modules for i in m.instructions)))
        if self.weights is not None and large:
            self.line("from pathlib import Path")
            self.line()
        self.line("import mgx_mlir as migraphx")
        self.line()
        if self.weights is not None and large:
            beside = f"Path(__file__).with_name({quoted(self.weights)})"
            self.line(f"weights = migraphx.load_weights({beside})")
        self.line("p = migraphx.program()")
        # a module must be complete before the instruction that takes it
        self.variables = {m.name: self.unique(module_name(m.name)) for m in self.listing.modules}
        self.module(self.listing.main)
        for m in self.listing.modules:
            self.module(m)  # modules that no instruction takes

    def is_large(self, i: ListedInstruction) -> bool:
        return i.is_literal and static_shape(i.shape).elements >= FULL_ELEMENTS

    def unique(self, wanted: str) -> str:
        name = identifier(wanted, self.taken)
        self.taken.add(name)
        return name

    def module(self, module: Module) -> None:
        if module.name in self.written:
            return
        self.written.add(module.name)
        m = self.variables[module.name]
        if module is self.listing.main:
            self.line(f"{m} = p.get_main_module()")
        else:
            self.line(f"{m} = p.create_module({quoted(module.name)})")
        lines = list(module.visible())
        # parameters and literals are listed in reverse order of their addition
        early = [i for i in lines if i.op in ("@param", "@literal")]
        for i in reversed(early):
            self.instruction(m, i)
        for i in lines:
            if i.op not in ("@param", "@literal"):
                self.instruction(m, i)

    def instruction(self, m: str, i: ListedInstruction) -> None:
        for sub in i.modules:
            self.module(sub)
        inputs = ", ".join(self.names[id(x)] for x in i.inputs)
        if i.op == "@return":
            self.line(f"{m}.add_return([{inputs}])")
            return
        local = i.lhs.rpartition("@")[2]
        name = self.unique(i.lhs if i.op == "@param" else f"{m}_{local}")
        self.names[id(i)] = name
        if i.op == "@param":
            call = f"add_parameter({quoted(i.attributes['parameter'])}, {shape_code(i.shape)})"
        elif i.op == "@literal":
            call = f"add_literal({self.literal(i)})"
        else:
            call = f"add_instruction({op_code(i)}, [{inputs}]"
            if i.modules:
                call += ", [" + ", ".join(self.variables[s.name] for s in i.modules) + "]"
            stated = stated_types(i)
            if stated:
                call += f", shapes=[{', '.join(map(type_code, stated))}]"
            call += ")"
        note = "" if i.shape is None else f"  # {safe_name(str(i.shape))}"
        self.line(f"{name} = {m}.{call}{note}")

    def literal(self, i: ListedInstruction) -> str:
        shape = shape_code(i.shape)
        if not self.is_large(i):
            flat = i.array().reshape(-1)
            numbers = [int(v) if flat.dtype.kind in "biu" else float(v) for v in flat]
            return f"migraphx.create_argument({shape}, {list_code(numbers)})"
        if self.weights is None:
            self.generated += 1
            return f"migraphx.generate_argument({shape}, {self.generated - 1})"
        key = f"literal{len(self.stored)}"
        self.stored[key] = i.array()
        found = f'weights["{key}"]'
        is_plain = static_shape(i.shape).is_standard
        return found if is_plain else f"migraphx.create_argument({shape}, {found})"


def module_name(name: str) -> str:
    """Return a Python identifier for a module's name."""
    return re.sub(r"\W", "_", name).strip("_") or "m"


def op_code(i: ListedInstruction) -> str:
    """Write `migraphx.op("name", key=value)` with the attributes that are not the defaults."""
    cls = OPS.get(i.op)
    if cls is None or i.op == "select_module":  # an attribute has the result types of its modules
        given = {k: v for k, v in i.attributes.items() if i.op == "get_tuple_elem"}
    else:
        values = {d.field: d.default for d in cls.ATTRS.values() if d.default is not REQUIRED}
        known = {d.field: values.get(d.field) for d in cls.ATTRS.values()}
        defaults = attributes_out(cls, known)
        given = {
            k: v
            for k, v in i.attributes.items()
            if k not in defaults or defaults[k] != v or _is_required(i.op, k)
        }
    pairs = [f"{k}={value_code(v)}" for k, v in given.items()]
    return f"migraphx.op({', '.join([quoted(i.op), *pairs])})"


def _is_required(op: str, key: str) -> bool:
    cls = OPS.get(op)
    return cls is not None and key in cls.ATTRS and cls.ATTRS[key].default is REQUIRED


def value_code(value: object) -> str:
    """Write an attribute value as Python code."""
    if isinstance(value, Enum | DType):
        return str(value.number)
    if isinstance(value, NestedOp):
        pairs = [f"{k}={number_code(v)}" for k, v in value.attributes]
        return f"migraphx.op({', '.join([quoted(value.name), *pairs])})"
    if isinstance(value, DimRange):
        return dim_code(value)
    if isinstance(value, Shape):
        return shape_code(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_code, value)) + "]"
    if isinstance(value, float):
        return number_code(value)
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    """Write a string literal."""
    return quoted_unicode(json.dumps(text, ensure_ascii=False))


def type_code(t: TensorType) -> str:
    """Write the shape of a result type; a dynamic dim may have any extent."""
    dims = [DimRange() if d == DYN else d for d in t.dims]
    return shape_code(Shape.standard(t.dtype, dims))


def number_code(value: float) -> str:
    """Write a number as Python code; infinities and NaN have no literal."""
    text = repr(value)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text


def list_code(values: Iterable[Any]) -> str:
    """Write numbers as a Python list."""
    return "[" + ", ".join(number_code(v) if isinstance(v, float) else str(v) for v in values) + "]"


def dim_code(d: int | DimRange) -> str:
    """Write a dynamic dimension: its range, optimal sizes and symbol."""
    if isinstance(d, int):
        d = DimRange(d, d)
    upper = UNBOUNDED if d.max is None else d.max
    more = "".join([f", {{{', '.join(map(str, d.optimals))}}}" if d.optimals else "",
                    f", sym={quoted(d.symbol)}" if d.symbol else ""])  # fmt: skip
    return f"migraphx.shape.dynamic_dimension({d.min}, {upper}{more})"


def shape_code(shape: AnyShape | None) -> str:
    """Write a shape as `migraphx.shape(...)`."""
    found = shape
    assert isinstance(found, Shape)
    kind = f'type="{found.dtype.name}"'
    if found.is_dynamic:
        dims = ", ".join(dim_code(d) for d in found.dims)
        return f"migraphx.shape({kind}, dyn_dims=[{dims}])"
    if not found.dims:
        return f"migraphx.shape({kind})"
    strides = "" if found.is_standard else f", strides={list(found.strides)}"
    return f"migraphx.shape({kind}, lens={list(found.dims)}{strides})"
