"""Reads programs from files of MLIR text."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

import numpy as np

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.core import literals, segments
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import FileError, ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.mlir_text import checked_text
from mgx_mlir.core.program_ir import ProgramIR, main_function
from mgx_mlir.frontends.files import open_regular

_WHERE = re.compile(r'loc\("[^"]*":(\d+):(\d+)\)')


def read_mlir(path: str | os.PathLike[str]) -> ProgramIR:
    """Read a module of the migraphx dialect; stored weights come from `<path>.npz`, if there.

    Raises FileError where it cannot be read or parsed, ModelError where it has no entry function.
    """
    name = os.fspath(path)
    with open(open_regular(name), "rb") as f:
        text = checked_text(f.read(), name)
    ctx = new_context()
    store = _weights(Path(f"{name}.npz"))
    with store.active():
        try:
            module = segments.parse_module(text, ctx)
        except ir.MLIRError as e:
            raise _parse_error(e, name) from None
    try:
        if not len(main_function(module).regions[0].blocks):
            raise ModelError("the entry function has no body")
    except ModelError as e:
        raise ModelError(e.message, location=name) from None
    return ProgramIR(ctx, module, store, name)


def _weights(path: Path) -> literals.WeightStore:
    store = literals.WeightStore()
    if path.exists():
        try:
            with np.load(path, allow_pickle=False) as arrays:
                for key in arrays.files:
                    store.add(arrays[key])
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as e:
            raise FileError(f"cannot read the weights: {e}", location=str(path)) from None
    return store


def _parse_error(e: ir.MLIRError, name: str) -> FileError:
    for d in e.error_diagnostics:
        m = _WHERE.match(str(d.location))
        where = f"{name}:{m[1]}:{m[2]}" if m else name
        return FileError(str(d.message).splitlines()[0], location=where)
    return FileError(str(e).splitlines()[0], location=name)
