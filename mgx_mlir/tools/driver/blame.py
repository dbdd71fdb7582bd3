"""--per-instruction, --bisect and --reduce of verify: find wrong instructions, and a small
failing model.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.debug.blame import Case, Culprit, find_kernel, minimal_model
from mgx_mlir.debug.examine import Examined, Finding
from mgx_mlir.debug.extract import SUFFIXES, save_inputs, save_program
from mgx_mlir.printers.emit import emit as print_program
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.text import instruction_text
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.limits import limits_of
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.precision import PRECISIONS
from mgx_mlir.tools.driver.progress import say, step
from mgx_mlir.tools.driver.target_choice import TargetChoice
from mgx_mlir.tools.driver.verify_report import figures, output_json

_COUNTED = {
    "right": ("right", "right"),
    "wrong": ("wrong by itself", "wrong by themselves"),
    "inherited": ("wrong because of its operands", "wrong because of their operands"),
    "grown": ("with grown differences", "with grown differences"),
}

_REPEATED = (
    "--optimize", "--apply-pass", *PRECISIONS, "--calibrate",
    "--calibration-method", "--arch", "--threads", "--disable-fast-math", "--remove-qdq-pairs",
    "--kernel-boundaries", "--emulate", "--ref-use-double", "--rms-tol", "--atol", "--rtol",
    "--seed",
)  # fmt: skip
SECONDS = 600.0  # seconds of --reduce
_SAID = {
    "wrong": "wrong by itself",
    "inherited": "wrong because of its operands",
    "grown": "not wrong by itself: the errors of its operands grew beyond the limits",
}


def blame(
    args: Arguments,
    model: Model,
    plain: Model,
    choice: TargetChoice,
    arrays: Sequence[np.ndarray],
    failed: bool,
    result: dict[str, Any],
) -> int:
    """Do what the option asks; the exit status it makes. `result` is the JSON report."""
    case = case_of(args, model, plain, choice, arrays)
    out = _Output(args, choice.target, result)
    if "--per-instruction" in args:
        return _per_instruction(case, out, failed)
    if not failed:
        out.line("Nothing fails: there is nothing to find")
        return 0
    target = _minimal_path(args, model)
    if "--bisect" in args:
        return _bisect(case, out, target)
    return _reduce(case, out, target)


def case_of(
    args: Arguments, model: Model, plain: Model, choice: TargetChoice, arrays: Sequence[np.ndarray]
) -> Case:
    """Make the case to compare, as the options say."""
    return Case(
        plain.program,
        list(arrays),
        choice.target,
        {**choice.options(), "exhaustive_tune": False},
        model.changed,
        model.passes,
        bool(model.precisions),
        limits_of(args),
        "f64" if "--ref-use-double" in args else "f32",
        args.get("--seed", 0),
    )


class _Output:
    """Output of the report: lines to stdout without --json, and entries of its object."""

    def __init__(self, args: Arguments, target: str, result: dict[str, Any]) -> None:
        self.args, self.target = args, target
        self.is_json, self.result = "--json" in args, result
        self.version = args.get("--text-version", "seed")

    def line(self, text: str) -> None:
        if self.is_json:
            say(text)
        else:
            print(text)

    def lines_of(self, program: ProgramIR, prefix: str = "") -> Mapping[Any, ListedInstruction]:
        """Return the printed line of each operation."""
        listing = list_program(program, numbering=self.version, kernel_prefix=prefix)
        found = {}
        for i in listing.main.visible():
            if i.operation is not None and i.op != "get_tuple_elem":
                found[i.operation] = i
        return found


def _text(program: ProgramIR, line: ListedInstruction) -> str:
    with program.store.active():
        return instruction_text(line)


def _per_instruction(case: Case, out: _Output, failed: bool) -> int:
    with step("Running every instruction ..."):
        found = _instructions(case)
    if found is not None:
        _report(case.program, found, out, "instruction", "")
        if not failed or found.wrong:
            return 0 if found.is_right else 1
    # a failure of the compiled program may vanish if every result is kept
    with step("Running every kernel ..."):
        culprit = find_kernel(case)
    _report(culprit.program, culprit.examined, out, "kernel", case.target)
    if failed:
        _look_at_passes(case, culprit, out)
    return 1 if failed or not culprit.examined.is_right else 0


def _instructions(case: Case) -> Examined | None:
    """Check each instruction; None where that build cannot be made, which is printed."""
    try:
        return case.instructions()
    except MgxError as e:
        say(f"warning: cannot build the program with every instruction as a result: {e.message}")
        say("note: checking the kernels of the compiled program instead")
        return None


def _report(program: ProgramIR, found: Examined, out: _Output, what: str, prefix: str) -> None:
    """Print a line for each finding that is not right, and the counts."""
    lines = out.lines_of(program, prefix)
    rows = []
    for f in found.findings:
        line = lines[f.operation]
        if f.verdict != "right":
            out.line(_text(program, line))
            out.line(f"  {_SAID[f.verdict]}: {figures(f.worst)}")
            for index, a, b in f.worst.different[:1]:
                where = ", ".join(map(str, index))
                out.line(f"  at {{{where}}}: {f.worst.sides[0]} {a:.7g}, ref {b:.7g}")
            for text in (t for t in f.worst.problems if "shape" in t):
                out.line(f"  {text}")
        rows.append(_json(f, line))
    out.result[f"{what}s"] = rows
    counts = [
        f"{n} {one if n == 1 else several}"
        for verdict, (one, several) in _COUNTED.items()
        if (n := sum(f.verdict == verdict for f in found.findings))
    ]
    total = len(found.findings)
    runs = "one run" if found.runs == 1 else f"{found.runs} runs"
    said = f" in {runs}: {', '.join(counts)}" if counts else ": nothing is computed"
    out.line(f"{total} {what}{'' if total == 1 else 's'}{said}")


def _json(f: Finding, line: ListedInstruction) -> dict[str, Any]:
    return {
        "instruction": line.lhs,
        "op": line.op,
        "symbols": line.symbols,
        "verdict": f.verdict,
        "own": [output_json(c) for c in f.own],
        "chain": [output_json(c) for c in f.chain],
    }


def _look_at_passes(case: Case, culprit: Culprit, out: _Output) -> None:
    """Find the pass that changed what the model means, where no part of the program is wrong."""
    if culprit.finding is not None:
        return
    with step("Running the reference after every pass ..."):
        name = case.first_wrong_pass()
    out.result["wrong_pass"] = name
    if name is not None:
        out.line(f"The pass {name} changes what the model computes")
    else:
        out.line("No instruction, kernel or pass is wrong by itself: the differences add up")


# ---- small models --------------------------------------------------------------------------------


def _minimal_path(args: Arguments, model: Model) -> Path:
    """Return the path of the minimal model."""
    stem = Path(model.path).stem if model.path is not None else "test"
    path = Path(args.get("--minimal", f"{stem}.minimal.mxr"))
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"option '--minimal' expected a name that ends in {', '.join(SUFFIXES)}, got '{path}'"
        )
    return path


def _bisect(case: Case, out: _Output, path: Path) -> int:
    with step("Looking for the first instruction that is wrong ..."):
        found = _instructions(case)
        if found is not None and found.wrong:
            culprit = Culprit("instruction", case.program, found, found.wrong[0])
        else:
            culprit = find_kernel(case)
    prefix = case.target if culprit.level == "kernel" else ""
    _report(culprit.program, culprit.examined, out, culprit.level, prefix)
    _look_at_passes(case, culprit, out)
    small = None
    if culprit.finding is not None:
        line = out.lines_of(culprit.program, prefix)[culprit.finding.operation]
        number = line.lhs.removeprefix("@")
        out.line(f"Failure starts at: {number}")
        out.line(_text(culprit.program, line))
        out.result["failure_starts_at"] = number
        with step("Looking for a model of it that fails alone ..."):
            small = minimal_model(case, culprit)
    if small is None:
        out.line("It does not fail alone; --reduce looks for the smallest program that fails")
        return 1
    _leave(out, small.program, path, small.inputs)
    return 1


def _reduce(case: Case, out: _Output, path: Path) -> int:
    with step("Reducing ..."):
        if not case.differences(case.program):
            out.line("It does not fail on drawn inputs, so it cannot be reduced")
            return 1
        save_program(case.program, path)
        found = case.reduced(case.program, lambda p: save_program(p, path), say, seconds=SECONDS)
    _leave(out, found, path, {})
    return 1


def _leave(out: _Output, program: ProgramIR, path: Path, inputs: Mapping[str, np.ndarray]) -> None:
    """Write the small model, show it, and print how to reproduce the failure."""
    save_program(program, path)
    words = ["mgx-driver", "verify", str(path), *_same_options(out.args, out.target)]
    if inputs:
        beside = path.with_suffix(".inputs.npz")
        save_inputs(inputs, beside)
        words += ["--load-arg", *(w for name in inputs for w in (f"@{name}", str(beside)))]
    how = shlex.join(words)
    if not out.is_json:
        print_program(program, sys.stdout, "text", version=out.version)
    out.line(f"Wrote: {path}, which fails by itself: {how}")
    out.result["minimal"] = str(path)
    out.result["minimal_command"] = how


def _same_options(args: Arguments, target: str) -> list[str]:
    """Return the options under which the minimal model fails."""
    words = [f"--{target}"]
    for flag in _REPEATED:
        if flag in args:
            value = args.get(flag)
            words.append(flag)
            if value is not True:
                words += [str(v) for v in value] if isinstance(value, list) else [str(value)]
    return words
