"""read: a model as a program, before any pass."""

from __future__ import annotations

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import FileError
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.emit import emit, form_of
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, LOADERS
from mgx_mlir.tools.driver.progress import warn, working
from mgx_mlir.tools.driver.read_model import announce, read

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
The program is printed to stdout, a line per instruction, or written to --output. Of a compiled
file that is the compiled program, with --strip-context the one that was compiled."""
OPTIONS = (*LOADERS, HELP)


def run(args: Arguments) -> int:
    """Print the model, or write it in another form."""
    model = Model(args)
    form = form_of(args)
    compiled = _compiled(model) if form in ("text", "graphviz", "netron", "mlir") else None
    if compiled is not None:
        emit(args, compiled.program, compiled=compiled)
    else:
        emit(args, read(model))
    return 0


def _compiled(model: Model) -> CompiledProgram | None:
    """Return the compiled program that a saved file holds, if it is to be shown as it is."""
    if not model.is_saved or model.is_stripped or model.is_cut or model.passes:
        return None
    try:
        with working(f"Reading {model.name}"):
            saved = model.saved(compiled=True)
    except FileError as e:
        program = model.program  # a failure here is the error
        del program
        warn(f"{e.message}; the program that was compiled is shown")
        return None
    if not saved.is_compiled():
        return None
    announce(model)
    return saved.compiled
