"""`module` and `instruction_ref`: a program's instructions, to walk and to build."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mgx_mlir.api.argument import argument, array_of
from mgx_mlir.api.macros import expand
from mgx_mlir.api.macros import macro as macro_type
from mgx_mlir.api.op import op
from mgx_mlir.api.shape import shape
from mgx_mlir.core import interrupts, literals
from mgx_mlir.core.errors import MgxError, ShapeError, UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import attributes_of, is_terminator, mnemonic, op_class
from mgx_mlir.printers.listing import is_absent
from mgx_mlir.printers.text import instruction_text
from mgx_mlir.programs.instructions import Instruction, instruction_of
from mgx_mlir.programs.layout import TupleShape
from mgx_mlir.programs.migraphx_names import attributes_out, is_tuple
from mgx_mlir.programs.module_builder import IMPLICIT_RETURN, ModuleBuilder
from mgx_mlir.programs.strided import own_strides

if TYPE_CHECKING:
    from mgx_mlir.api.program import program


class instruction_ref:
    """One instruction of a program.

    Compiling or sorting the program, or loading another into it, makes its older references
    stale: every use of one raises UsageError.
    """

    __slots__ = ("_generation", "_id", "_program")

    def __init__(self, owner: program, number: int, generation: int) -> None:
        self._program, self._id, self._generation = owner, number, generation

    def entity(self) -> Instruction:
        """Return the value or operation in the IR. Errors: UsageError for a stale reference."""
        return self._program.entity(self._id, self._generation)

    def name(self) -> str:
        """Return the operator's name; in a compiled program the kernel's."""
        found = self.entity()
        if self._program.is_compiled():
            return self._program.listed(found).op
        return _operator_name(found)

    def op(self) -> op:
        """Return the operator with its attributes."""
        return _operator(self.entity(), self._program)

    def shape(self) -> shape:
        """Return the shape of the result; of several results, a tuple shape."""
        found, layout = self.entity(), self._program.layout()
        if isinstance(found, ir.Value):
            return shape.of(layout.shape(found))
        if is_terminator(found):
            parts = tuple(layout.shape(v) for v in found.operands)
            return shape.of(parts[0] if len(parts) == 1 else TupleShape(parts))
        return shape.of(layout.result_shape(found, is_tuple=True))

    def inputs(self) -> list[instruction_ref]:
        """Return the instructions that this one reads."""
        return [self._program.ref(e) for e in _inputs(self.entity())]

    def outputs(self) -> list[instruction_ref]:
        """Return the instructions that use this one."""
        return [self._program.ref(e) for e in _outputs(self.entity())]

    def get_literal(self) -> argument:
        """Return the data of a literal. Errors: ShapeError for any other instruction."""
        found = self.entity()
        owner = found.owner if isinstance(found, ir.Value) else found
        if not is_literal(owner):
            raise ShapeError(f"expected a @literal, got {self.name()}")
        with self._program.weights():
            return argument(literals.array_of(owner))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, instruction_ref):
            return NotImplemented
        return (
            self._program is other._program
            and self._id == other._id
            and self._generation == other._generation
        )

    def __hash__(self) -> int:
        return hash((id(self._program), self._id, self._generation))

    def __repr__(self) -> str:
        return self._program.line(self.entity())


class module:
    """A module of a program: `main`, or one made by `program.create_module`.

    Iterating gives its instructions in the order they are printed.
    """

    def __init__(self, owner: program, builder: ModuleBuilder, generation: int) -> None:
        self._program, self._built, self._generation = owner, builder, generation

    @property
    def _builder(self) -> ModuleBuilder:
        self._program.check_generation(self._generation, f"module '{self._built.name}'")
        return self._built

    def name(self) -> str:
        """Return the module's name."""
        return self._built.name

    # ---- building ----------------------------------------------------------------------------

    @interrupts.held
    def add_instruction(
        self,
        op: op,
        args: Sequence[instruction_ref],
        mod_args: Sequence[module] = (),
        *,
        shapes: Sequence[shape] | None = None,
    ) -> instruction_ref:
        """Append an instruction; its shape is inferred. ShapeError where the inputs do not fit.

        `shapes` gives its results' shapes where inference cannot: for unknown operators, and for
        dims that would be dynamic.
        """
        return self._add(op, args, mod_args, None, shapes)

    @interrupts.held
    def insert_instruction(
        self,
        ins: instruction_ref,
        op: op,
        args: Sequence[instruction_ref],
        mod_args: Sequence[module] = (),
    ) -> instruction_ref:
        """Insert an instruction before `ins`; otherwise as `add_instruction`."""
        return self._add(op, args, mod_args, ins)

    def _add(
        self,
        what: op,
        args: Sequence[instruction_ref],
        mod_args: Sequence[module],
        before: instruction_ref | None,
        shapes: Sequence[shape] | None = None,
    ) -> instruction_ref:
        builder = self._changing()
        if not isinstance(what, op):
            raise UsageError(f"expected an op, got {type(what).__name__}")
        name = what.name()
        if name == "@return":
            return self.add_return(args)
        if name in ("@param", "@literal"):
            raise UsageError(
                f"'{name}' is added by add_{'literal' if 'lit' in name else 'parameter'}"
            )
        inputs = [self._program.own(a) for a in args]
        modules = [m._builder for m in mod_args]
        place = None if before is None else _place(self._program.own(before))
        stated = None if shapes is None else [s.core.tensor_type() for s in shapes]
        made = builder.add_instruction(
            name, what.attributes(), inputs, modules, before=place, stated=stated
        )
        self._program.changed()
        return self._program.ref(made)

    @interrupts.held
    def add_literal(self, data: object) -> instruction_ref:
        """Add a constant: an argument, or anything with the buffer protocol."""
        array = array_of(data)
        made = self._changing().add_literal(array, strides=own_strides(array))
        self._program.changed()
        return self._program.ref(made)

    @interrupts.held
    def add_parameter(self, name: str, shape: shape) -> instruction_ref:
        """Add a parameter to the module."""
        builder = self._changing()
        made = builder.add_parameter(name, shape.core)
        self._program.parameter_added(builder, made)
        return self._program.ref(made)

    @interrupts.held
    def add_return(self, args: Sequence[instruction_ref]) -> instruction_ref:
        """End the module with a return of these values."""
        builder = self._changing()
        builder.add_return([self._program.own(a) for a in args])
        return self._returned(builder)

    @interrupts.held
    def replace_return(self, args: Sequence[instruction_ref]) -> instruction_ref:
        """Replace the results of the module."""
        builder = self._changing()
        builder.replace_return([self._program.own(a) for a in args])
        return self._returned(builder)

    def _returned(self, builder: ModuleBuilder) -> instruction_ref:
        self._program.changed()
        end = builder.terminator()
        assert end is not None
        return self._program.ref(end)

    @interrupts.held
    def add_macro(
        self, macro: macro_type, args: Sequence[instruction_ref], mod_args: Sequence[module] = ()
    ) -> list[instruction_ref]:
        """Append a macro's operators; return its results."""
        return self.insert_macro(None, macro, args, mod_args)

    @interrupts.held
    def insert_macro(
        self,
        ins: instruction_ref | None,
        macro: macro_type,
        args: Sequence[instruction_ref],
        mod_args: Sequence[module] = (),
    ) -> list[instruction_ref]:
        """Insert a macro before `ins`; otherwise as `add_macro`."""
        if mod_args:
            raise UsageError(f"macro '{macro.name()}' takes no modules")
        builder = self._changing()
        place = None if ins is None else _place(self._program.own(ins))
        made = expand(builder, macro, [self._program.own(a) for a in args], place)
        self._program.changed()
        return [self._program.ref(v) for v in made]

    def _changing(self) -> ModuleBuilder:
        builder = self._builder
        if self._program.is_compiled():
            raise UsageError("the program is compiled and cannot be changed")
        return builder

    # ---- reading -----------------------------------------------------------------------------

    def __iter__(self) -> Iterator[instruction_ref]:
        return iter([self._program.ref(e) for e in self._entities()])

    def __len__(self) -> int:
        return len(self._entities())

    def _entities(self) -> list[Instruction]:
        builder = self._builder
        operations = list(builder.operations())
        found: list[Instruction] = [o.result for o in reversed(operations) if is_literal(o)]
        found += reversed(list(builder.block.arguments))
        for o in operations:
            if is_literal(o) or is_absent(o):
                continue
            found.append(instruction_of(o))
            if is_tuple(o):
                found += [r for r in o.results if _is_element(r)]
        end = builder.terminator()
        if end is not None and IMPLICIT_RETURN not in end.attributes:
            found.append(end)
        return found

    def get_parameter_names(self) -> list[str]:
        """Return the names of the module's parameters, in order."""
        return list(self._builder.parameters)

    @interrupts.held
    def print(self) -> None:
        """Write the module to stdout."""
        sys.stdout.write(repr(self))

    def __repr__(self) -> str:
        builder = self._builder
        listing = self._program.listing()
        stream = io.StringIO()
        with self._program.weights():
            for m in listing.modules:
                if m.name == builder.name:
                    stream.writelines(instruction_text(i) + "\n" for i in m.visible())
        return stream.getvalue()


def _place(entity: Instruction) -> ir.Operation:
    owner: Any = entity.owner if isinstance(entity, ir.Value) else entity
    if isinstance(owner, ir.Block):
        raise UsageError("cannot insert before a parameter")
    return owner.operation


def _is_element(result: ir.Value) -> bool:
    """Return whether a tuple's result has users other than an implicit return."""
    return any(IMPLICIT_RETURN not in use.owner.attributes for use in result.uses)


def _operator_name(entity: Instruction) -> str:
    if isinstance(entity, ir.Value):
        owner = entity.owner
        if isinstance(owner, ir.Block):
            return "@param"
        if is_literal(owner):
            return "@literal"
        if is_tuple(owner):
            return "get_tuple_elem"
    else:
        owner = entity
    if is_terminator(owner):
        return "@return"
    name = mnemonic(owner)
    return f"unknown:{attributes_of(owner)['op']}" if name == "unknown" else name


def _operator(entity: Instruction, owner: program) -> op:
    name = _operator_name(entity)
    if name == "@param":
        return op.of(name, {"parameter": owner.parameter_name(entity)})
    if name == "get_tuple_elem":
        assert isinstance(entity, ir.OpResult)
        return op.of(name, {"index": entity.result_number})
    if name.startswith("@"):
        return op.of(name, {})
    operation = entity.owner if isinstance(entity, ir.Value) else entity
    cls = op_class(operation)
    if cls is None:
        raise MgxError(f"'{operation.name}' is not an operator of this dialect")
    return op.of(name, attributes_out(cls, attributes_of(operation)))


def _entity_of(value: ir.Value) -> Instruction:
    """Return the instruction of a value: the value itself, except for the cells of an lstm."""
    owner = value.owner
    if isinstance(owner, ir.Block) or is_tuple(owner):
        return value
    return owner.results[0]


def _inputs(entity: Instruction) -> list[Instruction]:
    if isinstance(entity, ir.Value):
        owner = entity.owner
        if isinstance(owner, ir.Block):
            return []
        if is_tuple(owner):
            return [owner.operation]
    else:
        owner = entity
    return [_entity_of(v) for v in owner.operands]


def _outputs(entity: Instruction) -> list[Instruction]:
    if isinstance(entity, ir.Operation):
        return [r for r in entity.results if _is_element(r)]
    found: list[Instruction] = []
    for use in reversed(list(entity.uses)):  # the latest use is kept first
        user = use.owner.operation
        if IMPLICIT_RETURN in user.attributes:
            continue
        made = user if is_terminator(user) else instruction_of(user)
        if made not in found:
            found.append(made)
    return found
