"""Builds of C++ libraries into the cache: once, by one process, published atomically."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import TargetError
from mgx_mlir.targets import locks
from mgx_mlir.targets.private import make_private, open_own

_SHOWN = 10  # lines of a compiler's message
_TIME = 600  # seconds that one run of the C++ compiler may take


def once(
    library: Path, what: str, wait: float, waiting: Callable[[int], None],
    build: Callable[[], None],
) -> None:  # fmt: skip
    """Ensure that a library exists: call `build` unless it does, or another process builds it.

    `what` is its name in errors. Another process may build for `wait` seconds; `waiting` is called
    with its pid. Errors: TargetError.
    """
    folder = library.parent
    try:
        make_private(folder)
        if is_built(library):
            return
        fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            locks.acquire(fd, wait, waiting)
            if not is_built(library):
                build()
        finally:
            os.close(fd)
    except locks.Busy as e:
        raise TargetError(f"the {what} is not built: {e}") from None
    except OSError as e:
        raise TargetError(
            f"the {what} cannot be built in {folder}: {(e.strerror or str(e)).lower()}",
            notes=["MGX_CACHE_DIR names another place"],
        ) from None


def is_built(path: Path) -> bool:
    """Return whether a library exists that only this user or root can have written."""
    try:
        os.close(open_own(path))
    except FileNotFoundError:
        return False
    return True


def compile_with(what: str, command: list[str], folder: str) -> None:
    """Run the C++ compiler, with its temporary files in the build's folder. Errors: TargetError."""
    environment = {**os.environ, "TMPDIR": folder, "LC_ALL": "C"}
    try:
        with interrupts.at_once():
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=environment,
                stdin=subprocess.DEVNULL, check=False, timeout=_TIME,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TargetError(f"the {what} cannot be built: {command[0]} takes too long") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()[:_SHOWN]
        raise TargetError(
            f"the {what} cannot be built: {command[0]} failed", notes=said or ["it said nothing"]
        )


def publish(made: Path, place: Path) -> None:
    """Publish a built library under its path, writable by this user only."""
    made.chmod(0o700)
    os.replace(made, place)
