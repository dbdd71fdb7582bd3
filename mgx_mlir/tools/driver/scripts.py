"""Programs from Python scripts: what --py writes, and what MIGraphX's users wrote with its API."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mgx_mlir
from mgx_mlir.api.program import program
from mgx_mlir.core.errors import FileError, MgxError, ModelError
from mgx_mlir.core.files import read_bytes

LARGEST = 64 << 20  # bytes of a script
NAME = "p"  # the variable that MIGraphX takes


def run_script(path: str) -> program:
    """Run a Python script and take the program in its variable `p`, or the only one that it made.

    The script is code, and does what it says: run none that you do not trust. `import migraphx`
    is this package unless MIGraphX is installed. FileError for a file that cannot be read,
    ModelError for a script that fails or makes no program.
    """
    return _program(run_names(path), path)


def run_names(path: str) -> dict[str, Any]:
    """Run a Python script and return its variables. Errors as run_script."""
    data = read_bytes(path)
    if len(data) > LARGEST:
        raise FileError("expected a Python script, got a larger file", location=path)
    try:
        code = compile(bytes(data), path, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        line = f"{path}:{e.lineno}" if isinstance(e, SyntaxError) and e.lineno else path
        why = e.msg if isinstance(e, SyntaxError) else str(e).splitlines()[0]
        raise ModelError(f"the script is not valid Python: {why}", location=line) from None
    names: dict[str, Any] = {"__name__": "__main__", "__file__": path}
    with _as_migraphx(), _beside(path):
        try:
            exec(code, names)
        except MgxError as e:
            where = e.location or _line(e, path)
            raise ModelError(e.message, location=where, notes=e.notes) from None
        except (Exception, SystemExit) as e:
            raise failure("the script", e, path) from None
    return names


def failure(what: str, error: BaseException, path: str) -> ModelError:
    """Return the message of an error that a script's code raised, at its line."""
    why = f"{type(error).__name__}: {error}".splitlines()[0]
    return ModelError(f"{what} failed: {why}", location=_line(error, path))


def _program(names: dict[str, Any], path: str) -> program:
    if isinstance(names.get(NAME), program):
        return names[NAME]
    found = {id(v): v for v in names.values() if isinstance(v, program)}
    if len(found) == 1:
        return next(iter(found.values()))
    raise ModelError(
        f"expected a program in the variable '{NAME}', the script makes {len(found)}",
        location=path,
    )


def _line(error: BaseException, path: str) -> str:
    """Return the last line of the script that an error came through."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return f"{path}:{lines[-1]}" if lines else path


@contextmanager
def _as_migraphx() -> Iterator[None]:
    """Make `import migraphx` give this package where there is no other of the name."""

    taken = "migraphx" in sys.modules or importlib.util.find_spec("migraphx") is not None
    if not taken:
        sys.modules["migraphx"] = mgx_mlir
    try:
        yield
    finally:
        if not taken:
            sys.modules.pop("migraphx", None)


@contextmanager
def _beside(path: str) -> Iterator[None]:
    """Make modules beside the script importable, as where Python runs it."""
    folder = str(Path(path).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
