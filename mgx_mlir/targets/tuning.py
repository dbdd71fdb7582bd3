"""What can be tuned of a compile, and the file that keeps what a search found.

The file is MIGraphX's problem cache in form: a JSON array of [{name, problem}, solution]. It is
named by MIGRAPHX_PROBLEM_CACHE, else it is tuning.json in the cache's folder.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.targets.cache import cache_root
from mgx_mlir.targets.flags import OPT_LEVELS

VARIABLE = "MIGRAPHX_PROBLEM_CACHE"
log = logging.getLogger(__name__)
LARGEST = 64 << 20  # bytes of a tuning file that is read


@dataclass(frozen=True)
class Tuning:
    """The choices of a compile that only time can tell.

    vector_kernels: kernels in loops of our own instead of linalg. boundaries: our fusion instead
    of the backend's. data_tiling: matmul operands packed in tiles. opt_level: the backend's.
    threads: of a run, None for all.
    """

    vector_kernels: bool = True
    boundaries: bool = True
    data_tiling: bool = True
    opt_level: str = "O2"
    threads: int | None = None

    def __str__(self) -> str:
        """What differs from the default."""
        default = Tuning()
        found = [
            f"{f.name}={_word(getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(default, f.name)
        ]
        return ", ".join(found) or "default"


def _word(value: Any) -> str:
    return (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


# the alternatives that a search tries on each target, one after the other
ALTERNATIVES: dict[str, tuple[tuple[str, Any], ...]] = {
    "cpu": (
        ("threads", 1), ("vector_kernels", False), ("data_tiling", False), ("opt_level", "O3"),
        ("boundaries", False),
    ),
    "gpu": (("opt_level", "O3"), ("boundaries", False)),
}  # fmt: skip


def tuning_file() -> Path:
    """Where solutions are kept."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else cache_root() / "tuning.json"


def is_kept() -> bool:
    """Whether there is a tuning file that can be read."""
    try:
        return tuning_file().is_file()
    except OSError:
        return False


def lookup(problem: Mapping[str, Any]) -> Tuning | None:
    """The solution of a problem, None where none is kept. FileError for a damaged file."""
    for key, solution in _rows(tuning_file()):
        if key == problem:
            return _tuning(solution)
    return None


def keep(problem: Mapping[str, Any], solution: Tuning) -> Path:
    """Write a solution into the tuning file, in place of an older one; the file's path."""
    path = tuning_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            rows = [r for r in _rows(path) if r[0] != problem]
            rows.append([dict(problem), asdict(solution)])
            with atomic(path) as f:
                f.write(json.dumps(rows, indent=1).encode())
    except OSError as e:
        raise FileError(
            f"cannot write the tuning file: {(e.strerror or str(e)).lower()}", location=str(path)
        ) from None
    return path


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by one process at a time."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(f"{path}.lock", "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _rows(path: Path) -> list[list[Any]]:
    """The pairs of a file. One in the cache's folder that is damaged is taken for empty."""
    try:
        return _read(path)
    except FileError as e:
        if os.environ.get(VARIABLE):
            raise
        log.warning("%s", e)
        return []


def _read(path: Path) -> list[list[Any]]:
    try:
        if not path.is_file():
            return []
        if path.stat().st_size > LARGEST:
            raise ValueError("it is too large")
        rows = json.loads(path.read_bytes())
        if not isinstance(rows, list) or not all(isinstance(r, list) and len(r) == 2 for r in rows):
            raise ValueError("expected a list of pairs")
    except (OSError, ValueError, RecursionError) as e:
        why = "it is nested too deeply" if isinstance(e, RecursionError) else str(e).splitlines()[0]
        raise FileError(f"cannot read the tuning file: {why}", location=str(path),
                        notes=[f"remove it, or name another in {VARIABLE}"]) from None  # fmt: skip
    return rows


def _tuning(value: Any) -> Tuning | None:
    """A solution as it was written; None for one that this version does not know."""
    if not isinstance(value, Mapping) or not set(value) <= {f.name for f in fields(Tuning)}:
        return None
    switches = ("vector_kernels", "boundaries", "data_tiling")
    count = value.get("threads")
    fits = (
        all(isinstance(value.get(name, True), bool) for name in switches)
        and value.get("opt_level", "O2") in OPT_LEVELS
        and (count is None or (type(count) is int and 0 < count <= 4096))
    )
    return Tuning(**value) if fits else None


def solutions() -> int:
    """How many solutions the tuning file keeps. FileError for a damaged file."""
    return len(_rows(tuning_file()))
