"""A program as MIGraphX lists it: modules of instructions with names, attributes and shapes.

All printers and file writers use this view, so that they agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mgx_mlir.core import literals
from mgx_mlir.core.dtypes import FP4X2
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import (
    HostOp,
    Kernel,
    Op,
    Pointwise,
    ViewOp,
    attributes_of,
    is_a,
    is_terminator,
    mnemonic,
    op_class,
)
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.buffers import Undefined
from mgx_mlir.dialects.migraphx.control import If, Loop, SelectModule, Yield
from mgx_mlir.dialects.migraphx.fused import PointwiseKernel
from mgx_mlir.printers.device_lines import add_device_lines
from mgx_mlir.printers.instructions import ListedInstruction, Listing, Module, Numbering
from mgx_mlir.printers.packed import packed_values
from mgx_mlir.programs.layout import AnyShape, Shape, TupleShape
from mgx_mlir.programs.migraphx_names import attributes_out, is_tuple
from mgx_mlir.programs.module_builder import IMPLICIT_RETURN, MODULES
from mgx_mlir.programs.module_shapes import ModuleShapes
from mgx_mlir.programs.program_ir import ProgramIR, argument_names, entry_block, functions

DEBUG_SYMBOLS = "migraphx.debug_symbols"  # module attribute: source names are shown


def list_program(
    program: ProgramIR,
    *,
    numbering: Numbering = "seed",
    symbols: bool | None = None,
    kernel_prefix: str = "",
    device_lines: bool = True,
) -> Listing:
    """List a program in MIGraphX's order and numbering.

    `numbering`: "seed" does not count parameters, "2.16" does; both prefix names in submodules by
    the module's. `symbols` None: show them if the program was read with debug symbols.
    `kernel_prefix` ("cpu") shows a compiled program, with kernels under their printed names.
    `device_lines`: also show the device memory of a compiled program.
    """
    listing = _Lister(program, numbering, symbols, kernel_prefix).run()
    if device_lines and kernel_prefix and program.plan is not None:
        add_device_lines(listing, program.plan, numbering)
    return listing


class _Lister:
    def __init__(
        self, program: ProgramIR, numbering: Numbering, symbols: bool | None, kernel_prefix: str
    ) -> None:
        self.program, self.numbering, self.prefix = program, numbering, kernel_prefix
        operation = program.module.operation
        self.symbols = DEBUG_SYMBOLS in operation.attributes if symbols is None else symbols
        self.layout = ModuleShapes(operation, program.store)
        self.packed = packed_values(operation)
        self.elements: set[ir.Value] = (
            set()
        )  # values of pointwise modules, shown in MIGraphX's form
        self.modules: list[Module] = []
        self.counters: dict[str, int] = {}
        self.lines: dict[ir.Value, ListedInstruction] = {}
        self.parameters: set[str] = set()  # names of parameters, which no instruction may have
        self.functions: dict[str, Module] = {}

    def run(self) -> Listing:
        self.others = {name_of(f): f for f in functions(self.program.module.operation)}
        main = self.program.main()
        self.others.pop(name_of(main))
        self.taken = {"main", *self.others}
        self._function(main, "main")
        for name, f in self.others.items():
            if name not in self.functions:
                self._function(f, name)
        return Listing(self.modules, self.layout)

    def shapes(self, value: ir.Value) -> Shape:
        found = self.layout.shape(value)
        if value in self.elements:
            return Shape(found.dtype, (), ())
        return replace(found, dtype=FP4X2) if value in self.packed else found

    def _function(self, function: ir.OpView, name: str) -> Module:
        module = Module(name)
        self.functions[name] = module
        self.modules.append(module)
        blocks = list(function.regions[0].blocks)
        if blocks:
            self._block(module, entry_block(function), argument_names(function))
        return module

    def _block(self, module: Module, block: ir.Block, names: Sequence[str]) -> None:
        """List a block: literals and parameters first, in reverse order, as MIGraphX adds them."""
        self.parameters.update(self._lhs(module, name) for name in names)
        operations = [view.operation for view in block.operations]
        constants = [op for op in operations if is_literal(op)]
        for op in reversed(constants):
            self._add(module, self._constant(op))
        pairs = list(zip(block.arguments, names, strict=True))
        for value, name in reversed(pairs):
            line = ListedInstruction(
                "",
                "@param",
                {"parameter": name},
                shape=self.shapes(value),
                values=(value,),
            )
            self._add(module, line)
        for op in operations:
            if is_literal(op) or is_absent(op):
                continue
            if is_a(op, Multibroadcast) and op.result in self.elements:
                self.lines[op.result] = self.lines[op.operands[0]]
                continue
            if is_terminator(op):
                line = ListedInstruction(
                    "",
                    "@return",
                    inputs=self._inputs(op.operands),
                    operation=op,
                    implied=IMPLICIT_RETURN in op.attributes,
                )
                self._add(module, line)
                continue
            self._operation(module, op)

    def _add(self, module: Module, line: ListedInstruction) -> None:
        n = self.counters.get(module.name, 0)
        is_parameter = line.op == "@param"
        counted = not is_parameter or self.numbering == "2.16"
        name = line.attributes["parameter"] if is_parameter else f"@{n}"
        line.lhs = self._lhs(module, name)
        while not is_parameter and line.lhs in self.parameters:
            n += 1
            line.lhs = self._lhs(module, f"@{n}")
        self.counters[module.name] = n + 1 if counted else n
        for value in line.values:
            self.lines[value] = line
        module.instructions.append(line)

    def _lhs(self, module: Module, name: str) -> str:
        return name if self._is_first(module) else f"{module.name}:{name}"

    def _is_first(self, module: Module) -> bool:
        return self.modules[0] is module

    def _constant(self, op: ir.Operation) -> ListedInstruction:
        return ListedInstruction(
            "",
            "@literal",
            shape=self.shapes(op.result),
            symbols=self._symbols(op),
            operation=op,
            values=(op.result,),
        )

    def _operation(self, module: Module, op: ir.Operation) -> None:
        name, cls = mnemonic(op), op_class(op)
        several = is_tuple(op)
        attributes = {} if cls is None else attributes_out(cls, attributes_of(op))
        if name == "unknown":
            name = f"unknown:{attributes.get('op', '')}"
        kernel = bool(self.prefix) and self._is_kernel(op)
        if kernel:
            name = f"{self.prefix}::{self._kernel_name(op)}"
            if is_a(op, Kernel):
                attributes = {}
        shape = self._shape(op, several)
        if name == "select_module":
            attributes = {"output_dyn_shapes": shape}
        line = ListedInstruction(
            "",
            name,
            attributes,
            inputs=self._placed(module, op, cls),
            shape=shape,
            symbols=self._symbols(op),
            operation=op,
            values=tuple(op.results),
        )
        if not kernel:
            line.modules = self._submodules(module, op)
        self._add(module, line)
        if several and len(op.results):
            self._elements(module, op, line)

    def _shape(self, op: ir.Operation, several: bool) -> AnyShape | None:
        if not len(op.results) or is_a(op, Undefined):
            return None
        parts = tuple(self.shapes(r) for r in op.results)
        return TupleShape(parts) if several else parts[0]

    def _elements(self, module: Module, op: ir.Operation, line: ListedInstruction) -> None:
        """Add a get_tuple_elem for each result that is used."""
        for i, r in enumerate(op.results):
            if not any(True for _ in r.uses):
                continue
            users = [use.owner.name for use in r.uses]
            shown = not self._is_whole_return(op, users)
            if not shown:
                continue
            element = ListedInstruction(
                "",
                "get_tuple_elem",
                {"index": i},
                inputs=[line],
                shape=self.shapes(r),
                operation=op,
                values=(r,),
            )
            self._add(module, element)

    def _is_whole_return(self, op: ir.Operation, users: Sequence[str]) -> bool:
        """Return whether a tuple is used only by an implicit return, which is not shown."""
        if any(u not in ("func.return", "migraphx.yield") for u in users):
            return False
        uses = [use.owner for r in op.results for use in r.uses]
        return all(IMPLICIT_RETURN in u.attributes for u in uses)

    def _inputs(self, operands: Sequence[ir.Value]) -> list[ListedInstruction]:
        return [self.lines[v] for v in operands if v in self.lines]

    def _placed(
        self, module: Module, op: ir.Operation, cls: type[Op] | None
    ) -> list[ListedInstruction]:
        """Return the inputs by index; an absent one before others is an `undefined`."""
        optional = [] if cls is None else [g for g in cls.OPERANDS if g.arity == "optional"]
        if cls is None or len(optional) < 2 or cls.mnemonic == "slice":
            return self._inputs(op.operands)
        groups = cls.split_operands(op)
        while groups and not groups[-1]:
            groups.pop()
        out: list[ListedInstruction] = []
        for group in groups:
            if not group:
                absent = ListedInstruction("", "undefined")
                self._add(module, absent)
                out.append(absent)
            out += self._inputs(group)
        return out

    def _is_kernel(self, op: ir.Operation) -> bool:
        cls = op_class(op)
        if cls is None or is_a(op, Undefined):
            return False
        if is_a(op, Kernel):
            return True
        # the reference target runs views; other targets compile them away
        return not cls.REGIONS and (self.prefix == "ref" or not is_a(op, (ViewOp, HostOp)))

    def _kernel_name(self, op: ir.Operation) -> str:
        return kernel_name(op) if is_a(op, Kernel) else mnemonic(op)

    def _submodules(self, parent: Module, op: ir.Operation) -> list[Module]:
        if is_a(op, SelectModule):
            found = []
            for callee in attributes_of(op)["callees"]:
                if callee not in self.functions and callee in self.others:
                    self._function(self.others[callee], callee)
                if callee in self.functions:
                    found.append(self.functions[callee])
            return found
        pairs = zip(self._module_names(parent, op), op.regions, strict=True)
        found = [(Module(name), region.blocks[0]) for name, region in pairs if len(region.blocks)]
        # all modules of an instruction come before those nested in them
        self.modules += [module for module, _ in found]
        for (module, block), parameters in zip(found, region_parameters(op), strict=True):
            if is_a(op, PointwiseKernel):
                self.elements |= element_values(block)
            self._block(module, block, parameters)
        return [module for module, _ in found]

    def _module_names(self, parent: Module, op: ir.Operation) -> list[str]:
        found: list[str] = []
        if MODULES in op.attributes:
            found = [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes[MODULES])]
        kind, count = mnemonic(op), len(op.regions)
        ends = [""] if count == 1 else [f"_{i}" for i in range(count)]
        if kind == "if":
            ends = ["_if", "_else"]
        # names of modules are unique in a program
        while (
            len(set(found)) != count
            or not self.taken.isdisjoint(found)
            or any(p.startswith(f"{name}:") for p in self.parameters for name in found)
        ):
            key = f"{parent.name}:{kind}#"
            n = self.counters[key] = self.counters.get(key, -1) + 1
            found = [f"{parent.name}:{kind}{n}{end}" for end in ends]
        self.taken.update(found)
        return found

    def _symbols(self, op: ir.Operation) -> list[str]:
        # MIGraphX keeps a sorted set of them
        return sorted(source_names(op.location)) if self.symbols else []


def is_absent(op: ir.Operation) -> bool:
    """Return whether an operation only represents an absent input."""
    return is_a(op, Undefined) and not any(True for _ in op.result.uses)


def name_of(function: ir.Operation) -> str:
    """Return the name of a function."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def region_parameters(op: ir.Operation) -> list[list[str]]:
    """Return the parameter names of each submodule: its own, else x0, x1 ...

    MIGraphX takes a loop's parameters in their order, all others in the order of their names, and
    those of both branches together. Names with another order are not shown.
    """
    blocks = [r.blocks[0] for r in op.regions if len(r.blocks)]
    built = [_built_names(b) for b in blocks] if MODULES in op.attributes else []
    by_order = is_a(op, Loop)
    if built and all(n is not None and (by_order or n == sorted(n)) for n in built):
        named = [n for n in built if n is not None]
        if by_order or all(n == named[0] for n in named) or not is_a(op, If):
            return named
    return [[parameter_name(i) for i in range(len(b.arguments))] for b in blocks]


def element_values(block: ir.Block) -> set[ir.Value]:
    """Return the values of a pointwise module, each of which represents one element.

    The set is empty if the module has other ops than pointwise operators and broadcasts of single
    literals.
    """
    found: set[ir.Value] = set(block.arguments)
    for view in block.operations:
        op = view.operation
        found.update(op.results)
        if op.name in ("migraphx.yield", "migraphx.literal") or is_a(op, Pointwise):
            continue
        source = op.operands[0].owner if is_a(op, Multibroadcast) else None
        if source is None or not is_literal(source):
            return set()
    literals_in = (v for v in found if literals.is_literal(v))
    return found if all(TensorType.of(v).elements == 1 for v in literals_in) else set()


def _built_names(block: ir.Block) -> list[str] | None:
    """Return the user's names of a submodule's parameters, None without such names."""
    places = [a.location for a in block.arguments]
    names = [at.name_str for at in places if isinstance(at, ir.NameLoc)]
    return names if len(set(names)) == len(places) else None


def parameter_name(index: int) -> str:
    """Return the name of a kernel's parameter; names sort in MIGraphX's parameter order."""
    return f"x{index}" if index < 10 else f"x:{index:05}"


def kernel_name(op: ir.Operation) -> str:
    """Return the name of a fused kernel: its operators without views and constants, joined."""
    names = []
    for view in op.regions[0].blocks[0].operations:
        if not is_a(view, (Yield, ViewOp)) and not is_literal(view):
            names.append(mnemonic(view))
    return "_".join(names) or "copy"


def source_names(location: ir.Location) -> list[str]:
    """Return the source node names in a location, outermost first, each once."""
    found: list[str] = []
    stack = [location]
    while stack:
        at = stack.pop()
        if isinstance(at, ir.NameLoc):
            if at.name_str not in found:
                found.append(at.name_str)
        elif isinstance(at, ir.FusedLoc):
            stack += reversed(at.locations)
        elif isinstance(at, ir.CallSiteLoc):
            stack.append(at.callee)
    return found


def stated_types(i: ListedInstruction) -> list[TensorType]:
    """Return an instruction's result types if inference alone gives others, else none."""
    op = i.operation
    made = not i.op.startswith("@") and i.op != "get_tuple_elem"
    cls = op_class(op) if op is not None and made else None
    if op is None or cls is None:
        return []
    there = [TensorType.of(r) for r in op.results]
    if cls.mnemonic in ("unknown", "select_module"):
        return there if cls.mnemonic == "unknown" else []
    with op.context:
        found = cls.infer_types(cls.split_operands(op), op.attributes, list(op.regions))
    return [] if found == there else there
