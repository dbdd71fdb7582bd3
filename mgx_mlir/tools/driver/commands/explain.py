"""explain: which products of a quantised model are in 8 bits, and why its other pairs stay."""

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
Runs the target's passes and prints a line for each pair of QuantizeLinear and DequantizeLinear that
is left: the node, the type of its codes, what reads it, and why that is computed in floats. The
first line counts products in 8 bits and pairs that stay; more lines count products of floats by
weights of 4 or 8 bits, which stay that until their kernels widen them. Nothing is compiled. Pairs
of 8-bit floats and of other than 8 bits are plain arithmetic from the start, and are not listed."""
_CHOICES = ("--gpu", "--cpu", "--arch", "--disable-fast-math")
OPTIONS = (*LOADER, *(o for o in TARGET if o.key in _CHOICES), HELP)


def run(args: Arguments) -> int:
    """Print what becomes of the pairs."""
    model = Model(args)
    choice = choose_target(args, runs=False, model=model)
    program = read(model)
    options = CompileOptions(choice.target, choice.arch, choice.fast_math)
    found = quantised_pairs(program, options)
    print(f"{len(found.products)} products in 8 bits, {len(found.stayed)} pairs that stay")
    for bits, count in sorted(Counter(bits for _, bits in found.widened).items()):
        print(f"{count} products of floats by weights of {bits} bits, widened in their kernels")
    for each in found.stayed:
        print(each)
    return 0
