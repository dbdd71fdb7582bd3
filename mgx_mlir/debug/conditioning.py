"""Ill-conditioned outputs: how far they move when values change by one ulp.

Two correct engines differ by rounding. The reference runs in f64 with each input, weight and result
moved to a neighbouring number, up or down at random. A difference between engines of the size of
the resulting movement is no evidence of a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import ViewOp, is_a, mnemonic, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.debug.compare import Comparison, compare
from mgx_mlir.debug.tolerances import MOVING, Tolerances
from mgx_mlir.programs.interpreter import Env, Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature

DRAWS = 3
# A sum of n terms is off by up to sqrt(n) / 2 ulps, depending on the order of its terms.
FACTOR = 32.0
# ops with exact results, and ops on whole numbers that other ops rely on
_EXACT = frozenset(
    ("floor", "ceil", "round", "nearbyint", "sign", "relu", "abs", "neg", "max", "min", "clip",
     "convert", "reduce_max", "reduce_min", "topk", "mod", "fmod", "isnan")
)  # fmt: skip


@dataclass(frozen=True)
class Conditioning:
    """Distances that an output moves when values before it change by one ulp."""

    name: str
    moved_rms: float  # largest relative rms distance over the draws
    moved_max: float  # largest absolute distance over the draws
    double_rms: float  # relative rms distance of the reference from its run in f64
    double_max: float  # largest absolute distance of the reference from its run in f64
    beyond: bool  # movement by one ulp alone exceeds the limits of the output

    def explains(self, c: Comparison) -> bool:
        """Return whether the output is ill-conditioned and the difference is of that size."""
        near = c.rms <= FACTOR * self.moved_rms and c.max_abs <= FACTOR * self.moved_max
        return self.beyond and near and _of_values(c)

    def __str__(self) -> str:
        return (
            f"one ulp of inputs, weights and results moves it by rms {self.moved_rms:.3g}, at most "
            f"{self.moved_max:.3g}; the reference differs from its f64 run by rms "
            f"{self.double_rms:.3g}"
        )


def _of_values(c: Comparison) -> bool:
    """Return whether only values fail the output: not dims, types or one-sided NaN."""
    return c.limits is not None and c.shapes is None and not c.odd and not c.strings


class Perturbed(Interpreter):
    """The reference in f64 with every weight and result moved by one ulp, up or down at random.

    `least`: the relative size of an ulp if the target's types are coarser than the program's.
    Literals with one element are left as they are: most are exponents and bounds, not weights.
    """

    def __init__(self, program: ProgramIR, seed: int, least: float = 0.0) -> None:
        super().__init__(program.module, program.store, compute="f64")
        self.random, self.least = np.random.default_rng(seed), least

    def moved(self, a: np.ndarray) -> np.ndarray:
        """Return a float array with each finite number perturbed; other arrays as they are."""
        if not dtypes.from_numpy(a.dtype).is_float:
            return a
        size = max(float(ml_dtypes.finfo(a.dtype).eps), self.least)
        sign = self.random.integers(0, 2, a.shape, np.int8) * 2 - 1
        with np.errstate(all="ignore"):
            found = (a.astype(np.float64) * (1 + sign * size)).astype(a.dtype)
        return np.where(np.isfinite(found), found, a)

    def evaluate(
        self, op: ir.Operation, inputs: Sequence[np.ndarray], env: Env | None = None
    ) -> list[np.ndarray]:
        found = super().evaluate(op, inputs, env)
        if literals.is_literal(op):
            return [self.moved(a) if a.size > 1 else a for a in found]
        if op_class(op) is None or is_a(op, ViewOp) or len(op.regions):
            return found
        if mnemonic(op) in MOVING | _EXACT:
            return found
        return [self.moved(np.asarray(a)) for a in found]


def redrawn(program: ProgramIR, seed: int = 0) -> ProgramIR:
    """Return the program with random weights: random signs, and sizes like the original ones.

    A program that is ill-conditioned because of its weights is well-conditioned with others, which
    reveals faults.
    """
    random, found = np.random.default_rng(seed), program.clone()
    with found.ctx, ir.Location.unknown(), found.store.active():
        for op in _weights(found):
            a = literals.array_of(op)
            factor = random.uniform(0.5, 1.5, a.shape)
            if a.ndim > 1:
                factor *= random.integers(0, 2, a.shape, np.int8) * 2 - 1
            with np.errstate(all="ignore"):
                drawn = (a.astype(np.float64) * factor).astype(a.dtype)
            new = literals.create(drawn, loc=op.location, ip=ir.InsertionPoint(op))
            op.results[0].replace_all_uses_with(new)
            op.erase()
        found.prune_store()
    return found


def _weights(program: ProgramIR) -> list[ir.Operation]:
    """Return the float literals with several elements."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if literals.is_literal(op):
            kind = TensorType.of(op.results[0])
            if kind.dtype.is_float and kind.elements > 1:
                found.append(op)
        return ir.WalkResult.ADVANCE

    program.module.operation.walk(visit)
    return found


def conditioning(
    program: ProgramIR,
    arrays: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    limits: Sequence[Tolerances],
    *,
    least: float = 0.0,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Conditioning]:
    """Measure the movement of each of a program's outputs when its values are perturbed.

    `wanted`: the reference's outputs on the same inputs; `limits`: limits of the outputs. Runs the
    reference `draws` + 1 times. Errors: those of the run.
    """
    signature = Signature.of(program.main())
    names = [p.name for p in signature.inputs]
    plain = Interpreter(program.module, program.store, compute="f64")
    with program.ctx:
        double = plain.run(dict(zip(names, arrays, strict=True)))
        each: list[list[np.ndarray]] = []
        for i in range(draws):
            run = Perturbed(program, seed + i, least)
            each.append(run.run(dict(zip(names, map(run.moved, arrays), strict=True))))
    found = []
    for i, port in enumerate(signature.outputs):
        off = compare(port.name, np.asarray(wanted[i]), double[i], limits[i])
        moved = [compare(port.name, outputs[i], double[i], limits[i]) for outputs in each]
        moved = [c for c in moved if _of_values(c)]
        found.append(
            Conditioning(
                port.name,
                max((c.rms for c in moved), default=0.0),
                max((c.max_abs for c in moved), default=0.0),
                off.rms,
                off.max_abs,
                any(not c.passed for c in moved),
            )
        )
    return found
