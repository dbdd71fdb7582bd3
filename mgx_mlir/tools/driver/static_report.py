"""report --gpu: static figures of a program's kernels, and counts of an emulated call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.gpu_kernels import GpuKernels, gpu_kernels
from mgx_mlir.debug.work import Work, work_of
from mgx_mlir.printers.listing import list_program
from mgx_mlir.targets.report import gpu_report
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.compile_model import compile_model
from mgx_mlir.tools.driver.emulated_run import emulated_statistics
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.program_texts import write_file
from mgx_mlir.tools.driver.progress import say
from mgx_mlir.tools.driver.target_choice import TargetChoice, choose_target
from mgx_mlir.tools.driver.timing import launched_kernels

# options that only a page has
_OF_A_PAGE = ("--fill0", "--fill1", "--load-arg", "--seed", "--iterations", "--rms-tol", "--atol",
              "--rtol", "--ref-use-double", "--no-verify")  # fmt: skip


def is_static(args: Arguments) -> bool:
    """Return whether a table is asked for: --gpu, and no page."""
    return "--gpu" in args and not str(args.get("--output") or "").endswith((".html", ".htm"))


def static_report(args: Arguments, model: Model) -> int:
    """Compile for each architecture; print a table for each, or write JSON."""
    for flag in _OF_A_PAGE:
        if flag in args:
            raise UsageError(
                f"{flag} is for a page, which runs the program: expected -o FILE.html with it"
            )
    # cached code has no assembly
    choice = replace(choose_target(args, runs=False, counts=True), cache=False)
    found = [_kernels(args, model, choice, arch) for arch in choice.archs]
    path = args.get("--output")
    if path or "--json" in args:
        text = json.dumps([f.to_json() for f in found], indent=1) + "\n"
        if path:
            write_file(path, text.encode())
            say(f"Writing: {path}")
        else:
            print(text, end="")
        return 0
    print("\n\n".join(f.text() for f in found))
    return 0


def _kernels(args: Arguments, model: Model, choice: TargetChoice, arch: str | None) -> GpuKernels:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.compiler.dump_files import kept_assembly

    with kept_assembly() as assembly:
        compiled = compile_model(args, model, choice, arch)
    assert isinstance(compiled, IreeProgram)
    executable = compiled.executable
    report = gpu_report(executable.vmfb, executable.dispatches)
    ran = emulated_statistics(model.program, compiled) if choice.emulate else None
    return gpu_kernels(report, assembly, _work(compiled), executable.arch, ran)


def _work(compiled: IreeProgram) -> Mapping[str, Work]:
    """Return the work of each kernel by the name of its first launch.

    It is empty where launches cannot be matched with kernels.
    """
    program = compiled.program
    listing = list_program(program, kernel_prefix=compiled.target)
    kernels, launched = launched_kernels(compiled, listing.main, compiled.executable.kernels)
    if launched is None:
        return {}
    with program.ctx, program.store.active():
        return {
            name: work_of(kernel.operation)
            for kernel, (name, *_) in zip(kernels, launched, strict=True)
            if kernel.operation is not None
        }
