"""Tunable choices of a compile, and the file that keeps the results of a search.

The file is MIGraphX's problem cache in form: a JSON array of [{name, problem}, solution]. It is
named by MIGRAPHX_PROBLEM_CACHE, else it is tuning.json in the cache's folder. It has two kinds of
rows: `cpu::program` and `gpu::program` with the choices for a whole program, and `gpu::product`
with the GEMM config of a matmul in any program.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.targets import locks
from mgx_mlir.targets.cache import cache_root
from mgx_mlir.targets.flags import OPT_LEVELS

if TYPE_CHECKING:
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import GemmConfig, GemmShape

VARIABLE = "MIGRAPHX_PROBLEM_CACHE"
BELOW = "MGX_PROBLEM_CACHES"  # read-only files below the user's own; earlier ones take precedence
log = logging.getLogger(__name__)
LARGEST = 64 << 20  # bytes of a tuning file that is read
LOCK_WAIT = 30.0  # seconds; a change takes milliseconds
MATMUL = "gpu::product"


@dataclass(frozen=True)
class Tuning:
    """Tunable choices of a compile."""

    vector_kernels: bool = True  # kernels in hand-written loops instead of linalg
    boundaries: bool = True  # kernel boundaries of our fusion instead of IREE's
    data_tiling: bool = True  # matmul operands packed in tiles
    opt_level: str = "O2"  # optimization level of IREE
    threads: int | None = None  # CPU threads of a run; None: all

    def __str__(self) -> str:
        """Return the fields that differ from the default."""
        default = Tuning()
        found = [
            f"{f.name}={_word(getattr(self, f.name))}"
            for f in fields(self)
            if getattr(self, f.name) != getattr(default, f.name)
        ]
        return ", ".join(found) or "default"


def _word(value: object) -> str:
    return (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


# the alternatives that a search tries on each target, in order
ALTERNATIVES: dict[str, tuple[tuple[str, Any], ...]] = {
    "cpu": (
        ("threads", 1), ("vector_kernels", False), ("data_tiling", False), ("opt_level", "O3"),
        ("boundaries", False),
    ),
    "gpu": (("opt_level", "O3"), ("boundaries", False)),
}  # fmt: skip


def tuning_file() -> Path:
    """Return the path of the file of solutions."""
    given = os.environ.get(VARIABLE)
    return Path(given) if given else cache_root() / "tuning.json"


def layers() -> list[Path]:
    """Return the files that are read: the user's own, then those of MGX_PROBLEM_CACHES."""
    below = os.environ.get(BELOW, "").split(os.pathsep)
    return [tuning_file(), *(Path(p) for p in below if p)]


def is_kept() -> bool:
    """Return whether any tuning file can be read."""
    try:
        return any(path.is_file() for path in layers())
    except (OSError, FileError):
        return False


def lookup(problem: Mapping[str, Any]) -> Tuning | None:
    """Return the stored solution of a problem, or None. Errors: FileError for a damaged file."""
    for path in layers():
        for key, solution in _rows(path):
            if key == problem and (found := tuning_of(solution)) is not None:
                return found
    return None


def keep(problem: Mapping[str, Any], solution: Tuning) -> Path:
    """Write a solution into the tuning file, replacing an older one; return the file's path."""
    row = [dict(problem), asdict(solution)]
    return _change(lambda rows: [*(r for r in rows if r[0] != problem), row])


def _change(change: Callable[[list[list[Any]]], list[list[Any]]]) -> Path:
    """Read, change and write the file, while no other process does."""
    path = tuning_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            rows = change(_rows(path))
            with atomic(path) as f:
                f.write(json.dumps(rows, indent=1).encode())
    except OSError as e:
        raise FileError(
            f"cannot write the tuning file: {(e.strerror or str(e)).lower()}", location=str(path)
        ) from None
    return path


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file's lock. Errors: FileError where another process does not release it."""
    with open(f"{path}.lock", "a+b") as f:
        try:
            locks.acquire(f.fileno(), LOCK_WAIT)
        except locks.Busy as e:
            why = f"{locks.holder_text(e.holder)} has locked the tuning file"
            raise FileError(why, location=str(path)) from None
        yield


def _rows(path: Path) -> list[list[Any]]:
    """Return the pairs of a file; a damaged file in the cache's folder counts as empty."""
    try:
        return read_rows(path)
    except FileError as e:
        if os.environ.get(VARIABLE) or path != tuning_file():  # a file that the user named
            raise
        log.warning("%s", e)
        return []


def read_rows(path: Path) -> list[list[Any]]:
    """Return the pairs of a file, none where it is missing. Errors: FileError."""
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


def tuning_of(value: object) -> Tuning | None:
    """Read a solution; None for one that this version does not know."""
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


def stored_matmuls(arch: str) -> dict[GemmShape, GemmConfig]:
    """Return the stored best choice of each matmul for an architecture and this IREE version.

    Errors: FileError for a damaged file.
    """
    found: dict[GemmShape, GemmConfig] = {}
    for path in reversed(layers()):
        for key, solution in _rows(path):
            product, choice = _product(key, arch), choice_of(solution)
            if product is not None and choice is not None:
                found[product] = choice
    return found


def store_matmuls(
    arch: str, found: Mapping[GemmShape, tuple[GemmConfig, float | None]], judged: str
) -> Path:
    """Write the best choices of matmuls, with their microseconds; return the file's path.

    judged: "time" or "bound". A bound does not replace a timed result.
    """
    new = {
        p: [_problem(p, arch), {**c.to_json(), "us": _finite(us), "judged": judged}]
        for p, (c, us) in found.items()
    }

    def stays(row: list[Any]) -> bool:
        product = _product(row[0], arch)
        if product not in new or product is None:
            return True
        timed = isinstance(row[1], Mapping) and row[1].get("judged") == "time"
        if timed and judged != "time" and choice_of(row[1]) is not None:
            del new[product]
            return True
        return False

    return _change(lambda rows: [*(r for r in rows if stays(r)), *new.values()])


def _finite(us: float | None) -> float | None:
    return us if us is not None and us < float("inf") else None


def _problem(product: GemmShape, arch: str) -> dict[str, Any]:
    from mgx_mlir.targets.child import compiler_version

    return {"name": MATMUL, "problem": {"arch": arch, "compiler": compiler_version(),
                                         **product.to_json()}}  # fmt: skip


def _product(key: object, arch: str) -> GemmShape | None:
    """Return the matmul of a row, None for other rows."""
    # start-up: few programs have tuned matmuls
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import shape_from_json
    from mgx_mlir.targets.child import compiler_version

    problem = key.get("problem") if isinstance(key, Mapping) and key.get("name") == MATMUL else 0
    if not isinstance(problem, Mapping):
        return None
    rest = dict(problem)
    if (rest.pop("arch", None), rest.pop("compiler", None)) != (arch, compiler_version()):
        return None
    return shape_from_json(rest)


def choice_of(solution: object) -> GemmConfig | None:
    """Read a matmul's solution; None for one that this version does not know."""
    if not isinstance(solution, Mapping):
        return None
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import config_from_json

    return config_from_json({k: v for k, v in solution.items() if k not in ("us", "judged")})


def solutions() -> int:
    """Count the solutions in all files. Errors: FileError for a damaged one."""
    return sum(len(_rows(path)) for path in layers())
