"""Writes a program in any format: a format's name, a program and a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, TextIO

from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR

FORMATS = ("text", "json", "binary", "cpp", "py", "graphviz", "netron", "mlir")


def emit(program: ProgramIR, stream: IO[Any], format: str = "text", **options: Any) -> None:
    """Write `program` in one of FORMATS.

    `stream` takes text, for "binary" and "netron" bytes. Options are those of the printer: text
    `version`, `symbols`, `kernel_prefix`; graphviz `brief`, `kernel_prefix`; netron
    `kernel_prefix`. Raises UsageError.
    """
    _printer(format)(program, stream, **options)


def _printer(format: str) -> Callable[..., None]:
    if format == "text":
        # not imported at start-up: only the requested printer is loaded
        from mgx_mlir.printers.text import print_text as found
    elif format == "json":
        # not imported at start-up: only the requested printer is loaded
        from mgx_mlir.printers.value_tree import print_json as found
    elif format == "binary":
        # not imported at start-up: only the requested printer is loaded
        from mgx_mlir.printers.value_tree import print_binary as found
    elif format == "cpp":
        # not imported at start-up: only the requested printer is loaded
        from mgx_mlir.printers.cpp import print_cpp as found
    elif format == "py":
        # not imported at start-up: only the requested printer is loaded
        from mgx_mlir.printers.python import print_python as found
    elif format == "graphviz":
        # not imported at start-up: only the requested printer is loaded
        from mgx_mlir.printers.dot import print_dot as found
    elif format == "netron":
        # start-up: only the printer that is asked for
        from mgx_mlir.printers.netron import print_netron as found
    elif format == "mlir":
        return _print_mlir
    else:
        raise UsageError(f"unknown format '{format}'", notes=[f"known: {', '.join(FORMATS)}"])
    return found


def _print_mlir(program: ProgramIR, stream: TextIO) -> None:
    stream.write(program.text() + "\n")
