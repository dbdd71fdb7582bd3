"""Draws graphs, compiles each for an AMD GPU, and runs it on the emulator with all its checks.

    python -m benchmarks.emulator.drawn --seeds 60                  # each on one of six GPUs
    python -m benchmarks.emulator.drawn --seeds 7 --first 100 --arch gfx942,gfx1100
    python -m benchmarks.emulator.drawn --first 103 --arch gfx1100 --text   # the model, and one run

A graph fails where it is refused, takes more than 120 CPU seconds to compile, spills, has scratch
memory, is compiled again without tiles, raises a check's alarm, or differs from onnxruntime (f64
where that is coarse). 8-bit floats that a GPU lacks are converted, by a second compile: that is
no failure. gfx906 has no emulator: its code is compiled and looked at. One line for each graph;
exit code 1 where one fails.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
import traceback
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import onnx.printer

import mgx_mlir
from benchmarks.emulator.drawn import dense, moves, sequences
from benchmarks.emulator.drawn.graph import KINDS, Drawn, drawn
from benchmarks.emulator.held_out.__main__ import difference, wanted
from mgx_mlir.core.errors import MgxError
from mgx_mlir.targets.report import gpu_report
from tests.emulator.models import Case

ARCHES = ("gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1102", "gfx1201")
NOT_EMULATED = ("gfx906",)
MOST_SECONDS = 120  # limit of a compile, in CPU seconds
CONVERTED = "F8E5M2 and F8E4M3FN types are not supported"  # IREE's error on older GPUs


def cpu_seconds() -> float:
    """CPU time of this process and of those below it: compile workers stay for the next kernel."""
    rows = [p.read_text().rsplit(")", 1) for p in Path("/proc").glob("[0-9]*/stat")]
    parents, ticks = {}, {}
    for head, rest in rows:
        number, fields = int(head.split()[0]), rest.split()
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    for _ in range(4):  # generations
        mine |= {n for n, parent in parents.items() if parent in mine}
    return sum(ticks.get(n, 0) for n in mine) / os.sysconf("SC_CLK_TCK")


def examine(net: Drawn, arch: str) -> dict[str, Any]:
    """Compile a graph for one architecture and compare its calls."""
    model = net.finished()
    emulated = arch not in NOT_EMULATED
    row: dict[str, Any] = {"bad": []}
    start = cpu_seconds()
    program = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch=arch, emulate=emulated, cache=False
    )
    row["compile_s"] = round(cpu_seconds() - start, 1)
    made = program.executable
    if row["compile_s"] > MOST_SECONDS:
        row["bad"].append(f"{row['compile_s']} CPU seconds")
    row["bad"] += [f"fallback: {f}" for f in made.fallbacks if CONVERTED not in str(f)]
    report = gpu_report(made.vmfb, made.dispatches)
    row["kernels"] = len(report.kernels)
    row["bad"] += [
        f"{k.name}: {k.vgprs} registers, {k.vgpr_spills} and {k.sgpr_spills} spilled, "
        f"{k.scratch} B of scratch"
        for k in report.kernels
        if k.spills or k.scratch
    ]
    if not emulated:
        return row
    row["error"], start = 0.0, cpu_seconds()
    for call in net.calls(model):
        case = Case(model, call)
        want = wanted(case, net.oracle) if net.wanted is None else net.wanted(call)
        sizes = {n: a.shape for n, a in call.items()}
        try:
            got = [np.asarray(a) for a in program.run(call)]
        except MgxError as e:
            row["bad"].append(f"run of {sizes}: {e}")
            break
        errors = [
            0.0 if a.shape == b.shape and b.size == 0 else difference(_wide(a), b)
            for a, b in zip(got, want, strict=True)
        ]
        row["error"] = max(row["error"], *errors)
        if max(errors) > net.error_limit():
            row["bad"].append(f"WRONG, of {sizes}: {errors}, limit {net.error_limit()}")
    row["run_s"] = round(cpu_seconds() - start, 1)
    return row


def _wide(a: np.ndarray) -> np.ndarray:
    return a if a.dtype.kind in "biu" or a.dtype.itemsize > 2 else a.astype(np.float32)


def in_child(seed: int, name: str | None, arch: str) -> dict[str, Any]:
    """Examine a graph in a process of its own: what crashes is a row, too."""
    context = multiprocessing.get_context("spawn")  # a forked one could not open the device again
    read, write = context.Pipe(duplex=False)
    child = context.Process(target=_examine_in_child, args=(write, seed, name, arch))
    child.start()
    write.close()
    try:
        row = read.recv()
    except EOFError:
        row = None
    child.join()
    return row or {"bad": [f"crashed (status {child.exitcode})"]}


def _examine_in_child(write: Connection, seed: int, name: str | None, arch: str) -> None:
    os.environ["MGX_EMULATE_CHECK"] = "all"
    try:
        row = examine(drawn(seed, name)[1], arch)
    except Exception as e:
        row = {"bad": [f"{type(e).__name__}: {e}"], "trace": traceback.format_exc()[-2000:]}
    write.send(row)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=1, help="how many graphs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kind", help="of this kind alone")
    parser.add_argument("--arch", help="all of these, comma-separated; default: in turns")
    parser.add_argument("--text", action="store_true", help="print each model")
    parser.add_argument("--out", type=Path, help="append a line of JSON for each row")
    options = parser.parse_args(argv)
    verdicts: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.seeds):
        name, net = drawn(seed, options.kind)
        if options.text:
            print(onnx.printer.to_text(net.finished()))
        turn = ARCHES[(seed + seed // len(KINDS)) % len(ARCHES)]
        for arch in options.arch.split(",") if options.arch else [turn]:
            begun = time.perf_counter()
            row = in_child(seed, options.kind, arch)
            verdicts["bad" if row["bad"] else "right"] += 1
            what = f"{net.type}{' dynamic' if net.is_dynamic else ''}"
            numbers = " ".join(f"{k} {row[k]}" for k in ("kernels", "compile_s", "run_s", "error")
                               if k in row)  # fmt: skip
            wall = time.perf_counter() - begun
            print(f"{seed} {name} {arch} {what}: {'BAD' if row['bad'] else 'right'} {numbers} "
                  f"({wall:.0f} s)", flush=True)  # fmt: skip
            for bad in row["bad"]:
                print(f"    {bad[:1500]}", flush=True)
            if options.out:
                with options.out.open("a") as f:
                    f.write(json.dumps({"seed": seed, "kind": name, "arch": arch, **row}) + "\n")
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return int("bad" in verdicts)


__all__ = ["dense", "moves", "sequences"]  # these modules register their kinds

if __name__ == "__main__":
    sys.exit(main())
