"""Separation of kernels from the functions that launch them, in the compile worker.

A module with kernels as flow.executable is split. Each kernel becomes text with an explicit
interface (a binding per tensor, two 32-bit constants per index), by which equal kernels are found.
The host module keeps the launches. Libraries of kernels are compiled separately, in any order, and
inserted into the host module as bytes. IREE has no form of a precompiled CPU executable. Its ROCm
back end passes the bytes of an external variant through, under the format that the variant names,
so the host module uses that (docs/design/37-kernels-apart.md). worker_host.py compiles both.

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

# an external variant names its own format
_EXTERNAL_BACKEND = "rocm"
LIBRARY, _VARIANT = "kernels_of_library_", "cpu"
_ALIGNMENT = 16  # bytes, of every binding: offsets inside of allocations are multiples of it
_MAX_EXTENT = (1 << 56) - 1  # elements of a dim; a bound lets IREE divide unsigned
_SIMPLER = "builtin.module(flow.executable(builtin.module(func.func(canonicalize,cse))))"
_HAS_BLOB = "dense_resource<"  # a constant in the module's resource section
_FROM_SLICE = "iree_tensor_ext.dispatch.workgroup_count_from_slice"
# address space of an input's buffer until kernels have their tiles; IREE's own space is dropped
# before that phase, and stated again behind it
INPUT, _SPACE = "mgx.input", "#hal.descriptor_type<storage_buffer>"
CONFIGURED, TARGETS = "executable-configurations", "executable-targets"  # IREE's phases
# IREE's prefix of kernel names: function and dispatch number
_PLACE = re.compile(r"^.*?dispatch_\d+_?")
NAME = "kernel"  # in the text whose digest is the kernel's key
APART = "mgx.apart"  # name of a kernel that the module leaves out


@dataclass(frozen=True)
class Kernel:
    """A kernel with a stated interface."""

    key: str  # digest of the text
    text: str  # func.func @kernel, without locations
    layout: str  # hal.pipeline.layout of its bindings and constants


class NotApart(Exception):
    """A module or kernel cannot be separated; the message is the reason."""


def bindings() -> Any:
    """Return IREE's MLIR bindings, of which the wheel ships no stub."""
    from iree.compiler import ir  # the parent of the worker needs none

    return ir


def _pass_manager() -> Any:
    """Return the class of IREE's pass managers."""
    passes: Any = importlib.import_module("iree.compiler.passmanager")
    return passes.PassManager


# ------------------------------------------------------------------------------- one kernel


def _op(ir: Any, name: str, results: Sequence[Any], operands: Sequence[Any], **attributes: Any):
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=attributes
    )


def _access(t: str) -> str | None:
    """Return the access of a binding's type, or None for another type."""
    head = "!iree_tensor_ext.dispatch.tensor<"
    return t[len(head) :].partition(":")[0] if t.startswith(head) else None


def _layout(accesses: Sequence[str], constants: int) -> str:
    each = (
        "#hal.pipeline.binding<storage_buffer, "
        + ('"ReadOnly|Indirect">' if a == "readonly" else "Indirect>")
        for a in accesses
    )
    many = f"constants = {constants}, " if constants else ""
    return f"#hal.pipeline.layout<{many}bindings = [{', '.join(each)}], flags = Indirect>"


def walk(ir: Any, op: Any, names: Collection[str]) -> list[Any]:
    found = []

    def visit(inner: Any) -> Any:
        if inner.name in names:
            found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def settle(ir: Any, module: Any) -> None:
    """Give the buffers of inputs IREE's address space."""
    with module.context:
        for op in walk(ir, module, ["bufferization.to_buffer"]):
            kind = str(op.results[0].type).replace(f'"{INPUT}"', _SPACE)
            op.results[0].set_type(ir.Type.parse(kind))


def _functions(executable: Any) -> list[Any]:
    """Return the functions of a flow.executable."""
    module = next(
        o.operation
        for o in executable.regions[0].blocks[0].operations
        if o.operation.name == "builtin.module"
    )
    return [o.operation for o in module.regions[0].blocks[0].operations]


def _layout_of(executable: Any) -> str:
    """Return the layout of a kernel that a flow.executable leaves out."""
    arguments = _functions(executable)[0].regions[0].blocks[0].arguments
    types = [str(a.type) for a in arguments]
    accesses = [a for a in map(_access, types) if a is not None]
    return _layout(accesses, 2 * types.count("index"))


def kernel_of(ir: Any, executable: Any, *, counted: bool = False) -> Kernel:
    """Turn a flow.executable's function into one with a stated interface, in place.

    counted: code generation counts the workgroups, which must depend on no argument.
    Errors: NotApart.
    """
    functions = _functions(executable)
    if len(functions) != 1:
        raise NotApart(f"{len(functions)} functions")
    function = functions[0]
    entry = function.regions[0].blocks[0]
    arguments = list(entry.arguments)
    types = [str(a.type) for a in arguments]
    accesses = [a for a in map(_access, types) if a is not None]
    others = [t for t in types if _access(t) is None and t != "index"]
    if others:
        raise NotApart(f"an argument of type {others[0]}")
    layout = _layout(accesses, 2 * types.count("index"))
    with executable.context, ir.Location.unknown():
        _Interface(ir, entry, layout).replace(arguments, types)
        _store_bytes(ir, function)
        for op in walk(ir, function, [f"flow.dispatch.workgroup.{k}" for k in ("id", "count")]):
            with ir.InsertionPoint(op):
                name = op.name.replace("flow.dispatch", "hal.interface")
                made = _op(ir, name, [op.results[0].type], [], dimension=op.attributes["dimension"])
            op.results[0].replace_all_uses_with(made.results[0])
            op.erase()
        for i in reversed(range(len(arguments))):
            entry.erase_argument(i)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
        function.attributes["sym_name"] = ir.StringAttr.get(NAME)
    text = function.get_asm(enable_debug_info=False, use_local_scope=True)
    if _HAS_BLOB in text:
        raise NotApart("a constant in the resource section")
    # launches of one export have one count of workgroups
    export = executable.regions[0].blocks[0].operations[0].operation
    count = "\n".join(
        o.get_asm(enable_debug_info=False, use_local_scope=True)
        for o in export.regions[0].blocks[0].operations
    )
    key = hashlib.blake2b("\n".join((layout, count, text)).encode(), digest_size=20).hexdigest()
    if counted:
        inner = export.regions[0].blocks[0]
        slices = [o.operation.name == _FROM_SLICE for o in inner.operations]
        if len(inner.arguments) or slices != [True, False]:
            raise NotApart("a count of workgroups that depends on arguments")
        # profilers show this name: IREE's, without the prefix
        name = ir.StringAttr(export.attributes["sym_name"]).value
        key = f"{key}_{_PLACE.sub('', name)}"
    return Kernel(key, text, layout)


def _bytes_of(ir: Any, kind: Any) -> Any | None:
    """Return the type of a binding or tensor of i1 with a byte for each element, else None."""
    found, count = re.subn(r"([<x])i1(?=[>,])", r"\1i8", str(kind))
    return ir.Type.parse(found) if count else None


def _store_bytes(ir: Any, function: Any) -> None:
    """Load and store tensors of i1 as bytes: IREE's own phase that does so comes later."""
    names = [f"iree_tensor_ext.dispatch.tensor.{name}" for name in ("load", "store")]
    for op in walk(ir, function, [*names, "hal.interface.binding.subspan"]):
        is_store = op.name.endswith("store")
        value = op.operands[0] if is_store else op.results[0]
        narrow, wide = value.type, _bytes_of(ir, value.type)
        if wide is None:
            continue
        if is_store:
            with ir.InsertionPoint(op):
                op.operands[0] = _op(ir, "arith.extui", [wide], [value]).results[0]
            continue
        value.set_type(wide)
        if op.name.endswith("load"):
            with ir.InsertionPoint.after(op):
                made = _op(ir, "arith.trunci", [narrow], [value])
            value.replace_all_uses_except(made.results[0], made)


class _Interface:
    """Builder of the reads of a kernel's bindings and constants, at the start of its block."""

    def __init__(self, ir: Any, entry: Any, layout: str) -> None:
        self.ir, self.entry = ir, entry
        self.layout = ir.Attribute.parse(layout)
        self.index = ir.IndexType.get()
        self.wide = ir.IntegerType.get_signless(64)
        self.narrow = ir.IntegerType.get_signless(32)
        with ir.InsertionPoint.at_block_begin(entry):
            self.zero = self._constant(0, self.index)
            self.half = self._constant(32, self.wide)
        # everything else is inserted before the kernel's first op
        self.first = list(entry.operations)[2]

    def _constant(self, n: int, kind: Any) -> Any:
        value = self.ir.IntegerAttr.get(kind, n)
        return _op(self.ir, "arith.constant", [kind], [], value=value).results[0]

    def replace(self, arguments: Sequence[Any], types: Sequence[str]) -> None:
        """Replace each argument by its read."""
        constants = bindings = 0
        for argument, t in zip(arguments, types, strict=True):
            access = _access(t)
            if access is None:
                is_extent = any(
                    u.owner.name == "flow.dispatch.tie_shape" for u in argument.uses
                ) or any(u.owner.name.endswith("workload.ordinal") for u in argument.uses)
                with self.ir.InsertionPoint(self.first):
                    argument.replace_all_uses_with(self._scalar(constants, is_extent=is_extent))
                constants += 2
            else:
                self._binding(argument, bindings, access)
                bindings += 1

    def _scalar(self, at: int, *, is_extent: bool) -> Any:
        ir = self.ir
        low, high = (
            _op(
                ir, "arith.extui", [self.wide],
                [_op(ir, "hal.interface.constant.load", [self.narrow], [], layout=self.layout,
                     ordinal=ir.IntegerAttr.get(self.index, at + i)).results[0]],
            ).results[0]
            for i in (0, 1)
        )  # fmt: skip
        upper = _op(ir, "arith.shli", [self.wide], [high, self.half]).results[0]
        whole = _op(ir, "arith.ori", [self.wide], [low, upper]).results[0]
        value = _op(ir, "arith.index_castui", [self.index], [whole]).results[0]
        if not is_extent:
            return value
        bound = ir.Attribute.parse(f"[[#util.int.assumption<umin = 0, umax = {_MAX_EXTENT}>]]")
        return _op(ir, "util.assume.int", [self.index], [value], assumptions=bound).results[0]

    def _binding(self, argument: Any, number: int, access: str) -> None:
        whole = None
        for use in list(argument.uses):
            user = use.owner.operation
            if user.name == "flow.dispatch.tie_shape":
                with self.ir.InsertionPoint(user):
                    made = self._subspan(argument.type, number, access, list(user.operands)[1:])
                user.results[0].replace_all_uses_with(made)
                user.erase()
            elif whole is None:
                with self.ir.InsertionPoint(self.first):
                    whole = self._subspan(argument.type, number, access, [])
        if whole is not None:
            argument.replace_all_uses_with(whole)

    def _subspan(self, kind: Any, number: int, access: str, dims: Sequence[Any]) -> Any:
        ir = self.ir
        return _op(
            ir,
            "hal.interface.binding.subspan",
            [kind],
            [self.zero, *dims],
            layout=self.layout,
            binding=ir.IntegerAttr.get(self.index, number),
            alignment=ir.IntegerAttr.get(self.index, _ALIGNMENT),
            # 1: read only, 2: indirect, through a binding table
            descriptor_flags=ir.IntegerAttr.get(self.narrow, 3 if access == "readonly" else 2),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, len(dims)]),
        ).results[0]


# ------------------------------------------------------------------------------ the library


def exported(key: str) -> str:
    """Return the name of a kernel in its library, by which the runtime finds it."""
    return f"k{key}"


def library_text(kernels: Sequence[Kernel], resources: str, *, counted: bool = False) -> str:
    """Return a module of one executable with all of these kernels, in order.

    resources: the host module's stream.resources, or an empty string. counted: code generation
    counts workgroups.
    """
    counts = f"%x, %y, %z = {_FROM_SLICE}()" if counted else "%x = arith.constant 1 : index"
    returned = "%x, %y, %z" if counted else "%x, %x, %x"
    exports, functions = [], []
    for i, k in enumerate(kernels):
        name = exported(k.key)
        exports.append(
            f"hal.executable.export public @{name} ordinal({i}) layout({k.layout}) "
            "count(%d: !hal.device) -> (index, index, index) {\n"
            f"{counts}\nhal.return {returned} : index, index, index\n}}"
        )
        functions.append(k.text.replace(f"func.func @{NAME}(", f"func.func @{name}(", 1))
    head = f"module attributes {{stream.resources = {resources}}} {{" if resources else "module {"
    body = "\n".join(exports)
    return (
        f"{head}\nhal.executable.source public @kernels {{\n{body}\nbuiltin.module {{\n"
        + "\n".join(functions)
        + "\n}\n}\n}\n"
    )


# ---------------------------------------------------------------------------- the host module


def _call(name: str, argument: Any, *given: Any) -> Any:
    """Call a function of IREE's compiler that its bindings lack."""
    from iree.compiler.api import ctypes_dl

    call = getattr(ctypes_dl._dylib, name)
    call.argtypes = [ctypes.c_void_p, *(type(g) for g in given)]
    return call(argument, *given)


class Stage:
    """A compile that stops between phases. Use `close` at its end."""

    def __init__(self, source: bytes, flags: Sequence[str], *, verify: bool) -> None:
        """Read a module. Errors: ValueError for flags that a session does not know."""
        from iree.compiler.api import Session, Source

        self.session = Session()
        self.session.set_flags(*flags)
        data = source if source[:4] == b"ML\xefR" else source + b"\0"
        self.source = Source.wrap_buffer(self.session, data, buffer_name="input.mlir")
        self.invocation = self.session.invocation()
        self.invocation.enable_console_diagnostics()
        if not verify:
            _call("ireeCompilerInvocationSetVerifyIR", self.invocation._inv_p, ctypes.c_bool(False))
        self.module: Any = None
        self.read = bool(self.invocation.parse_source(self.source))
        self.has_inputs = INPUT.encode() in source
        if self.read:
            self.module = self.invocation.export_module()

    def run(self, start: str, end: str) -> bool:
        """Run IREE's phases after `start` up to and including `end`; an empty `start` means
        from the first.
        """
        if end == TARGETS and self.has_inputs:
            self.has_inputs = False
            if not self.run(start, CONFIGURED):
                return False
            settle(bindings(), self.module)
            start = CONFIGURED
        self.invocation.import_module(self.module)
        pointer = self.invocation._inv_p
        for which, phase in (("From", start), ("To", end)):
            if phase:
                name = f"ireeCompilerInvocationSetCompile{which}Phase"
                _call(name, pointer, ctypes.c_char_p(phase.encode()))
        return bool(self.invocation.execute())

    def close(self) -> None:
        """Free the invocation, then the module, then their context."""
        self.invocation.close()
        self.invocation._retained_module_op = None
        self.module = None
        self.source.close()
        self.session.close()


class Program:
    """A module to be split: `split` extracts its kernels, `host` returns the functions that
    launch them.
    """

    def __init__(self, source: bytes, context: Any) -> None:
        """Read a module. Errors: what the bindings raise for text that is no valid module."""
        ir = bindings()

        self._context = context
        with context:
            self.module = ir.Module.parse(source).operation
        self.kernels: dict[str, Kernel] = {}
        self.left_out: dict[str, str] = {}  # names, in all programs, of kernels that are not here
        self._layouts: dict[str, str] = {}
        self._exports: dict[str, Any] = {}  # flow.executable of each, with its workgroup count
        self.resources = ""  # stream.resources, which cannot parse its own output

    def split(self, *, counted: bool = False) -> None:
        """Extract the kernels of the module. counted: see `kernel_of`."""
        self._counted = counted
        ir = bindings()

        kept = ir.Module.create(ir.Location.unknown(self._context))
        self._kept = kept
        blocks = [op.operation for op in self.module.regions[0].blocks[0].operations]
        found: list[tuple[Any, Any]] = []
        with ir.InsertionPoint(kept.body):
            found += [(op, op.clone()) for op in blocks if op.name == "flow.executable"]
        with self._context:
            # normalises kernels that differ only in form
            _pass_manager().parse(_SIMPLER).run(kept.operation)
        for op, copy in found:
            if APART in op.attributes:
                name = ir.StringAttr(op.attributes["sym_name"]).value
                self.left_out[name] = ir.StringAttr(op.attributes[APART]).value
                self._layouts[name], self._exports[name] = _layout_of(copy), copy
                op.erase()
                continue
            try:
                kernel = kernel_of(ir, copy, counted=counted)
            except NotApart:
                copy.erase()
                continue  # compiled with the host module, as all of IREE's own kernels
            name = ir.StringAttr(op.attributes["sym_name"]).value
            self.kernels[name], self._exports[name] = kernel, copy
            self._layouts[name] = kernel.layout
            op.erase()
        attributes = self.module.attributes
        if "stream.resources" in attributes:
            text = str(attributes["stream.resources"])
            for n, word in (("0", "false"), ("1", "true")):
                text = text.replace(f"mutable_bindings = {n},", f"mutable_bindings = {word},")
            self.resources = text
            del attributes["stream.resources"]

    def host(
        self, places: dict[str, tuple[int, int]], formats: Sequence[str], keys: dict[str, str]
    ) -> bytes:
        """Return the host functions.

        places: the library of each kernel, and its number in it. keys: those of the kernels.
        """
        ir = bindings()

        with self._context, ir.Location.unknown():
            blocks = self._libraries(ir, formats)
            # one export for equal kernels, as IREE merges equal launches of one export only
            first: dict[str, str] = {}
            for name, (library, ordinal) in places.items():
                if first.setdefault(keys[name], name) == name:
                    self._export(ir, name, ordinal, blocks[library])
            for op in walk(ir, self.module, ["flow.dispatch"]):
                entry = str(op.attributes["entry_points"]).strip("[]@").partition("::")[0]
                if entry in places:
                    name = first[keys[entry]]
                    self._launch(ir, op, f"@{LIBRARY}{places[entry][0]}::@{_VARIANT}::@{name}")
        buffer = io.BytesIO()
        self.module.write_bytecode(buffer)
        return buffer.getvalue()

    def _libraries(self, ir: Any, formats: Sequence[str]) -> list[Any]:
        """Build an executable for each library, and return the blocks for their exports."""
        found = []
        private = ir.StringAttr.get("private")
        with ir.InsertionPoint.at_block_begin(self.module.regions[0].blocks[0]):
            for i, format_ in enumerate(formats):
                name = f"{LIBRARY}{i}"
                # the path differs, as IREE merges executables that differ only in names
                made = ir.Operation.parse(
                    f"hal.executable private @{name} {{"
                    f" hal.executable.variant public @{_VARIANT}"
                    f' target(<"{_EXTERNAL_BACKEND}", "{format_}">)'
                    " objects([#hal.executable.object<"
                    f'{{path = "{name}.so", data = dense<0> : vector<1xi8>}}>]) {{ }} }}'
                )
                ir.InsertionPoint.current.insert(made)
                made.operation.attributes["sym_visibility"] = private
                found.append(
                    made.operation.regions[0].blocks[0].operations[0].operation.regions[0].blocks[0]
                )
        return found

    def _export(self, ir: Any, name: str, ordinal: int, block: Any) -> None:
        """Build the export of a kernel: its interface, and its count of workgroups."""
        old = next(
            o.operation
            for o in self._exports[name].regions[0].blocks[0].operations
            if o.operation.name == "flow.executable.export"
        )
        index = ir.IndexType.get()
        with ir.InsertionPoint.at_block_begin(block):
            made = ir.Operation.create(
                "hal.executable.export",
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("public"),
                    "ordinal": ir.IntegerAttr.get(index, ordinal),
                    "layout": ir.Attribute.parse(self._layouts[name]),
                },
                regions=2,
            )
        if self._counted:
            count_workgroups(
                ir, made.regions[0].blocks.append(ir.Type.parse("!hal.device")), (1, 1, 1)
            )
            return
        source = old.regions[0].blocks[0]
        device = ir.Type.parse("!hal.device")
        count = made.regions[0].blocks.append(device, *[a.type for a in source.arguments])
        for given, taken in zip(source.arguments, list(count.arguments)[1:], strict=True):
            given.replace_all_uses_with(taken)
        for inner in list(source.operations):
            count.append(inner)
        end = list(count.operations)[-1].operation
        with ir.InsertionPoint(end):
            ir.Operation.create("hal.return", operands=list(end.operands))
        end.erase()

    def _launch(self, ir: Any, op: Any, target: str) -> None:
        """Rewrite a launch for an external kernel, which takes indices as two 32-bit numbers."""
        segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = list(op.operands)
        first = segments[0]
        arguments = operands[first : first + segments[1]]
        index, wide = ir.IndexType.get(), ir.IntegerType.get_signless(64)
        narrow = ir.IntegerType.get_signless(32)
        given, shift = [], 0
        with ir.InsertionPoint(op):
            for a in arguments:
                if a.type != index:
                    given.append(a)
                    continue
                shift += 1
                whole = _op(ir, "arith.index_castui", [wide], [a]).results[0]
                half = _op(
                    ir, "arith.constant", [wide], [], value=ir.IntegerAttr.get(wide, 32)
                ).results[0]
                upper = _op(ir, "arith.shrui", [wide], [whole, half]).results[0]
                given += [
                    _op(ir, "arith.trunci", [narrow], [part]).results[0] for part in (whole, upper)
                ]
            attributes = {
                "entry_points": ir.Attribute.parse(f"[{target}]"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                    [segments[0], len(given), *segments[2:]]
                ),
            }
            if "tied_operands" in op.attributes:
                # relative to the first argument; -1: no operand
                each = [
                    ir.IntegerAttr(a).value for a in ir.ArrayAttr(op.attributes["tied_operands"])
                ]
                attributes["tied_operands"] = ir.ArrayAttr.get(
                    [ir.IntegerAttr.get(index, e + shift if e >= 0 else e) for e in each]
                )
            made = ir.Operation.create(
                "flow.dispatch",
                results=[r.type for r in op.results],
                operands=[*operands[:first], *given, *operands[first + segments[1] :]],
                attributes=attributes,
            )
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def count_workgroups(ir: Any, block: Any, count: Sequence[int]) -> None:
    """Build the region of an export that counts its workgroups."""
    index = ir.IndexType.get()
    for o in reversed([o.operation for o in block.operations]):
        o.erase()
    with ir.InsertionPoint(block):
        numbers = [
            _op(ir, "arith.constant", [index], [], value=ir.IntegerAttr.get(index, n)).results[0]
            for n in count
        ]
        ir.Operation.create("hal.return", operands=numbers)


__all__ = [
    "LIBRARY",
    "Kernel",
    "NotApart",
    "Program",
    "Stage",
    "bindings",
    "count_workgroups",
    "exported",
    "library_text",
    "walk",
]
