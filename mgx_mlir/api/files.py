"""load, save, load_buffer, save_buffer: programs in MIGraphX's files, compiled ones included."""

from __future__ import annotations

import os

from mgx_mlir.api.program import program
from mgx_mlir.api.saved_code import compiled_trees, holds_code, restore
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
_REFUSED = "trust_code is off"
_TRUST = (
    "load(.., trust_code=True) runs it (mgx-driver: --trust-code)",
    "compiled=False leaves it out (mgx-driver: --strip-context)",
)


def save(p: program, filename: str | os.PathLike[str], format: str = "msgpack") -> None:
    """Write a program to a file (.mxr, or JSON with format="json").

    MIGraphX 2.16 reads it; of a compiled program it reads the program that was compiled. Raises
    FileError.
    """
    save_tree(_tree(p), filename, format)


def save_buffer(p: program, format: str = "msgpack") -> bytes:
    """Serialize a program to the bytes of a file."""
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
    trust_code: bool | None = None,
) -> program:
    """Read a program from a file.

    `format` None tells msgpack from JSON. A compiled program comes back compiled, without
    compiling again; `compiled=False` gives the program it was compiled from. Code for a GPU runs
    on the one of `device_id`, or with `emulate` on the emulator.

    A compiled file holds machine code that will run. `trust_code` None takes it where the file
    belongs to this user or to root, and not everybody may write to it; True takes it from any file,
    False from none. Raises FileError: code that is not trusted, damaged files, other versions, code
    for another processor or GPU.
    """
    found = read_file(filename, format)
    doubt = found.doubt if trust_code is None else "" if trust_code else _REFUSED
    return _program(found, compiled, os.fspath(filename), emulate, device_id, doubt)


def load_buffer(
    b: bytes | bytearray | memoryview,
    format: str | None = None,
    *,
    compiled: bool = True,
    emulate: bool = False,
    device_id: int = 0,
    trust_code: bool = True,
) -> program:
    """Read a program from the bytes `b` of a file; as load. A buffer that can change is copied.

    Bytes have no owner: their code is taken, unless `trust_code` is off.
    """
    held = b if isinstance(b, bytes) else bytes(b)
    doubt = "" if trust_code else _REFUSED
    return _program(read_data(held, format), compiled, "<buffer>", emulate, device_id, doubt)


def _tree(p: program) -> Tree:
    if not isinstance(p, program):
        raise UsageError(f"expected a program, got {type(p).__name__}")
    tree = program_tree(p.program_ir)
    if p.is_compiled():
        own = tree.setdefault(OWN_KEY, {"version": OWN_VERSION})
        own["compiled"] = compiled_trees(p, tree["modules"])
    return tree


def _program(
    found: MxrFile, compiled: bool, name: str, emulate: bool, device_id: int, doubt: str
) -> program:
    made = program.of(found.program)
    try:
        entries = as_list(found.own.get("compiled"), "'compiled'")
        if compiled and doubt and holds_code(entries):
            raise FileError(f"the file holds machine code, which is not run: {doubt}", notes=_TRUST)
        if compiled and entries:
            modules = found.tree["modules"]
            restore(made, entries, modules, emulate=emulate, device_id=device_id)
    except FileError as e:
        raise located(e, name) from None
    return made
