"""Reads programs from files of MLIR text."""

from __future__ import annotations

import os
import re

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core import literals, operand_segments
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.core.files import readable_name
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.mlir_text import checked_text
from mgx_mlir.core.parse_errors import find_fault
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.weight_files import read_weights, weights_beside
from mgx_mlir.frontends.files import open_regular
from mgx_mlir.programs.program_ir import ProgramIR, main_function

MOST_EXPANDED = 256 << 20  # bytes that expanded splat literals may take beyond the size of the text
_WHERE = re.compile(r'loc\("[^"]*":(\d+):(\d+)\)')


def read_mlir(path: str | os.PathLike[str]) -> ProgramIR:
    """Read a module of the migraphx dialect; stored weights come from `<path>.npz`, if there.

    Raises FileError if it cannot be read or parsed, ModelError if it has no entry function.
    """
    name = os.fspath(path)
    with open(open_regular(name, "an MLIR file"), "rb") as f:
        text = checked_text(f.read(), name)
    ctx = new_context()
    store = _weights(weights_beside(name))
    with store.active():
        try:
            module = operand_segments.parse_module(text, ctx)
        except ir.MLIRError as e:
            raise _parse_error(e, name, text) from None
    try:
        _check_literals(module, len(text))
        if not len(main_function(module).regions[0].blocks):
            raise ModelError("the entry function has no body")
    except ModelError as e:
        raise ModelError(e.message, location=name) from None
    return ProgramIR(ctx, module, store, readable_name(name))


def _check_literals(module: ir.Module, length: int) -> None:
    """Raise ModelError if the constants of a short text expand to far more memory than its size."""
    total = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal total
        if is_literal(op) and "value" in op.attributes:
            t = TensorType.of(op.result)
            total += t.elements * t.dtype.size
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if total > MOST_EXPANDED + 8 * length:
        raise ModelError(f"the literals of the module take {total} bytes, far more than the file")


def _weights(path: str) -> literals.WeightStore:
    """Return the weights beside a file, by the keys in its literals or by digest."""
    store = literals.WeightStore()
    if os.path.lexists(path):
        found = read_weights(path)
        for key, array in found.items():
            stored = literals.own(array)
            store.put(key, stored)
            store.add(stored)
    return store


def _parse_error(e: ir.MLIRError, name: str, text: str) -> FileError:
    for d in e.error_diagnostics:
        m = _WHERE.match(str(d.location))
        where = f"{name}:{m[1]}:{m[2]}" if m else name
        return FileError(str(d.message).splitlines()[0], location=where)
    fault = find_fault(text)
    if fault is None:
        return FileError(str(e).splitlines()[0], location=name)
    where = f"{name}:{fault.line}:{fault.column}" if fault.line else name
    return FileError(fault.message, location=where, notes=[*fault.notes])
