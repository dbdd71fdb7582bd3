"""run: a model compiled and evaluated once."""

from __future__ import annotations

import sys

from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.compile_model import compile_model, emit_compiled
from mgx_mlir.tools.driver.emit import form_of
from mgx_mlir.tools.driver.input_data import allocate, check_files
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, RUNNERS, SAVE_OUTPUTS, SIZES
from mgx_mlir.tools.driver.output_values import check_form, save_outputs, tell
from mgx_mlir.tools.driver.progress import working
from mgx_mlir.tools.driver.shown import input_uses, listing
from mgx_mlir.tools.driver.target_choice import choose_target
from mgx_mlir.tools.driver.trace_eval import trace_kernels

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
The compiled program is printed, run once on generated inputs, and printed again. A line for each
output goes to stderr: its type, its range, its first values.
Inputs are drawn from their names, the same in every run; integers that index a table stay in it.
MIGRAPHX_TRACE_EVAL=1, 2 or 3 also prints each kernel with its time, its values in short, or all of
them; they come from a second build, which gives back the results of every kernel."""
OPTIONS = (*RUNNERS, SIZES, SAVE_OUTPUTS, HELP)


def run(args: Arguments) -> int:
    """Run the model once on inputs drawn from its names."""
    model = Model(args)
    form_of(args)
    check_form(args)
    check_files(args)
    choice = choose_target(args, runs=True, model=model)
    compiled = compile_model(args, model, choice)
    emit_compiled(args, model, choice, compiled)
    sys.stdout.write("\n")
    inputs = allocate(args, model, compiled.signature, input_uses(args, compiled))
    with working("Running"):
        values = compiled.run(inputs)
    tell(compiled.output_names, values)
    save_outputs(args, compiled.output_names, values)
    trace_kernels(model, choice, compiled, inputs)
    sys.stdout.write(listing(args, compiled))
    return 0
