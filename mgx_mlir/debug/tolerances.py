"""Tolerances between two results: limits, and the limits of each output of a program."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import ViewOp, is_a, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf
from mgx_mlir.programs.program_ir import ProgramIR, entry_block

ALLCLOSE = "MIGRAPHX_VERIFY_ENABLE_ALLCLOSE"
_FALSE = ("0", "false", "off", "no")


@dataclass(frozen=True)
class Tolerances:
    """Limits of a comparison.

    Elementwise |a - b| <= atol * s + rtol * |b|; ||a - b|| / (sqrt(n) * max(|a|, |b|)) <= rms. With
    `scaled`, s is the reference's largest magnitude, at most `cap`; else s is 1. An absolute limit
    alone would pass anything on outputs that are all small, such as a softmax's. Integers and bools
    must be equal, or differ by at most `integer`. Without `elementwise` floats are compared only by
    rms. The rms limit may be exceeded if only a share of `few` elements, or one element, causes it.
    """

    rms: float = 1e-3
    atol: float = 1e-3
    rtol: float = 1e-3
    scaled: bool = True
    cap: float = 1.0
    integer: float = 0.0
    elementwise: bool = True
    few: float | None = None

    def with_limits(self, rms: float | None, atol: float | None, rtol: float | None) -> Tolerances:
        """Return these limits with the user's in place of some. A stated atol is used literally,
        not scaled.

        A user's elementwise limit is checked, whatever the environment says.
        """
        found = self
        if atol is not None or rtol is not None:
            found = replace(found, elementwise=True)
        if rms is not None:
            found = replace(found, rms=rms, few=None)
        if atol is not None:
            found = replace(found, atol=atol, scaled=False, integer=atol)
        if rtol is not None:
            found = replace(found, rtol=rtol)
        return found

    def with_environment(self) -> Tolerances:
        """Return these limits as MIGRAPHX_VERIFY_ENABLE_ALLCLOSE requests.

        In MIGraphX it adds the elementwise test, with a literal atol. Here that test is the
        default, and the variable changes its form; 0 disables it, as in MIGraphX's default.
        """
        text = os.environ.get(ALLCLOSE, "").lower()
        if not text:
            return self
        return replace(self, elementwise=False) if text in _FALSE else replace(self, scaled=False)

    def __str__(self) -> str:
        if not self.elementwise:
            return f"rms-tol {self.rms:g} only"
        return f"rms-tol {self.rms:g}, atol {self.atol:g}, rtol {self.rtol:g}"


# MIGraphX's 1e-3 would pass a model with a wrong weight: the sign of the largest element of one
# weight flipped moves ResNet-50's outputs by 1e-4 to 8e-2 of their maximum (rms 4e-5 and more),
# BERT's by 2e-4 to 5e-3, while two correct engines differ by 1e-5 and less.
FULL_PRECISION = Tolerances(rms=1e-5, atol=5e-5, rtol=5e-5, cap=float("inf"))

# MIGraphX's limits for programs that compute in half or bf16. With eight bits of mantissa, another
# order of sums leaves some percent of the largest magnitude. 8-bit floats leave more.
LOW_PRECISION = Tolerances(rms=8e-2, atol=4e-2, rtol=4e-2)


def output_tolerances(program: ProgramIR, *, low: bool = False) -> list[Tolerances]:
    """Return the limits of each result of a program.

    An output computed in floats of 16 or 8 bits gets the wide limits. An output that was only
    rounded to such a type gets a narrower rms, which a missing rounding exceeds. `low`: the target
    computes all floats in such a type.
    """
    with program.ctx:
        block = entry_block(program.main())
        each = value_tolerances(block, low=low)
        last = list(block.operations)[-1].operation
        return [each[v] for v in last.operands]


def value_tolerances(block: ir.Block, *, low: bool = False) -> dict[ir.Value, Tolerances]:
    """Return the limits of every value of a block, by the rules of `output_tolerances`."""
    return {
        v: LOW_PRECISION if low and _is_float(v) else _limits(coarse)
        for v, coarse in _coarseness(block).items()
    }


def _limits(coarse: float) -> Tolerances:
    if not coarse:
        return FULL_PRECISION
    if coarse == COMPUTED:
        return LOW_PRECISION
    # A missing rounding moves every element by up to half a step, an rms of at least a 25th of a
    # step. If both sides round, only the few values near the middle of two numbers differ.
    return replace(LOW_PRECISION, rms=max(coarse / 40, 5e-5), few=FEW)


# share of elements that a difference of 1e-5 before the rounding moves to another f16 number: 2 %
FEW = 0.05
COMPUTED = float("inf")  # limit of results that are computed in 16 or 8 bits


def _coarseness(block: ir.Block) -> dict[ir.Value, float]:
    """Return the coarsest type of 16 or 8 bits that each value of a block has gone through.

    0: none. The type's step at 1: the value was converted to it. COMPUTED: the value was computed
    in it.
    """
    found: dict[ir.Value, float] = dict.fromkeys(block.arguments, 0.0)
    for view in block.operations:
        coarse = 0.0

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal coarse
            coarse = max([coarse, _own(op), *(found.get(v, 0.0) for v in op.operands)])
            return ir.WalkResult.INTERRUPT if coarse == COMPUTED else ir.WalkResult.ADVANCE

        view.operation.walk(visit)
        if is_a(view, DimensionsOf):
            coarse = 0.0  # extents do not depend on the values
        for r in view.operation.results:
            found[r] = coarse
    return found


def _own(op: ir.Operation) -> float:
    """Return the coarseness of the type that an op computes in, as in `_coarseness`."""
    cls = op_class(op)
    if cls is None or is_a(op, ViewOp) or cls.mnemonic in MOVING or len(op.regions):
        return 0.0
    narrow = [TensorType.of(v).dtype for v in (*op.operands, *op.results) if _is_narrow(v)]
    if cls.mnemonic != "convert":
        return COMPUTED if narrow else 0.0
    target = TensorType.of(op.results[0]).dtype
    if target not in narrow:
        return 0.0  # exact op
    info: Any = ml_dtypes.finfo(target.np)
    return float(info.eps)


# ops that pass elements on unchanged
MOVING = frozenset(
    ("literal", "undefined", "identity", "contiguous", "concat", "gather", "gathernd", "where",
     "pad", "reverse")
)  # fmt: skip


def _is_float(v: ir.Value) -> bool:
    return isinstance(v.type, ir.RankedTensorType) and TensorType.of(v).dtype.is_float


def _is_narrow(v: ir.Value) -> bool:
    return isinstance(v.type, ir.RankedTensorType) and TensorType.of(v).dtype.is_low_precision
