"""How far two results may lie apart: limits, and those that each output of a program gets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.core.program_ir import ProgramIR, entry_block
from mgx_mlir.core.shapes import TensorType

ALLCLOSE = "MIGRAPHX_VERIFY_ENABLE_ALLCLOSE"
_FALSE = ("0", "false", "off", "no")


@dataclass(frozen=True)
class Tolerances:
    """Limits of a comparison.

    Elementwise |a - b| <= atol * s + rtol * |b|; ||a - b|| / (sqrt(n) * max(|a|, |b|)) <= rms.
    Where `scaled`, s is the reference's largest magnitude, at most `cap`, else s is 1: an absolute
    limit alone would pass anything on outputs that are all small, as those of a softmax.
    Integers and bools must be equal, or differ by at most `integer`. Without `elementwise` floats
    are compared by rms alone.
    """

    rms: float = 1e-3
    atol: float = 1e-3
    rtol: float = 1e-3
    scaled: bool = True
    cap: float = 1.0
    integer: float = 0.0
    elementwise: bool = True

    def with_limits(self, rms: float | None, atol: float | None, rtol: float | None) -> Tolerances:
        """These, with what a user states; a stated atol is taken literally.

        Who states an elementwise limit wants it held, whatever the environment says.
        """
        found = self
        if atol is not None or rtol is not None:
            found = replace(found, elementwise=True)
        if rms is not None:
            found = replace(found, rms=rms)
        if atol is not None:
            found = replace(found, atol=atol, scaled=False, integer=atol)
        if rtol is not None:
            found = replace(found, rtol=rtol)
        return found

    def with_environment(self) -> Tolerances:
        """These, under MIGRAPHX_VERIFY_ENABLE_ALLCLOSE.

        There it adds the elementwise test, with an atol that is taken literally. Here that test is
        always made, so that only its form changes; 0 leaves it out, as is MIGraphX's default.
        """
        text = os.environ.get(ALLCLOSE, "").lower()
        if not text:
            return self
        return replace(self, elementwise=False) if text in _FALSE else replace(self, scaled=False)

    def __str__(self) -> str:
        if not self.elementwise:
            return f"rms-tol {self.rms:g} alone"
        return f"rms-tol {self.rms:g}, atol {self.atol:g}, rtol {self.rtol:g}"


# MIGraphX's 1e-3 would pass a model with a wrong weight: the sign of the largest element of one
# weight flipped moves ResNet-50's outputs by 1e-4 to 8e-2 of their maximum (rms 4e-5 and more),
# BERT's by 2e-4 to 5e-3, while two correct engines differ by 1e-5 and less.
FULL_PRECISION = Tolerances(rms=1e-5, atol=5e-5, rtol=5e-5, cap=float("inf"))

# MIGraphX's limits for programs that compute in half or bf16: eight bits of mantissa, and sums
# in another order, leave some percent of the largest magnitude. 8-bit floats have less still.
LOW_PRECISION = Tolerances(rms=8e-2, atol=4e-2, rtol=4e-2)


def output_tolerances(program: ProgramIR, *, low: bool = False) -> list[Tolerances]:
    """The limits of each result of a program.

    An output gets the wide ones where its own type, or that of a value it is computed from, is a
    float of 16 or 8 bits; `low`: the target computes all floats in such a type.
    """
    with program.ctx:
        block = entry_block(program.main())
        each = value_tolerances(block, low=low)
        last = list(block.operations)[-1].operation
        return [each[v] for v in last.operands]


def value_tolerances(block: ir.Block, *, low: bool = False) -> dict[ir.Value, Tolerances]:
    """The limits of every value of a block, as those of outputs."""
    return {
        v: LOW_PRECISION if narrow or (low and _is_float(v)) else FULL_PRECISION
        for v, narrow in _narrow_values(block).items()
    }


def _narrow_values(block: ir.Block) -> dict[ir.Value, bool]:
    """Whether each value of a block comes from a float of 16 or 8 bits."""
    found = {v: _is_narrow(v) for v in block.arguments}
    for view in block.operations:
        low = False

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal low
            low = low or any(found.get(v, False) for v in op.operands)
            if op.name.removeprefix("migraphx.") in OPS:
                low = low or any(_is_narrow(r) for r in op.results)
            return ir.WalkResult.INTERRUPT if low else ir.WalkResult.ADVANCE

        view.operation.walk(visit)
        if view.operation.name == "migraphx.dimensions_of":
            low = False  # extents hold nothing of the values
        for r in view.operation.results:
            found[r] = low
    return found


def _is_float(v: ir.Value) -> bool:
    return isinstance(v.type, ir.RankedTensorType) and TensorType.of(v).dtype.is_float


def _is_narrow(v: ir.Value) -> bool:
    return isinstance(v.type, ir.RankedTensorType) and TensorType.of(v).dtype.is_low_precision
