"""explain: the 8-bit matmuls of a quantised model, and why its other pairs stay."""

from __future__ import annotations

from collections import Counter

from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.debug.quantised_pairs import quantised_pairs
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import HELP, LOADER, TARGET
from mgx_mlir.tools.driver.read_model import read
from mgx_mlir.tools.driver.target_choice import choose_target

USAGE = "[OPTION...] FILE"
DESCRIPTION = """
Runs the target's passes and prints a line for each remaining pair of QuantizeLinear and
DequantizeLinear: the node, the type of its codes, its reader, and why the reader is computed in
floats. The first line counts 8-bit matmuls and remaining pairs; more lines count float matmuls with
weights of 4 or 8 bits, which their kernels widen. Nothing is compiled. Pairs
of 8-bit floats and of other than 8 bits are plain arithmetic from the start, and are not listed."""
_CHOICES = ("--gpu", "--cpu", "--arch", "--disable-fast-math")
OPTIONS = (*LOADER, *(o for o in TARGET if o.key in _CHOICES), HELP)


def run(args: Arguments) -> int:
    """Print the 8-bit matmuls, and the remaining pairs."""
    model = Model(args)
    choice = choose_target(args, runs=False, model=model)
    program = read(model)
    options = CompileOptions(choice.target, choice.arch, choice.fast_math)
    found = quantised_pairs(program, options)
    print(f"{len(found.products)} matmuls in 8 bits, {len(found.stayed)} pairs that stay")
    for bits, count in sorted(Counter(bits for _, bits in found.widened).items()):
        print(f"{count} float matmuls with weights of {bits} bits, widened in their kernels")
    for each in found.stayed:
        print(each)
    return 0
