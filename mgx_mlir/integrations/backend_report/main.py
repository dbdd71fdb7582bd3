"""Command line that runs the installed onnx package's backend suite against mgx_mlir.

    python -m mgx_mlir.backend_report --json out.json --at-least 1930

Cases run in worker processes under a time limit and a memory cap. In them onnx.reference and
onnxruntime raise, and so does every operator's numpy reference while a program runs. Outputs are
compared here, by the suite's own function and tolerances. Each case ends as one of
results.STATUSES. Exit codes: 0 if nothing is wrong or crashed and `--at-least` cases passed, 2 if
the suite could not run, else 1.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.integrations.backend_report.cases import KINDS
from mgx_mlir.integrations.backend_report.pool import ROOT, Settings, run_all
from mgx_mlir.integrations.backend_report.results import (
    Result,
    bad,
    count,
    regressions,
    show,
    write_json,
)

CASES = "mgx_mlir.integrations.backend_report.cases"


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    p = argparse.ArgumentParser(
        prog="python -m mgx_mlir.backend_report",
        description="run the onnx package's backend suite against mgx_mlir",
    )
    p.add_argument("--target", choices=("cpu", "gpu"), default="cpu")
    p.add_argument("--threads", type=int, default=1, help="threads of the compiled program")
    p.add_argument("--jobs", type=int, default=available_cpus(), help="worker processes")
    p.add_argument("--timeout", type=float, default=120, help="seconds for one case")
    p.add_argument("--memory-gb", type=float, default=12, help="address space of a process")
    p.add_argument("--cache", action="store_true", help="take programs from the compile cache")
    p.add_argument("-k", metavar="REGEX", default="", help="only the cases whose name matches")
    p.add_argument("--kind", choices=KINDS, action="append", help="only this group")
    p.add_argument("--every", type=int, default=1, help="every n-th case only")
    p.add_argument("--list", type=Path, action="append", metavar="FILE",
                   help="only the cases named in the file, one a line; repeatable")  # fmt: skip
    p.add_argument("--at-least", type=int, default=0, help="cases that must pass")
    p.add_argument("--json", type=Path)
    p.add_argument("--earlier", type=Path, help="an earlier run's --json: list the regressions")
    p.add_argument("--remember", type=Path, metavar="FILE",
                   help="add the names of the cases that did not pass to the file")  # fmt: skip
    p.add_argument("--quiet", action="store_true", help="do not print a line for each failed case")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite as the command line asks; return the exit status."""
    options = parser().parse_args(argv)
    settings = Settings(
        options.target,
        options.threads,
        options.jobs,
        options.timeout,
        options.memory_gb,
        options.cache,
    )
    with tempfile.TemporaryDirectory(prefix="mgx-backend-") as folder:
        work = Path(folder)
        collected = subprocess.run(
            [sys.executable, "-m", CASES, str(work / "cases")],
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        if collected.returncode:
            print(f"error: cannot collect the cases\n{collected.stderr}", file=sys.stderr)
            return 2
        chosen = choose(sorted((work / "cases").glob("*.pkl")), options)
        if not chosen:
            print("error: no case is chosen", file=sys.stderr)
            return 2
        start = time.monotonic()
        results = run_all(chosen, settings, work, lambda r: progress(r, len(chosen), options.quiet))
        seconds = time.monotonic() - start
    return report(results, seconds, options)


def choose(paths: Sequence[Path], options: argparse.Namespace) -> list[Path]:
    """Select the cases that the options ask for; a file is named <group>.<case>.pkl."""
    names = None if options.list is None else {n for f in options.list for n in read_list(f)}
    found = [
        path
        for path in paths
        if re.search(options.k, path.stem)
        and (not options.kind or path.name.split(".")[0] in options.kind)
        and (names is None or path.stem.partition(".")[2] in names)
    ]
    return found[:: options.every]


def read_list(path: Path) -> list[str]:
    """Read the names in a list of cases; '#' starts a comment."""
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def remember(path: Path, results: Sequence[Result]) -> int:
    """Add the cases that did not pass to a list; return the number of new ones."""
    known = read_list(path) if path.exists() else []
    new = sorted({r["name"] for r in results if r["status"] != "passed"} - set(known))
    with path.open("a") as f:
        f.writelines(f"{name}\n" for name in new)
    return len(new)


def progress(results: Sequence[Result], total: int, quiet: bool) -> None:
    """Print the last result if it failed, and the running count on a terminal."""
    last = results[-1]
    if last["status"] not in ("passed", "unsupported") and not quiet:
        first = last["detail"].splitlines()[0] if last["detail"] else ""
        print(f"\r{last['status']:>11}  {last['name']}: {first[:200]}", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"\r{len(results)}/{total}", end="", file=sys.stderr, flush=True)


def report(results: list[Result], seconds: float, options: argparse.Namespace) -> int:
    """Print and write the results; return the exit code."""
    show(results, seconds)
    if options.json:
        write_json(options.json, results, seconds, options.target)
    if options.remember:
        print(f"{remember(options.remember, results)} cases added to {options.remember}")
    lost = regressions(results, options.earlier) if options.earlier else []
    print("".join(f"regression: {line}\n" for line in lost), end="")
    wrong, passed = len(bad(results)) + len(lost), count(results)["total"]["passed"]
    if not wrong and passed >= options.at_least:
        return 0
    print(f"not accepted: {wrong} wrong, crashed or lost; {passed} passed")
    return 1
