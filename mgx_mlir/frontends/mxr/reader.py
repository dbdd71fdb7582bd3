"""Builds a program from MIGraphX's value tree."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.core.files import read_bytes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.layout import AnyShape, Dim, Shape, TupleShape
from mgx_mlir.core.module_builder import (
    Instruction,
    ModuleBuilder,
    ProgramBuilder,
    shape_of_parts,
)
from mgx_mlir.core.program_ir import NAME, ProgramIR
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.signature import DimRange
from mgx_mlir.core.spelling import NestedOp
from mgx_mlir.frontends.mxr.decode import decode_json, decode_msgpack, looks_like_json
from mgx_mlir.printers.listing import DEBUG_SYMBOLS
from mgx_mlir.printers.value_tree import FILE_VERSION, OWN_KEY, UNBOUNDED

Tree = Any
MAX_MODULES = 64  # modules within modules
MAX_RANK = 64
PADDED = ("nonzero", "loop")  # MIGraphX's static forms of these have a size of their own


@dataclass
class MxrFile:
    """What a file holds: the program, and the entry that only this project reads."""

    program: ProgramIR
    own: dict[str, Tree]


def read_file(path: str | os.PathLike[str], format: str | None = None) -> MxrFile:
    """Read a file; `format` None tells JSON from msgpack by the first byte. Raises FileError."""
    name = os.fspath(path)
    return read_data(read_bytes(name), format, name=name)


def read_data(
    data: bytes | memoryview, format: str | None = None, *, name: str = "<buffer>"
) -> MxrFile:
    """Read a program from memory. Raises FileError, located at `name`."""
    view = memoryview(data).cast("B")
    if format not in (None, "msgpack", "json"):
        raise FileError(f"unknown format '{format}', expected msgpack or json", location=name)
    json = looks_like_json(view) if format is None else format == "json"
    try:
        tree = decode_json(view) if json else decode_msgpack(view)
        return _Reading(tree, name).run()
    except FileError as e:
        raise FileError(e.message, location=e.location or name, notes=e.notes) from None
    except (MemoryError, RecursionError):
        raise FileError("the file is too large or nests too deep", location=name) from None


def load_argument(path: str | os.PathLike[str]) -> Any:
    """The array of an argument file, or a tuple of such. Raises FileError."""
    name = os.fspath(path)
    try:
        return argument_of(decode_msgpack(read_bytes(name)))
    except FileError as e:
        raise FileError(e.message, location=e.location or name, notes=e.notes) from None


def argument_of(tree: Tree, depth: int = 0) -> Any:
    """The array of a literal or argument object, or a tuple of such."""
    found = as_map(tree, "an argument")
    if "sub" in found and "data" not in found:
        if depth > 16:
            raise FileError("tuples nest too deep")
        return tuple(argument_of(p, depth + 1) for p in as_list(found["sub"], "'sub'"))
    shape = shape_of(member(found, "shape", "an argument"))
    data = member(found, "data", "an argument")
    if isinstance(data, list) and not data:
        data = memoryview(b"")
    if not isinstance(data, memoryview):
        raise FileError(f"'data' expected bytes, got {type(data).__name__}")
    if not isinstance(shape, Shape) or shape.is_dynamic:
        raise FileError(f"data expected a static shape, got {shape}")
    size = shape.element_space * shape.dtype.size
    if size != data.nbytes:
        raise FileError(f"data of {shape} expected {size} bytes, got {data.nbytes}")
    if size and shape.dtype.is_bool:
        return _laid_out(np.frombuffer(data, np.uint8) != 0, shape)
    flat = np.frombuffer(data, np.uint8).view(shape.dtype.np) if size else None
    return _laid_out(np.zeros(0, shape.dtype.np) if flat is None else flat, shape)


def _laid_out(flat: np.ndarray, shape: Shape) -> np.ndarray:
    if not shape.dims:
        return flat[:1].reshape(())
    if shape.is_standard or shape.elements == 0:
        return flat.reshape(shape.dims)  # type: ignore[arg-type]
    steps = [s * flat.itemsize for s in shape.strides]
    view = np.lib.stride_tricks.as_strided(flat, shape.lens, steps)
    if shape.elements > max(flat.size, 1) * 64 and shape.elements > 1 << 24:
        raise FileError(f"data of {shape} is broadcast to a size that cannot be meant")
    return np.ascontiguousarray(view)


# ---- checks on untrusted trees -----------------------------------------------------------------


def as_map(tree: Tree, what: str) -> dict[str, Tree]:
    if isinstance(tree, list) and not tree:
        return {}  # an empty object is written as an empty array
    if not isinstance(tree, dict):
        raise FileError(f"{what} expected an object, got {type(tree).__name__}")
    return tree


def as_list(tree: Tree, what: str) -> list[Tree]:
    if tree is None or tree == {}:
        return []
    if not isinstance(tree, list):
        raise FileError(f"{what} expected an array, got {type(tree).__name__}")
    return tree


def as_text(tree: Tree, what: str) -> str:
    if not isinstance(tree, str):
        raise FileError(f"{what} expected a string, got {type(tree).__name__}")
    return tree


def as_size(tree: Tree, what: str) -> int:
    if isinstance(tree, bool) or not isinstance(tree, int) or not 0 <= tree < 2**64:
        raise FileError(f"{what} expected a size, got {tree!r}")
    return tree


def member(found: Mapping[str, Tree], key: str, what: str) -> Tree:
    if key not in found:
        raise FileError(f"{what} has no '{key}'")
    return found[key]


def shape_of(tree: Tree, depth: int = 0) -> AnyShape | None:
    """The shape of a shape object; None for the one that operators without a result have."""
    found = as_map(tree, "a shape")
    kind = as_text(member(found, "type", "a shape"), "'type'")
    if kind == "tuple_type":
        if depth > 16:
            raise FileError("tuple shapes nest too deep")
        parts = [shape_of(s, depth + 1) for s in as_list(found.get("sub_shapes"), "'sub_shapes'")]
        return TupleShape(tuple(p for p in parts if p is not None))
    try:
        dtype = dtypes.from_name(kind)
    except MgxError as e:
        raise FileError(e.message) from None
    dims = as_list(found.get("dynamic_dimensions"), "'dynamic_dimensions'")
    if dims:
        return Shape.standard(dtype, [_dim_of(d) for d in dims[:MAX_RANK]])
    if as_list(found.get("dyn_strides"), "'dyn_strides'"):
        raise FileError("symbolic shapes are not supported")
    lens = [as_size(d, "'lens'") for d in as_list(found.get("lens"), "'lens'")]
    strides = [as_size(d, "'strides'") for d in as_list(found.get("strides"), "'strides'")]
    if not lens:
        return None
    if len(strides) != len(lens) or len(lens) > MAX_RANK:
        raise FileError(f"a shape has {len(lens)} lens and {len(strides)} strides")
    if any(d >= 2**40 for d in (*lens, *strides)):
        raise FileError(f"a shape has lens {lens[:8]}, which no memory holds")
    if lens == [1] and strides == [0]:
        return Shape(dtype, (), ())
    return Shape(dtype, tuple(lens), tuple(strides))


def _dim_of(tree: Tree) -> Dim:
    found = as_map(tree, "a dynamic dimension")
    span = found.get("range", found)
    if span is None:
        raise FileError("symbolic dimensions are not supported")
    span = as_map(span, "'range'")
    low = as_size(member(span, "min", "a dynamic dimension"), "'min'")
    high = as_size(member(span, "max", "a dynamic dimension"), "'max'")
    optimals = as_list(found.get("optimals"), "'optimals'")
    if high < low:
        raise FileError(f"a dynamic dimension has the range [{low}..{high}]")
    if low == high:
        return low
    sizes = tuple(sorted({as_size(o, "'optimals'") for o in optimals}))
    return DimRange(min(low, 2**62), None if high >= UNBOUNDED // 2 else high, sizes)


# ---- programs ----------------------------------------------------------------------------------


class _Reading:
    """One file being read."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.top, self.name = as_map(tree, "the file"), name
        self.own: dict[str, Tree] = {}
        self.modules: dict[str, Tree] = {}
        self.count = 0

    def run(self) -> MxrFile:
        version = self.top.get("version")
        if version != FILE_VERSION:
            raise FileError(
                f"the file's version is {version!r}, expected {FILE_VERSION}",
                notes=["only MIGraphX 2.16's version is read; save the model again with it"],
            )
        for t in as_list(self.top.get("targets"), "'targets'"):
            kind = as_map(t, "a target").get("name", "another target")
            raise FileError(
                f"the program is compiled by MIGraphX for {kind}",
                notes=["save it before it is compiled"],
            )
        self.own = as_map(self.top.get(OWN_KEY, {}), f"'{OWN_KEY}'")
        self.from_us = OWN_KEY in self.top
        self.modules = as_map(member(self.top, "modules", "the file"), "'modules'")
        self.builder = ProgramBuilder()
        main = as_map(member(self.modules, "main", "'modules'"), "module 'main'")
        self.symbols = False
        self.module(self.builder.main, main, {}, ("main",))
        program = self.builder.program(self.name)
        self._finish(program)
        return MxrFile(program, self.own)

    def _finish(self, program: ProgramIR) -> None:
        main = program.main()
        names = as_list(self.own.get("outputs"), "'outputs'")
        with program.ctx:
            operations = main.regions[0].blocks[0].operations
            results = len(operations[len(operations) - 1].operation.operands)
            if len(names) == results and all(isinstance(n, str) for n in names):
                entries = [ir.DictAttr.get({NAME: ir.StringAttr.get(n)}) for n in names]
                main.attributes["res_attrs"] = ir.ArrayAttr.get(entries)
            if self.symbols:
                program.module.operation.attributes[DEBUG_SYMBOLS] = ir.UnitAttr.get()
            found: list[str] = []
            handler = program.ctx.attach_diagnostic_handler(
                lambda d: found.append(str(d.message)) or True
            )
            try:
                ok = program.module.operation.verify()
            except ir.MLIRError as e:
                ok = False
                found.append(str(e))
            finally:
                handler.detach()
            if not ok:
                raise FileError(f"the program is not valid: {'; '.join(found) or 'unknown'}")

    def module(
        self,
        builder: ModuleBuilder,
        tree: Mapping[str, Tree],
        outer: Mapping[str, Instruction],
        path: tuple[str, ...],
    ) -> None:
        """Read a module's nodes; names of the enclosing modules are visible."""
        what = f"module '{path[-1]}'"
        nodes = [as_map(n, f"a node of {what}") for n in as_list(tree.get("nodes"), "'nodes'")]
        known: dict[str, Instruction] = dict(outer)
        own: set[str] = set()
        names = [as_text(member(n, "name", f"a node of {what}"), "'name'") for n in nodes]
        # printed first means added last: parameters and literals are at the top in reverse
        for node, name in zip(reversed(nodes), reversed(names), strict=True):
            if name == "@param":
                self._define(known, own, node, self._parameter(builder, node, path))
        for node, name in zip(nodes, names, strict=True):
            if name == "@literal":
                literal = argument_of(member(node, "literal", "a @literal"))
                if isinstance(literal, tuple):
                    raise FileError("a literal expected a tensor, got a tuple")
                made = builder.add_literal(literal, first=True, symbols=self._symbols(node))
                self._define(known, own, node, made)
        for index, (node, name) in enumerate(zip(nodes, names, strict=True)):
            if name in ("@param", "@literal", "@comment"):
                continue
            inputs = [self._input(known, i, node) for i in as_list(node.get("inputs"), "'inputs'")]
            try:
                if name == "@return":
                    if index != len(nodes) - 1:
                        raise FileError(f"{what} goes on after its @return")
                    builder.add_return(inputs)
                    continue
                made = self._instruction(builder, node, name, inputs, known, path)
            except FileError:
                raise
            except MgxError as e:
                where = node.get("output", "?")
                raise FileError(f"node '{where}': {e.message}", notes=e.notes) from None
            self._define(known, own, node, made)

    def _define(
        self,
        known: dict[str, Instruction],
        own: set[str],
        node: Mapping[str, Tree],
        made: Instruction,
    ) -> None:
        name = as_text(member(node, "output", "a node"), "'output'")
        if name in own:
            raise FileError(f"two nodes are called '{name}'")
        own.add(name)
        known[name] = made

    def _input(self, known: Mapping[str, Instruction], name: Tree, node: Mapping[str, Tree]) -> Any:
        found = known.get(as_text(name, "an input"))
        if found is None:
            raise FileError(f"node '{node.get('output', '?')}' reads '{name}', which is not there")
        return found

    def _parameter(
        self, builder: ModuleBuilder, node: Mapping[str, Tree], path: tuple[str, ...]
    ) -> Instruction:
        operator = as_map(node.get("operator", {}), "'operator'")
        name = as_text(member(operator, "parameter", "a @param"), "'parameter'")
        shape = shape_of(member(node, "shape", "a @param"))
        if not isinstance(shape, Shape):
            raise FileError(f"parameter '{name}' expected a tensor, got {shape}")
        if len(path) == 1 and shape.is_dynamic:
            shape = self._with_symbols(name, shape)
        try:
            return builder.add_parameter(name, shape)
        except MgxError as e:
            raise FileError(e.message) from None

    def _with_symbols(self, name: str, shape: Shape) -> Shape:
        symbols = as_list(as_map(self.own.get("symbols", {}), "'symbols'").get(name), "'symbols'")
        if len(symbols) != len(shape.dims):
            return shape
        dims = [
            DimRange(d.min, d.max, d.optimals, s)
            if isinstance(d, DimRange) and isinstance(s, str)
            else d
            for d, s in zip(shape.dims, symbols, strict=True)
        ]
        return Shape(shape.dtype, tuple(dims), ())

    def _instruction(
        self,
        builder: ModuleBuilder,
        node: Mapping[str, Tree],
        name: str,
        inputs: Sequence[Instruction],
        known: Mapping[str, Instruction],
        path: tuple[str, ...],
    ) -> Instruction:
        operator = as_map(node.get("operator", {}), "'operator'")
        attributes = {k: _attribute(v) for k, v in operator.items()}
        if name in PADDED and not self.from_us:
            attributes["padded"] = True
        symbols = self._symbols(node)
        modules = [
            self._submodule(as_text(m, "a module"), known, path)
            for m in as_list(node.get("module_inputs"), "'module_inputs'")
        ]
        stated = None
        if (self.from_us or name.startswith("unknown:")) and "shape" in node:
            stated = _types_of(shape_of(node["shape"]), node.get("open_dims"))
        return builder.add_instruction(
            name, attributes, inputs, modules, symbols=symbols, stated=stated
        )

    def _symbols(self, node: Mapping[str, Tree]) -> list[str]:
        listed = as_list(node.get("debug_symbols"), "'debug_symbols'")
        self.symbols = self.symbols or bool(listed)
        return [as_text(s, "a debug symbol") for s in listed]

    def _submodule(
        self, name: str, known: Mapping[str, Instruction], path: tuple[str, ...]
    ) -> ModuleBuilder:
        self.count += 1
        if name in path or len(path) > MAX_MODULES or self.count > 100_000:
            raise FileError(f"module '{name}' contains itself, or modules nest too deep")
        tree = as_map(member(self.modules, name, "'modules'"), f"module '{name}'")
        made = self.builder.create_module(self.builder.free_name(name))
        self.module(made, tree, known, (*path, name))
        return made


def _attribute(tree: Tree, depth: int = 0) -> Any:
    """An attribute value; objects are shapes, dims or nested operators."""
    if depth > 8:
        raise FileError("an attribute nests too deep")
    if isinstance(tree, memoryview):
        raise FileError("an attribute expected a value, got bytes")
    if isinstance(tree, list):
        return [_attribute(v, depth + 1) for v in tree]
    if isinstance(tree, dict):
        if "lens" in tree and "type" in tree:
            return shape_of(tree)
        if "range" in tree or {"min", "max"} <= set(tree):
            return _dim_of(tree)
        if "name" in tree:
            return NestedOp(as_text(tree["name"], "an operator"))
        if not tree:
            return []
        raise FileError(f"an attribute has the fields {', '.join(list(tree)[:5])}")
    return tree


def _types_of(shape: AnyShape | None, open_dims: Tree) -> list[TensorType] | None:
    """The result types of a node; those of `open_dims` are dynamic whatever the shape says."""
    if shape is None:
        return None
    found = [s.tensor_type() for s in shape_of_parts(shape)]
    for i, axes in enumerate(as_list(open_dims, "'open_dims'")[: len(found)]):
        at = {as_size(a, "'open_dims'") for a in as_list(axes, "'open_dims'")}
        found[i] = found[i].with_dims(
            DYN if axis in at else d for axis, d in enumerate(found[i].dims)
        )
    return found


__all__ = ["MxrFile", "argument_of", "load_argument", "read_data", "read_file", "shape_of"]
