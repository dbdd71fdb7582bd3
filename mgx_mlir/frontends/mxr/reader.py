"""Builds a program from MIGraphX's value tree."""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.core.files import read_bytes, readable_name
from mgx_mlir.core.ir import ir
from mgx_mlir.frontends.mxr.checks import (
    Tree,
    as_list,
    as_map,
    as_text,
    kind_of,
    located,
    member,
    shortened,
)
from mgx_mlir.frontends.mxr.decode import decode_msgpack
from mgx_mlir.frontends.mxr.interface import state_interface
from mgx_mlir.frontends.mxr.shapes import (
    Expansion,
    argument_of,
    dim_of,
    literal_of,
    result_types,
    shape_of,
)
from mgx_mlir.printers.listing import DEBUG_SYMBOLS
from mgx_mlir.printers.tree_files import OWN_KEY
from mgx_mlir.printers.value_tree import PADDED
from mgx_mlir.programs.instructions import Instruction
from mgx_mlir.programs.layout import Shape
from mgx_mlir.programs.migraphx_names import NestedOp
from mgx_mlir.programs.module_builder import LeftOut, ModuleBuilder, ProgramBuilder
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import DimRange

MAX_MODULES = 64  # most nested modules
# operators whose modules take parameters in order; others match by name
BY_ORDER = ("loop", "select_module")


def program_of_tree(
    tree: Mapping[str, Tree], name: str, weights: Mapping[str, memoryview]
) -> ProgramIR:
    """Build the program of a file's tree. `weights`: memory by digest, for literals without data.

    Raises FileError.
    """
    return _Reading(tree, name, weights).run()


def load_argument(path: str | os.PathLike[str]) -> Any:
    """Return the array of an argument file, or a tuple of arrays. Raises FileError."""
    name = os.fspath(path)
    try:
        return argument_of(decode_msgpack(read_bytes(name)))
    except FileError as e:
        raise located(e, name) from None


class _Reading:
    """One file being read."""

    def __init__(
        self, tree: Mapping[str, Tree], name: str, weights: Mapping[str, memoryview]
    ) -> None:
        self.top, self.name, self.weights = tree, name, weights
        self.own: dict[str, Tree] = {}
        self.modules: dict[str, Tree] = {}
        self.read: dict[str, ModuleBuilder] = {}
        self.expansion = Expansion()
        self.symbols = False

    def run(self) -> ProgramIR:
        """Read the whole file; FileError if a part is damaged."""
        self.own = as_map(self.top.get(OWN_KEY, {}), f"'{OWN_KEY}'")
        self.from_us = OWN_KEY in self.top
        self.modules = as_map(member(self.top, "modules", "the file"), "'modules'")
        self.builder = ProgramBuilder()
        main = as_map(member(self.modules, "main", "'modules'"), "module 'main'")
        self.module(self.builder.main, main, ChainMap(), ("main",))
        if self.from_us:  # MIGraphX leaves empty modules that no instruction uses
            for name in [n for n in self.modules if n != "main" and n not in self.read]:
                self.submodules("select_module", [name], ChainMap(), ())
        program = self.builder.program(readable_name(self.name))
        self.finish(program)
        return program

    def finish(self, program: ProgramIR) -> None:
        """Set the program's inputs and symbols from the file."""
        with program.ctx:
            state_interface(program.main(), self.own)
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
                found.append(str(e).strip())
            finally:
                handler.detach()
            if not ok:
                reason = "; ".join(found).replace("\n", " ") or "unknown"
                raise FileError(f"the program is not valid: {reason}")

    # ---- modules -----------------------------------------------------------------------------

    def module(
        self,
        builder: ModuleBuilder,
        tree: Mapping[str, Tree],
        outer: ChainMap[str, Instruction],
        path: tuple[str, ...],
        order: Sequence[str] | None = None,
    ) -> None:
        """Read a module's nodes; names of the enclosing modules are visible.

        `order` lists its parameters in the order of the instruction's inputs; None: in the order of
        addition.
        """
        what = f"module {shortened(path[-1])}"
        nodes = [as_map(n, f"a node of {what}") for n in as_list(tree.get("nodes"), "'nodes'")]
        known = outer.new_child()
        names = [as_text(member(n, "name", f"a node of {what}"), "'name'") for n in nodes]
        # nodes printed first were added last: parameters and literals are in reverse order
        pairs = zip(reversed(nodes), reversed(names), strict=True)
        parameters = {_parameter_name(n): n for n, name in pairs if name == "@param"}
        if len(parameters) != names.count("@param"):
            raise FileError(f"two parameters of {what} have one name")
        for name in parameters if order is None else order:
            node = parameters[name]
            self.define(known, node, self.parameter(builder, name, node, path))
        for node, name in zip(nodes, names, strict=True):
            if name == "@literal":
                self.define(known, node, self.literal(builder, node))
        for index, (node, name) in enumerate(zip(nodes, names, strict=True)):
            if name in ("@param", "@literal", "@comment"):
                continue
            inputs = [self.input(known, i, node) for i in as_list(node.get("inputs"), "'inputs'")]
            try:
                if name == "@return":
                    if index != len(nodes) - 1:
                        raise FileError(f"{what} goes on after its @return")
                    builder.add_return(inputs)
                    continue
                made = self.instruction(builder, node, name, inputs, known, path)
            except FileError:
                raise
            except MgxError as e:
                where = shortened(node.get("output", "?"))
                raise FileError(f"node {where}: {e.message}", notes=e.notes) from None
            self.define(known, node, made)

    def define(
        self, known: ChainMap[str, Instruction], node: Mapping[str, Tree], made: Instruction
    ) -> None:
        name = as_text(member(node, "output", "a node"), "'output'")
        if name in known.maps[0]:
            raise FileError(f"two nodes are called {shortened(name)}")
        known[name] = made

    def input(self, known: Mapping[str, Instruction], name: Tree, node: Mapping[str, Tree]) -> Any:
        found = known.get(as_text(name, "an input"))
        if found is None:
            where = shortened(node.get("output", "?"))
            raise FileError(f"node {where} reads {shortened(name)}, which does not exist")
        return found

    # ---- nodes -------------------------------------------------------------------------------

    def literal(self, builder: ModuleBuilder, node: Mapping[str, Tree]) -> Instruction:
        """Build the literal of a `@literal` node."""
        tree = as_map(member(node, "literal", "a @literal"), "a literal")
        if "bytes" in tree:
            tree = self.elsewhere(tree)
        if "bytes" in tree:
            return self.left_out(builder, node, tree)
        array, shape = literal_of(tree, self.expansion)
        strides = None if shape.is_standard or not shape.dims else shape.strides
        return builder.add_literal(
            array, strides=strides, first=True, symbols=self.node_symbols(node)
        )

    def elsewhere(self, tree: dict[str, Tree]) -> dict[str, Tree]:
        """Return a literal with data that another literal shares; unchanged if it has none."""
        data = self.weights.get(as_text(tree["bytes"], "'bytes'"))
        if data is None or "data" in tree:
            return tree
        return {"shape": tree.get("shape"), "data": data}

    def left_out(
        self, builder: ModuleBuilder, node: Mapping[str, Tree], tree: Mapping[str, Tree]
    ) -> Instruction:
        """Build a literal of which the file has only the digest."""
        shape = shape_of(member(tree, "shape", "a literal"))
        if not isinstance(shape, Shape) or shape.is_dynamic:
            raise FileError(f"data expected a static shape, got {shape}")
        strides = None if shape.is_standard or not shape.dims else shape.strides
        key = as_text(tree["bytes"], "'bytes'")
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise FileError(f"'bytes' expected a digest, got {shortened(key)}")
        made = LeftOut(shape.tensor_type(), key)
        symbols = self.node_symbols(node)
        return builder.add_literal(made, strides=strides, first=True, symbols=symbols)

    def parameter(
        self, builder: ModuleBuilder, name: str, node: Mapping[str, Tree], path: tuple[str, ...]
    ) -> Instruction:
        """Build the argument of a `@param` node."""
        shape = shape_of(member(node, "shape", "a @param"))
        if not isinstance(shape, Shape):
            raise FileError(f"parameter {shortened(name)} expected a tensor, got {shape}")
        if len(path) == 1 and shape.is_dynamic:
            shape = self.with_symbols(name, shape)
        try:
            return builder.add_parameter(name, shape)
        except MgxError as e:
            raise FileError(e.message) from None

    def with_symbols(self, name: str, shape: Shape) -> Shape:
        """Return a parameter's shape with the file's symbols for its dims."""
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

    def instruction(
        self,
        builder: ModuleBuilder,
        node: Mapping[str, Tree],
        name: str,
        inputs: Sequence[Instruction],
        known: ChainMap[str, Instruction],
        path: tuple[str, ...],
    ) -> Instruction:
        """Build the op of a node from its operator, inputs and modules."""
        operator = as_map(node.get("operator", {}), "'operator'")
        attributes = {k: _attribute(v) for k, v in operator.items()}
        if name in PADDED and not self.from_us and not attributes.get("use_dyn_output"):
            attributes["padded"] = True
        symbols = self.node_symbols(node)
        listed = as_list(node.get("module_inputs"), "'module_inputs'")
        modules = self.submodules(name, [as_text(m, "a module") for m in listed], known, path)
        stated = None
        if (self.from_us or name.startswith("unknown:")) and "shape" in node:
            stated = result_types(shape_of(node["shape"]), node.get("dynamic_dims"))
        return builder.add_instruction(
            name, attributes, inputs, modules, symbols=symbols, stated=stated
        )

    def node_symbols(self, node: Mapping[str, Tree]) -> list[str]:
        """Return the names of the source nodes of a node."""
        listed = as_list(node.get("debug_symbols"), "'debug_symbols'")
        self.symbols = self.symbols or bool(listed)
        found = [as_text(s, "a debug symbol") for s in listed]
        return [s for s in found if s]

    # ---- submodules --------------------------------------------------------------------------

    def submodules(
        self,
        op: str,
        names: Sequence[str],
        known: ChainMap[str, Instruction],
        path: tuple[str, ...],
    ) -> list[ModuleBuilder]:
        """Return the modules of an instruction; each is read once."""
        trees = [as_map(member(self.modules, n, "'modules'"), "a module") for n in names]
        orders: list[Sequence[str] | None] = [None] * len(names)
        if op not in BY_ORDER and not self.from_us:
            orders = [sorted(_parameters(t)) for t in trees]
            if op == "if":  # each branch gets all inputs, and names the ones that it reads
                everything = {n: p for t in trees for n, p in _parameters(t).items()}
                trees = [_completed(t, everything) for t in trees]
                orders = [sorted(everything)] * len(names)
        out = []
        for name, tree, order in zip(names, trees, orders, strict=True):
            if op == "select_module" and name in self.read:
                out.append(self.read[name])
                continue
            if name in path or name in self.read or len(path) > MAX_MODULES:
                raise FileError(
                    f"module {shortened(name)} contains itself, is used twice, or nests too deep"
                )
            made = self.builder.create_module(name)
            self.read[name] = made
            self.module(made, tree, known, (*path, name), order)
            out.append(made)
        return out


def _parameter_name(node: Mapping[str, Tree]) -> str:
    operator = as_map(node.get("operator", {}), "'operator'")
    return as_text(member(operator, "parameter", "a @param"), "'parameter'")


def _parameters(module: Mapping[str, Tree]) -> dict[str, dict[str, Tree]]:
    """Return the parameter nodes of a module by the parameter's name."""
    nodes = [as_map(n, "a node") for n in as_list(module.get("nodes"), "'nodes'")]
    return {_parameter_name(n): n for n in nodes if n.get("name") == "@param"}


def _completed(
    module: Mapping[str, Tree], parameters: Mapping[str, dict[str, Tree]]
) -> dict[str, Tree]:
    """Return a module with a node for each of `parameters`."""
    have = _parameters(module)
    missing = [
        {**p, "output": f"{name} of another module"}
        for name, p in parameters.items()
        if name not in have
    ]
    return {**module, "nodes": [*missing, *as_list(module.get("nodes"), "'nodes'")]}


def _attribute(tree: Tree, depth: int = 0) -> Any:
    """Return an attribute value; objects are shapes, dims or nested operators."""
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
            return dim_of(tree)
        if "name" in tree:
            return _nested(tree)
        if not tree:
            return []
        raise FileError(f"an attribute has the fields {', '.join(map(shortened, list(tree)[:5]))}")
    return tree


def _nested(tree: dict[str, Tree]) -> NestedOp:
    """Return an operator that is an attribute; its own attributes are numbers."""
    pairs = []
    for key, value in as_map(tree.get("operator", {}), "'operator'").items():
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e30:
            raise FileError(
                f"{shortened(key)} of an operator expected a number, got {kind_of(value)}"
            )
        pairs.append((key, float(value)))
    return NestedOp(as_text(tree["name"], "an operator"), tuple(pairs))


__all__ = ["argument_of", "load_argument", "program_of_tree"]
