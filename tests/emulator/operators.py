"""Cases of every lowered operator, from the registry alone, compiled for a GPU and run emulated.

An operator's cases are its own examples and, in each of f32, f16, bf16 and i8 that it takes
without having an example, two of its float examples in that type.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.interpreter import Interpreter
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.dialects.migraphx.samples import redrawn
from tests.lower import harness
from tests.lower.harness import Case, Outcome
from tests.lower.test_conformance import lowered

harness.load_dialect()

ARCHS = ("gfx942", "gfx1100")
SEEDS = (0, 1, 2)
# what every operator that takes them is run in, its own examples or not
WANTED = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.INT8)
CONVERTED = 2  # examples in a type of which the operator has none
CHUNK = 160  # cases in one compile

# Relative errors, by the norm of the wanted values; integers are exact. f64 and f8 are held to
# what rounding to them allows.
LIMITS = {"double": 1e-13, "float": 1e-5, "half": 2e-3, "bf16": 1e-2, "fp8e4m3fn": 0.07,
          "fp8e4m3fnuz": 0.07, "fp8e5m2": 0.13, "fp8e5m2fnuz": 0.13}  # fmt: skip


def operators() -> list[type[Op]]:
    """Every operator that has a lowering of its own and examples to be run by."""
    found = [OPS[name] for name in sorted(OPS) if lowered(OPS[name])]
    return [cls for cls in found if harness.examples_of(cls)]


def examples(cls: type[Op], seed: int) -> list[Case]:
    """The operator's examples, what they draw drawn by the seed."""
    with redrawn(seed):
        return harness.examples_of(cls)


def dtypes_of(case: Case) -> set[DType]:
    """The element types of the case's operands."""
    return {dtypes.from_numpy(a.dtype) for a in case.arrays()}


def cases_of(cls: type[Op], seed: int = 0) -> list[Case]:
    """The operator's cases; those of two seeds differ in values alone."""
    own = examples(cls, seed)
    have = {d for case in own for d in dtypes_of(case)}
    return own + [c for d in WANTED if d not in have for c in converted(cls, own, d)]


def converted(cls: type[Op], own: Sequence[Case], dtype: DType) -> list[Case]:
    """Float examples in another type, where the operator takes it: all operands, or the first."""
    floats = [c for c in own if any(a.dtype == np.float32 for a in c.arrays())]
    found: list[Case] = []
    for chosen in places_of(cls, dtype):
        case = in_dtype(floats[chosen.case], dtype, first_only=chosen.first_only)
        found.append(case)
    return found


@dataclass(frozen=True)
class Chosen:
    """One float example of an operator, and what of it changes type."""

    case: int
    first_only: bool


@functools.cache
def places_of(cls: type[Op], dtype: DType) -> tuple[Chosen, ...]:
    """Which float examples the operator takes in `dtype`; the same for every seed."""
    own = [c for c in examples(cls, 0) if any(a.dtype == np.float32 for a in c.arrays())]
    for first_only in (False, True):
        new = [in_dtype(c, dtype, first_only=first_only) for c in own]
        taken = [i for i, c in enumerate(new) if is_taken(c)]
        if taken:
            count = min(CONVERTED, len(taken))
            return tuple(Chosen(taken[k * len(taken) // count], first_only) for k in range(count))
    return ()


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


def is_taken(case: Case) -> bool:
    """Whether the operator's types admit the case, and its reference computes it."""
    try:
        program, inputs, _ = harness.build([case])
        Interpreter(program.module, program.store).run({f"x{i}": a for i, a in enumerate(inputs)})
    except MgxError:
        return False
    return True


# ---- chunks --------------------------------------------------------------------------------------


def is_f8(case: Case) -> bool:
    """Whether 8-bit floats are in it: where the chip has none, a chunk is compiled to emulate."""
    program, _, _ = harness.build([case])
    return "f8E" in str(program.module)


@dataclass
class Chunk:
    """Cases for one compile: which ones, by operator and number."""

    name: str
    cases: list[tuple[type[Op], int]] = field(default_factory=list)

    def drawn(self, seed: int) -> list[Case]:
        """The cases with the values of one seed."""
        own = {cls: cases_of(cls, seed) for cls in dict.fromkeys(cls for cls, _ in self.cases)}
        return [own[cls][i] for cls, i in self.cases]


def chunked(cases: Iterable[tuple[type[Op], int]], size: int = CHUNK) -> Iterator[Chunk]:
    """Neighbours together; cases with 8-bit floats apart from all others."""
    f8, others = [], []
    for cls, i in cases:
        (f8 if is_f8(cases_of(cls)[i]) else others).append((cls, i))
    for kind, found in (("", others), ("f8 ", f8)):
        for at in range(0, len(found), size):
            part = found[at : at + size]
            yield Chunk(f"{kind}{part[0][0].mnemonic}-{part[-1][0].mnemonic}", part)


@functools.cache
def all_chunks() -> tuple[Chunk, ...]:
    """Every case of every operator."""
    return tuple(chunked((cls, i) for cls in operators() for i in range(len(cases_of(cls)))))


# ---- running -------------------------------------------------------------------------------------


class Batch:
    """Cases in one program, compiled as the gpu target compiles it; run with any values."""

    def __init__(self, cases: Sequence[Case], arch: str) -> None:
        """Errors: those of lowering and compiling."""
        from mgx_mlir.runtime.iree_runtime import LoadedModule
        from mgx_mlir.targets import emulator
        from mgx_mlir.targets.base import CompileOptions, get_target

        program, _, self.counts = harness.build(cases)
        options = CompileOptions(cache=False, timeout=600)
        program = harness.lower(program, target="gpu", arch=arch)
        self.executable = get_target("gpu", architecture=arch).compile_lowered(program, options)
        self.module = LoadedModule(
            self.executable.vmfb,
            program.params,
            inputs=program.inputs,
            outputs=program.outputs,
            device="hip",
            library=str(emulator.activate()),
        )

    def outcomes(self, cases: Sequence[Case]) -> list[Outcome]:
        """What the cases give, beside their references."""
        program, inputs, counts = harness.build(cases)
        assert counts == self.counts
        interpreter = Interpreter(program.module, program.store)
        want = interpreter.run({f"x{i}": a for i, a in enumerate(inputs)})
        got = self.module.run(inputs)
        found, at = [], 0
        for case, n in zip(cases, counts, strict=True):
            found.append(Outcome(case, got[at : at + n], want[at : at + n]))
            at += n
        return found


@functools.lru_cache(maxsize=4)
def compiled(name: str, arch: str, chunks: tuple[Chunk, ...]) -> Batch:
    """A chunk's program: one compile for all seeds."""
    (chunk,) = (c for c in chunks if c.name == name)
    return Batch(chunk.drawn(0), arch)


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
