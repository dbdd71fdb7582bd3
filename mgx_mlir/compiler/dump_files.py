"""IREE's dumps that MIGRAPHX_ variables ask for: the flags that write them, and their texts.

MIGRAPHX_MLIR_DUMP=DIR               a .mlir file for each kernel, as the backend gets it
MIGRAPHX_GPU_DUMP_ASM=1              the assembly of each kernel on stderr, on cpu too
MIGRAPHX_GPU_DUMP_SRC=1              each kernel as the backend gets it on stderr
MIGRAPHX_DEBUG_SAVE_TEMP_DIR=1       the backend's files are kept; stderr names their folder
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from mgx_mlir.core.errors import FileError
from mgx_mlir.rewrite.switches import flag
from mgx_mlir.targets.flags import DUMP_FILES

_SOURCES = "--iree-hal-dump-executable-sources-to"
_ASSEMBLY = (".s", ".rocmasm")
# per thread: the folder of the running compile, and the lists of kept_assembly
_HELD: ContextVar[str | None] = ContextVar("mgx_kept_files", default=None)
_READERS: ContextVar[tuple[list[str], ...]] = ContextVar("mgx_kept_assembly", default=())


@contextmanager
def kept_assembly() -> Iterator[list[str]]:
    """Collect the assembly files of the compiles inside, as text. A cache hit has none."""
    found: list[str] = []
    token = _READERS.set((*_READERS.get(), found))
    try:
        yield found
    finally:
        _READERS.reset(token)


def dump_flags() -> tuple[str, ...]:
    """Return the iree-compile flags that write the dumps which the environment asks for."""
    found = []
    folder = os.environ.get("MIGRAPHX_MLIR_DUMP")
    if folder:
        found.append(f"{_SOURCES}={made_folder(folder)}")
    shown = flag("MIGRAPHX_GPU_DUMP_ASM") or flag("MIGRAPHX_GPU_DUMP_SRC")
    if _keeps() or shown or _READERS.get():
        _drop()
        try:
            kept = tempfile.mkdtemp(prefix="mgx-compile-")
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            raise FileError(f"no temporary folder can be made: {why}") from None
        _HELD.set(kept)
        found.append(f"{DUMP_FILES}={kept}")
    return tuple(found)


def _keeps() -> bool:
    return flag("MIGRAPHX_DEBUG_SAVE_TEMP_DIR")


def _drop() -> None:
    folder = _HELD.get()
    _HELD.set(None)
    if folder is not None and not _keeps():
        shutil.rmtree(folder, ignore_errors=True)


def made_folder(folder: str) -> str:
    """Make a folder unless it is there; return its full path. Errors: FileError."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot make the folder: {why}", location=folder) from None
    return os.path.abspath(folder)


def show_compiled() -> None:
    """Print the code of the kernels of a compile, and say where its files are."""
    folder = _HELD.get()
    if folder is not None:
        for path in sorted(Path(folder).rglob("*")):
            asked = (flag("MIGRAPHX_GPU_DUMP_ASM") and path.suffix in _ASSEMBLY) or (
                flag("MIGRAPHX_GPU_DUMP_SRC") and path.suffix == ".mlir"
                and "benchmark" not in path.name and "configured" not in path.name
            )  # fmt: skip
            if path.suffix in _ASSEMBLY:
                for texts in _READERS.get():
                    texts.append(path.read_text(errors="replace"))
            if asked:
                print(f"{path.name}:\n{path.read_text(errors='replace')}", file=sys.stderr)
        if _keeps():
            print(f"Temporary files: {folder}", file=sys.stderr)
    _drop()
