"""load, save, load_buffer, save_buffer: programs in MIGraphX's files, compiled ones included."""

from __future__ import annotations

import os

from mgx_mlir.api.program import program
from mgx_mlir.api.saved_code import compiled_trees, restore
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.frontends.mxr.checks import as_list, located
from mgx_mlir.frontends.mxr.reader import MxrFile, read_data, read_file
from mgx_mlir.printers.value_tree import (
    OWN_KEY,
    OWN_VERSION,
    Tree,
    json_text,
    msgpack_bytes,
    program_tree,
    save_tree,
)

FORMATS = ("msgpack", "json")


def save(p: program, filename: str | os.PathLike[str], format: str = "msgpack") -> None:
    """Write a program to a file (.mxr, or JSON with format="json").

    MIGraphX 2.16 reads it; of a compiled program it reads the program that was compiled. Raises
    FileError.
    """
    save_tree(_tree(p), filename, format)


def save_buffer(p: program, format: str = "msgpack") -> bytes:
    """A program as the bytes of a file."""
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}', expected {' or '.join(FORMATS)}")
    tree = _tree(p)
    return msgpack_bytes(tree) if format == "msgpack" else json_text(tree).encode()


def load(
    filename: str | os.PathLike[str],
    format: str | None = None,
    *,
    compiled: bool = True,
    emulate: bool = False,
    device_id: int = 0,
) -> program:
    """Read a program from a file.

    `format` None tells msgpack from JSON. A compiled program comes back compiled, without
    compiling again; `compiled=False` gives the program it was compiled from. Code for a GPU runs
    on the one of `device_id`, or with `emulate` on the emulator. A compiled file
    holds machine code that will run: load it only from where you trust. Raises FileError: damaged
    files, other versions, code for another processor or GPU.
    """
    found = read_file(filename, format)
    return _program(found, compiled, os.fspath(filename), emulate, device_id)


def load_buffer(
    data: bytes | memoryview,
    format: str | None = None,
    *,
    compiled: bool = True,
    emulate: bool = False,
    device_id: int = 0,
) -> program:
    """Read a program from the bytes of a file; as load."""
    return _program(read_data(data, format), compiled, "<buffer>", emulate, device_id)


def _tree(p: program) -> Tree:
    if not isinstance(p, program):
        raise UsageError(f"expected a program, got {type(p).__name__}")
    tree = program_tree(p.program_ir)
    if p.is_compiled():
        own = tree.setdefault(OWN_KEY, {"version": OWN_VERSION})
        own["compiled"] = compiled_trees(p, tree["modules"])
    return tree


def _program(found: MxrFile, compiled: bool, name: str, emulate: bool, device_id: int) -> program:
    made = program.of(found.program)
    try:
        entries = as_list(found.own.get("compiled"), "'compiled'")
        if compiled and entries:
            modules = found.tree["modules"]
            restore(made, entries, modules, emulate=emulate, device_id=device_id)
    except FileError as e:
        raise located(e, name) from None
    return made
