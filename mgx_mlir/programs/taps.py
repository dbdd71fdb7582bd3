"""Programs with additional results: chosen inner values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.programs.program_ir import (
    GROUPS,
    NAME,
    ProgramIR,
    entry_block,
    result_attributes,
    result_names,
)

NamedValues = Callable[[ir.Block], Sequence[tuple[str, ir.Value]]]


def with_results(program: ProgramIR, choose: NamedValues) -> ProgramIR:
    """Copy the program; its @main also returns the values of its block that `choose` selects.

    They follow its own results, in order. Lists and optionals of the interface become arrays.
    `choose` may build ops before the terminator.
    """
    copy = program.clone()
    with copy.ctx, copy.store.active(), ir.Location.unknown():
        main = copy.main()
        block = entry_block(main)
        added = list(choose(block))
        end = [view.operation for view in block.operations][-1]
        held = [
            {**d, NAME: ir.StringAttr.get(name)}
            for d, name in zip(result_attributes(main), result_names(main), strict=True)
        ]
        own = {ir.StringAttr(d[NAME]).value for d in held}
        held += [{NAME: ir.StringAttr.get(_unused(name, own))} for name, _ in added]
        kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        set_returned(end, [*end.operands, *(v for _, v in added)])
        set_kind(main, list(kind.inputs), [*kind.results, *(v.type for _, v in added)])
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in held])
        if GROUPS in main.attributes:
            del main.attributes[GROUPS]
    return copy


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def set_kind(
    function: ir.Operation | ir.OpView, inputs: list[ir.Type], results: list[ir.Type]
) -> None:
    """Set the function's type to its block's arguments and results."""
    kind = ir.FunctionType.get(inputs, results)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)


def set_returned(end: ir.Operation, values: Sequence[ir.Value]) -> None:
    """Replace the values that a function returns."""
    added = ir.Operation.create(
        "func.return", operands=list(values), loc=end.location, ip=ir.InsertionPoint(end)
    )
    for name in end.attributes:
        added.attributes[name] = end.attributes[name]
    end.erase()
