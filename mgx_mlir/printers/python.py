"""Python code that builds a program through the API."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable
from typing import Any, TextIO

from mgx_mlir.core.attrs import REQUIRED
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.layout import AnyShape, Shape
from mgx_mlir.core.op import OPS
from mgx_mlir.core.program_ir import ProgramIR
from mgx_mlir.core.signature import DimRange
from mgx_mlir.core.spelling import Enum, NestedOp, attributes_out
from mgx_mlir.printers.listing import Instruction, Listing, Module, list_program, static_shape
from mgx_mlir.printers.value_tree import UNBOUNDED

FULL_ELEMENTS = 1024  # literals with fewer elements are written in full, others are generated


def print_python(program: ProgramIR, stream: TextIO) -> None:
    """Write Python code that builds the program.

    Literals of 1024 elements and more become generated numbers, as MIGraphX writes them.
    """
    listing = list_program(program, numbering="2.16")
    with program.store.active():
        _Writer(listing, stream).run()


def python_text(program: ProgramIR) -> str:
    import io

    stream = io.StringIO()
    print_python(program, stream)
    return stream.getvalue()


class _Writer:
    def __init__(self, listing: Listing, stream: TextIO) -> None:
        self.listing, self.stream = listing, stream
        self.names: dict[int, str] = {}
        self.taken: set[str] = {"p", "migraphx", *keyword.kwlist}
        self.generated = 0

    def line(self, text: str = "") -> None:
        self.stream.write(text + "\n")

    def run(self) -> None:
        self.line("import mgx_mlir as migraphx")
        self.line()
        self.line("p = migraphx.program()")
        # a module is complete before the instruction that takes it
        self.variables = {m.name: self.unique(module_name(m.name))
                          for m in self.listing.modules}  # fmt: skip
        self.module(self.listing.main)

    def unique(self, wanted: str) -> str:
        base = re.sub(r"\W", "_", wanted)
        base = f"x_{base}" if not base or base[0].isdigit() else base
        name, n = base, 1
        while name in self.taken:
            name, n = f"{base}_{n}", n + 1
        self.taken.add(name)
        return name

    def module(self, module: Module) -> None:
        m = self.variables[module.name]
        if module is self.listing.main:
            self.line(f"{m} = p.get_main_module()")
        else:
            self.line(f"{m} = p.create_module({json.dumps(module.name)})")
        lines = list(module.visible())
        # added last is printed first: parameters and literals are at the top in reverse
        early = [i for i in lines if i.op in ("@param", "@literal")]
        for i in reversed(early):
            self.instruction(m, i)
        for i in lines:
            if i.op not in ("@param", "@literal"):
                self.instruction(m, i)

    def instruction(self, m: str, i: Instruction) -> None:
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
            call = f"add_parameter({json.dumps(i.attributes['parameter'])}, {shape_code(i.shape)})"
        elif i.op == "@literal":
            call = f"add_literal({self.literal(i)})"
        else:
            call = f"add_instruction({op_code(i)}, [{inputs}]"
            if i.modules:
                call += ", [" + ", ".join(self.variables[s.name] for s in i.modules) + "]"
            call += ")"
        note = "" if i.shape is None else f"  # {i.shape}"
        self.line(f"{name} = {m}.{call}{note}")

    def literal(self, i: Instruction) -> str:
        shape = shape_code(i.shape)
        if static_shape(i.shape).elements >= FULL_ELEMENTS:
            self.generated += 1
            return f"migraphx.generate_argument({shape}, {self.generated - 1})"
        flat = i.array().reshape(-1)
        numbers = [int(v) if flat.dtype.kind in "biu" else float(v) for v in flat]
        return f"migraphx.create_argument({shape}, {list_code(numbers)})"


def module_name(name: str) -> str:
    return re.sub(r"\W", "_", name).strip("_") or "m"


def op_code(i: Instruction) -> str:
    """`migraphx.op("name", key=value)` with the attributes that are not the defaults."""
    defaults: dict[str, Any] = {}
    cls = OPS.get(i.op)
    if cls is not None:
        values = {d.field: d.default for d in cls.ATTRS.values() if d.default is not REQUIRED}
        known = {d.field: values.get(d.field) for d in cls.ATTRS.values()}
        defaults = attributes_out(cls, known)
    given = [
        f"{k}={value_code(v)}"
        for k, v in i.attributes.items()
        if (k not in defaults or defaults[k] != v or _is_required(i.op, k))
        and not i.op.startswith("unknown:")
    ]
    return f"migraphx.op({', '.join([json.dumps(i.op), *given])})"


def _is_required(op: str, key: str) -> bool:
    cls = OPS.get(op)
    return cls is not None and key in cls.ATTRS and cls.ATTRS[key].default is REQUIRED


def value_code(value: Any) -> str:
    """An attribute value as Python code."""
    if isinstance(value, Enum | DType):
        return str(value.number)
    if isinstance(value, NestedOp):
        return f"migraphx.op({json.dumps(value.name)})"
    if isinstance(value, DimRange):
        return dim_code(value)
    if isinstance(value, Shape):
        return shape_code(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_code, value)) + "]"
    if isinstance(value, float):
        return number_code(value)
    return repr(value)


def number_code(value: float) -> str:
    text = repr(value)
    return f'float("{text}")' if text in ("inf", "-inf", "nan") else text


def list_code(values: Iterable[Any]) -> str:
    return "[" + ", ".join(number_code(v) if isinstance(v, float) else str(v) for v in values) + "]"


def dim_code(d: int | DimRange) -> str:
    if isinstance(d, int):
        d = DimRange(d, d)
    upper = UNBOUNDED if d.max is None else d.max
    more = "".join([f", {{{', '.join(map(str, d.optimals))}}}" if d.optimals else "",
                    f", sym={json.dumps(d.symbol)}" if d.symbol else ""])  # fmt: skip
    return f"migraphx.shape.dynamic_dimension({d.min}, {upper}{more})"


def shape_code(shape: AnyShape | None) -> str:
    """`migraphx.shape(...)`."""
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
