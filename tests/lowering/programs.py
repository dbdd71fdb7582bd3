"""Small programs built op by op, fused by one pass, compiled and run: many kernels a compile."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings

from mgx_mlir.compiler.models import read_model
from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.targets.child import shared_compiler
from mgx_mlir.targets.flags import cpu_ladder
from tests.lowering.harness import compile_flags, load_dialect
from tests.support.compiles import module_of


def program_of(build: Callable[..., Sequence[ir.Value]], *types: str) -> ProgramIR:
    """A program of the values that `build(builder, *arguments)` gives."""
    load_dialect()
    ctx, store = new_context(), literals.WeightStore()
    with ctx, ir.Location.unknown(), store.active():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([ir.Type.parse(t) for t in types], []))
        block = main.add_entry_block()
        with ir.InsertionPoint(block):
            found = list(build(Builder(), *block.arguments))
            func.ReturnOp(found)
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in found])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
    return ProgramIR(ctx, module, store)


class Programs:
    """@main of several results; each `add` is one of them with arguments of its own."""

    def __init__(self) -> None:
        load_dialect()
        self.ctx, self.store = new_context(), literals.WeightStore()
        self.b = Builder()
        self.inputs: list[np.ndarray] = []
        self.want: list[np.ndarray] = []
        self.limits: list[tuple[str, float]] = []  # name and tolerance of each result
        with self.ctx, ir.Location.unknown():
            self.module = ir.Module.create()
            with ir.InsertionPoint(self.module.body):
                self._main = func.FuncOp("main", ([], []))
            self._block = self._main.add_entry_block()
        self._results: list[ir.Value] = []
        self._finished = False

    def add(
        self,
        build: Callable[..., Any],
        arrays: Sequence[np.ndarray],
        want: np.ndarray,
        *,
        types: Sequence[str] = (),
        fixed: bool = True,
        name: object = "",
        tolerance: float = 0.0,
    ) -> None:
        """The value that `build(builder, *arguments)` gives; it should be `want` (f64).

        types: of the arguments, where a run is to choose some of their dims; not `fixed`: it
        chooses all. tolerance: in parts of the largest element.
        """
        with self.ctx, ir.Location.unknown(), self.store.active():
            arguments = []
            for i, a in enumerate(arrays):
                shape = a.shape if fixed else [DYN] * a.ndim
                kind = ir.RankedTensorType.get(shape, dtypes.from_numpy(a.dtype).ir_type())
                if types:
                    kind = ir.Type.parse(types[i])
                arguments.append(self._block.add_argument(kind, ir.Location.unknown()))
                self.inputs.append(np.ascontiguousarray(a).reshape(a.shape))
            with ir.InsertionPoint(self._block):
                self._results.append(build(self.b, *arguments))
        self.want.append(want)
        self.limits.append((str(name), tolerance))

    def finish(self) -> None:
        """No more results."""
        with self.ctx, ir.Location.unknown(), self.store.active():
            with ir.InsertionPoint(self._block):
                func.ReturnOp(self._results)
            kind = ir.FunctionType.get(
                [a.type for a in self._block.arguments], [r.type for r in self._results]
            )
            self._main.attributes["function_type"] = ir.TypeAttr.get(kind)
            self.module.operation.verify()
        self._finished = True

    def lowered(self, *steps: str, **options: Any) -> Lowered:
        """After the passes `steps`, lowered with these LowerOptions."""
        if not self._finished:
            self.finish()
        run_pipeline(self.module, [*steps, "dead_code_elimination"], store=self.store)
        program = ProgramIR(self.ctx, self.module, self.store, "programs")
        return lower_to_linalg(program, LowerOptions(**options))

    def agree(
        self,
        *steps: str,
        threads: Sequence[int] = (1,),
        kernels: int | None = None,
        **options: Any,
    ) -> Lowered:
        """Lower to as many vector kernels as results, or `kernels`, compile once, and compare."""
        lowered = self.lowered(*steps, **options)
        count = len(self.want) if kernels is None else kernels
        assert kernels_of(lowered) == count, "some are no vector kernels"
        self.compare(lowered, threads)
        return lowered

    def compare(self, lowered: Lowered, threads: Sequence[int] = (1,), factor: float = 1.0) -> None:
        """Run on each number of threads; factor: of the tolerances."""
        for count in threads:
            found = execute(lowered, self.inputs, count)
            for got, want, (name, tolerance) in zip(found, self.want, self.limits, strict=True):
                check(got, want, tolerance * factor, f"{name} on {count} threads")


def lowered_model(model: bytes, *, fast_math: bool = True, arch: str = "host") -> Lowered:
    """An ONNX model after the pipeline of the CPU, lowered for a processor."""
    program = read_model(model)
    run_pipeline(program.module, pipeline("cpu", fast_math=fast_math), store=program.store)
    return lower_to_linalg(program, LowerOptions("cpu", arch=arch, fast_math=fast_math))


def text_of(lowered: Lowered) -> str:
    """The text of the module."""
    ctx = new_context()
    ctx.allow_unregistered_dialects = True
    return str(ir.Module.parse(lowered.bytecode, ctx))


def kernels_of(lowered: Lowered) -> int:
    """Return the number of launched vector kernels; equal ones share their code."""
    return text_of(lowered).count('"flow.dispatch"(')


@functools.lru_cache(maxsize=1)
def _compiled(bytecode: bytes) -> bytes:
    """A module for the host; the last one is kept, for a run on another number of threads."""
    return module_of(bytecode, compile_flags())


def execute(lowered: Lowered, inputs: Sequence[np.ndarray], threads: int = 1) -> list[np.ndarray]:
    """Compile for the host and run once."""
    from mgx_mlir.runtime.iree_runtime import LoadedModule

    module = LoadedModule(
        _compiled(lowered.bytecode), lowered.params, inputs=lowered.inputs, outputs=lowered.outputs,
        device="local-sync" if threads == 1 else "local-task",
    )  # fmt: skip
    return module.run(inputs)


# drawn programs: each example is a compile, and failures are not made smaller
COMPILES = settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
AARCH64 = ("--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu",)
# processors that the host may not be, with flags
ELSEWHERE = {
    "a64fx": AARCH64, "neoverse-v1": AARCH64, "skylake-avx512": (), "icelake-server": (),
    "alderlake": (), "znver5": (),
}  # fmt: skip


def compiles_for(lowered: Lowered, cpu: str) -> bytes:
    """Compile for a processor of ELSEWHERE."""
    flags = cpu_ladder(cpu=cpu, extra=ELSEWHERE[cpu])[0].flags
    return shared_compiler().run(lowered.bytecode, flags).vmfb


def check(got: np.ndarray, want: np.ndarray, tolerance: float, what: str) -> None:
    """Within `tolerance` of the largest; NaN where NaN is, infinities alike."""
    a = got.astype(np.float64)
    assert a.shape == want.shape, what
    np.testing.assert_array_equal(np.isnan(a), np.isnan(want), err_msg=what)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(a[~finite], want[~finite], err_msg=what)
    scale = np.abs(want[finite]).max(initial=1e-30)
    np.testing.assert_allclose(
        a[finite], want[finite], rtol=0, atol=tolerance * scale, err_msg=what
    )
