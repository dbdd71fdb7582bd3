"""Problem cache files: kinds of rows, merging, and conversion between IREE versions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mgx_mlir.compiler.tuning.solutions import MATMUL, choice_of, read_rows, tuning_of
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic

PROGRAMS = ("cpu::program", "gpu::program")
USABLE, OTHER, UNKNOWN = "usable", "of another IREE version", "unknown"
Row = list[Any]


@dataclass
class Checked:
    """Rows of a file by kind, and the problems of invalid rows."""

    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])


def kind_of(row: Row) -> str:
    """Return whether a row is usable here, for another version of IREE, or unknown."""
    from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import shape_from_json
    from mgx_mlir.targets.child import compiler_version

    key, solution = row
    problem = key.get("problem") if isinstance(key, Mapping) else None
    if not isinstance(problem, Mapping):
        return UNKNOWN
    if key.get("name") in PROGRAMS:
        return USABLE if tuning_of(solution) is not None else UNKNOWN
    shape = {k: v for k, v in problem.items() if k not in ("arch", "compiler")}
    if key.get("name") != MATMUL or choice_of(solution) is None or shape_from_json(shape) is None:
        return UNKNOWN
    return USABLE if problem.get("compiler") == compiler_version() else OTHER


def check(path: Path) -> Checked:
    """Sort the rows of a file by kind. Errors: FileError for a missing file or no problem cache."""
    found, seen = Checked(), set[str]()
    for n, row in enumerate(_rows(path)):
        kind = kind_of(row)
        found.counts[kind] += 1
        if kind == UNKNOWN:
            found.problems.append(f"row {n}: {_short(row[0])} is unknown")
        name = _name(row)
        if name in seen:
            found.problems.append(f"row {n}: {_short(row[0])} is there twice")
        seen.add(name)
    return found


def merge(paths: Sequence[Path]) -> list[Row]:
    """Return the rows of files in order. The first row of a problem is kept, unless a later one
    was timed.
    """
    found: dict[str, Row] = {}
    for path in paths:
        for row in _rows(path):
            known = found.get(_name(row))
            if known is None or (_is_timed(row) and not _is_timed(known)):
                found[_name(row)] = row
    return list(found.values())


def convert(path: Path) -> tuple[list[Row], int]:
    """Return a file's rows for this version of IREE, and the number of converted matmuls.

    A matmul that was timed with another version counts as judged by a bound, so a search replaces
    it. Programs' rows stay, as their keys hold the version.
    """
    from mgx_mlir.targets.child import compiler_version

    rows, taken = [], 0
    for row in _rows(path):
        if kind_of(row) == OTHER:
            key, solution = row
            problem = {**key["problem"], "compiler": compiler_version()}
            row = [{**key, "problem": problem}, {**solution, "judged": "bound"}]
            taken += 1
        rows.append(row)
    return rows, taken


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as a problem cache. Errors: FileError."""
    try:
        with atomic(path) as f:
            f.write(json.dumps(list(rows), indent=1).encode())
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot write the file: {why}", location=str(path)) from None


def _rows(path: Path) -> list[Row]:
    if not path.is_file():
        raise FileError("no such file", location=str(path))
    return read_rows(path)


def _name(row: Row) -> str:
    return json.dumps(row[0], sort_keys=True)


def _short(key: object) -> str:
    text = json.dumps(key)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _is_timed(row: Row) -> bool:
    return isinstance(row[1], Mapping) and row[1].get("judged") == "time"
