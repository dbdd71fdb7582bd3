"""Measures whole models against TensorFlow: the table of docs/data/tensorflow-models.md.

    python zoo/tf_cases/make_models.py --full FOLDER     # where TensorFlow is installed
    python zoo/tf_cases/measure_models.py FOLDER [name ...]

Every model is compiled for the CPU as a frozen graph, as a SavedModel and with a dynamic batch, and
compared with what TensorFlow computed; errors are of the largest magnitude. Exit status 1 where
one is above the limit.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf

STORED = Path(__file__).resolve().parents[2] / "tests/frontends/tf/data/models"
LIMIT = 1e-4


def error(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest difference of the outputs, each of its largest magnitude."""
    out = 0.0
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape, f"dims {a.shape}, expected {b.shape}"
        size = max(float(np.abs(b).max()), 1e-30)
        out = max(out, float(np.abs(a.astype(np.float64) - b).max()) / size)
    return out


def run(path: Path, options: dict[str, Any], xs: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The outputs for each input, of one compiled program; forms that are one program share it."""
    program = mgx_mlir.compile(parse_tf(path, TfOptions(**options)), "cpu")
    return [list(program.run({program.input_names[0]: x})) for x in xs]


def measure(folder: Path, name: str) -> dict[str, float]:
    """Errors by form, and how far the forms are from each other."""
    with np.load(folder / f"{name}.npz") as found:
        x, wanted = found["x"], [found[k] for k in sorted(found) if k.startswith("o")]
    rows: dict[str, float] = {}
    results: dict[str, list[np.ndarray]] = {}
    for form in (name, f"{name}_v1"):
        if (folder / f"{form}.pb").exists():
            meta = json.loads(bytes(np.load(STORED / f"{form}.npz")["meta"]))
            options = {"batch_size": len(x), "output_names": meta["outputs"]}
            [results[form]] = run(folder / f"{form}.pb", options, [x])
            rows["frozen" if form == name else "version 1"] = error(results[form], wanted)
    [saved] = run(folder / name, {"batch_size": len(x)}, [x])
    rows["saved"] = error(saved, wanted)
    rows["apart"] = error(saved, results[name])
    if name not in ("preprocessing", "branches"):  # whose inputs have known dims
        both = run(folder / name, {"batch_size": None}, [x, x[:1]])
        rows["open"] = max(error(both[0], wanted), error(both[1], [w[:1] for w in wanted]))
    return rows


def main(folder: Path, names: list[str]) -> int:
    columns = ("frozen", "version 1", "saved", "apart", "open")
    print("| Model | " + " | ".join(columns) + " | seconds |")
    worst = 0.0
    for name in names or sorted(p.stem for p in folder.glob("*.npz")):
        start = time.perf_counter()
        rows = measure(folder, name)
        took = time.perf_counter() - start
        cells = [f"{rows[c]:.1e}" if c in rows else "" for c in columns]
        print(f"| {name} | {' | '.join(cells)} | {took:.0f} |", flush=True)
        worst = max(worst, *rows.values())
    print(f"worst {worst:.1e}, limit {LIMIT:.0e}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
