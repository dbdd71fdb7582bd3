"""Surveys models on AMD GPUs for kernels that keep registers or arrays in scratch memory.

    python benchmarks/spills.py MODEL.onnx... [--arch gfx942,gfx1100] [--type f16,bf16,f32]
        [--results build/spills.jsonl] [--again]

A MODEL is a file, or a name of zoo/dynamic_models.py (`bert`, `cnn_any`), all of whose dims are
dynamic. No GPU is needed. One row a compile: the model, whether its dims are dynamic or fixed,
architecture, type, kernels, kernels with spills, kernels with scratch memory, seconds, and below it
each such kernel. A row is kept in the results' file as soon as it is there, and is not made again
(but for `--again`, or one that failed): the survey can be stopped at any time. `--table` prints the
rows of the file, `--counts` how many programs and kernels these are, and how many of them spill or
have scratch memory, by dims, type and architecture. Exit code 0: no kernel spills or has scratch
memory; 1: one does; 2: a model did not compile."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.gpu import ARCHES, ROOT

TYPES = ("f16", "bf16", "f32")

# one compile in a process of its own: its memory goes back before the next starts
BUILD = """
import json, sys, time
import mgx_mlir
from pathlib import Path
from mgx_mlir.frontends.dims import DynamicDim
from mgx_mlir.targets.report import gpu_report
opened = {"default_dyn_dim_value": DynamicDim(0, None)}
model, kind, arch = sys.argv[1:4]
if Path(model).exists():
    read = mgx_mlir.parse_onnx(model, **opened)
else:
    from zoo.dynamic_models import MODELS
    made = MODELS[model].build(*MODELS[model].names)
    read = mgx_mlir.parse_onnx_buffer(made.SerializeToString(), **opened)
if kind != "f32":
    {"f16": mgx_mlir.quantize_fp16, "bf16": mgx_mlir.quantize_bf16}[kind](read)
start = time.perf_counter()
made = mgx_mlir.compile(read, target="gpu", arch=arch, cache=False).executable
report = gpu_report(made.vmfb, made.dispatches)
print(json.dumps({
    "kernels": len(report.kernels), "seconds": round(time.perf_counter() - start),
    "fallbacks": [str(f) for f in made.fallbacks],
    "bad": {k.name: [k.vgprs, k.vgpr_spills, k.sgpr_spills, k.scratch]
            for k in report.kernels if k.spills or k.scratch}}))
"""


def is_dynamic(model: str) -> bool:
    """Return whether an input has a dim that the run sizes."""
    import onnx

    if not Path(model).exists():
        return True
    graph = onnx.load(model, load_external_data=False).graph
    dims = (d for v in graph.input for d in v.type.tensor_type.shape.dim)
    return any(not d.HasField("dim_value") for d in dims)


def limited(gigabytes: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = gigabytes << 30
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def survey(model: str, kind: str, arch: str, options: argparse.Namespace) -> dict[str, Any]:
    """One compile's row; `error` says why it has no figures."""
    row = {"model": Path(model).stem, "dims": "dynamic" if is_dynamic(model) else "fixed",
           "type": kind, "arch": arch}  # fmt: skip
    try:
        ran = subprocess.run(
            [sys.executable, "-c", BUILD, model, kind, arch],
            capture_output=True, text=True, cwd=ROOT, check=False, timeout=options.timeout,
            preexec_fn=lambda: limited(options.memory),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return row | {"error": f"no result in {options.timeout} s"}
    if ran.returncode:
        return row | {"error": " | ".join(ran.stderr.strip().splitlines()[-3:])[-300:]}
    return row | json.loads(ran.stdout.splitlines()[-1])


def shown(row: dict[str, Any]) -> str:
    """A row as it is printed."""
    head = f"{row['model']:<34}{row['dims']:<7}{row['arch']:<9}{row['type']:<6}"
    if "error" in row:
        return f"{head}{row['error']}"
    bad = row["bad"].items()
    spilling = sum(bool(v or s) for _, (_, v, s, _) in bad)
    scratch = sum(bool(b) for _, (*_, b) in bad)
    lines = [f"{head}{row['kernels']:>7}{spilling:>8}{scratch:>9}{row['seconds']:>9}"]
    lines += [f"    gave up: {f}" for f in row["fallbacks"]]
    lines += [
        f"    {name}: {vgprs} vgprs, {v} and {s} spilled, {b} B of scratch"
        for name, (vgprs, v, s, b) in bad
    ]
    return "\n".join(lines)


def counts(rows: list[dict[str, Any]]) -> str:
    """Bad programs of those compiled, and bad kernels of theirs, in Markdown."""
    arches = [a for a in ARCHES if any(r["arch"] == a for r in rows)]
    lines = [f"| dims, type | {' | '.join(arches)} |", f"|---{'|---' * len(arches)}|"]
    for dims in ("fixed", "dynamic"):
        for kind in TYPES:
            cells: list[str] = []
            for arch in arches:
                of = [r for r in rows if key(r)[1:] == (dims, kind, arch) and "error" not in r]
                kernels, bad = sum(r["kernels"] for r in of), sum(len(r["bad"]) for r in of)
                worse = sum(bool(r["bad"]) for r in of)
                cells.append(f"{worse} of {len(of)}, {bad} of {kernels}" if of else "")
            if any(cells):
                lines.append(f"| {dims} {kind} | {' | '.join(cells)} |")
    failed = sum("error" in r for r in rows)
    return "\n".join([*lines, f"{len(rows)} compiles, {failed} failed"])


def key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["model"], row["dims"], row["type"], row["arch"]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--arch", default=",".join(ARCHES), help="gfx names, comma-separated")
    parser.add_argument("--type", default=",".join(TYPES), help="types, comma-separated")
    parser.add_argument("--results", type=Path, default=Path("build/spills.jsonl"))
    parser.add_argument("--again", action="store_true", help="also what the file has rows of")
    parser.add_argument("--table", action="store_true", help="print the rows of the file")
    parser.add_argument("--counts", action="store_true", help="count the rows of the file")
    parser.add_argument("--timeout", type=int, default=600, help="seconds of a compile")
    parser.add_argument("--memory", type=int, default=12, help="GiB of address space of a compile")
    options = parser.parse_args(argv)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    if options.results.exists():
        kept = map(json.loads, options.results.read_text().splitlines())
        rows = {key(row): row for row in kept}  # the last of equal keys
    if options.counts:
        print(counts(list(rows.values())))
        return 0
    print(f"{'model':<34}{'dims':<7}{'arch':<9}{'type':<6}{'kernels':>7}{'spills':>8}"
          f"{'scratch':>9}{'seconds':>9}")  # fmt: skip
    made = list(rows.values()) if options.table else []
    for arch in options.arch.split(","):
        for kind in options.type.split(","):
            for model in options.models:
                dims = "dynamic" if is_dynamic(model) else "fixed"
                row = rows.get((Path(model).stem, dims, kind, arch))
                if row is None or options.again or "error" in row:
                    row = survey(model, kind, arch, options)
                    with options.results.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(shown(row), flush=True)
                    made.append(row)
    if options.table:
        print("\n".join(map(shown, made)))
    if any("error" in row for row in made):
        return 2
    return int(any(row["bad"] for row in made))


if __name__ == "__main__":
    sys.exit(main())
