"""Runs single operators through lowering and IREE in batches, beside each op's numpy reference.

A batch is one program whose @main holds every case, so that many cases cost one compile:

    outcomes = run_cases([Case(OPS["gather"], (data, indices), {"axis": 1}), ...])
    for o in outcomes: o.check()
"""

from __future__ import annotations

import pkgutil
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.context import new_context
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR
from tests.support.compiles import module_of

BATCH = 48  # cases in one compile

# (relative, absolute) by element type; the absolute one is taken times the largest value.
TOLERANCE = {"double": (1e-13, 1e-14), "float": (1e-5, 2e-6), "half": (2e-3, 1e-3),
             "bf16": (1.6e-2, 8e-3), "fp8e4m3fn": (0.13, 0.02), "fp8e4m3fnuz": (0.13, 0.02),
             "fp8e5m2": (0.26, 0.02), "fp8e5m2fnuz": (0.26, 0.02)}  # fmt: skip


def load_dialect() -> None:
    """Import every operator class."""
    package = import_module("mgx_mlir.dialects.migraphx")
    for found in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{found.name}")


@dataclass(frozen=True, eq=False)
class Case:
    """One operator on given arrays.

    operands: one entry per operand group: array, list of arrays, or None where absent.
    dynamic: every operand dim is `?` (True), or the dims of these flat operands are.
    constants: flat operands given as literals instead of arguments.
    kernel: the op stands in a `group` region, as inside a fused kernel.
    results: the stated result types, where they cannot be inferred or shall be more precise.
    """

    cls: type[Op]
    operands: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    dynamic: bool | frozenset[int] = False
    constants: frozenset[int] = frozenset()
    kernel: bool = False
    results: tuple[TensorType, ...] | None = None
    note: str = ""

    def arrays(self) -> list[np.ndarray]:
        """The operands, flat."""
        out: list[np.ndarray] = []
        for operand in self.operands:
            if operand is not None:
                out.extend(operand if isinstance(operand, list | tuple) else [operand])
        return out

    def types(self) -> list[TensorType]:
        """The types of the flat operands as the program states them."""
        out = []
        for i, a in enumerate(self.arrays()):
            dynamic = self.dynamic if isinstance(self.dynamic, bool) else i in self.dynamic
            dims = (DYN,) * a.ndim if dynamic and i not in self.constants else a.shape
            out.append(TensorType(dtypes.from_numpy(a.dtype), dims))
        return out

    def __str__(self) -> str:
        shapes = ", ".join(f"{t}" for t in self.types())
        attributes = ", ".join(f"{k}={v!r}" for k, v in self.attributes.items())
        kind = " in a kernel" if self.kernel else ""
        return f"{self.cls.mnemonic}({shapes}; {attributes}){kind} {self.note}".rstrip()


@dataclass
class Outcome:
    """The outcome of a case: results beside the reference's, or the error of its compile."""

    case: Case
    got: list[np.ndarray] = field(default_factory=list)
    want: list[np.ndarray] = field(default_factory=list)
    error: str = ""

    def problem(self, *, exact: bool = False, tolerance: tuple[float, float] | None = None) -> str:
        """Return the fault, or an empty text."""
        if self.error:
            return f"{self.case}: {self.error}"
        if len(self.got) != len(self.want):
            return f"{self.case}: {len(self.got)} results, expected {len(self.want)}"
        for i, (got, want) in enumerate(zip(self.got, self.want, strict=True)):
            text = difference(got, want, exact=exact, tolerance=tolerance)
            if text:
                return f"{self.case}: result {i}: {text}"
        return ""

    def check(self, **options: Any) -> None:
        text = self.problem(**options)
        assert not text, text


def difference(
    got: np.ndarray,
    want: np.ndarray,
    *,
    exact: bool = False,
    tolerance: tuple[float, float] | None = None,
) -> str:
    """Return how `got` differs from `want` in type, dims or values; an empty text if it does not.

    NaN equals NaN; -0 equals 0; integers and booleans compare exactly, floats by TOLERANCE.
    """
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"dims {got.shape}, expected {want.shape}"
    if not got.size:
        return ""
    dtype = dtypes.from_numpy(got.dtype)
    if not dtype.is_float or exact:
        same = got == want
        if dtype.is_float:
            same |= np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        relative, absolute = tolerance or TOLERANCE[dtype.short]
        finite = np.abs(b[np.isfinite(b)])
        bound = absolute * (finite.max() if finite.size else 0.0) + relative * np.abs(b)
        with np.errstate(invalid="ignore"):
            same = (np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b))
    bad = np.argwhere(~np.asarray(same).reshape(got.shape))
    if not len(bad):
        return ""
    at = tuple(int(i) for i in bad[0])
    return (
        f"{len(bad)} of {got.size} elements differ, first at {list(at)}: "
        f"got {got[at]!s}, expected {want[at]!s}"
    )


# ---- building ------------------------------------------------------------------------------------


def build(
    cases: Sequence[Case], ctx: ir.Context | None = None
) -> tuple[ProgramIR, list[np.ndarray], list[int]]:
    """One program of all cases: it, its inputs, and the number of results of each case.

    ctx: a context to make it in, that of others which are not kept; None: its own.
    Errors: ShapeError where a case cannot be built.
    """
    ctx = ctx or new_context()
    store = literals.WeightStore()
    types: list[TensorType] = []
    inputs: list[np.ndarray] = []
    for case in cases:
        for i, (t, a) in enumerate(zip(case.types(), case.arrays(), strict=True)):
            if i not in case.constants:
                types.append(t)
                inputs.append(np.ascontiguousarray(a).reshape(a.shape))
    with ctx, ir.Location.unknown(), store.active():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            f = func.FuncOp("main", ([t.mlir() for t in types], []))
        entry = f.add_entry_block()
        arguments = iter(entry.arguments)
        results: list[ir.Value] = []
        counts: list[int] = []
        with ir.InsertionPoint(entry):
            for case in cases:
                found = _build_case(case, arguments)
                results += found
                counts.append(len(found))
            func.ReturnOp(results)
        kind = ir.FunctionType.get([t.mlir() for t in types], [r.type for r in results])
        f.attributes["function_type"] = ir.TypeAttr.get(kind)
        module.operation.verify()
    return ProgramIR(ctx, module, store, "cases"), inputs, counts


def _build_case(case: Case, arguments: Any) -> list[ir.Value]:
    flat: list[ir.Value] = []
    for i, a in enumerate(case.arrays()):
        flat.append(literals.create(a) if i in case.constants else next(arguments))
    if not case.kernel:
        op = _build_op(case, flat)
        return list(op.results)
    # the results' types are known after the op is built: build it in a block of its own first
    kernel_types = _result_types(case, flat)
    kernel = OPS["group"](flat, results=kernel_types, tag="case").operation
    block = kernel.regions[0].blocks.append(*[v.type for v in flat], arg_locs=None)
    with ir.InsertionPoint(block):
        op = _build_op(case, list(block.arguments))
        OPS["yield"](list(op.results))
    return list(kernel.results)


def _result_types(case: Case, flat: Sequence[ir.Value]) -> list[ir.Type]:
    op = _build_op(case, flat)
    types = [r.type for r in op.results]
    op.erase()
    return types


def _build_op(case: Case, flat: Sequence[ir.Value]) -> ir.Operation:
    values = iter(flat)
    operands: list[Any] = []
    for operand in case.operands:
        if operand is None:
            operands.append(None)
        elif isinstance(operand, list | tuple):
            operands.append([next(values) for _ in operand])
        else:
            operands.append(next(values))
    return case.cls(*operands, results=case.results, **case.attributes).operation


# ---- running -------------------------------------------------------------------------------------


def lower(program: ProgramIR, **options: Any) -> Lowered:
    """The program lowered as the cpu target lowers it."""
    from mgx_mlir.passes.lowering.lower import lower_to_linalg
    from mgx_mlir.passes.lowering.options import LowerOptions

    return lower_to_linalg(program, LowerOptions(**options))


def compile_flags() -> tuple[str, ...]:
    """The flags of the cpu target's first rung, without evaluation at compile time.

    That one runs parts of the program in the compiler, which costs four times the compile here.
    """
    from mgx_mlir.targets.flags import cpu_ladder

    return (*cpu_ladder()[0].flags, "--iree-opt-const-eval=false")


def execute(lowered: Lowered, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Compile for the host and run once, on inputs that are used in place and must stay."""
    from mgx_mlir.runtime import prepared_calls
    from mgx_mlir.runtime.iree_runtime import LoadedModule

    module = LoadedModule(
        module_of(lowered.bytecode, compile_flags()),
        lowered.params,
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        device="local-sync",
    )
    lent = [on_64_bytes(a) for a in inputs]
    with mock.patch.object(prepared_calls, "_LARGE", 1):
        results = module.run(lent)
    pairs = zip(lent, inputs, strict=True)
    changed = [i for i, (a, b) in enumerate(pairs) if a.tobytes() != b.tobytes()]
    assert not changed, f"inputs {changed} were written to"
    return results


def on_64_bytes(a: np.ndarray) -> np.ndarray:
    """A copy where the runtime takes an array as it is."""
    room = np.empty(a.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


def run_cases(cases: Iterable[Case], *, batch: int = BATCH, **options: Any) -> list[Outcome]:
    """Run every case, `batch` of them per compile; `options` are LowerOptions.

    A batch that fails is halved until the case that fails stands alone; its outcome holds the
    error, the others have their results.
    """
    from mgx_mlir.passes.lowering import families

    load_dialect()
    families.load()
    todo = list(cases)
    out: list[Outcome] = []
    for at in range(0, len(todo), batch):
        out += _run_batch(todo[at : at + batch], options)
    return out


def _run_batch(cases: Sequence[Case], options: dict[str, Any]) -> list[Outcome]:
    try:
        program, inputs, counts = build(cases)
        lowered = lower(program, **options)
        want = Interpreter(program.module, program.store).run(
            {f"x{i}": a for i, a in enumerate(inputs)}
        )
        got = execute(lowered, inputs)
    except Exception as e:
        if len(cases) == 1:
            trace = traceback.format_exception(e, chain=False)[-3:]
            return [Outcome(cases[0], error=str(e) if isinstance(e, MgxError) else "".join(trace))]
        middle = len(cases) // 2
        return [*_run_batch(cases[:middle], options), *_run_batch(cases[middle:], options)]
    out: list[Outcome] = []
    at = 0
    for case, n in zip(cases, counts, strict=True):
        out.append(Outcome(case, got[at : at + n], want[at : at + n]))
        at += n
    return out


def check_cases(cases: Iterable[Case], *, exact: bool = False, **options: Any) -> int:
    """Run every case and fail with all that are wrong; the number of cases."""
    outcomes = run_cases(cases, **options)
    problems = [text for o in outcomes if (text := o.problem(exact=exact))]
    assert not problems, f"{len(problems)} of {len(outcomes)} cases:\n" + "\n".join(problems)
    return len(outcomes)


# ---- variants ------------------------------------------------------------------------------------


def examples_of(cls: type[Op]) -> list[Case]:
    """The op's own examples as cases."""
    found = getattr(cls, "examples", None)
    return [Case(cls, operands, attributes) for operands, attributes in (found() if found else [])]


def as_dynamic(case: Case) -> Case | None:
    """The case with all operand dims dynamic, or None where the op cannot be built so."""
    return _if_buildable(replace(case, dynamic=True, note="dynamic"))


def in_kernel(case: Case) -> Case | None:
    """The case inside a kernel's region, or None where the op cannot be built so."""
    return _if_buildable(replace(case, kernel=True))


def of_dtype(case: Case, dtype: DType, *, operands: Sequence[int] = (0,)) -> Case:
    """The case with these operand groups converted to `dtype`."""

    def convert(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return [convert(y) for y in x]
        with np.errstate(all="ignore"):
            return (np.abs(x) if dtype.is_unsigned else x).astype(dtype.np)

    new = tuple(
        convert(x) if i in operands and x is not None else x for i, x in enumerate(case.operands)
    )
    return replace(case, operands=new, note=dtype.short)


def _if_buildable(case: Case) -> Case | None:
    try:
        build([case])
    except MgxError:
        return None
    return case


__all__ = [
    "OPS",
    "Case",
    "Outcome",
    "as_dynamic",
    "build",
    "check_cases",
    "difference",
    "examples_of",
    "execute",
    "in_kernel",
    "load_dialect",
    "lower",
    "of_dtype",
    "run_cases",
]
