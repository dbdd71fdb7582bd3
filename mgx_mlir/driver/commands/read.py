"""read: a model as a program, before any pass."""

from __future__ import annotations

from mgx_mlir.driver.arguments import Arguments
from mgx_mlir.driver.emit import emit, form_of
from mgx_mlir.driver.model import Model
from mgx_mlir.driver.options import HELP, LOADERS
from mgx_mlir.driver.reading import read

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
The program is printed to stdout, a line per instruction, or written to --output."""
OPTIONS = (*LOADERS, HELP)


def run(args: Arguments) -> int:
    model = Model(args)
    form_of(args)
    emit(args, read(model))
    return 0
