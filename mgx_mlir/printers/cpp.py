"""C++ code that builds a program through MIGraphX's API, with generated literals."""

from __future__ import annotations

import io
import re
from typing import TextIO

from mgx_mlir.core.names import identifier, safe_name
from mgx_mlir.printers.instructions import ListedInstruction, Listing, Module
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.tree_files import json_text
from mgx_mlir.printers.value_tree import UNBOUNDED, attribute_tree
from mgx_mlir.programs.layout import AnyShape, Shape
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import DimRange

# names that a parameter may have and a variable may not
KEYWORDS = (
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case",
    "catch", "char", "class", "compl", "concept", "const", "constexpr", "continue", "decltype",
    "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern",
    "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "private", "protected",
    "public", "register", "requires", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typename",
    "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
    "migraphx",
)  # fmt: skip


def print_cpp(program: ProgramIR, stream: TextIO) -> None:
    """Write C++ code that builds the program.

    Every literal becomes generated numbers (nonnegative if the literal has no negative one), as in
    MIGraphX; attributes are JSON.
    """
    listing = list_program(program, numbering="2.16")
    with program.store.active():
        _Writer(listing, stream).run()


def cpp_text(program: ProgramIR) -> str:
    """Return the code that `print_cpp` writes."""
    stream = io.StringIO()
    print_cpp(program, stream)
    return stream.getvalue()


class _Writer:
    def __init__(self, listing: Listing, stream: TextIO) -> None:
        self.listing, self.stream = listing, stream
        self.names: dict[int, str] = {}
        self.taken: set[str] = {"p", *KEYWORDS}
        self.written: set[str] = set()
        self.seed = 0

    def line(self, text: str) -> None:
        self.stream.write(text + "\n")

    def unique(self, wanted: str) -> str:
        base = re.sub(r"\W", "_", wanted.replace("@", "x_"), flags=re.ASCII).strip("_")
        name = identifier(base, self.taken)
        self.taken.add(name)
        return name

    def run(self) -> None:
        self.line("migraphx::program p;")
        self.variables = {m.name: self.unique(f"m{m.name}") for m in self.listing.modules}
        for m in self.listing.modules:  # main first, unused modules last
            self.module(m)

    def module(self, module: Module) -> None:
        if module.name in self.written:
            return
        self.written.add(module.name)
        m = self.variables[module.name]
        if module is self.listing.main:
            self.line(f"migraphx::module_ref {m} = p.get_main_module();")
        else:
            self.line(f"migraphx::module_ref {m} = p.create_module({quoted(module.name)});")
        lines = list(module.visible())
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
            self.line(f"{m}->add_return({{{inputs}}});")
            return
        name = self.unique(i.lhs)
        self.names[id(i)] = name
        if i.op == "@param":
            label = quoted(i.attributes["parameter"])
            call = f"add_parameter({label}, {shape_code(i.shape)})"
        elif i.op == "@literal":
            call = f"add_literal({self.literal(i)})"
        else:
            modules = ", ".join(self.variables[s.name] for s in i.modules)
            tail = f", {{{modules}}}" if modules else ""
            given = f", {{{inputs}}}" if inputs or modules else ""
            call = f"add_instruction({op_code(i)}{given}{tail})"
        self.line(f"auto {name} = {m}->{call};")

    def literal(self, i: ListedInstruction) -> str:
        text = f"migraphx::generate_literal({shape_code(i.shape)}, {self.seed})"
        self.seed += 1
        array = i.array()
        signed = array.dtype.kind not in "bu"
        positive = signed and array.size > 0 and not bool((array < 0).any())
        return f"migraphx::abs({text})" if positive else text


def quoted(text: str) -> str:
    """Write a string literal; control characters become octal escapes of three digits."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c == safe_name(c) else _octal(c) for c in escaped) + '"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogatepass"))


def shape_code(shape: AnyShape | None) -> str:
    """Write a shape as `migraphx::shape{...}`."""
    assert isinstance(shape, Shape)
    kind = f"migraphx::shape::{shape.dtype.name}"
    if shape.is_dynamic:
        dims = ", ".join(dim_code(d) for d in shape.dims)
        # a named shape: {{1, 4}} alone could also be lens
        listed = f"std::vector<migraphx::shape::dynamic_dimension>{{{dims}}}"
        return f"migraphx::shape{{{kind}, {listed}}}"
    if not shape.dims:
        return f"migraphx::shape{{{kind}}}"
    lens = "{" + ", ".join(map(str, shape.lens)) + "}"
    strides = "" if shape.is_standard else ", {" + ", ".join(map(str, shape.strides)) + "}"
    return f"migraphx::shape{{{kind}, {lens}{strides}}}"


def dim_code(d: int | DimRange) -> str:
    """Write a dynamic dim as its range and optimal sizes."""
    if isinstance(d, int):
        return f"{{{d}, {d}}}"
    upper = f"{UNBOUNDED}u" if d.max is None else str(d.max)
    optimals = ", {" + ", ".join(map(str, d.optimals)) + "}" if d.optimals else ""
    return f"{{{d.min}, {upper}{optimals}}}"


def op_code(i: ListedInstruction) -> str:
    """Write `migraphx::make_op("name", ...)` with its attributes as JSON."""
    if not i.attributes:
        return f"migraphx::make_op({quoted(i.op)})"
    text = json_text({k: attribute_tree(v) for k, v in i.attributes.items()})
    return f"migraphx::make_json_op({quoted(i.op)}, {quoted(text)})"
