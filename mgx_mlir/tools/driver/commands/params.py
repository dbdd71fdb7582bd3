"""params: the shapes of a model's inputs and outputs."""

from __future__ import annotations

import sys

from mgx_mlir.printers.text import print_parameters
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, LOADER
from mgx_mlir.tools.driver.progress import working
from mgx_mlir.tools.driver.read_model import read

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
A line per input, then a line per output: name: type, {dimensions}, {strides}."""
# options that change no shape
OPTIONS = (
    *(o for o in LOADER if o.key not in ("--debug-symbols", "--strip-context", "--trust-code")),
    HELP,
)


def run(args: Arguments) -> int:
    """Print the parameters and outputs of the model."""
    program = read(Model(args))
    with working("Reading"):
        print_parameters(program, sys.stdout, outputs=True)
    return 0
