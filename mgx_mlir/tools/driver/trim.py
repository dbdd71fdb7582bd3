"""Shortening of programs when they are read: --trim, --trim-size and --replace-literals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.debug.edits import drop_unused, kind_of, new_argument
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.listing import list_program
from mgx_mlir.programs.module_builder import IMPLICIT_RETURN
from mgx_mlir.programs.program_ir import NAME, ProgramIR, argument_names, entry_block
from mgx_mlir.programs.taps import set_kind, set_returned


def trim(program: ProgramIR, count: int, size: int = 0) -> None:
    """Drop the last `count` instructions of main; the one before them is then its result.

    With `size` only that number of operations before the cut stays: constants that they read stay
    too, and everything else is a parameter x0, x1, ... UsageError where nothing is left.
    """
    with program.ctx, ir.Location.unknown(), program.store.active():
        lines = list(list_program(program).main.visible())
        if count >= len(lines):
            raise UsageError(
                f"option '--trim' expected less than the program's {len(lines)} instructions, "
                f"got {count}"
            )
        left = lines[: len(lines) - count]
        main = program.main().operation
        _return(main, list(left[-1].values))
        if size:
            _keep_last(main, _operations(left), size)
        _erase(
            entry_block(program.main()), {op for i in lines[len(left) :] for op in _own(i, left)}
        )
        if size:
            _erase_dead(entry_block(program.main()))
            drop_unused(program.module)
    program.prune_store()


def _operations(lines: Sequence[ListedInstruction]) -> list[ir.Operation]:
    """Return the operations of instructions that compute, in order, each once."""
    found = dict.fromkeys(
        i.operation for i in lines if i.operation is not None and not i.is_literal
    )
    return [op for op in found if len(op.results)]


def _own(line: ListedInstruction, left: Sequence[ListedInstruction]) -> list[ir.Operation]:
    """Return the operation that goes with an instruction, unless a remaining one stands for it."""
    op = line.operation
    kept = {i.operation for i in left if i.operation is not None}
    if op is None or not len(op.results) or op in kept:
        return []
    return [op]


def _return(main: ir.Operation, values: list[ir.Value]) -> None:
    """Make main return these values, which have no user's names."""
    block = main.regions[0].blocks[0]
    end = list(block.operations)[-1].operation
    set_returned(end, values)
    end = list(block.operations)[-1].operation
    end.attributes[IMPLICIT_RETURN] = ir.UnitAttr.get()
    set_kind(main, list(kind_of(main).inputs), [v.type for v in values])
    if "res_attrs" in main.attributes:
        del main.attributes["res_attrs"]


def _keep_last(main: ir.Operation, operations: list[ir.Operation], size: int) -> None:
    """Make parameters of what the last operations read from outside of them."""
    kept = operations[-size:]
    made: dict[ir.Value, ir.Value] = {}
    for op in kept:
        for inner in _nested(op):
            for i, v in enumerate(inner.operands):
                if not _is_outside(v, main, kept):
                    continue
                if v not in made:
                    # main's own parameters are gone in the end, their names are free
                    made[v] = _parameter(main, v.type, f"x{len(made)}", rename=False)
                inner.operands[i] = made[v]


def _is_outside(v: ir.Value, main: ir.Operation, kept: Sequence[ir.Operation]) -> bool:
    owner = v.owner
    if isinstance(owner, ir.Block):
        return owner == main.regions[0].blocks[0]
    owner = owner.operation
    top = owner.parent.operation == main
    return top and not is_literal(owner) and owner not in kept


def _nested(op: ir.Operation) -> Iterator[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return iter(found)


def _parameter(main: ir.Operation, kind: ir.Type, name: str, *, rename: bool = True) -> ir.Value:
    """Add a parameter to main; `rename`: underscores are added to a name that is taken."""
    view = main.opview
    taken = argument_names(view)
    while rename and name in taken:
        name += "_"
    if "arg_attrs" not in main.attributes:
        named = [ir.DictAttr.get({NAME: ir.StringAttr.get(n)}) for n in taken]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(named)
    value = new_argument(main, kind)
    entries = list(ir.ArrayAttr(main.attributes["arg_attrs"]))
    entries[-1] = ir.DictAttr.get({NAME: ir.StringAttr.get(name)})
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    return value


def _erase(block: ir.Block, gone: set[ir.Operation]) -> None:
    for view in reversed(list(block.operations)):
        if view.operation in gone:
            view.operation.erase()


def _erase_dead(block: ir.Block) -> None:
    for view in reversed(list(block.operations)[:-1]):
        if not any(True for r in view.operation.results for _ in r.uses):
            view.operation.erase()


def replace_literals(program: ProgramIR) -> None:
    """Make parameters literal:0, literal:1, ... of main's literals."""
    with program.ctx, ir.Location.unknown():
        main = program.main().operation
        block = main.regions[0].blocks[0]
        literals = [v.operation for v in block.operations if is_literal(v)]
        for n, op in enumerate(literals):
            made = _parameter(main, op.result.type, f"literal:{n}")
            op.result.replace_all_uses_with(made)
            op.erase()
    program.prune_store()
