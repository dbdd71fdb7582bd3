"""A search for the GEMM config of each matmul of a GPU program.

Each matmul of a program is compiled with its epilogue under several choices
(`lowering/gpu/matmul/gemm_shape.py`), many in one module. A cost model estimates each one: a
GPU's clock where there is one, else the bound of the compiled code (`targets/kernel_bounds.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mgx_mlir.compiler.tuning.cost_models import CostModel
from mgx_mlir.compiler.tuning.solutions import store_matmuls, stored_matmuls, tuning_file
from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import Kernel, ViewOp, is_a
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import (
    WORTH,
    GemmConfig,
    GemmShape,
    alternatives,
)
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.rewrite.switches import integer

log = logging.getLogger(__name__)

CHOICES = 12  # compared for each matmul
TOGETHER = 24  # kernels per module
MARGIN = 0.02  # share of the default's time that another choice must save: less is noise


@dataclass
class Found:
    """Results of a search for a matmul, in microseconds by `judged` ("time" or "bound")."""

    product: GemmShape
    tried: dict[GemmConfig, float | None]
    judged: str

    @property
    def default(self) -> GemmConfig:
        """The choice without a search."""
        return next(iter(self.tried))

    @property
    def best(self) -> GemmConfig:
        """The fastest choice; the default unless another one is faster by MARGIN. A bound only
        estimates the cost of one more launch, so split-k must save more.
        """
        times = {c: t for c, t in self.tried.items() if t is not None}
        if self.judged == "bound":
            times = {c: t if c.split == 1 else t / WORTH for c, t in times.items()}
        if not times:
            return self.default
        least = min(times, key=lambda c: times[c])
        own = times.get(self.default)
        return least if own is None or times[least] < own * (1 - MARGIN) else self.default

    def us(self, choice: GemmConfig) -> float | None:
        """Return the microseconds of a choice, None where it did not compile."""
        return self.tried.get(choice)


@dataclass
class ProductSearch:
    """Matmuls that were searched, and results that were known before."""

    arch: str
    found: list[Found] = field(default_factory=list)
    known: int = 0
    seconds: float = 0.0
    path: Path | None = None

    def lines(self) -> list[str]:
        """Describe the search, one line for each matmul."""
        if not self.found:
            return [f"Tuning: {self.known} matmuls are in {self.path}"] if self.known else []
        how = "a GPU's clock" if self.found[0].judged == "time" else "the bound of its code"
        count = sum(len(f.tried) for f in self.found)
        out = [
            f"Tuning: {len(self.found)} matmuls on {self.arch}, {count} choices, each judged by "
            f"{how}, in {self.seconds:.1f} s"
        ]
        for f in self.found:
            dims = "x".join(map(str, f.product.dims))
            own, best = f.us(f.default), f.us(f.best)
            gain = "" if f.best == f.default else f", {f.best}: {_us(best)}"
            out.append(f"  {f.product.op} {dims} {f.product.dtype}: {_us(own)}{gain}")
        known = f", where {self.known} more were known" if self.known else ""
        return [*out, f"  kept in {self.path}{known}"]


def _us(value: float | None) -> str:
    return "not compiled" if value is None else f"{value:.4g} us"


def search_products(
    program: ProgramIR, arch: str, cost_model: CostModel, judged: str
) -> ProductSearch:
    """Search the matmuls of a program after its passes, and store the results.

    Matmuls in the tuning file are not searched again. A chip without known figures has no results.
    MIGRAPHX_MLIR_TUNE_LIMIT bounds the choices of a matmul. Errors:
    FileError.
    """
    start = time.perf_counter()
    out = ProductSearch(arch, path=tuning_file())
    if arch not in CHIPS:
        return out
    known = stored_matmuls(arch)
    kernels = product_kernels(program, arch)
    out.known = sum(p in known for p in kernels)
    limit = max(integer("MIGRAPHX_MLIR_TUNE_LIMIT", CHOICES), 1)
    wanted = {p: alternatives(arch, p, limit) for p in kernels if p not in known}
    work = [(p, c) for p, choices in wanted.items() for c in choices]
    times: dict[tuple[GemmShape, GemmConfig], float | None] = {}
    for i in range(0, len(work), TOGETHER):
        times |= _costs(program, kernels, work[i : i + TOGETHER], arch, cost_model)
    out.found = [
        Found(p, {c: times[p, c] for c in choices}, judged) for p, choices in wanted.items()
    ]
    if out.found:
        best = {f.product: (f.best, f.us(f.best)) for f in out.found}
        out.path = store_matmuls(arch, best, judged)
    out.seconds = time.perf_counter() - start
    return out


def product_kernels(program: ProgramIR, arch: str) -> dict[GemmShape, ir.Operation]:
    """Return the matmuls of a program, each with the first kernel that computes it."""
    found: dict[GemmShape, ir.Operation] = {}
    with program.ctx, ir.Location.unknown(), program.store.active():
        ops = [v.operation for v in entry_block(program.main()).operations]
        kernels = [op for op in ops if is_a(op, Kernel) and _multiplies(op)]
        for op in kernels:
            seen: list[GemmShape] = []

            def note(product: GemmShape, _: str, seen: list[GemmShape] = seen) -> None:
                seen.append(product)

            options = LowerOptions("gpu", arch=arch, gemm_configs=note)
            lower_to_linalg(_alone(program, op), options)
            for product in seen:
                found.setdefault(product, op)
    return found


def _multiplies(op: ir.Operation) -> bool:
    """Return whether a kernel of static dims contains a matmul."""
    words = ("dot", "convolution")
    body = op.regions[0].blocks[0]
    values = [*op.operands, *op.results]
    static = all(ir.RankedTensorType(v.type).has_static_shape for v in values)
    return static and any(v.operation.name.endswith(words) for v in body.operations)


def lowered_choices(
    program: ProgramIR,
    kernels: Mapping[GemmShape, ir.Operation],
    work: Sequence[tuple[GemmShape, GemmConfig]],
    arch: str,
) -> tuple[Lowered, list[str]]:
    """Lower the choices of `work` to functions of one module; return it and their names."""
    with program.ctx, ir.Location.unknown(), program.store.active():
        names = ["main", *(f"choice{i}" for i in range(1, len(work)))]
        rows = dict(zip(names, work, strict=True))

        def choose(product: GemmShape, function: str) -> GemmConfig | None:
            own, choice = rows[function]
            return choice if product == own else None

        programs = {n: _alone(program, kernels[p]) for n, (p, _) in rows.items()}
        first = programs.pop("main")
        options = LowerOptions("gpu", arch=arch, gemm_configs=choose)
        return lower_to_linalg(first, options, programs), names


def _costs(
    program: ProgramIR,
    kernels: Mapping[GemmShape, ir.Operation],
    work: Sequence[tuple[GemmShape, GemmConfig]],
    arch: str,
    cost_model: CostModel,
) -> dict[tuple[GemmShape, GemmConfig], float | None]:
    """Return the cost of each choice. A choice that does not compile has none."""
    lowered, names = lowered_choices(program, kernels, work, arch)
    try:
        found = cost_model(lowered, names)
        return {row: found.get(n) for n, row in zip(names, work, strict=True)}
    except CompileError as e:
        if len(work) == 1:
            log.info("tuning: %s, %s does not compile: %s", *work[0], e.message)
            return {work[0]: None}
    half = len(work) // 2
    return _costs(program, kernels, work[:half], arch, cost_model) | _costs(
        program, kernels, work[half:], arch, cost_model
    )


def _alone(program: ProgramIR, op: ir.Operation) -> ProgramIR:
    """Extract one kernel as a program.

    Its operands become parameters, except for constants and views of constants.
    """
    module = ir.Module.create()
    known: dict[ir.Value, ir.Value] = {}
    outside = [v for v in dict.fromkeys(op.operands) if not _is_constant(v)]
    with ir.InsertionPoint(module.body):
        f = func.FuncOp("main", ([v.type for v in outside], [r.type for r in op.results]))
    entry = f.add_entry_block()
    known.update(zip(outside, entry.arguments, strict=True))

    def copied(source: ir.Operation) -> ir.Operation:
        inputs = [value(v) for v in source.operands]
        copy = source.clone(ir.InsertionPoint(entry)).operation
        for i, v in enumerate(inputs):
            copy.operands[i] = v
        return copy

    def value(v: ir.Value) -> ir.Value:
        if v not in known:
            known[v] = copied(v.owner.operation).results[0]
        return known[v]

    results = list(copied(op).results)
    with ir.InsertionPoint(entry):
        func.ReturnOp(results)
    return ProgramIR(program.ctx, module, program.store, program.source)


def _is_constant(v: ir.Value) -> bool:
    """Return whether a value is a literal or a view of one."""
    is_view = is_a(v.owner, ViewOp) and len(v.owner.results) == 1
    return is_literal(v) or (is_view and all(map(_is_constant, v.owner.operands)))


__all__ = [
    "TOGETHER", "Found", "ProductSearch", "lowered_choices", "product_kernels", "search_products",
]  # fmt: skip
