"""A second run of the passes changes nothing, and no rewrite undoes what another did."""

from __future__ import annotations

import difflib

import numpy as np
import pytest
from evaluate import CONTEXT
from kernel_graphs import KernelGraph
from pattern_graphs import CASES, Graph, load

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import asm
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.passes.pipelines import NAMING, PIPELINES, pipeline
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import run_pipeline
from zoo import made

load()
MODELS = {
    "conv_net": lambda batch=2, _=None: made.conv_net(batch),
    "transformer": made.transformer,
    "decoder": made.decoder,
}
# more turns than the default: what still changes after these would do so for ever
ENDLESS = "mgx-optimize-module{rounds=12 inner-rounds=24%s}"


def assert_stable(module: ir.Module, store: WeightStore, steps: list[str], what: str) -> None:
    """After one run of the steps another one leaves the text as it is."""
    with np.errstate(all="ignore"):
        run_pipeline(module.operation, steps, store=store)
        once = asm(module.operation)
        second = run_pipeline(module.operation, steps, store=store)
    twice = asm(module.operation)
    if once != twice:
        by = [f"{t.name} {dict(t.counts) or ''}" for t in second.timings if t.changed]
        lines = difflib.unified_diff(once.splitlines(), twice.splitlines(), "once", "twice", n=2)
        raise AssertionError(
            f"{what}: a second run changes it, by {', '.join(by)}\n" + "\n".join(lines)
        )


def model(name: str, sizes: str) -> ProgramIR:
    made_model = MODELS[name]("n", "m") if sizes == "dynamic" else MODELS[name]()
    return parse_onnx_buffer(made_model.SerializeToString())


@pytest.mark.parametrize("sizes", ["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fast_math", [False, True])
def test_optimize_module_on_models(name: str, sizes: str, fast_math: bool) -> None:
    program = model(name, sizes)
    option = "{fast-math=true}" if fast_math else ""
    assert_stable(program.module, program.store, [f"mgx-optimize-module{option}"], name)


@pytest.mark.parametrize("sizes", ["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", PIPELINES)
def test_the_pipelines_of_the_targets_on_models(target: str, name: str, sizes: str) -> None:
    program = model(name, sizes)
    # names of dynamic dims, and what takes their place again, stand anew where they are written
    steps = [s for s in pipeline(target) if sizes == "static" or s not in NAMING]
    assert_stable(program.module, program.store, steps, name)


@pytest.mark.parametrize("seed", range(40))
def test_optimize_module_on_random_graphs(seed: int) -> None:
    g = KernelGraph(seed, CONTEXT, dynamic=seed % 4 == 3)
    assert_stable(g.module, g.store, [ENDLESS % ""], f"graph {seed}")


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("target", PIPELINES)
def test_the_pipelines_of_the_targets_on_random_graphs(target: str, seed: int) -> None:
    g = KernelGraph(seed, CONTEXT, dynamic=seed % 4 == 3)
    assert_stable(g.module, g.store, list(pipeline(target)), f"graph {seed}")


@pytest.mark.parametrize("c", CASES, ids=lambda c: f"{c.pass_name}/{c.id}")
def test_optimize_module_round_the_root_of_each_pattern(c) -> None:
    """No pattern reverses the result of another one."""
    for seed in range(4):
        g = Graph(c.draw, seed, CONTEXT)
        option = " fast-math=true" if seed % 2 else ""
        assert_stable(g.module, g.store, [ENDLESS % option], f"{c.id}, draw {seed}")
