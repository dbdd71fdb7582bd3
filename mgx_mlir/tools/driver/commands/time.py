"""time: a model compiled, and the mean time of many calls under one timer."""

from __future__ import annotations

import sys

from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.call_times import time_together
from mgx_mlir.tools.driver.compile_model import compile_model, emit_compiled, limited_first_call
from mgx_mlir.tools.driver.emit import form_of
from mgx_mlir.tools.driver.input_data import allocate
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, ITERATIONS, RUNNERS, SIZES
from mgx_mlir.tools.driver.progress import say, step
from mgx_mlir.tools.driver.shown import input_uses
from mgx_mlir.tools.driver.target_choice import EMULATED, choose_target

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Prints the compiled program and the milliseconds of a call: one call that is not timed, then
--iterations of them by one timer. perf prints more."""
OPTIONS = (*RUNNERS, SIZES, ITERATIONS, HELP)


def run(args: Arguments) -> int:
    """Time the model."""
    model = Model(args)
    form_of(args)
    choice = choose_target(args, runs=True, model=model)
    compiled = compile_model(args, model, choice)
    emit_compiled(args, model, choice, compiled)
    sys.stdout.write("\n")
    inputs = allocate(args, model, compiled.signature, input_uses(args, compiled))
    arrays = compiled.signature.check_inputs(inputs)
    limited_first_call(compiled, arrays)
    if choice.emulate:
        say(EMULATED)
    with step("Running ..."):
        taken = time_together(compiled, arrays, args.get("--iterations", 100))
    print(f"Total time: {taken:g}ms")
    return 0
