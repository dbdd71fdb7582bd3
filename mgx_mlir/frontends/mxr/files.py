"""Opens .mxr and JSON files: their tree, and on request the program in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import read_with_status, readable_name, writer_of
from mgx_mlir.core.literals import own
from mgx_mlir.frontends.mxr.checks import as_list, as_map, located, member, shortened
from mgx_mlir.frontends.mxr.decode import decode_json, decode_msgpack, looks_like_json
from mgx_mlir.printers.tree_files import FILE_VERSION, OWN_KEY, OWN_VERSION, Tree

if TYPE_CHECKING:
    from mgx_mlir.programs.program_ir import ProgramIR

# versions whose trees only lack parts of FILE_VERSION's: debug symbols (8), data in chunks (7),
# several targets (6; before, `target` was one)
VERSIONS = (5, 6, 7, FILE_VERSION)


class MxrFile:
    """Contents of a file. `own` is the entry that only this project reads.

    `doubt` is the reason not to trust its code, empty if this user or root wrote the file.
    `weights` is memory by digest, for literals whose data is elsewhere in the file.
    """

    def __init__(self, tree: Tree, name: str, doubt: str = "") -> None:
        self.tree, self.name, self.doubt = as_map(tree, "the file"), name, doubt
        check_version(self.tree)
        self.own = as_map(self.tree.get(OWN_KEY, {}), f"'{OWN_KEY}'")
        self.modules = as_map(member(self.tree, "modules", "the file"), "'modules'")
        self.weights: dict[str, memoryview] = {}

    @cached_property
    def program(self) -> ProgramIR:
        """Program before compilation. FileError, located in the file."""
        # loads the MLIR bindings, which a compiled program does not need
        from mgx_mlir.frontends.mxr.reader import program_of_tree

        try:
            return program_of_tree(self.tree, readable_name(self.name), self.weights)
        except FileError as e:
            raise located(e, self.name) from None
        except (MemoryError, RecursionError):
            raise _too_large(self.name) from None


def read_file(
    path: str | os.PathLike[str], format: str | None = None, *, huge_pages: bool = False
) -> MxrFile:
    """Open a file; `format` None tells JSON from msgpack by the first byte. Raises FileError.

    A large file is mapped, and read when used. With `huge_pages` it is read completely, to huge
    pages.
    """
    name = os.fspath(path)
    view, status = read_with_status(name, mapped=True, huge_pages=huge_pages)
    data = own(np.frombuffer(view, np.uint8))  # weights are views of it
    return read_data(data.data, format, name=name, doubt=writer_of(status))


def read_data(
    data: bytes | memoryview,
    format: str | None = None,
    *,
    name: str = "<buffer>",
    doubt: str = "",
) -> MxrFile:
    """Open a file in memory. Raises FileError, located at `name`."""
    view = memoryview(data).cast("B")
    if format not in (None, "msgpack", "json"):
        raise FileError(f"unknown format '{format}', expected msgpack or json", location=name)
    json = looks_like_json(view) if format is None else format == "json"
    try:
        return MxrFile(decode_json(view) if json else decode_msgpack(view), name, doubt)
    except FileError as e:
        raise located(e, name) from None
    except (MemoryError, RecursionError):
        raise _too_large(name) from None


def _too_large(name: str) -> FileError:
    return FileError("the file is too large or nests too deep", location=name)


def check_version(top: Mapping[str, Tree]) -> None:
    """Raise FileError if the file's version is not supported."""
    version = top.get("version")
    if version is None:
        raise FileError("expected a program of MIGraphX, the file has no 'version'")
    if isinstance(version, bool) or version not in VERSIONS:
        listed = ", ".join(map(str, VERSIONS[:-1]))
        raise FileError(
            f"the file's version is {shortened(version)}, expected {listed} or {FILE_VERSION}",
            notes=["save the model again with MIGraphX 2.16"],
        )
    targets = [as_map(t, "a target").get("name", "another target")
               for t in as_list(top.get("targets"), "'targets'")]  # fmt: skip
    if not targets and top.get("target"):  # the form of version 5
        targets = [top["target"]]
    if targets:
        raise FileError(
            f"the program is compiled by MIGraphX for {shortened(targets[0])}",
            notes=["save it before it is compiled"],
        )
    own = as_map(top.get(OWN_KEY, {}), f"'{OWN_KEY}'").get("version", OWN_VERSION)
    if own != OWN_VERSION:
        raise FileError(
            f"the entry '{OWN_KEY}' has the version {shortened(own)}, expected {OWN_VERSION}",
            notes=["the file was written by another version of this project"],
        )
