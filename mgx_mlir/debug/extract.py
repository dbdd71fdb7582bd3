"""Parts of a program as separate programs, and their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import Kernel, ViewOp, is_a
from mgx_mlir.debug.edits import (
    drop_unused,
    erase_dead,
    inline_region,
    kind_of,
    new_argument,
)
from mgx_mlir.debug.examine import read_values
from mgx_mlir.programs.program_ir import (
    GROUPS,
    NAME,
    ProgramIR,
    argument_attributes,
    argument_names,
    entry_block,
)
from mgx_mlir.programs.taps import set_kind, set_returned

SUFFIXES = (".mxr", ".json", ".mlir")


def alone(
    program: ProgramIR, position: int, inputs: Sequence[np.ndarray] = ()
) -> tuple[ProgramIR, dict[str, np.ndarray]]:
    """Extract one instruction of @main as a program, with the `inputs` that it reads.

    Its operands become parameters, except for constants and views of constants. A kernel becomes
    the instructions that it runs.
    """
    copy = program.clone()
    with copy.ctx, ir.Location.unknown():
        main = copy.main()
        op = [view.operation for view in entry_block(main).operations][position]
        arrays = list(inputs) or [np.zeros(0)] * len(list(read_values(op)))
        fed: list[tuple[ir.Value, np.ndarray]] = []
        for v, array in zip(list(read_values(op)), arrays, strict=True):
            if _is_constant(v):
                continue
            if not isinstance(v.owner, ir.Block):
                added = new_argument(main.operation, v.type)
                _replace_inside(op, v, added)
                v = added
            fed.append((v, array))
        _return_only(copy, op)
        if is_a(op, Kernel):
            inline_region(op)
        erase_dead(copy.module)
        named = _finished(copy, [v for v, _ in fed])
    return copy, {named[v]: array for v, array in fed if v in named and inputs}


def upto(program: ProgramIR, position: int) -> ProgramIR:
    """Cut the program after one instruction of @main, and return that instruction's results."""
    copy = program.clone()
    with copy.ctx, ir.Location.unknown():
        op = [view.operation for view in entry_block(copy.main()).operations][position]
        _return_only(copy, op)
        erase_dead(copy.module)
        _finished(copy, [])
    return copy


def _is_constant(v: ir.Value) -> bool:
    if is_literal(v):
        return True
    return is_a(v.owner, ViewOp) and all(_is_constant(x) for x in v.owner.operands)


def _replace_inside(op: ir.Operation, old: ir.Value, new: ir.Value) -> None:
    def visit(inner: ir.Operation) -> ir.WalkResult:
        for i, v in enumerate(inner.operands):
            if v == old:
                inner.operands[i] = new
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def _return_only(program: ProgramIR, op: ir.Operation) -> None:
    main = program.main()
    end = list(entry_block(main).operations)[-1].operation
    set_returned(end, list(op.results))
    kind = kind_of(main.operation)
    set_kind(main.operation, list(kind.inputs), [r.type for r in op.results])
    for name in ("res_attrs", GROUPS):
        if name in main.attributes:
            del main.attributes[name]


def _finished(program: ProgramIR, added: Sequence[ir.Value]) -> dict[ir.Value, str]:
    """Drop unused ops and arguments, and name the parameters; return the names of `added`."""
    main = program.main()
    kept = [v for v in added if next(iter(v.uses), None) is not None]
    drop_unused(program.module)
    held = argument_attributes(main)
    taken = {ir.StringAttr(d[NAME]).value for d in held if NAME in d}
    for i, d in enumerate(held):
        if NAME not in d:
            name = f"x{i}"
            while name in taken:
                name += "_"
            taken.add(name)
            d[NAME] = ir.StringAttr.get(name)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in held])
    program.prune_store()
    names: dict[ir.Value, str] = dict(
        zip(entry_block(main).arguments, argument_names(main), strict=True)
    )
    return {v: names[v] for v in kept}


# ---- files ---------------------------------------------------------------------------------------


def save_program(program: ProgramIR, path: Path) -> None:
    """Write a program as .mxr, .json or .mlir with its weights beside it. FileError."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"expected a name that ends in {', '.join(SUFFIXES)}, got '{path}'")
    if path.suffix == ".mlir":
        # not imported at start-up: only the requested format is loaded
        from mgx_mlir.debug.reduce_mlir import candidate_of

        try:
            candidate_of(program).write(path)
        except OSError as e:
            raise FileError((e.strerror or str(e)).lower(), location=str(path)) from None
        return
    # not imported at start-up: only the requested format is loaded
    from mgx_mlir.api.files import save
    from mgx_mlir.api.program import program as api_program

    save(api_program.of(program), path, "json" if path.suffix == ".json" else "msgpack")


def save_inputs(inputs: Mapping[str, np.ndarray], path: Path) -> None:
    """Write inputs as an .npz that --load-arg reads. FileError."""
    stored = {name: _storable(np.asarray(a)) for name, a in inputs.items()}
    try:
        with atomic(path) as f:
            np.savez(f, **stored)  # type: ignore[arg-type]
    except OSError as e:
        raise FileError((e.strerror or str(e)).lower(), location=str(path)) from None


def _storable(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "O":  # strings would be pickled, and --load-arg reads no pickles
        return array.astype(np.str_)
    if dtypes.is_numpys(array.dtype):
        return array
    return np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}")
