"""verify: a target's outputs against those of a reference."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.compare import Comparison, compare_all
from mgx_mlir.debug.tolerances import output_tolerances
from mgx_mlir.driver.arguments import Arguments
from mgx_mlir.driver.compiling import Choice, choose_target, compile_model
from mgx_mlir.driver.data import allocate
from mgx_mlir.driver.emit import emit, form_of, show
from mgx_mlir.driver.model import Model, load_passes
from mgx_mlir.driver.options import HELP, RUNNERS, VERIFY
from mgx_mlir.driver.progress import step, working
from mgx_mlir.driver.reading import read

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Runs the model on a target and on a reference with the same inputs and compares each output, by
name: elementwise, |target - reference| <= atol * s + rtol * |reference|, and by rms error
relative to the largest magnitude. Both must hold. s is 1 for a stated --atol; by default it is
the reference's largest magnitude. Integers must be equal, or within a stated --atol. Limits are
rms 1e-5, others 5e-5; for programs with 16- or 8-bit floats (s at most 1) rms 0.08, others 0.04.
Exit status 1 when an output differs, in value, shape or type.

The reference is `ref`, which interprets each operator in numpy; with --ort it is onnxruntime,
which shares nothing with this package. --against OTHER.onnx makes the reference side, either of
them, read another model with the same inputs: two versions of a model can be compared. It reads
without the passes of --optimize and --apply-pass, so that these are verified as well.
The loaded program is printed, then those of the reference and the target."""
OPTIONS = (*RUNNERS, *VERIFY, HELP)


@dataclass
class Reference:
    """The side compared with: its name, its outputs' names, and how it runs."""

    name: str
    output_names: Sequence[str]
    run: Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]]


def run(args: Arguments) -> int:
    model = Model(args)
    form_of(args)
    # the reference is the model as it stands in its file: passes are verified too
    other = model
    if "--against" in args or model.passes:
        other = Model(args, args.get("--against"), plain=True)
    choice = choose_target(args, runs=True)
    _check(args, other, choice)
    program = read(model)
    emit(args, program)
    sys.stdout.write("\n")
    reference = _reference(args, other)
    compiled = compile_model(args, model, choice)
    show(args, compiled.program, kernel_prefix=choice.target)
    sys.stdout.write("\n")
    inputs = allocate(args, model, compiled.signature, program)
    with step(f"Running {choice.target} ..."):
        got = compiled.run(inputs)
    with step(f"Running {reference.name} ..."):
        wanted = reference.run(inputs)
    stated = (args.get("--rms-tol"), args.get("--atol"), args.get("--rtol"))
    each = [t.with_limits(*stated).with_environment() for t in output_tolerances(program)]
    limits = each[0] if each else "no outputs"
    sides = (choice.target, reference.name)
    with working("Comparing"):
        found = compare_all(compiled.output_names, got, reference.output_names, wanted, each, sides)
    for comparison in found:
        print(_row(comparison, sides))
    failed = [c.name for c in found if not c.passed]
    between = f"{sides[0]} and {sides[1]}"
    if failed:
        print(f"FAILED: {model.name}: {between} differ in {', '.join(failed)} ({limits})")
        return 1
    count = "1 output" if len(found) == 1 else f"{len(found)} outputs"
    print(f"verification passed: {between} agree in {count} ({limits})")
    return 0


def _check(args: Arguments, other: Model, choice: Choice) -> None:
    if "--ort" in args:
        if not other.is_onnx:
            raise UsageError(f"option '--ort' needs an ONNX model, got {other.name}")
        if "--ref-use-double" in args:
            raise UsageError("expected one of --ort and --ref-use-double, got both")
    elif choice.target == "ref" and "--against" not in args and not load_passes(args):
        raise UsageError(
            "the target is ref, and so is the reference: nothing is compared",
            notes=["give --cpu or --gpu, --apply-pass, or compare with --ort or --against"],
        )


def _reference(args: Arguments, model: Model) -> Reference:
    """The reference side, ready to run."""
    where = f" of {os.path.basename(model.name)}" if "--against" in args else ""
    if "--ort" in args:
        from mgx_mlir.debug.onnxruntime import OnnxRuntimeSession

        assert model.path is not None
        with step("Loading into onnxruntime ..."):
            session = OnnxRuntimeSession(model.path)
        return Reference(f"onnxruntime{where}", session.output_names, session.run)
    from mgx_mlir.api.compile import compile as compile_program

    if "--against" in args:
        read(model)
    with step("Compiling for ref ..."):
        compiled = compile_program(model.program, "ref", ref_double="--ref-use-double" in args)
    show(args, compiled.program, kernel_prefix="ref")
    sys.stdout.write("\n")
    return Reference(f"ref{where}", compiled.output_names, compiled.run)


def _row(c: Comparison, sides: tuple[str, str]) -> str:
    """An output's line, and one for each thing to say about it."""
    verdict = "pass" if c.passed else "FAIL"
    lines = [
        f"{c.name}: max abs diff {c.max_abs:.3g}, max rel diff {c.max_rel:.3g}, "
        f"rms {c.rms:.3g}: {verdict}"
    ]
    lines += [f"  {text}" for text in c.problems]
    for index, a, b in c.different:
        where = ", ".join(map(str, index))
        lines.append(f"  at {{{where}}}: {sides[0]} {a:.7g}, {sides[1]} {b:.7g}")
    lines += [f"  warning: {text}" for text in c.warnings]
    return "\n".join(lines)
