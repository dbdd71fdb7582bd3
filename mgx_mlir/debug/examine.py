"""Instructions that are wrong on a target, told apart from those with wrong inputs.

Two references are evaluated. One runs the model from its inputs. The other runs each instruction on
the target's own operands. An instruction that differs from the second one is wrong, whatever came
before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_terminator, mnemonic
from mgx_mlir.debug.compare import Comparison, compare
from mgx_mlir.debug.intermediates import SteppedRun
from mgx_mlir.debug.tolerances import Tolerances, value_tolerances
from mgx_mlir.programs.interpreter import Env, Interpreter
from mgx_mlir.programs.program_ir import entry_block

Verdict = Literal["right", "wrong", "inherited", "grown"]


@dataclass
class Finding:
    """Comparison of an instruction.

    `position` is the operation's index in @main. right: within the limits of the reference. wrong:
    the reference on the target's own operands gives another result. inherited: it gives the same
    result, and an operand is beyond its limits. grown: it gives the same result and operands are
    within their limits, but their small differences were amplified. `own` compares with the
    reference on the target's operands, `chain` with the reference on the model's inputs, one
    comparison for each result. `inputs` are the target's operands of a wrong instruction.
    """

    position: int
    operation: ir.Operation
    verdict: Verdict
    own: list[Comparison]
    chain: list[Comparison]
    inputs: list[np.ndarray] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name of the operator."""
        return mnemonic(self.operation)

    @property
    def worst(self) -> Comparison:
        """Failing result with the largest error."""
        rows = self.own if self.verdict == "wrong" else self.chain
        return max(rows, key=lambda c: (not c.passed, c.rms, c.max_abs))


@dataclass
class Examined:
    """Findings on all instructions, in order."""

    findings: list[Finding]
    runs: int = 1  # number of builds that produced the findings

    @property
    def wrong(self) -> list[Finding]:
        """Findings that are wrong on the target's own operands."""
        return [f for f in self.findings if f.verdict == "wrong"]

    @property
    def is_right(self) -> bool:
        """Return whether every finding is right."""
        return all(f.verdict == "right" for f in self.findings)


def examine(
    run: SteppedRun,
    *,
    limits: Callable[[Tolerances], Tolerances] = lambda t: t,
    low: bool = False,
    compute: str = "f32",
    sides: tuple[str, str] = ("target", "ref"),
    keep: int = 1,
) -> Examined:
    """Compare every instruction of a program with the reference.

    `limits` changes the default limits; `low`: the target computes floats in 16 bits. The operands
    of the first `keep` wrong instructions are stored. Errors: those of the build and of the run.
    """
    found = list(_Examination(run, limits, low, compute, sides, keep).run())
    return Examined(found, run.runs)


class _Examination:
    def __init__(
        self,
        run: SteppedRun,
        limits: Callable[[Tolerances], Tolerances],
        low: bool,
        compute: str,
        sides: tuple[str, str],
        keep: int,
    ) -> None:
        self.stepped, self.program, self.sides, self.keep = run, run.program, sides, keep
        self.interpreter = Interpreter(self.program.module, self.program.store, compute=compute)
        with self.program.ctx:
            self.block = entry_block(self.program.main())
            each = value_tolerances(self.block, low=low)
            self.last = last_uses(self.block)
        self.limits = {v: limits(t) for v, t in each.items()}
        self.ours: Env = {}  # values of the target
        self.theirs: Env = {}  # values of the reference on the model's inputs
        self.suspect: set[ir.Value] = set()  # values beyond their limits, and views of them

    def run(self) -> Iterator[Finding]:
        with self.program.ctx, self.program.store.active(), np.errstate(all="ignore"):
            for v, array in zip(self.block.arguments, self.stepped.arrays, strict=True):
                self.ours[v] = self.theirs[v] = np.asarray(array)
            computed = set(self.stepped.positions)
            for at, view in enumerate(self.block.operations):
                op = view.operation
                if is_terminator(op):
                    return
                if at in computed:
                    yield self._instruction(at, op)
                else:
                    self._followed(op)
                self._forget(at)

    def _reference(self, op: ir.Operation, env: Env) -> list[np.ndarray]:
        return self.interpreter.evaluate(op, [env[v] for v in op.operands], env)

    def _followed(self, op: ir.Operation) -> None:
        """Evaluate a view or literal with the reference, on the target's operands."""
        if any(v in self.suspect for v in op.operands):
            self.suspect.update(op.results)
        same = all(self.ours[v] is self.theirs[v] for v in op.operands)
        theirs = self._reference(op, self.theirs)
        ours = theirs if same else self._reference(op, self.ours)
        self._define(op, ours, theirs)

    def _define(
        self, op: ir.Operation, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]
    ) -> None:
        for v, a, b in zip(op.results, ours, theirs, strict=True):
            self.ours[v], self.theirs[v] = a, b

    def _instruction(self, at: int, op: ir.Operation) -> Finding:
        read = list(read_values(op))
        got = [np.asarray(a) for a in self.stepped.values(at)]
        theirs = self._reference(op, self.theirs)
        chain = self._compared(op, got, theirs)
        if all(self.ours[v] is self.theirs[v] for v in read):
            own = chain
        else:
            own = self._compared(op, got, self._reference(op, self.ours))
        right = all(c.passed for c in chain)
        verdict: Verdict
        if right:
            verdict = "right"
        elif not all(c.passed for c in own):
            verdict = "wrong"
        else:
            verdict = "inherited" if any(v in self.suspect for v in read) else "grown"
        found = Finding(at, op, verdict, own, chain)
        if verdict == "wrong" and self.keep > 0:
            self.keep -= 1
            found.inputs = [self.ours[v] for v in read]
        if not right:
            self.suspect.update(v for v, c in zip(op.results, chain, strict=True) if not c.passed)
        # a wrong result with other dims would make all later comparisons meaningless
        shapes = [
            a.shape == b.shape and a.dtype == b.dtype for a, b in zip(got, theirs, strict=True)
        ]
        self._define(
            op, [g if s else t for g, t, s in zip(got, theirs, shapes, strict=True)], theirs
        )
        return found

    def _compared(
        self, op: ir.Operation, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]
    ) -> list[Comparison]:
        return [
            compare(f"result {i}", a, np.asarray(b), self.limits[v], self.sides)
            for i, (v, a, b) in enumerate(zip(op.results, got, wanted, strict=True))
        ]

    def _forget(self, at: int) -> None:
        for v in self.last.pop(at, ()):
            self.ours.pop(v, None)
            self.theirs.pop(v, None)


def read_values(op: ir.Operation) -> Iterator[ir.Value]:
    """Yield the values that an instruction reads: its operands, then captures of its regions."""
    seen: dict[ir.Value, None] = dict.fromkeys(op.operands)
    inside: set[ir.Value] = set()

    def visit(inner: ir.Operation) -> ir.WalkResult:
        inside.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.arguments)
        for v in inner.operands:
            if v not in inside:
                seen.setdefault(v)
        return ir.WalkResult.ADVANCE

    for region in op.regions:
        for block in region.blocks:
            inside.update(block.arguments)
            for inner in block.operations:
                inner.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    yield from seen


def last_uses(block: ir.Block) -> dict[int, list[ir.Value]]:
    """Return the values that nothing reads after the operation at a position."""
    last: dict[ir.Value, int] = dict.fromkeys(block.arguments, -1)
    for at, view in enumerate(block.operations):
        op = view.operation
        for v in read_values(op):
            last[v] = at
        for v in op.results:
            last[v] = at
    found: dict[int, list[ir.Value]] = {}
    for v, at in last.items():
        found.setdefault(at, []).append(v)
    return found
