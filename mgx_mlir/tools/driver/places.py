"""Checks of output files before any long work."""

from __future__ import annotations

import os

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import written_in_place
from mgx_mlir.tools.driver.arguments import Arguments

WRITTEN = ("--output", "--trace", "--minimal", "--save-outputs")


def check_places(args: Arguments) -> None:
    """Raise FileError for a file to write whose folder is missing, or that is a folder itself."""
    for flag in WRITTEN:
        path = args.get(flag)
        if path is not None:
            _check_written(path)


def _check_written(path: str) -> None:
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise FileError("expected a file to write, got a directory", location=path)
    if written_in_place(path):
        return  # /dev/null: no file can be made in its folder
    if not os.path.exists(folder):
        why = "no such file or directory"
    elif not os.path.isdir(folder):
        why = "not a directory"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why = "permission denied"
    else:
        return
    raise FileError(f"cannot write the file: {why}", location=path)
