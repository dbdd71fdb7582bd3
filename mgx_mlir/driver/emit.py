"""Writes programs in the form that the options ask for, to stdout or a file."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from pathlib import Path

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.program_ir import ProgramIR
from mgx_mlir.driver.arguments import Arguments

FORMS = {"--text": "text", "--mlir": "mlir"}
SUFFIXES = {".txt": "text", ".mlir": "mlir"}


def form_of(args: Arguments, *, more: tuple[str, ...] = ()) -> str:
    """The form of the output: by its flag, else by the name of the file, else text.

    `more` are suffixes of files that the command writes itself, and its form is then the suffix.
    """
    flag = args.only_one(*FORMS)
    path = args.get("--output")
    if flag is not None:
        return FORMS[flag]
    if path is None:
        return "text"
    suffix = Path(path).suffix.lower()
    if suffix in more:
        return suffix
    if suffix not in SUFFIXES:
        known = ", ".join([*SUFFIXES, *more])
        raise UsageError(
            f"unknown output type '{suffix}' of '{path}'",
            notes=[f"expected a name that ends in {known}, or one of {', '.join(FORMS)}"],
        )
    return SUFFIXES[suffix]


def emit(args: Arguments, program: ProgramIR, *, kernel_prefix: str = "") -> None:
    """Write a program to --output, or print it."""
    text = program_text(args, program, form_of(args), kernel_prefix)
    path = args.get("--output")
    if path is None:
        sys.stdout.write(text)
    else:
        write_file(path, text.encode(errors="surrogatepass"))


def show(args: Arguments, program: ProgramIR, *, kernel_prefix: str = "") -> None:
    """Print a program in the text form."""
    sys.stdout.write(program_text(args, program, "text", kernel_prefix))


def program_text(args: Arguments, program: ProgramIR, form: str, kernel_prefix: str) -> str:
    """The program in a form. Compiled ones show kernels under `kernel_prefix`."""
    if form == "mlir":
        return program.text().rstrip("\n") + "\n"
    from mgx_mlir.printers.text import print_text

    stream = io.StringIO()
    version = args.get("--text-version", "seed")
    print_text(program, stream, version=version, kernel_prefix=kernel_prefix)
    return stream.getvalue()


def write_file(path: str, data: bytes) -> None:
    """Write a file under a temporary name, then rename it. FileError where that fails."""
    try:
        if os.path.isdir(path):
            raise FileError("expected a file to write, got a directory", location=path)
        folder = os.path.dirname(path) or "."
        with tempfile.NamedTemporaryFile("wb", dir=folder, delete=False) as f:
            try:
                f.write(data)
                os.chmod(f.name, 0o666 & ~_umask())
            except BaseException:
                os.unlink(f.name)
                raise
        os.replace(f.name, path)
    except OSError as e:
        raise FileError(
            f"cannot write the file: {(e.strerror or str(e)).lower()}", location=path
        ) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
