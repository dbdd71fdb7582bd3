"""Makes the text forms of a program, and writes files of the driver."""

from __future__ import annotations

import io
import os
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.progress import say


def program_text(args: Arguments, program: ProgramIR, form: str, kernel_prefix: str) -> str:
    """Write the program in a form that is text. Kernels are shown under `kernel_prefix`."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.core.weight_files import weights_beside
    from mgx_mlir.printers.emit import emit as print_program

    options: dict[str, Any] = {}
    if "--enable-offload-copy" in args and kernel_prefix:
        return _with_copies(args, program, kernel_prefix)
    if form == "text":
        options["version"] = args.get("--text-version", "seed")
    if form == "graphviz":
        options["brief"] = "--brief" in args
    if form in ("text", "graphviz"):
        options["kernel_prefix"] = kernel_prefix
    path = args.get("--output")
    if form == "py" and path is not None:
        check_place(path)
        options["weights"] = weights_beside(path)
    stream = io.StringIO()
    print_program(program, stream, form, **options)
    text = stream.getvalue()
    if form == "py" and path is None and "migraphx.generate_argument(" in text:
        say("note: large literals are generated numbers; -o FILE.py writes them to FILE.py.npz")
    return text


def _with_copies(args: Arguments, program: ProgramIR, kernel_prefix: str) -> str:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.printers.listing import list_program
    from mgx_mlir.printers.text import print_listing
    from mgx_mlir.tools.driver.offload_copies import add_copies

    version = args.get("--text-version", "seed")
    listing = list_program(program, numbering=version, kernel_prefix=kernel_prefix)
    add_copies(listing, version)
    stream = io.StringIO()
    with program.store.active():
        print_listing(listing, stream, version=version)
    return stream.getvalue()


def check_place(path: str) -> None:
    """Raise FileError where a path is a directory."""
    if os.path.isdir(path):
        raise FileError("expected a file to write, got a directory", location=path)


def write_file(path: str, data: bytes) -> None:
    """Write a file under a temporary name, then rename it. FileError where that fails."""
    try:
        check_place(path)
        with atomic(path) as f:
            f.write(data)
    except OSError as e:
        raise FileError(
            f"cannot write the file: {(e.strerror or str(e)).lower()}", location=path
        ) from None
