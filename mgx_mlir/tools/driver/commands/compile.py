"""compile: a model to a compiled program, printed or written as code."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from mgx_mlir.compiler.architectures import together
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.compile_model import CODE, compile_model, emit_compiled, report_gpu
from mgx_mlir.tools.driver.emit import form_of, write_file
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import COMPILERS, HELP, SIZES, Option
from mgx_mlir.tools.driver.progress import say
from mgx_mlir.tools.driver.target_choice import TargetChoice, choose_target

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
The compiled program is printed to stdout, a kernel per line as target::operators. For --gpu no
device is needed; registers, spills and launches of each kernel go to stderr.
--output FILE.mxr saves the code with its weights, which the other commands then take as a model;
with several architectures the code of each, of which a run takes what fits its device.
--output FILE.vmfb writes the code for IREE's tools and its C API, FILE.irpa with the weights
beside it, and prints the iree-run-module line that runs it; with several architectures one pair
each, FILE.ARCH.vmfb. What the compile took goes to stderr."""
SOURCE = Option(
    ("--with-source",), "keep in FILE.mxr the weights of the program that was compiled too: it can "
    "then be compiled again, and verified", group="Output",
)  # fmt: skip
EXPLAIN = Option(
    ("--explain-kernels",), "print which rule lowers each kernel, and why the rules before it do "
    "not, to stderr; compiles anew", group="Output",
)  # fmt: skip
OPTIONS = (*COMPILERS, SIZES, SOURCE, EXPLAIN, HELP)
FILES = ("msgpack", "json")  # forms that hold code for several architectures


def run(args: Arguments) -> int:
    """Compile the model, and write the program or its code."""
    model = Model(args)
    form = form_of(args, more=(CODE,))
    choice = choose_target(args, runs=False, model=model)
    if form == CODE and choice.target == "ref":
        raise UsageError("ref has no code to write", notes=["compile for --cpu or --gpu"])
    several = len(choice.archs) > 1
    if several and form not in (CODE, *FILES) and "--output" in args:
        raise UsageError(
            f"one program is written, expected one architecture, or FILE.mxr or FILE{CODE}"
        )
    found = []
    explain = "--explain-kernels" in args
    if explain:
        choice = replace(choice, cache=False)
    for arch in choice.archs:
        made = _explained if explain else compile_model
        compiled = made(args, model, choice, arch)
        found.append(compiled)
        if not isinstance(compiled, IreeProgram):
            continue
        if choice.target == "gpu":
            report_gpu(compiled)
        if form == CODE:
            _write_code(args, choice, arch, compiled)
    if form != CODE:
        emit_compiled(args, model, choice, together(found, None) if several else found[0])
    return 0


def _explained(
    args: Arguments, model: Model, choice: TargetChoice, arch: str | None
) -> CompiledProgram:
    """Compile a model, and print on stderr which rule lowered each kernel."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.passes.lowering.select import watching
    from mgx_mlir.printers.kernel_choices import explanation

    with watching() as choices:
        compiled = compile_model(args, model, choice, arch)
    print(*explanation(choices), sep="\n", file=sys.stderr, flush=True)
    return compiled


def _write_code(
    args: Arguments, choice: TargetChoice, arch: str | None, compiled: IreeProgram
) -> None:
    path = args.get("--output")
    if len(choice.archs) > 1:
        path = str(Path(path).with_suffix(f".{arch}{CODE}"))
    write_file(path, bytes(compiled.executable.vmfb))
    say(f"Writing: {path}")
    # start-up: only what the command asks for is loaded
    from mgx_mlir.runtime.parameter_files import run_line, write_parameters

    weights = None
    if compiled.params:
        weights = str(Path(path).with_suffix(".irpa"))
        write_parameters(weights, compiled.params)
        say(f"Writing: {weights}")
    device = "hip" if choice.target == "gpu" else "local-task"
    print(run_line(path, weights, device, list(compiled.signature.given_inputs)))
