"""Build a program instruction by instruction, as MIGraphX does; its modules become regions.

The Python API and the file readers use it. A module under construction is a function of the
program. As the module argument of an instruction it becomes a region of that operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from mgx_mlir.core import forks, literals
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import ModelError, ShapeError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.names import natural
from mgx_mlir.core.op import OPS, Op, attributes_of, is_terminator, mnemonic
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType, merge_dims
from mgx_mlir.programs.instructions import (
    Instruction,
    as_operand,
    as_value,
    instruction_of,
    result_types,
)
from mgx_mlir.programs.layout import Shape, dims_attribute
from mgx_mlir.programs.migraphx_names import attributes_in, class_of, group_operands, is_tuple
from mgx_mlir.programs.program_ir import (
    DIMS,
    NAME,
    STRIDES,
    ProgramIR,
    argument_attributes,
    argument_names,
    entry_block,
    functions,
)

IMPLICIT_RETURN = (
    "migraphx.implicit_return"  # on a func.return that was added implicitly: printers hide it
)
MODULES = "migraphx.modules"  # on an op with regions: the names of its submodules


@dataclass(frozen=True)
class LeftOut:
    """A constant whose values a file does not hold: its type, and the digest of its bytes."""

    type: TensorType
    key: str


class ModuleBuilder:
    """One module: a function of the program, or a region once an instruction took it."""

    def __init__(self, program: ProgramBuilder, name: str, block: ir.Block) -> None:
        self.program, self.name, self.block = program, name, block
        self.attached = False
        self.parameters: dict[str, ir.Value] = {}
        self.attributes: list[dict[str, ir.Attribute]] = []  # attributes of the parameters
        self._signed = True

    # ---- reading -----------------------------------------------------------------------------

    def terminator(self) -> ir.Operation | None:
        """Return the operation that ends the module, None if there is none yet."""
        try:
            last = ir.InsertionPoint.at_block_terminator(self.block).ref_operation
        except ValueError:
            return None
        return last.operation

    def operations(self) -> Iterator[ir.Operation]:
        """Yield the operations in order, without the terminator."""
        for view in self.block.operations:
            op = view.operation
            if not is_terminator(op):
                yield op

    # ---- adding ------------------------------------------------------------------------------

    def add_parameter(self, name: str, shape: Shape) -> ir.Value:
        """Return a new parameter. ShapeError if the name exists."""
        if self.attached:
            raise ShapeError(f"module '{self.name}' is part of an instruction already")
        if name in self.parameters:
            raise ShapeError(f"module '{self.name}' has a parameter '{name}' already")
        with self.program.building():
            value = self.block.add_argument(shape.tensor_type().mlir(), ir.Location.name(name))
            entries: dict[str, ir.Attribute] = {NAME: ir.StringAttr.get(name)}
            if shape.is_dynamic:
                entries[DIMS] = dims_attribute(shape.dims)
            elif not shape.is_standard and shape.dims:
                entries[STRIDES] = ir.DenseI64ArrayAttr.get(list(shape.strides))
        self.attributes.append(entries)
        self.parameters[name] = value
        self._signed = False
        return value

    def add_literal(
        self,
        array: np.ndarray | LeftOut,
        *,
        strides: Sequence[int] | None = None,
        first: bool = False,
        symbols: Sequence[str] = (),
    ) -> ir.Value:
        """Return a constant, before all other operations and after earlier literals, or `first`.

        `strides` (in elements) is the memory order that files and text show, row-major for None.
        """
        anchor = None
        for view in self.block.operations:
            if first or not literals.is_literal(view):
                anchor = view.operation
                break
        with self.program.building(symbols):
            ip = ir.InsertionPoint(anchor) if anchor is not None else ir.InsertionPoint(self.block)
            if isinstance(array, LeftOut):
                value = literals.create_left_out(array.type, array.key, ip=ip)
            else:
                value = literals.create(array, ip=ip)
            if strides is not None:
                order = ir.DenseI64ArrayAttr.get(list(strides))
                value.owner.attributes[STRIDES] = order
            return value

    def add_instruction(
        self,
        name: str,
        attributes: Mapping[str, Any] | None = None,
        inputs: Sequence[Instruction] = (),
        modules: Sequence[ModuleBuilder] = (),
        *,
        symbols: Sequence[str] = (),
        before: ir.Operation | None = None,
        stated: Sequence[TensorType] | None = None,
    ) -> Instruction:
        """Append an operation, or insert it before `before`; its result types are inferred.

        `name`, `attributes` and `inputs` are MIGraphX's. `stated` are result types, which may be
        more precise than the inferred ones. Raises ShapeError if they do not fit together.
        """
        attributes = dict(attributes or {})
        end = self.open()
        if name == "get_tuple_elem":
            return self._tuple_element(inputs, attributes)
        with self.program.building(symbols):
            ip = ir.InsertionPoint(before or end or self.block)
            if name.startswith("unknown:"):
                attributes.setdefault("op", name.removeprefix("unknown:"))
                name = "unknown"
            cls = class_of(name)
            values = [as_operand(cls, i, x) for i, x in enumerate(inputs)]
            keywords = attributes_in(cls, attributes)
            if cls.REGIONS or cls.mnemonic == "select_module":
                if cls.mnemonic == "unknown":
                    raise ShapeError("operator 'unknown' takes no modules")
                return self._with_modules(cls, values, keywords, modules, ip)
            if modules:
                raise ShapeError(f"operator '{name}' takes no modules, got {len(modules)}")
            operands = group_operands(cls, values, keywords)
            results = None
            if cls.mnemonic == "unknown":
                first = next((v for v in values if v is not None), None)
                results = stated or [TensorType.of(self._undefined(ip) if first is None else first)]
            built = cls(*operands, ip=ip, results=results, **keywords).operation
            if stated is not None:
                _refine(built, stated)
        return instruction_of(built)

    def _undefined(self, ip: ir.InsertionPoint) -> ir.Value:
        return OPS["undefined"](ip=ip).operation.result

    def open(self) -> ir.Operation | None:
        """Return the terminator to insert before, and make an implicit one explicit."""
        end = self.terminator()
        if end is not None and IMPLICIT_RETURN in end.attributes:
            end.erase()
            return None
        return end

    def _tuple_element(
        self, inputs: Sequence[Instruction], attributes: Mapping[str, Any]
    ) -> ir.Value:
        index = attributes.get("index", 0)
        if len(inputs) != 1 or not isinstance(inputs[0], ir.Operation):
            raise ShapeError("operator 'get_tuple_elem' expected one tuple as input")
        results = inputs[0].results
        if not isinstance(index, int) or not 0 <= index < len(results):
            raise ShapeError(f"index ({index}) is out of range for {len(results)} elements")
        return results[index]

    # ---- returning ---------------------------------------------------------------------------

    def add_return(self, values: Sequence[Instruction]) -> None:
        """End the module with its results. ShapeError if it has ended already."""
        end = self.open()
        if end is not None:
            raise ShapeError(f"module '{self.name}' has a return already, expected replace_return")
        self._end([as_value(v) for v in values])

    def replace_return(self, values: Sequence[Instruction]) -> None:
        """Replace the module's results; every reference to an instruction stays valid."""
        end = self.terminator()
        found = [as_value(v) for v in values]
        if end is not None:
            end.erase()
        self._end(found)

    def close(self) -> None:
        """Add a return of the last instruction's results, if the module has none."""
        if self.terminator() is not None:
            if not self._signed:
                self._sign()
            return
        last = None
        for op in self.operations():
            if not literals.is_literal(op):
                last = op
        if last is None:
            last = next(reversed(list(self.operations())), None)
        if last is not None:
            # lstm is one instruction with two results, of which MIGraphX returns only the first
            values = list(last.results) if is_tuple(last) else list(last.results)[:1]
        else:
            values = list(self.parameters.values())[-1:]
        self._end(values).attributes[IMPLICIT_RETURN] = ir.UnitAttr.get(self.program.ctx)

    def _end(self, values: Sequence[ir.Value]) -> ir.Operation:
        name = "migraphx.yield" if self.attached else "func.return"
        with self.program.building():
            ip = ir.InsertionPoint(self.block)
            if name == "func.return":
                end = func.ReturnOp(list(values), ip=ip).operation
            else:
                end = OPS["yield"](list(values), ip=ip).operation
        self._sign()
        return end

    def _sign(self) -> None:
        """Set the function's type and its argument attributes."""
        if self.attached:
            return
        function = self.block.owner
        end = self.terminator()
        with self.program.ctx, ir.Location.unknown():
            ins = [a.type for a in self.block.arguments]
            outs = [v.type for v in end.operands] if end is not None else []
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(ins, outs))
            entries = [ir.DictAttr.get(d) for d in self.attributes]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
            if "res_attrs" in function.attributes:
                del function.attributes["res_attrs"]
        self._signed = True

    # ---- modules as regions ------------------------------------------------------------------

    def _with_modules(
        self,
        cls: type[Op],
        values: list[ir.Value | None],
        keywords: dict[str, Any],
        modules: Sequence[ModuleBuilder],
        ip: ir.InsertionPoint,
    ) -> Instruction:
        if cls.mnemonic == "select_module":
            return self._select(cls, values, keywords, modules, ip)
        if len(modules) != len(cls.REGIONS):
            raise ShapeError(
                f"operator '{cls.mnemonic}' expected {len(cls.REGIONS)} modules, got {len(modules)}"
            )
        for m in modules:
            if m.attached or m.name == "main" or m is self:
                raise ShapeError(f"module '{m.name}' cannot be an argument of '{cls.mnemonic}'")
            m.close()
        if cls.mnemonic == "pointwise":
            modules[0].widen([TensorType.of(v) for v in values if v is not None])
        operands = group_operands(cls, values, keywords)
        groups = cls.grouped_operands(operands)
        ends = [m.terminator() for m in modules]
        types = result_types(cls, groups, keywords, [e.operands for e in ends if e is not None])
        built = cls(*operands, ip=ip, results=types, **keywords).operation
        for m, region in zip(modules, built.regions, strict=True):
            m.attach(region)
        built.attributes[MODULES] = ir.ArrayAttr.get([ir.StringAttr.get(m.name) for m in modules])
        try:
            cls.infer_types(groups, built.attributes, list(built.regions))
        except ShapeError:
            built.erase()
            for m in modules:
                self.program.forget(m)
            raise
        return instruction_of(built)

    def _select(
        self,
        cls: type[Op],
        values: list[ir.Value | None],
        keywords: dict[str, Any],
        modules: Sequence[ModuleBuilder],
        ip: ir.InsertionPoint,
    ) -> Instruction:
        if not modules:
            raise ShapeError("operator 'select_module' expected at least one module, got 0")
        columns: list[list[TensorType]] = []
        for m in modules:
            m.close()
            end = m.terminator()
            assert end is not None
            columns.append([TensorType.of(v) for v in end.operands])
        first = columns[0]
        if any([t.rank for t in c] != [t.rank for t in first] for c in columns):
            raise ShapeError("the modules of 'select_module' have results of different ranks")
        merged = [
            t.with_dims(
                d if all(c[i].dims[j] == d for c in columns) else DYN for j, d in enumerate(t.dims)
            )
            for i, t in enumerate(first)
        ]
        keywords["callees"] = [m.name for m in modules]
        built = cls(values, ip=ip, results=merged, **keywords)
        return instruction_of(built.operation)

    def attach(self, region: ir.Region) -> None:
        """Move the body into `region`, ended by migraphx.yield."""
        function = self.block.owner
        end = self.terminator()
        assert end is not None
        values, implied = list(end.operands), IMPLICIT_RETURN in end.attributes
        places = [_place(self.block, v) for v in values]
        end.erase()
        self.block.append_to(region)
        # the former handles of the block and its arguments refer to the function, which is erased
        self.block = region.blocks[0]
        self.attached = True
        function.erase()
        names = list(self.parameters)
        self.parameters = dict(zip(names, self.block.arguments, strict=True))
        made = self._end(
            [
                v if i is None else self.block.arguments[i]
                for i, v in zip(places, values, strict=True)
            ]
        )
        if implied:
            made.attributes[IMPLICIT_RETURN] = ir.UnitAttr.get(self.program.ctx)
        self.program.detached(self)

    def widen(self, types: Sequence[TensorType]) -> None:
        """Change a body on single elements to the dims of its operands."""
        block = self.block
        order = sorted(range(len(block.arguments)), key=lambda i: natural(list(self.parameters)[i]))
        if len(order) != len(types):
            raise ShapeError(
                f"module '{self.name}' expected {len(types)} parameters, got {len(order)}"
            )
        arguments = list(block.arguments)
        scalars = all(TensorType.of(a).elements == 1 for a in arguments)
        if order != list(range(len(order))):
            raise ShapeError(f"the parameters of '{self.name}' are not in the order of their names")
        if not scalars or not types or all(t.elements == 1 for t in types):
            return
        dims = types[0].dims
        for argument, t in zip(arguments, types, strict=True):
            argument.set_type(t.mlir())
        with self.program.building():
            for op in list(self.operations()):
                self._widen_op(op, dims)
        self._sign()

    def _widen_op(self, op: ir.Operation, dims: tuple[int, ...]) -> None:
        """Rebuild a body's op for operands that changed their types."""
        if literals.is_literal(op):
            value = op.result
            if DYN in dims:
                raise ShapeError("a literal in a pointwise module needs static dims")
            wide = OPS["multibroadcast"](
                [op.result], out_lens=list(dims), ip=ir.InsertionPoint.after(op)
            )
            value.replace_all_uses_except(wide.operation.result, wide.operation)
            return
        cls = OPS[mnemonic(op)]
        groups = cls.split_operands(op)
        operands = [
            g if a.arity == "variadic" else (g[0] if g else None)
            for g, a in zip(groups, cls.OPERANDS, strict=True)
        ]
        keywords = {k: v for k, v in attributes_of(op).items() if v is not None}
        built = cls(*operands, ip=ir.InsertionPoint(op), loc=op.location, **keywords).operation
        for old, new in zip(op.results, built.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def _refine(op: ir.Operation, stated: Sequence[TensorType]) -> None:
    """Replace result types by stated ones that are more precise."""
    if len(op.results) != len(stated):
        return
    for result, s in zip(op.results, stated, strict=True):
        t = TensorType.of(result)
        dims = merge_dims(t.dims, s.dims)
        if not t.is_static and dims is not None and t.dtype is s.dtype and dims != t.dims:
            result.set_type(t.with_dims(dims).mlir())


def _place(block: ir.Block, value: ir.Value) -> int | None:
    """Return the index of the block argument that `value` is."""
    return next((i for i, a in enumerate(block.arguments) if a == value), None)


class ProgramBuilder:
    """A program under construction: one context, the module `main` and its submodules."""

    def __init__(self) -> None:
        self.ctx = new_context()
        with self.ctx, ir.Location.unknown():
            self.module = ir.Module.create()
        self.store = WeightStore()
        self.modules: dict[str, ModuleBuilder] = {}
        self.on_attach: Callable[[ModuleBuilder], None] | None = None
        self._closing = forks.lock()
        self.create_module("main")

    @staticmethod
    def of(program: ProgramIR) -> ProgramBuilder:
        """Return a builder that continues an existing program, which it shares."""
        made = ProgramBuilder.__new__(ProgramBuilder)
        made.ctx, made.module, made.store = program.ctx, program.module, program.store
        made.modules, made.on_attach = {}, None
        made._closing = forks.lock()
        for function in functions(program.module.operation):
            name = ir.StringAttr(function.attributes["sym_name"]).value
            block = entry_block(function)
            m = ModuleBuilder(made, name, block)
            m.parameters = dict(zip(argument_names(function), block.arguments, strict=True))
            m.attributes = argument_attributes(function)
            made.modules[name] = m
        return made

    @property
    def main(self) -> ModuleBuilder:
        """Module that runs first."""
        return self.modules["main"]

    def create_module(self, name: str) -> ModuleBuilder:
        """Return a new empty module. ShapeError if the name exists."""
        if name in self.modules:
            raise ShapeError(f"the program has a module '{name}' already")
        with self.ctx, ir.Location.unknown():
            ip = ir.InsertionPoint(self.module.body)
            visibility = None if name == "main" else "private"
            function = func.FuncOp(name, ([], []), visibility=visibility, ip=ip)
            block = function.add_entry_block()
        found = ModuleBuilder(self, name, block)
        self.modules[name] = found
        return found

    def detached(self, m: ModuleBuilder) -> None:
        """Mark a module that became a region: handles of its parameters are no longer valid."""
        if self.on_attach is not None:
            self.on_attach(m)

    def forget(self, m: ModuleBuilder) -> None:
        """Drop a module whose blocks are erased."""
        self.modules.pop(m.name, None)

    def building(self, symbols: Sequence[str] = ()) -> _Building:
        """Return the context, location and weight store to build in."""
        return _Building(self, symbols)

    def program(self, source: str = "") -> ProgramIR:
        """Return the program, with every module ended.

        It shares the builder's operations. Any thread may call this while none builds.
        """
        with self._closing:
            for m in self.modules.values():
                m.close()
        return ProgramIR(self.ctx, self.module, self.store, source)


class _Building:
    """Context manager: context, location and active store of a program."""

    def __init__(self, program: ProgramBuilder, symbols: Sequence[str]) -> None:
        self.program, self.symbols = program, symbols

    def __enter__(self) -> None:
        self._ctx = self.program.ctx
        self._ctx.__enter__()
        location = ir.Location.unknown()
        if self.symbols:
            found = [ir.Location.name(s) for s in self.symbols]
            location = found[0] if len(found) == 1 else ir.Location.fused(found)
        self._location = location
        self._location.__enter__()
        self._store = self.program.store.active()
        self._store.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for entered in (self._store, self._location, self._ctx):
            entered.__exit__(kind, value, trace)


def drop_unused_modules(program: ProgramIR) -> None:
    """Erase functions without references; `main` stays."""
    used = {"main"}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if mnemonic(op) == "select_module":
            used.update(attributes_of(op)["callees"])
        return ir.WalkResult.ADVANCE

    program.module.operation.walk(visit)
    found = list(functions(program.module.operation))
    if len(found) > 1:
        for f in found:
            if ir.StringAttr(f.attributes["sym_name"]).value not in used:
                f.operation.erase()


__all__ = [
    "IMPLICIT_RETURN",
    "MODULES",
    "ModelError",
    "ModuleBuilder",
    "ProgramBuilder",
    "drop_unused_modules",
]
