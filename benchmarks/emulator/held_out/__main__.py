"""Compiles whole models for AMD GPUs, runs them on the emulator, and compares with onnxruntime.

    python -m benchmarks.emulator.held_out                          # all, gfx942 and gfx1100
    python -m benchmarks.emulator.held_out u_net FOLDER/*.onnx --arch gfx90a
    python -m benchmarks.emulator.held_out --dynamic                   # dynamic dims, two calls
    python -m benchmarks.emulator.held_out --f16                    # those that f16 makes sense of
    python -m benchmarks.emulator.held_out FOLDER/*.onnx --bf16
    python -m benchmarks.emulator.held_out FOLDER/*.onnx --out ROWS # goes on where it was stopped

A file's inputs are those beside it (`NAME.inputs.npz`, and `NAME.second.npz` for a second call),
else drawn; benchmarks/held_out_nets.py writes such files. In f16 and bf16 dynamic dims are fixed to
those of the first call. One line for each model and architecture: the error by norm of the worst
output, kernels, of these how many keep registers or arrays in scratch memory, and seconds to
compile and to run. Integers are to be equal. Exit code 1 where one is wrong, refused or too slow.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime

import mgx_mlir
from benchmarks.emulator.held_out import images, narrow, sequences
from benchmarks.emulator.held_out.net import HELD, Oracle
from benchmarks.oracle import inputs_for, session
from mgx_mlir.core.errors import MgxError
from mgx_mlir.targets.report import gpu_report
from tests.emulator import oracle
from tests.emulator.models import Case

ARCHES = "gfx942,gfx1100"
NARROW = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
FILE_LIMIT = 1e-5  # limit of the error by norm, for f32
SMALLEST = 1e-3  # outputs whose norm an element stays below are compared by difference


def difference(got: np.ndarray, want: np.ndarray) -> float:
    """||got - want|| / ||want||; inf for another shape, type or place of NaN, unequal integers."""
    if got.shape != want.shape or got.dtype.kind != want.dtype.kind:
        return float("inf")
    if want.dtype.kind in "biuU":
        return 0.0 if np.array_equal(got, want) else float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(a[~same]).all() or not np.isfinite(b[~same]).all():
        return float("inf")
    norm = max(float(np.linalg.norm(b[np.isfinite(b)])), SMALLEST * b.size**0.5)
    return float(np.linalg.norm(a[~same] - b[~same]) / norm)


def narrow_type(options: argparse.Namespace) -> str:
    """The name of the 16-bit type that is asked for, or ''."""
    return next((name for name in NARROW if getattr(options, name)), "")


def cases(name: str, options: argparse.Namespace) -> tuple[list[Case], Oracle, float]:
    """Calls of one model, how its oracle is asked, and the limit of the error."""
    if name in HELD:
        held = HELD[name]
        net = held.net(is_dynamic=options.dynamic)
        model, limit, kind = net.made(), held.limit, held.oracle
        calls = [net.arrays(seed, **s) for seed, s in enumerate(({}, held.second))]
        if not options.dynamic:
            calls = calls[:1]
    else:
        model, limit, kind = onnx.load(name), FILE_LIMIT, "exact"
        calls = [inputs_for(Path(name))]
        second = Path(name).with_suffix(".second.npz")
        if narrow_type(options):
            fix_dims(model, calls[0])
        elif second.exists():
            with np.load(second) as archive:
                calls.append({n: archive[n] for n in archive.files})
    if kept := narrow_type(options):
        dtype = NARROW[kept]
        model, limit, kind = oracle.narrowed(model, dtype), oracle.LIMITS[kept], "wide"
        calls = [{n: a.astype(dtype) if a.dtype == np.float32 else a for n, a in c.items()}
                 for c in calls]  # fmt: skip
    return [Case(model, call) for call in calls], kind, limit


def fix_dims(model: onnx.ModelProto, call: dict[str, np.ndarray]) -> None:
    """Give the inputs the extents of a call; results and values between get theirs from these."""
    for port in model.graph.input:
        for dim, extent in zip(port.type.tensor_type.shape.dim, call[port.name].shape, strict=True):
            dim.dim_value = extent
    del model.graph.value_info[:]
    for port in model.graph.output:
        for n, dim in enumerate(port.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                dim.dim_param = f"{port.name}_{n}"


def wanted(case: Case, kind: Oracle) -> list[np.ndarray]:
    """Return onnxruntime's results."""
    model = case.model.SerializeToString()
    if kind == "wide":
        return oracle.wanted(case)
    if kind == "plain":
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(model, options).run(None, case.inputs)
    return session(model, exact=kind == "exact").run(None, case.inputs)


def examine(name: str, arch: str, options: argparse.Namespace) -> dict[str, Any]:
    """Compile one model for one architecture and compare its calls."""
    calls, kind, limit = cases(name, options)
    start = time.perf_counter()
    program = mgx_mlir.compile(
        calls[0].model.SerializeToString(), target="gpu", arch=arch, emulate=True
    )
    compiled, worst = time.perf_counter() - start, 0.0
    errors: list[list[float]] = []
    for case in calls:
        want = wanted(case, kind)
        got = [np.asarray(a) for a in program.run(case.inputs)]
        got = [a.astype(np.float32) if a.dtype in NARROW.values() else a for a in got]
        errors.append([difference(a, b) for a, b in zip(got, want, strict=True)])
        worst = max(worst, *errors[-1])
    made = program.executable
    report = gpu_report(made.vmfb, made.dispatches)
    return {
        "kernels": len(report.kernels),
        "scratch": [k.name for k in report.kernels if k.spills or k.scratch],
        "verdict": "right" if worst <= limit else "WRONG", "error": worst, "errors": errors,
        "compile_s": round(compiled, 1), "run_s": round(time.perf_counter() - start - compiled, 1),
        "fallbacks": len(program.executable.fallbacks),
    }  # fmt: skip


def in_child(name: str, arch: str, options: argparse.Namespace) -> dict[str, Any]:
    """Examine a model in a process of its own: what crashes or hangs is a row, too."""
    flags = [f for f in ("dynamic", *NARROW) if getattr(options, f)]
    command = [sys.executable, "-m", "benchmarks.emulator.held_out", name, "--arch", arch,
               "--child", *(f"--{f}" for f in flags)]  # fmt: skip
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"verdict": "late"}
    lines = ran.stdout.strip().splitlines()
    if ran.returncode == 0 and lines:
        return json.loads(lines[-1])
    said = ran.stderr.strip().splitlines()
    return {"verdict": f"crashed ({ran.returncode})", "said": " | ".join(said[-6:])[-800:]}


def child(name: str, arch: str, options: argparse.Namespace) -> None:
    try:
        row = examine(name, arch, options)
    except MgxError as e:
        row = {"verdict": "refused", "said": str(e)[:1500]}
    print(json.dumps(row), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME|FILE")
    parser.add_argument("--arch", default=ARCHES, help="gfx names, comma-separated")
    parser.add_argument(
        "--dynamic", action="store_true", help="dynamic dims where a model names them"
    )
    parser.add_argument("--f16", action="store_true", help="weights and inputs in f16")
    parser.add_argument("--bf16", action="store_true", help="weights and inputs in bf16")
    parser.add_argument("--limit", type=float, default=600, help="seconds for each row")
    parser.add_argument("--out", type=Path, help="append a line of JSON for each row")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.names[0], options.arch, options)
        return 0
    names = options.names or [
        n for n, h in HELD.items()
        if (h.sizes or not options.dynamic) and (h.narrow or not narrow_type(options))
    ]  # fmt: skip
    unknown = [n for n in names if n not in HELD and not os.path.exists(n)]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}")
    verdicts: Counter[str] = Counter()
    kind = {"dynamic": options.dynamic} | {name: getattr(options, name) for name in NARROW}
    kept = {}
    if options.out and options.out.exists():
        rows = [json.loads(line) for line in options.out.read_text().splitlines()]
        kept = {
            (r["name"], r["arch"]): r
            for r in rows
            if all(r.get(k, False) == v for k, v in kind.items())
        }
    for name in names:
        for arch in options.arch.split(","):
            row = kept.get((name, arch), {})
            if row.get("verdict") == "right":
                verdicts["right"] += 1
                continue
            row = in_child(name, arch, options)
            verdicts[row["verdict"]] += 1
            slow = " (not the first set of flags)" if row.get("fallbacks") else ""
            many = f"{row.get('kernels')} kernels, {len(row.get('scratch', ''))} with scratch"
            what = f"{row['error']:.1e}{slow}, {many}" if "error" in row else row.get("said", "")
            seconds = f"{row.get('compile_s', '')} s, {row.get('run_s', '')} s"
            print(
                f"{Path(name).stem:<20} {arch:<8} {row['verdict']:<8} {what}  {seconds}", flush=True
            )
            if options.out:
                with options.out.open("a") as f:
                    f.write(json.dumps({"name": name, "arch": arch, **kind, **row}) + "\n")
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return 0 if set(verdicts) == {"right"} else 1


__all__ = ["images", "narrow", "sequences"]  # these modules register their models

if __name__ == "__main__":
    sys.exit(main())
