"""Index arithmetic: numbers fold, what changes nothing builds nothing, values become ops."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.index_builder import Index, IndexBuilder

Build = Callable[[IndexBuilder, ir.Value], Index]

FOLDED: dict[str, tuple[Build, int | None]] = {  # None: the value itself
    "numbers are added": (lambda k, x: k.add(2, 3, -1), 4),
    "a sum with 0": (lambda k, x: k.add(x, 2, -2), None),
    "less 0": (lambda k, x: k.sub(x, 0), None),
    "times 0": (lambda k, x: k.mul(0, x), 0),
    "times 1": (lambda k, x: k.mul(1, x), None),
    "a product": (lambda k, x: k.product([1, x, 1]), None),
    "over 1": (lambda k, x: k.div(x, 1), None),
    "over 0": (lambda k, x: k.div(7, 0), 0),
    "modulo 0": (lambda k, x: k.rem(7, 0), 0),
    "modulo 1": (lambda k, x: k.rem(x, 1), 0),
    "the smaller number": (lambda k, x: k.min(-3, 2), -3),
    "the larger number": (lambda k, x: k.max(-3, 2), 2),
}
BUILT: dict[str, tuple[Build, list[str]]] = {
    "numbers of a sum are one": (lambda k, x: k.add(1, x, 2), ["arith.constant", "arith.addi"]),
    "a number less a value": (lambda k, x: k.sub(3, x), ["arith.constant", "arith.subi"]),
    "a number is the second factor": (lambda k, x: k.mul(3, x), ["arith.constant", "arith.muli"]),
    "an unsigned quotient": (lambda k, x: k.div(x, 3), ["arith.constant", "arith.divui"]),
    "an unsigned remainder": (lambda k, x: k.rem(x, 3), ["arith.constant", "arith.remui"]),
    "a signed minimum": (lambda k, x: k.min(x, 3), ["arith.constant", "arith.minsi"]),
    "a signed maximum": (lambda k, x: k.max(x, 3), ["arith.constant", "arith.maxsi"]),
}


def built(build: Build) -> tuple[Index | None, list[str]]:
    """Call `build` on a value: return its result, None for the value itself, and the new ops."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f(%x: index) { return }")
        block = module.body.operations[0].regions[0].blocks[0]
        x = block.arguments[0]
        with ir.InsertionPoint.at_block_begin(block):
            found = build(IndexBuilder(), x)
        names = [op.operation.name for op in block.operations][:-1]
        if isinstance(found, int):
            return found, names
        return (None if found == x else -1), names


@pytest.mark.parametrize("name", FOLDED)
def test_folded(name: str) -> None:
    build, want = FOLDED[name]
    assert built(build) == (want, [])


@pytest.mark.parametrize("name", BUILT)
def test_built(name: str) -> None:
    build, want = BUILT[name]
    assert built(build) == (-1, want)
