"""Cases of every operator that is compiled, from the registry alone, run on an emulated GPU.

An operator's cases are its own examples and, in each of f32, f16, bf16 and i8 that it takes
without having an example, two of its float examples in that type. A seed draws their values.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.dialects.migraphx.recurrent_steps import Steps
from mgx_mlir.dialects.migraphx.samples import redrawn
from mgx_mlir.passes.lowering.registry import REFUSED
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import run_pipeline
from tests.lowering import harness
from tests.lowering.harness import Case, Outcome
from tests.lowering.test_conformance import lowered

harness.load_dialect()

ARCHS = ("gfx942", "gfx1100")
SEEDS = (0, 1, 2)
# types that every operator is run in if it takes them, beside those of its examples
WANTED = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.INT8)
CONVERTED = 2  # examples in a type of which the operator has none
TRIED = 6  # examples, until that many are found that the operator takes in a type
# operators that a pass makes loops and gathers of, which are lowered
REWRITING = "rewrite_rnn"

# Relative errors, by the norm of the wanted values; integers are exact. f64 and f8 are held to
# what rounding to them allows.
LIMITS = {"double": 1e-13, "float": 1e-5, "half": 2e-3, "bf16": 1e-2, "fp8e4m3fn": 0.07,
          "fp8e4m3fnuz": 0.07, "fp8e5m2": 0.13, "fp8e5m2fnuz": 0.13}  # fmt: skip


def compiled_operators() -> list[type[Op]]:
    """Every operator that has a lowering, or that a pass makes others of that have."""
    found = [OPS[name] for name in sorted(OPS)]
    return [cls for cls in found if lowered(cls) or is_rewritten(cls)]


def is_rewritten(cls: type[Op]) -> bool:
    """Return whether the pass that is run ahead of the lowering makes other operators of it."""
    # only processors have a lowering of the steps of recurrent networks
    return REFUSED.get(cls.mnemonic, "").startswith(REWRITING) or issubclass(cls, Steps)


def operators() -> list[type[Op]]:
    """Return the operators that examples can state: with arrays and attributes, no regions."""
    return [cls for cls in compiled_operators() if harness.examples_of(cls)]


def examples(cls: type[Op], seed: int) -> list[Case]:
    """The operator's examples, what they draw drawn by the seed."""
    with redrawn(seed):
        return harness.examples_of(cls)


def dtypes_of(case: Case) -> set[DType]:
    """The element types of the case's operands, and those that its attributes name."""
    named = {v for v in case.attributes.values() if isinstance(v, DType)}
    return named | {dtypes.from_numpy(a.dtype) for a in case.arrays()}


def cases_of(cls: type[Op], seed: int = 0) -> list[Case]:
    """The operator's cases; those of two seeds differ in values alone."""
    own = examples(cls, seed)
    have = {d for case in own for d in dtypes_of(case)}
    floats = [c for c in own if is_float(c)]
    found = list(own)
    for dtype in WANTED:
        if dtype not in have:
            first_only, numbers = taken(cls, dtype)
            found += [in_dtype(floats[i], dtype, first_only=first_only) for i in numbers]
    return found


def is_float(case: Case) -> bool:
    """Return whether an operand is f32."""
    return any(a.dtype == np.float32 for a in case.arrays())


@functools.cache
def taken(cls: type[Op], dtype: DType) -> tuple[bool, tuple[int, ...]]:
    """Return which float examples the operator takes in `dtype`, and whether only the first float
    operand may have it; the same for every seed."""
    own = [c for c in examples(cls, 0) if is_float(c)]
    order = sorted(range(len(own)), key=lambda i: (i % max(1, len(own) // TRIED), i))[:TRIED]
    for first_only in (False, True):
        found = []
        for i in order:
            if is_taken(in_dtype(own[i], dtype, first_only=first_only)):
                found.append(i)
            if len(found) == CONVERTED:
                break
        if found:
            return first_only, tuple(found)
    return False, ()


def in_dtype(case: Case, dtype: DType, *, first_only: bool) -> Case:
    """The case with its f32 operands in `dtype`, or only the first of them; integers in steps of
    a quarter, so that few are zero."""
    done = False

    def convert(x: Any) -> Any:
        nonlocal done
        if isinstance(x, list | tuple):
            return [convert(y) for y in x]
        if x is None or x.dtype != np.float32 or (first_only and done):
            return x
        done = True
        if dtype.is_float:
            return x.astype(dtype.np)
        finite = np.nan_to_num(x * 4, nan=0, posinf=100, neginf=-100)
        return np.clip(np.rint(finite), -100, 100).astype(dtype.np)

    with np.errstate(all="ignore"):
        new = tuple(convert(x) for x in case.operands)
    return replace(case, operands=new, note=dtype.short)


@functools.cache
def passing_context() -> ir.Context:
    """For programs that are looked at and dropped: making one takes longer than they do."""
    return new_context()


def is_taken(case: Case) -> bool:
    """Return whether the operator's types admit the case, and its reference computes it."""
    try:
        program, inputs, _ = harness.build([case], passing_context())
        Interpreter(program.module, program.store).run({f"x{i}": a for i, a in enumerate(inputs)})
    except MgxError:
        return False
    return True


# ---- parts ---------------------------------------------------------------------------------------


def has_f8(case: Case) -> bool:
    """Return whether it has 8-bit floats: on a chip without them the whole program is compiled to
    convert them, other operators too."""
    if any(d.is_float and d.size == 1 for d in dtypes_of(case)):
        return True
    return case.cls.mnemonic in f8_makers()


@functools.cache
def f8_makers() -> frozenset[str]:
    """The operators that make 8-bit floats of operands and attributes that name none."""
    found = set()
    for cls in operators():
        program, _, _ = harness.build(examples(cls, 0)[:1], passing_context())
        if "f8E" in str(program.module):
            found.add(cls.mnemonic)
    return frozenset(found)


def part_of(number: int, parts: int, seed: int) -> list[list[Case]]:
    """The cases of every `parts`th operator from `number` on."""
    return apart([c for cls in operators()[number::parts] for c in cases_of(cls, seed)])


def sample(seed: int, turn: int) -> list[list[Case]]:
    """One case of each operator, in a type that takes turns among its own."""
    found = []
    for n, cls in enumerate(operators()):
        cases = cases_of(cls, seed)
        own: dict[DType | None, Case] = {}
        for case in [c for c in cases if not has_f8(c)] or cases:
            first = next(iter(case.arrays()), None)
            own.setdefault(None if first is None else dtypes.from_numpy(first.dtype), case)
        wanted = [d for d in WANTED if d in own] or list(own)
        found.append(own[wanted[(n + turn) % len(wanted)]])
    return apart(found)


def apart(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases for one program each: those without 8-bit floats, and those with."""
    return [found for f8 in (False, True) if (found := [c for c in cases if has_f8(c) == f8])]


# ---- running -------------------------------------------------------------------------------------


class Compiled:
    """Cases in one program, compiled as the gpu target compiles it; run with any values."""

    def __init__(self, program: ProgramIR, arch: str) -> None:
        """Errors: those of lowering and compiling."""
        from mgx_mlir.runtime.iree_runtime import LoadedModule
        from mgx_mlir.targets import emulator
        from mgx_mlir.targets.base import BackendOptions, get_target

        run_pipeline(program.module, [REWRITING], store=program.store)
        found = harness.lower(program, target="gpu", arch=arch)
        options = BackendOptions(cache=False, timeout=600)
        self.executable = get_target("gpu", architecture=arch).compile_lowered(found, options)
        self.module = LoadedModule(
            self.executable.vmfb,
            found.params,
            inputs=found.inputs,
            outputs=found.outputs,
            device="hip",
            library=str(emulator.activate()),
        )


Programs = list[tuple[slice, Compiled | str]]


def compiled(cases: Sequence[Case], arch: str, start: int = 0) -> Programs:
    """Programs of which cases. One, unless it cannot be compiled: it is halved until the case that
    cannot stands alone, with the error in place of its program."""
    here = slice(start, start + len(cases))
    try:
        return [(here, Compiled(harness.build(cases)[0], arch))]
    except MgxError as e:
        if len(cases) == 1:
            return [(here, f"{cases[0]}: {e}")]
    middle = len(cases) // 2
    return [
        *compiled(cases[:middle], arch, start),
        *compiled(cases[middle:], arch, start + middle),
    ]


def run(programs: Programs, cases: Sequence[Case]) -> Errors:
    """Run the programs of `cases` on values of the same types; compare with their references."""
    errors = Errors()
    for where, program in programs:
        if isinstance(program, str):
            errors.problems.append(program)
            continue
        for outcome in outcomes(program, cases[where]):
            errors.add(outcome)
    return errors


def outcomes(compiled: Compiled, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Yield the results of the cases and of their numpy references."""
    program, inputs, counts = harness.build(cases)
    interpreter = Interpreter(program.module, program.store)
    want = interpreter.run({f"x{i}": a for i, a in enumerate(inputs)})
    got = compiled.module.run(inputs)
    at = 0
    for case, n in zip(cases, counts, strict=True):
        yield Outcome(case, got[at : at + n], want[at : at + n])
        at += n


class Errors:
    """The worst relative error in each element type, and what is over its limit."""

    def __init__(self) -> None:
        self.worst: dict[str, tuple[float, str]] = {}
        self.problems: list[str] = []
        self.cases = 0

    def add(self, outcome: Outcome) -> None:
        """Held to the limit by norm, and element by element as on other targets."""
        self.cases += 1
        problem = outcome.problem(tolerance=tolerance_of(outcome))
        for got, want in zip(outcome.got, outcome.want, strict=False):
            dtype = dtypes.from_numpy(want.dtype)
            if problem or not dtype.is_float:
                continue
            found = error(got, want)
            if found > self.worst.get(dtype.short, (-1.0, ""))[0]:
                self.worst[dtype.short] = found, str(outcome.case)
            if found > LIMITS[dtype.short]:
                problem = f"{outcome.case}: relative error {found:.2g}"
        if problem:
            self.problems.append(problem)

    def check(self) -> None:
        text = "\n".join(self.problems)
        assert not self.problems, f"{len(self.problems)} of {self.cases} cases:\n{text}"

    def __str__(self) -> str:
        worst = ", ".join(f"{d} {e:.2g} ({c})" for d, (e, c) in sorted(self.worst.items()))
        return f"{self.cases} cases, worst errors: {worst}"


def tolerance_of(outcome: Outcome) -> tuple[float, float] | None:
    """For elements; None: the usual one. What is made of many operators is rounded in between, the
    reference once."""
    dtypes_found = {dtypes.from_numpy(a.dtype) for a in outcome.want}
    if not is_rewritten(outcome.case.cls) or len(dtypes_found) != 1:
        return None
    found = harness.TOLERANCE.get(dtypes_found.pop().short)
    return found and (2 * found[0], 2 * found[1])


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The relative error, by norm, of floats: what is finite in both.

    Where one of them is not finite both must be alike, else the error is infinite.
    """
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    alike = np.where(finite, np.isfinite(a), (a == b) | (np.isnan(a) & np.isnan(b)))
    if not alike.all():
        return np.inf
    size = float(np.linalg.norm(b[finite]))
    wrong = float(np.linalg.norm(a[finite] - b[finite]))
    return wrong / size if size else (np.inf if wrong else 0.0)
