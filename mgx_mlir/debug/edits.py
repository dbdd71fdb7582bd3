"""Edits of functions that keep them valid: add, drop and replace arguments and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.programs.taps import set_kind

_FUNCTION = "func.func"


def functions(module: ir.Module) -> list[ir.Operation]:
    """Return the functions of a module, in order."""
    return [op.operation for op in module.body.operations if op.operation.name == _FUNCTION]


def editable(module: ir.Module) -> list[ir.Operation]:
    """Return every op except the module, functions and block terminators, in order."""
    found: list[ir.Operation] = []

    def walk(op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                ops = [o.operation for o in block.operations]
                for i, inner in enumerate(ops):
                    in_module = op.name == "builtin.module"
                    ends = i == len(ops) - 1 and not len(inner.results) and not in_module
                    if inner.name not in (_FUNCTION, "builtin.module") and not ends:
                        found.append(inner)
                    walk(inner)

    walk(module.operation)
    return found


def is_used(op: ir.Operation) -> bool:
    """Return whether anything reads a result of the op."""
    return any(next(iter(r.uses), None) is not None for r in op.results)


def function_of(op: ir.Operation) -> ir.Operation | None:
    """Return the function that an op is in; a function is in itself."""
    while op is not None:
        op = op.operation
        if op.name == _FUNCTION:
            return op
        op = op.parent
    return None


def returns_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """Yield the terminators of a function's blocks."""
    for region in function.regions:
        for block in region.blocks:
            ops = list(block.operations)
            if ops and ops[-1].operation.name == "func.return":
                yield ops[-1].operation


def kind_of(function: ir.Operation) -> ir.FunctionType:
    """Return the type that a function declares."""
    return ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)


def new_argument(function: ir.Operation, kind: ir.Type) -> ir.Value:
    """Add an unnamed argument at the end."""
    block = function.regions[0].blocks[0]
    added = block.add_argument(kind, ir.Location.unknown())
    old = kind_of(function)
    set_kind(function, [*old.inputs, kind], list(old.results))
    if "arg_attrs" in function.attributes:
        entries = [*ir.ArrayAttr(function.attributes["arg_attrs"]), ir.DictAttr.get({})]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    return added


def drop_entries(function: ir.Operation, name: str, gone: Sequence[int]) -> None:
    """Remove entries of an array attribute that has one for each argument or result."""
    if name in function.attributes:
        entries = list(ir.ArrayAttr(function.attributes[name]))
        kept = [e for i, e in enumerate(entries) if i not in gone]
        function.attributes[name] = ir.ArrayAttr.get(kept)


def inline_region(op: ir.Operation) -> bool:
    """Replace an op by the ops of its first region of a matching form; return whether there is
    one.
    """
    for region in op.regions:
        if len(region.blocks) != 1 or not len(op.results):
            continue
        block = region.blocks[0]
        inner = [o.operation for o in block.operations]
        given = list(op.operands)[-len(block.arguments) :] if len(block.arguments) else []
        fits = [a.type for a in block.arguments] == [v.type for v in given]
        if fits and [v.type for v in inner[-1].operands] == [r.type for r in op.results]:
            for argument, value in zip(block.arguments, given, strict=True):
                argument.replace_all_uses_with(value)
            for o in inner[:-1]:
                o.move_before(op)
            for result, value in zip(op.results, list(inner[-1].operands), strict=True):
                result.replace_all_uses_with(value)
            op.erase()
            return True
    return False


def erase_dead(module: ir.Module) -> bool:
    """Erase every op whose results have no uses."""
    changed = False
    for op in reversed(editable(module)):
        if len(op.results) and not is_used(op):
            op.erase()
            changed = True
    return changed


def drop_unused(module: ir.Module) -> bool:
    """Drop every argument without uses."""
    changed = False
    for function in functions(module):
        block, old = function.regions[0].blocks[0], kind_of(function)
        gone = [i for i, v in enumerate(block.arguments) if next(iter(v.uses), None) is None]
        for i in reversed(gone):
            block.erase_argument(i)
        kept = [t for i, t in enumerate(old.inputs) if i not in gone]
        set_kind(function, kept, list(old.results))
        drop_entries(function, "arg_attrs", gone)
        changed |= bool(gone)
    return changed
