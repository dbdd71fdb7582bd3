"""Search for a target's fault: the wrong instruction, kernel or pass, and a small model.

There are three levels, each for faults that the one before cannot show. Instructions: the model is
compiled with every intermediate result as an output, which changes fusion. Kernels: the fused
program is checked kernel by kernel, as it is compiled. Passes: the reference runs the program after
each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.environment import left_out_rewrites
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.stages import steps_of
from mgx_mlir.core.errors import MgxError
from mgx_mlir.debug.compare import Comparison, compare
from mgx_mlir.debug.draws import draws
from mgx_mlir.debug.examine import Examined, Finding, examine
from mgx_mlir.debug.extract import alone, upto
from mgx_mlir.debug.inputs import make_inputs
from mgx_mlir.debug.intermediates import SteppedRun
from mgx_mlir.debug.reduce import OutOfTime, Reduction
from mgx_mlir.debug.reduce_mlir import MlirCandidate, candidate_of, program_of, reduce_module
from mgx_mlir.debug.tolerances import Tolerances, output_tolerances
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.names import pass_name
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.rewrite_trace import disabled

Level = Literal["instruction", "kernel"]


@dataclass
class Case:
    """A comparison with the reference: a model, and the build of its target side."""

    program: ProgramIR  # model as it was read
    arrays: list[np.ndarray]  # model inputs, in order
    target: str
    options: Mapping[str, Any] = field(default_factory=dict)  # options of compile()
    # function that applies the user's passes and types to a copy of the model
    changed: Callable[[ProgramIR], ProgramIR] = lambda p: p
    passes: Sequence[Any] = ()  # user's passes, to be tried one by one
    low: bool = False  # target computes floats in 16 bits
    # function that replaces default limits by the user's
    limits: Callable[[Tolerances], Tolerances] = lambda t: t
    compute: str = "f32"  # float type of the reference, "f32" or "f64"
    seed: int = 0  # seed of drawn inputs
    keep: int = 1  # number of wrong instructions whose operands are stored

    @property
    def sides(self) -> tuple[str, str]:
        """Names of the target side and of the reference side."""
        return self.target, "ref"

    def compiled(self, program: ProgramIR) -> CompiledProgram:
        """Compile the target side of a program. The program is consumed."""
        return compile_program(self.changed(program), self.target, **self.options)

    def fused(self) -> ProgramIR:
        """Run the target's passes on the model, and return the program with its kernels."""
        found = self.changed(self.program.clone())
        with disabled(left_out_rewrites()):
            run_pipeline(found.module, self.pipeline(), store=found.store)
        found.prune_store()
        return found

    def pipeline(self) -> tuple[str, ...]:
        """Return the passes of the target, as compile() runs them."""
        own = ("arch", "fast_math", "remove_qdq_pairs", "kernel_boundaries")
        given = {k: v for k, v in self.options.items() if k in own}
        return steps_of(CompileOptions(self.target, **given))

    def kernels_compiled(self, program: ProgramIR) -> CompiledProgram:
        """Compile a program after the passes, without running them again."""
        every = [pass_name(step.partition("{")[0]) for step in self.pipeline()]
        return compile_program(program, self.target, disable=every, **self.options)

    def instructions(self) -> Examined:
        """Check every instruction of the model, in one build. Errors: those of compile() and
        run().
        """
        return self._examined(SteppedRun(self.program, self.arrays, self.compiled))

    def kernels(self, fused: ProgramIR) -> Examined:
        """Check every kernel of the fused program, compiled as it is."""
        return self._examined(SteppedRun(fused, self.arrays, self.kernels_compiled))

    def _examined(self, run: SteppedRun) -> Examined:
        return examine(
            run,
            limits=self.limits,
            low=self.low,
            compute=self.compute,
            sides=self.sides,
            keep=self.keep,
        )

    # ---- passes ------------------------------------------------------------------------------

    def first_wrong_pass(self) -> str | None:
        """Return the first pass after which the reference's results change, or None."""
        wanted = self._reference(self.program)
        each = [self.limits(t) for t in output_tolerances(self.program, low=self.low)]
        before = self.program.text()
        for name, found in self._steps():
            after = found.text()
            if after == before:
                continue
            before = after
            got = self._reference(found)
            if not all(
                compare("", a, b, t).passed for a, b, t in zip(got, wanted, each, strict=True)
            ):
                return name
        return None

    def _steps(self) -> Iterator[tuple[str, ProgramIR]]:
        """Yield the program after the user's passes, in the target's types, and after each pass."""
        found = self.program.clone()
        for step in self.passes:
            run_pipeline(found.module, (step,), store=found.store)
            yield step.name, found
        if self.low:
            found = self.changed(self.program.clone())
            yield "truncate_float", found
        for name in self.pipeline():
            with disabled(left_out_rewrites()):
                run_pipeline(found.module, (name,), store=found.store)
            yield name, found

    def _reference(self, program: ProgramIR) -> list[np.ndarray]:
        names = Signature.of(program.main())
        named = {p.name: a for p, a in zip(names.inputs, self.arrays, strict=True)}
        with program.ctx:
            return Interpreter(program.module, program.store, compute=self.compute).run(named)

    # ---- smaller models ----------------------------------------------------------------------

    def differences(
        self, program: ProgramIR, inputs: Mapping[str, np.ndarray] | None = None
    ) -> list[Comparison]:
        """Return the failing outputs of another program, on these inputs or on drawn ones.

        The list is empty if all agree. It is also empty if one side cannot be compiled or run,
        which is another fault.
        """
        try:
            signature = Signature.of(program.main())
            if inputs is None:
                inputs = make_inputs(signature, draws(program), seed=self.seed)
            reference = compile_program(program, "ref", ref_double=self.compute == "f64")
            wanted = reference.execute(signature.check_inputs(inputs))
            each = [self.limits(t) for t in output_tolerances(program, low=self.low)]
            # candidates are many and short-lived, so they are not cached
            options = {**self.options, "cache": False}
            made = compile_program(self.changed(program.clone()), self.target, **options)
            got = made.execute(made.signature.check_inputs(inputs))
        except MgxError:
            return []
        found = [
            compare(name, np.asarray(a), np.asarray(b), t, self.sides)
            for name, a, b, t in zip(
                [p.name for p in signature.outputs], got, wanted, each, strict=True
            )
        ]
        return [c for c in found if not c.passed]

    def reduced(
        self,
        program: ProgramIR,
        keep: Callable[[ProgramIR], None],
        say: Callable[[str], None],
        *,
        seconds: float,
    ) -> ProgramIR:
        """Reduce the program while an output still fails on drawn inputs.

        `keep` is called with each smaller program. Ends after `seconds` with the smallest.
        """

        def fails(candidate: MlirCandidate) -> bool:
            return bool(self.differences(program_of(candidate)))

        run: Reduction[MlirCandidate] = Reduction(
            candidate_of(program), fails, lambda c: keep(program_of(c)), say, seconds=seconds
        )
        try:
            reduce_module(run)
        except OutOfTime:
            say(f"Time limit of {seconds:g} s reached, the result is the smallest model so far")
        return program_of(run.best)


@dataclass
class Culprit:
    """Culprit of a wrong result: an instruction of the model, or a kernel of the compiled program.

    `examined` are all findings of that level. `finding` is the first wrong one, None if there is
    none. Positions refer to `program`.
    """

    level: Level
    program: ProgramIR
    examined: Examined
    finding: Finding | None = None


def find_kernel(case: Case) -> Culprit:
    """Find the first kernel that is wrong on correct inputs. Errors: those of compile() and of the
    run.
    """
    fused = case.fused()
    kernels = case.kernels(fused)
    return Culprit("kernel", fused, kernels, next(iter(kernels.wrong), None))


@dataclass
class Minimal:
    """A small model that fails by itself."""

    program: ProgramIR
    inputs: dict[str, np.ndarray]  # inputs on which it fails; empty if drawn ones fail


def minimal_model(case: Case, culprit: Culprit) -> Minimal | None:
    """Find the smallest failing model around the culprit: it alone, else with its producers.

    None if neither fails: the fault shows only in the whole program.
    """
    if culprit.finding is None:
        return None
    at = culprit.finding.position
    program, inputs = alone(culprit.program, at, culprit.finding.inputs)
    if case.differences(program):
        return Minimal(program, {})
    if inputs and case.differences(program, inputs):
        return Minimal(program, inputs)
    if culprit.level == "instruction":
        whole = upto(case.program, at)
        names = {p.name for p in Signature.of(whole.main()).inputs}
        every = Signature.of(case.program.main()).inputs
        given = {p.name: a for p, a in zip(every, case.arrays, strict=True) if p.name in names}
        if case.differences(whole):
            return Minimal(whole, {})
        if case.differences(whole, given):
            return Minimal(whole, given)
    return None
