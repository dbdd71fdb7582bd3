"""Runs the checks: static ones, lit, pytest. `python tests/run.py [static] [lit] [pytest]`.

`python tests/run.py torch` runs those that need PyTorch, where it is installed. `--times`: the
tests and files that take most CPU seconds are listed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable

STEPS: dict[str, list[list[str]]] = {
    "static": [
        [PYTHON, "-m", "ruff", "check", "."],
        [PYTHON, "-m", "ruff", "format", "--check", "."],
        [PYTHON, "-c", "import sys; from importlinter.cli import lint_imports; "
                       "sys.exit(lint_imports())"],
        # this environment's Python: else pyright looks for packages in the first Python on PATH
        [PYTHON, "-m", "pyright", "--pythonpath", PYTHON],
    ],
    # a call of main: lit.main as a script does nothing and succeeds
    "lit": [[PYTHON, "-c", "from lit.main import main; main()", "-s", "-v", "-j2", "lit"]],
    # one file at a time for each process, in the order of conftest.py
    "pytest": [
        [PYTHON, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    ],
    "torch": [[PYTHON, "-m", "pytest", "tests/integrations/torch", "-m", "slow or not slow"]],
}  # fmt: skip
DEFAULT = ("static", "lit", "pytest")  # steps that need only the `dev` extra
TIMES = "--times"


def step(
    name: str, environment: dict[str, str], out: TextIO | None = None
) -> tuple[list[str], str]:
    """Run the commands of a step; return the failed ones, and the time of all."""
    failed = []
    start = time.perf_counter()
    for command in STEPS[name]:
        print(f"\n$ {' '.join(command)}", flush=True, file=out)
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=False, stdout=out, stderr=out
        )
        if done.returncode:
            failed.append(" ".join(command[1:4]))
    return failed, f"{name}: {time.perf_counter() - start:.0f} s"


def main(wanted: list[str]) -> int:
    """Run the named steps (DEFAULT without names), every one of them, and say which failed."""
    if TIMES in wanted:
        wanted = [name for name in wanted if name != TIMES]
        for name in ("pytest", "torch"):
            STEPS[name][0] += ["-p", "tests.support.cpu_times"]
    unknown = [w for w in wanted if w not in STEPS]
    if unknown:
        known = ", ".join((*STEPS, TIMES))
        print(f"unknown step '{unknown[0]}', expected: {known}", file=sys.stderr)
        return 2
    environment = dict(os.environ, PYTHONPATH=str(ROOT))
    # bytecode is written: without it each of hundreds of processes takes a second more
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    names = list(wanted or DEFAULT)
    steps: list[tuple[list[str], str]] = []
    with ThreadPoolExecutor(1) as pool, tempfile.TemporaryFile("w+") as out:
        beside = None
        if "static" in names and len(names) > 1:
            # output comes last: pyright has work for one core, for longer than lit
            names.remove("static")
            beside = pool.submit(step, "static", environment, out)
        steps += [step(name, environment) for name in names]
        if beside is not None:
            steps.append(beside.result())
            out.seek(0)
            print(out.read(), flush=True)
    failed = [command for commands, _ in steps for command in commands]
    print("\n" + ", ".join(row for _, row in steps))
    print(f"FAILED: {'; '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
