"""verify: a target's outputs against those of a reference."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.debug.compare import Comparison, as_array, compare_all
from mgx_mlir.debug.conditioning import Conditioning
from mgx_mlir.debug.draws import draws
from mgx_mlir.debug.tolerances import Tolerances
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.blame import blame, case_of
from mgx_mlir.tools.driver.colour import Tone, write_in
from mgx_mlir.tools.driver.compile_model import compile_model
from mgx_mlir.tools.driver.conditioning import ill_conditioned
from mgx_mlir.tools.driver.emit import FORMS, emit, form_of
from mgx_mlir.tools.driver.input_data import allocate, check_files
from mgx_mlir.tools.driver.limits import limits_of
from mgx_mlir.tools.driver.model import Model, load_passes
from mgx_mlir.tools.driver.options import HELP, REPORTERS, SIZES, VERIFY
from mgx_mlir.tools.driver.precision import PRECISIONS, STEPS, tolerances_in
from mgx_mlir.tools.driver.progress import say, step, working
from mgx_mlir.tools.driver.read_model import read
from mgx_mlir.tools.driver.shown import listing
from mgx_mlir.tools.driver.target_choice import TargetChoice, choose_target, code_for
from mgx_mlir.tools.driver.verify_report import (
    conditioning_json,
    failure_lines,
    output_json,
    row,
    write_json,
)

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Runs the model on a target and on a reference with the same inputs and compares each output, by
name: elementwise, |target - reference| <= atol * s + rtol * |reference|, and by rms error
relative to the largest magnitude. Both must hold. s is 1 for a stated --atol; by default it is
the reference's largest magnitude. Integers must be equal, or within a stated --atol. Limits are
rms 1e-5, others 5e-5; for outputs that are 16- or 8-bit floats, or computed from such, and with
--fp16, --bf16, --int8 and --fp8 (s at most 1), rms 0.08, others 0.04, of --int4-weights all 0.25.
MIGRAPHX_VERIFY_ENABLE_ALLCLOSE=1 takes the default atol literally too, 0 leaves rms alone;
MIGRAPHX_VERIFY_DUMP_DIFF=1 prints both sides of what fails. Exit status 1 when an output differs,
in value, shape or type; strings must be equal. 2 if the outputs that differ are ill-conditioned:
every instruction is right on its own operands, and moving numbers by one ulp changes the outputs
of the reference as much.

The reference is `ref`, which interprets each operator in numpy; with --ort it is onnxruntime,
which shares nothing with this package. --against OTHER.onnx makes the reference side, either of
them, read another model with the same inputs: two versions of a model can be compared. It reads
without the passes of --optimize and --apply-pass, so that these are verified as well.
--compiled-model FILE.mxr takes the target side from what was compiled before.

--per-instruction builds the program once more with every result as an output, runs that, and
lists the instructions that are wrong on the target's own operands, and those that only inherit an
error. --bisect finds the first wrong one, and --reduce removes all that is not needed for the
failure; both write a small failing model to disk.

An output's line has its errors; of more than eight, only those that fail are listed. --verbose
lists all, and prints the loaded program and those of both sides, as options of the output form
do. With --json the report is printed, or written to --output, as JSON instead."""
OPTIONS = (*REPORTERS, SIZES, *VERIFY, HELP)

LISTED = 8  # outputs that have a line each without --verbose
UNDECIDED = 2  # exit code "could not": differing outputs may be rounding
MODES = ("--per-instruction", "--bisect", "--reduce")
# options that ask for programs to be printed
_LISTINGS = ("--verbose", "--migraphx-lines", "--output", "--text-version", "--brief",
             "--enable-offload-copy", "--debug-symbols", *FORMS)  # fmt: skip


@dataclass
class Reference:
    """The side compared with: its name, its outputs' names, and how it runs."""

    name: str
    output_names: Sequence[str]
    run: Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]]


def run(args: Arguments) -> int:
    """Compare the model with a reference; return 1 where an output fails."""
    model = Model(args)
    report = "--json" in args
    lists = _lists(args)
    if not report:
        form_of(args)
    # the reference is the model as in its file: passes are verified too
    other = model
    if "--against" in args or model.passes or model.precisions:
        other = Model(args, args.get("--against"), plain=True)
    held = _held(args)
    choice = choose_target(args, runs=True, held=held, model=model)
    held = code_for(held, choice)
    _check(args, other, choice)
    check_files(args)
    program = read(model)
    if lists:
        emit(args, program)
        sys.stdout.write("\n")
    reference = _reference(args, other)
    compiled = held or compile_model(args, model, choice)
    if lists:
        sys.stdout.write(listing(args, compiled))
        sys.stdout.write("\n")
    inputs = compiled.signature.strings_for(
        allocate(args, model, compiled.signature, draws(program))
    )
    with step(f"Running {choice.target} ..."):
        got = compiled.run(inputs)
    with step(f"Running {reference.name} ..."):
        wanted = reference.run(inputs)
    each = _limits(args, model, program, len(compiled.output_names))
    sides = (choice.target, reference.name)
    with working("Comparing"):
        found = compare_all(compiled.output_names, got, reference.output_names, wanted, each, sides)
    failed = [c.name for c in found if not c.passed]
    result: dict[str, Any] = {
        "report": "mgx-driver verify 1", "model": model.name, "target": sides[0],
        "reference": sides[1], "passed": not failed, "outputs": [output_json(c) for c in found],
    }  # fmt: skip
    moves = _moves(args, model, other, choice, compiled, inputs, found, wanted) if failed else {}
    result["ill_conditioned"] = [conditioning_json(c) for c in moves.values()] or None
    if not report:
        _print_outputs(args, model.name, found, got, wanted, reference, sides, moves)
    status = UNDECIDED if moves else 1 if failed else 0
    mode = args.only_one(*MODES)
    if mode is not None:
        arrays = _arrays(compiled, inputs)
        blamed = blame(args, model, other, choice, arrays, bool(failed), result)
        status = status if moves else max(status, blamed)
    if report:
        result["passed"] = status == 0
        write_json(args, result)
        return status
    limits = " or ".join(dict.fromkeys(map(str, each))) or "no outputs"
    between = f"{sides[0]}{_after(model)} and {sides[1]}"
    if moves:
        differ = f": {model.name}: {between} differ in {', '.join(failed)} ({limits})"
        _verdict("odd", "ill-conditioned", differ)
        say("Every instruction is right, and a change of one ulp moves the outputs as far: they")
        say("cannot tell a fault from rounding. Compare other outputs, or state wider limits")
        return status
    if failed:
        differ = f": {model.name}: {between} differ in {', '.join(failed)} ({limits})"
        _verdict("bad", "FAILED", differ)
        if _overflowed(args, got, wanted):
            say("note: f16 ends at 65504, the model's values are larger; --bf16 has f32's range")
        elif mode is None:
            say(f"note: {_where_to_look(args)}")
        return 1
    if status:
        _verdict(
            "bad", "FAILED", f": {model.name}: the outputs agree, instructions differ ({limits})"
        )
        return status
    count = "1 output" if len(found) == 1 else f"{len(found)} outputs{_worst(found)}"
    if "--migraphx-lines" in args:
        say("MIGraphX verification passed successfully.")
    _verdict("good", "verification passed", f": {between} agree in {count} ({limits})")
    return 0


def _arrays(compiled: CompiledProgram, inputs: Mapping[str, Any]) -> list[np.ndarray]:
    """Return the program's own inputs: numbers for strings."""
    signature = compiled.signature
    return signature.check_inputs(
        signature.numbered(inputs)[0] if signature.takes_texts else inputs
    )


def _verdict(tone: Tone, word: str, text: str) -> None:
    write_in(sys.stdout, tone, word)
    print(text)


def _lists(args: Arguments) -> bool:
    """Return whether the programs are printed."""
    return "--json" not in args and any(flag in args for flag in _LISTINGS)


def _after(model: Model) -> str:
    """Return " after" with the passes that changed the model, "" without passes."""
    names = [p.name for p in model.passes]
    if not names:
        return ""
    return f" after {', '.join(names)}" if len(names) <= 3 else f" after {len(names)} passes"


def _worst(found: Sequence[Comparison]) -> str:
    """Write which of several outputs comes nearest to its limit, and its error."""
    by_limit = {c.name: c.rms / c.limits.rms for c in found if c.limits and c.limits.rms}
    if not any(by_limit.values()):
        return ""
    name = max(by_limit, key=lambda n: by_limit[n])
    return f", worst {name} with rms {next(c.rms for c in found if c.name == name):.3g}"


def _overflowed(args: Arguments, got: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Return whether --fp16 gave NaN or infinities, or the reference is beyond f16's range."""

    def largest(values: Sequence[Any]) -> float:
        """Return the largest magnitude; NaN or infinity if there is one."""
        arrays = [a for a in map(as_array, values) if a.dtype.kind == "f" and a.size]
        return max((float(np.abs(a).max()) for a in arrays), default=0.0, key=_nan_first)

    expected = largest(wanted)
    limit = float(np.finfo(np.float16).max)
    return "--fp16" in args and bool(
        np.isfinite(expected) and (expected > limit or not np.isfinite(largest(got)))
    )


def _nan_first(x: float) -> float:
    return np.inf if np.isnan(x) else x


def _where_to_look(args: Arguments) -> str:
    if "--against" in args or "--compiled-model" in args:
        return "--per-instruction, --bisect and --reduce look for the cause in one model's file"
    if "--ort" in args:
        return (
            "without --ort the target is compared with ref: that separates importer errors "
            "from kernel errors"
        )
    return (
        "--bisect names the first wrong instruction, or the pass, and leaves a small model that "
        "fails (docs/howto/wrong-result.md)"
    )


def _print_outputs(
    args: Arguments,
    model: str,
    found: Sequence[Comparison],
    got: Sequence[Any],
    wanted: Sequence[Any],
    reference: Reference,
    sides: tuple[str, str],
    moves: Mapping[str, Conditioning],
) -> None:
    """Print a row for each output that fails, and for the others where they are few."""
    every = len(found) <= LISTED or "--verbose" in args
    quiet = {c.name for c in found if not every and c.passed and not c.warnings}
    by_name = dict(zip(reference.output_names, wanted, strict=True))
    for i, c in enumerate(found):
        if c.name in quiet:
            continue
        print(row(c, sides, moves.get(c.name)))
        if "--migraphx-lines" in args and not c.passed and c.name not in moves:
            a = got[i] if i < len(got) else None
            b = by_name.get(c.name, wanted[i] if i < len(wanted) else None)
            arrays = (None if v is None or isinstance(v, list) else np.asarray(v) for v in (a, b))
            print("\n".join(failure_lines(c, model, *arrays)))
    if quiet:
        other = "other " if len(quiet) < len(found) else ""
        print(f"{len(quiet)} {other}outputs pass; --verbose lists them")


def _moves(
    args: Arguments,
    model: Model,
    other: Model,
    choice: TargetChoice,
    compiled: CompiledProgram,
    inputs: Mapping[str, Any],
    found: Sequence[Comparison],
    wanted: Sequence[np.ndarray],
) -> dict[str, Conditioning]:
    """Return how each failing output moves, if all of them are ill-conditioned, else nothing."""
    if "--against" in args or "--compiled-model" in args or choice.target == "ref":
        return {}  # not one model on two sides
    if any(flag in args for flag in ("--rms-tol", "--atol", "--rtol")):
        return {}  # who states a limit wants it held
    case = case_of(args, model, other, choice, _arrays(compiled, inputs))
    least = max((STEPS[t] for t in model.precisions), default=0.0)
    return ill_conditioned(case, found, wanted, least)


def _limits(args: Arguments, model: Model, program: ProgramIR, count: int) -> list[Tolerances]:
    """Return the limits of each output; a list that is one output has its elements' widest."""
    each = [limits_of(args)(t) for t in tolerances_in(program, model.precisions)]
    if len(each) == count:
        return each
    return [max(each, key=lambda t: t.rms, default=Tolerances())] * count


def _held(args: Arguments) -> CompiledProgram | None:
    """Return the compiled program of --compiled-model. Errors: FileError where there is none."""
    path = args.get("--compiled-model")
    if path is None:
        return None
    from mgx_mlir.api.files import load  # start-up: only what the command asks for is loaded

    trust = True if "--trust-code" in args else None
    found = load(path, emulate="--emulate" in args, trust_code=trust)
    if not found.is_compiled():
        raise FileError(
            "the file holds no compiled program", location=path,
            notes=["mgx-driver compile MODEL -o FILE.mxr writes one"],
        )  # fmt: skip
    code = found.compiled
    archs = code.archs if isinstance(code, IreeProgram) and code.target == "gpu" else ()
    say(f"Compiled: {path} holds code for {', '.join([code.target, *archs])}")
    if code.target == "cpu":
        code.threads = args.get("--threads")
    return code


def _check(args: Arguments, other: Model, choice: TargetChoice) -> None:
    mode = args.only_one(*MODES)
    if mode is not None:
        for flag in ("--against", "--compiled-model", "--ort"):
            if flag in args:
                note = f"{mode} compares with ref on the same model"
                raise UsageError(f"expected one of {mode} and {flag}, got both", notes=[note])
        if choice.target == "ref":
            raise UsageError(f"option '{mode}' is for --cpu and --gpu, the target is ref")
    if "--minimal" in args and mode not in ("--bisect", "--reduce"):
        raise UsageError("option '--minimal' is for --bisect and --reduce")
    if "--compiled-model" in args and (load_passes(args) or any(f in args for f in PRECISIONS)):
        raise UsageError("a compiled model takes no passes and no other types")
    if "--ort" in args:
        if not other.is_onnx:
            raise UsageError(f"option '--ort' needs an ONNX model, got {other.name}")
        if "--ref-use-double" in args:
            raise UsageError("expected one of --ort and --ref-use-double, got both")
    elif choice.target == "ref" and other.path == args.file and not _changes(args):
        raise UsageError(
            "the target is ref, and so is the reference: nothing is compared",
            notes=["give --cpu or --gpu, --apply-pass, or compare with --ort or --against"],
        )


def _changes(args: Arguments) -> bool:
    """Return whether the target side runs another program than the reference side."""
    flags = ("--against", *PRECISIONS, "--compiled-model")
    return any(f in args for f in flags) or bool(load_passes(args))


def _reference(args: Arguments, model: Model) -> Reference:
    """Make the reference side ready to run."""
    where = f" of {os.path.basename(model.name)}" if "--against" in args else ""
    if "--ort" in args:
        # a package that a user may not have
        from mgx_mlir.debug.onnxruntime import OnnxRuntimeSession

        assert model.path is not None
        with step("Loading into onnxruntime ..."):
            session = OnnxRuntimeSession(model.path)
        return Reference(f"onnxruntime{where}", session.output_names, session.run)
    if "--against" in args:
        read(model)
    with step("Preparing the reference ..."):
        compiled = compile_program(model.program, "ref", ref_double="--ref-use-double" in args)
    if _lists(args):
        sys.stdout.write(listing(args, compiled))
        sys.stdout.write("\n")
    return Reference(f"ref{where}", compiled.output_names, compiled.run)
