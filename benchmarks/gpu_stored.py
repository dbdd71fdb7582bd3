"""Compiled programs with inputs and wanted results, in files that another machine runs.

A case is `NAME.mxr` and `NAME.npz` in the folder of its part. Reading one takes numpy, ml_dtypes
and the runtime; no compiler, bindings or ONNX.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np

Arrays = dict[str, np.ndarray]
# shares of the norm of the wanted values; tests/emulator/oracle.py has the same figures
LIMITS = {"f32": 1e-5, "f64": 1e-9, "f16": 2e-3, "bf16": 1e-2}


@dataclass
class Stored:
    """One program: its file, and for each run the inputs by name and the wanted results.

    limit: largest error of floats, by norm, or by the largest element where `by_largest`.
    slack: largest difference of integers.
    """

    part: str
    name: str
    runs: list[tuple[Arrays, list[np.ndarray]]]
    limit: float = LIMITS["f32"]
    by_largest: bool = False
    slack: int = 0
    file: Path = field(default_factory=Path)

    def write(self, folder: Path) -> None:
        """Write everything but the program."""
        held: dict[str, np.ndarray] = {}
        meta = {
            "limit": self.limit, "by_largest": self.by_largest, "slack": self.slack,
            "runs": [{"inputs": list(i), "results": len(w)} for i, w in self.runs], "dtypes": {},
        }  # fmt: skip
        for r, (inputs, wanted) in enumerate(self.runs):
            for n, a in enumerate([*inputs.values(), *wanted]):
                key = f"{r}.{n}"
                meta["dtypes"][key] = a.dtype.name
                plain = a.dtype.isbuiltin == 1
                held[key] = a if plain else np.asarray(a).view(f"u{a.dtype.itemsize}")
        held["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        place = folder / self.part
        place.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(place / f"{self.name}.npz", allow_pickle=False, **held)


def read(file: Path) -> Stored:
    """Read a case by the file of its program."""
    with np.load(file.with_suffix(".npz")) as held:
        meta = json.loads(held["meta"].tobytes())
        runs = []
        for r, run in enumerate(meta["runs"]):
            found = []
            for n in range(len(run["inputs"]) + run["results"]):
                name = meta["dtypes"][f"{r}.{n}"]
                a = held[f"{r}.{n}"]
                found.append(a if a.dtype.name == name else a.view(getattr(ml_dtypes, name)))
            names = run["inputs"]
            runs.append((dict(zip(names, found, strict=False)), found[len(names) :]))
    return Stored(
        file.parent.name, file.stem, runs, meta["limit"], meta["by_largest"], meta["slack"], file
    )


def files(folder: Path, part: str) -> Iterator[Path]:
    """Return the programs of a part, in order."""
    yield from sorted((folder / part).glob("*.mxr"))


def cases(report: str | None = None) -> set[str]:
    """Return the cases of a report that were run, without those that failed as a call."""
    if report is None or not Path(report).is_file():
        return set()
    rows = [r for part in json.loads(Path(report).read_text())["parts"].values() for r in part]
    return {row["case"] for row in rows if "case" in row and not row.get("error")}


def judge(case: Stored, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str:
    """Return what is wrong with the results of a run, or ""."""
    if len(got) != len(wanted):
        return f"{len(got)} results, {len(wanted)} wanted"
    for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
        a = np.asarray(a)
        if a.shape != b.shape:
            return f"result {k}: dims {list(a.shape)}, {list(b.shape)} wanted"
        if b.size == 0:
            continue
        if b.dtype.kind in "iub":
            off = int(np.abs(a.astype(np.int64) - b.astype(np.int64)).max())
            if off > case.slack:
                count = np.count_nonzero(a != b)
                return f"result {k}: {count} of {b.size} integers differ, by {off} at most"
            continue
        error = error_of(a, b, case.by_largest)
        if not error <= case.limit:
            return f"result {k}: error {error:.2e}, {case.limit:.0e} is the limit"
    return ""


def error_of(a: np.ndarray, b: np.ndarray, by_largest: bool = False) -> float:
    """Return the error of floats; infinite where other elements are NaN or infinite."""
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    plain = np.isfinite(y) & (np.abs(y) < 1e30)  # masks are of the lowest numbers
    if not np.array_equal(np.isfinite(x) & (np.abs(x) < 1e30), plain):
        return float("inf")
    odd = ~plain
    same = (np.isnan(x[odd]) & np.isnan(y[odd])) | (np.sign(x[odd]) == np.sign(y[odd]))
    if not same.all():
        return float("inf")
    if not plain.any():
        return 0.0
    apart, size = np.abs(x[plain] - y[plain]), np.abs(y[plain])
    if by_largest:
        return float(apart.max() / max(size.max(), 1e-3))
    norm = float(np.linalg.norm(size))
    return float(np.linalg.norm(apart)) / norm if norm else float(apart.max())


def kinds(inputs: Mapping[str, np.ndarray]) -> str:
    """Return dtypes and dims of inputs, for a report."""
    return ", ".join(f"{n} {a.dtype.name}{list(a.shape)}" for n, a in inputs.items())
