"""Compile the model of a command line, and print what that took."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.compiler.stats import summary, time_json, time_table
from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature, Variant
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.deadline import within
from mgx_mlir.tools.driver.emit import CODE, emit, form_of
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.precision import PRECISIONS
from mgx_mlir.tools.driver.progress import say, working
from mgx_mlir.tools.driver.read_model import announce
from mgx_mlir.tools.driver.target_choice import TargetChoice


def compile_model(
    args: Arguments,
    model: Model,
    choice: TargetChoice,
    arch: str | None = None,
    *,
    quiet: bool = False,
) -> CompiledProgram:
    """Compile a model, and print on stderr what it took.

    Its runs have the limits of the command line.
    """
    if choice.sizes and form_of(args, more=(CODE,)) in ("json", "msgpack", CODE):
        raise UsageError(
            "option '--sizes' makes a program for each size, which are no single file",
            notes=["mgx-driver bundle --batch N,... writes several batch sizes into a folder"],
        )
    compiled = _compiled(args, model, choice, arch, quiet=quiet)
    seconds, memory = args.get("--max-run-seconds"), args.get("--max-run-memory")
    limits = RunLimits.of(seconds, None if memory is None else memory << 20)
    for _, made in _by_size(compiled):
        args.compiled.append(made)
        made.limits = limits
    compiled.limits = limits
    return compiled


def _by_size(compiled: CompiledProgram) -> list[tuple[str, CompiledProgram]]:
    """Return the program, or those of each size behind what names it."""
    sized: Any = sys.modules.get("mgx_mlir.compiler.sized_program")  # who makes one has loaded it
    if sized is None or not isinstance(compiled, sized.SizedProgram):
        return [("", compiled)]
    several: Any = compiled
    return [(f"{several.dim} = {n}: ", several.program_for(n)) for n in several.sizes]


def report_times(args: Arguments) -> None:
    """Print the phases of the compiles of a command, where --time-report asks for them."""
    form = args.get("--time-report")
    for compiled in args.compiled if form else ():
        if form == "json":
            say(time_json(compiled.stats, compiled.target))
        else:
            say(f"Time of compiling for {compiled.target}:\n{time_table(compiled.stats)}")


def limited_first_call(compiled: CompiledProgram, arrays: Sequence[np.ndarray]) -> None:
    """Make one call within the limits; the timed calls after it run in this process without
    limits.
    """
    if compiled.limits is not None:
        compiled.execute(arrays)
        compiled.limits = None


def _compiled(
    args: Arguments, model: Model, choice: TargetChoice, arch: str | None, *, quiet: bool
) -> CompiledProgram:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.compiler.compile import compile as compile_program

    if not quiet:
        say("Compiling ...")
        announce(model)
    with working(f"Compiling {model.name}"), within(choice.timeout):
        # code that builds the program needs the weights, which only a fresh compile keeps
        whole = form_of(args, more=(CODE,)) in ("py", "cpp")
        held = None if whole else _held(args, model, choice)
        if held is not None:
            return held
        source = model.program if whole else model.source()
        options = {} if isinstance(source, ProgramIR) else model.options
        inputs = _tuning_inputs(model) if choice.tune else None
        compiled = compile_program(
            source, choice.target, tuning_inputs=inputs, **choice.options(arch), **options
        )
    if not quiet:
        report_compile(compiled)
    return compiled


_CHANGES_CODE = (
    "--disable-fast-math", "--remove-qdq-pairs", "--kernel-boundaries", "--optimize",
    "--apply-pass", *PRECISIONS, "--trim", "--replace-literals", "--exhaustive-tune", "--sizes",
)  # fmt: skip


def _tuning_inputs(model: Model) -> Callable[[Signature], list[np.ndarray]]:
    """Return what makes the inputs that calls are timed on: the inputs of `run`."""

    def made(signature: Signature) -> list[np.ndarray]:
        # start-up: only what the command asks for is loaded
        from mgx_mlir.debug.draws import draws
        from mgx_mlir.debug.inputs import make_inputs

        uses = draws(model.program)
        found = make_inputs(signature, uses, dims=model.input_dims, batch=model.batch)
        return list(found.values())

    return made


def _held(args: Arguments, model: Model, choice: TargetChoice) -> CompiledProgram | None:
    """Return the compiled program of a saved file, if it is for the chosen target."""
    held = model.code(choice.emulate)
    if held is None:
        return None
    given = [f for f in _CHANGES_CODE if f in args]
    if held.target != "gpu" and "--arch" in args:
        given.insert(0, "--arch")
    found, archs = (held if held.target == choice.target else None), ()
    if isinstance(held, IreeProgram) and held.target == "gpu":
        found, archs = (found and held.for_arch(str(choice.arch))), held.archs
    has = ", ".join([held.target, *archs])
    if found is None or given:
        wanted = ", ".join(filter(None, [choice.target, choice.arch]))
        why = given[0] if given else f"the target is {wanted}"
        say(f"The file's code for {has} is not used: {why}")
        return None
    found.threads, found.graph = choice.threads, choice.graph
    say(f"Compiled: the file holds code for {has}")
    return found


def report_compile(compiled: CompiledProgram) -> None:
    """Print on stderr the costs of a compile, and its fallbacks."""
    for size, made in _by_size(compiled):
        say(f"{size}{summary(made.stats)}")
        for line in made.stats.tuning:
            say(line)
    if compiled.signature.variants:
        say(f"Variants: {'; '.join(map(_variant_text(compiled), compiled.signature.variants))}")
    executable = getattr(compiled, "executable", None)
    if executable is not None:
        for text in executable.crashes:
            say(f"warning: {text}; run once more, on one thread, it compiled the model")
        for text in executable.fallbacks:
            say(f"warning: compiled with the flag set '{executable.flag_set}' because {text}")


def _variant_text(compiled: CompiledProgram) -> Callable[[Variant], str]:
    """Return what describes a variant: the sizes of the inputs' dims, by symbol where possible."""
    ports = compiled.signature.inputs

    def text(variant: Variant) -> str:
        sizes = {}
        for i, d, n in variant.sizes:
            symbol = ports[i].ranges[d].symbol
            sizes[symbol or f"{ports[i].name}[{d}]"] = n
        return f"{variant.function} for {', '.join(f'{k} = {n}' for k, n in sizes.items())}"

    return text


def emit_compiled(
    args: Arguments, model: Model, choice: TargetChoice, compiled: CompiledProgram
) -> None:
    """Write or print a compiled program; a saved one also holds what it was compiled from."""
    options = {
        k: v for k, v in choice.options().items() if k in ("arch", "fast_math", "remove_qdq_pairs")
    }
    if choice.target != "gpu" and choice.arch is None:
        options.pop("arch")
    emit(
        args, lambda: model.program, compiled=compiled, options={"target": choice.target, **options}
    )


def report_gpu(compiled: IreeProgram) -> None:
    """Print the registers, spills and launches of every kernel of a gpu program on stderr."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.targets.report import gpu_report

    executable = compiled.executable
    report = gpu_report(executable.vmfb, executable.dispatches, executable.symbols)
    say(report.text())
