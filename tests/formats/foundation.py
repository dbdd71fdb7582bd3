"""Saves and loads whole models and runs them as scripts: `python -m tests.formats.foundation DIR`.

For each .onnx of the folder: text and weights are equal after .mxr, JSON (weights up to --json
megabytes) and --py; with --run also the results on the CPU, for which the code is saved and
loaded, on the inputs in NAME.inputs.npz.
"""

from __future__ import annotations

import argparse
import filecmp
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import mgx_mlir as migraphx
from mgx_mlir.core.weight_files import used_keys
from mgx_mlir.printers.text import program_text
from mgx_mlir.tools.driver.scripts import run_script
from tests.formats.fuzz import peak_bytes


def check(model: Path, folder: Path, json_megabytes: float) -> str:
    """Return time and memory of a model; AssertionError where a round trip loses something."""
    parts: list[str] = []

    def timed(what: str, start: float) -> None:
        parts.append(f"{what} {time.perf_counter() - start:.1f} s")

    p = migraphx.program.of(migraphx.read_model(model))
    text = program_text(p.program_ir, version="2.16")

    def same(q: migraphx.program) -> None:
        assert program_text(q.program_ir, version="2.16") == text, "another text"
        weights = [used_keys(x.program_ir.module.operation) for x in (p, q)]
        assert weights[0] == weights[1], "other weights, by their hashes"

    path = folder / "m.mxr"
    start = time.perf_counter()
    migraphx.save(p, path)
    timed("save", start)
    start = time.perf_counter()
    q = migraphx.load(path)
    timed("load", start)
    same(q)
    migraphx.save(q, folder / "again.mxr")
    assert filecmp.cmp(path, folder / "again.mxr", shallow=False)
    del q
    megabytes = path.stat().st_size / 1e6
    parts.append(f"peak {peak_bytes() / 1e6:.0f} MB")
    if megabytes <= json_megabytes:
        start = time.perf_counter()
        migraphx.save(p, folder / "m.json", "json")
        same(migraphx.load(folder / "m.json"))
        timed("JSON both ways", start)
    start = time.perf_counter()
    (folder / "m.py").write_text(p.to_py(weights=str(folder / "m.py.npz")))
    same(run_script(str(folder / "m.py")))
    timed("script both ways", start)
    return f"{model.stem}: {len(text.splitlines())} lines, {megabytes:.0f} MB; {', '.join(parts)}"


def run(model: Path, folder: Path) -> str:
    """Return whether the compiled model's results and its saved code's are bitwise equal."""
    p = migraphx.program.of(migraphx.read_model(model))
    with np.load(model.with_suffix(".inputs.npz")) as data:
        feed = {k: data[k] for k in p.get_parameter_names()}
    p.compile(migraphx.get_target("cpu"))
    wanted = [np.array(a).tobytes() for a in p.run(feed)]
    migraphx.save(p, folder / "code.mxr")
    size = (folder / "code.mxr").stat().st_size
    del p
    start = time.perf_counter()
    q = migraphx.load(folder / "code.mxr")
    found = [np.array(a).tobytes() for a in q.run(feed)]
    took = time.perf_counter() - start
    assert q.is_compiled()
    assert found == wanted
    return f"; compiled {size / 1e6:.0f} MB, loaded and run in {took:.1f} s, equal bits"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="a part of the names")
    parser.add_argument(
        "--json", type=float, default=50, help="megabytes up to which JSON is tried"
    )
    parser.add_argument("--run", action="store_true", help="compile for the CPU too")
    options = parser.parse_args()
    failed = 0
    for model in sorted(options.folder.glob(f"*{options.only}*.onnx")):
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = check(model, Path(folder), options.json)
                line += run(model, Path(folder)) if options.run else ""
            except (AssertionError, migraphx.MgxError) as e:
                line, failed = f"{model.stem}: FAILED: {e}", failed + 1
            print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
