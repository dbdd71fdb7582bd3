"""The pass manager: resolving pipelines, running them, what it reports, how fast it is."""

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from evaluate import CONTEXT

from mgx_mlir.core.errors import PassError, PipelineError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.passes import PASSES
from mgx_mlir.passes.optimize_module import OptimizeModule
from mgx_mlir.passes.pipelines import PIPELINES, pipeline
from mgx_mlir.programs.build import Builder
from mgx_mlir.rewrite.passes import (
    Instrumentation,
    Pass,
    make_pass,
    option,
    option_docs,
    pass_name,
    pipeline_name,
    resolve,
    run_pass,
    run_pipeline,
)
from mgx_mlir.rewrite.pattern import MatchTrace, op_names

TEXT = """
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "migraphx.identity"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "migraphx.neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = "migraphx.neg"(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %3 = "migraphx.add"(%1, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
}
"""


@pytest.fixture
def module():
    return parse_module(TEXT, CONTEXT)


def test_names():
    assert pipeline_name("simplify_algebra") == "mgx-simplify-algebra"
    for name in PASSES:
        assert pass_name(pipeline_name(name)) == name


def test_passes_are_imported_when_asked_for():
    import subprocess
    import sys

    code = (
        "import sys, mgx_mlir.passes; n = len(mgx_mlir.passes.PASSES);"
        "print([m for m in sys.modules if m.startswith('mgx_mlir.passes.')], n)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert out.stdout.startswith("[] ")


@pytest.mark.parametrize("name", list(PASSES))
def test_every_pass_is_documented_and_prints_as_it_parses(name):
    step = PASSES[name]()
    assert step.summary
    for option_name, kind, _, doc in option_docs(PASSES[name]):
        assert doc, f"option {option_name} ({kind}) says nothing"
    assert resolve(f"builtin.module({step})", CONTEXT) == [step]


def test_options_round_trip():
    step = OptimizeModule(rounds=3, fast_math=True, skip=("exp", "log"))
    assert str(step) == "mgx-optimize-module{rounds=3 fast-math=true skip=exp,log}"
    assert resolve(str(step), CONTEXT) == [step]


@pytest.mark.parametrize(
    ("pipeline", "message", "note"),
    [
        ("mgx-simplify-algbra", "unknown pass 'mgx-simplify-algbra'", "mgx-simplify-algebra"),
        ("csee", "unknown pass 'csee'", "cse"),
        ("mgx-optimize-module{round=2}", "has no option 'round'", "rounds"),
        ("mgx-optimize-module{rounds=two}", "option 'rounds' of pass", None),
        ("mgx-optimize-module{fast-math=2}", "expected bool, got '2'", None),
        ("func.func(mgx-normalize-ops)", "runs on builtin.module, not inside func.func", None),
        ("func.func(canonicalize{nothing=1})", "func.func(canonicalize{nothing=1})", None),
    ],
)
def test_wrong_pipelines_are_refused_before_anything_runs(module, pipeline, message, note):
    before = str(module)
    with pytest.raises(PipelineError) as e:
        run_pipeline(module, f"mgx-eliminate-identity,{pipeline}")
    assert message in e.value.message
    assert e.value.location.startswith("pipeline:1:")
    if note:
        assert any(f"'{note}'" in n for n in e.value.notes)
    assert str(module) == before


def test_ours_and_upstream_passes_in_one_pipeline(module):
    how = run_pipeline(module, "mgx-eliminate-identity,cse,func.func(canonicalize)")
    assert [(t.name, t.depth) for t in how.timings] == [
        ("mgx-eliminate-identity", 0), ("cse", 0),
        ("func.func(canonicalize)", 0), ("canonicalize", 1),
    ]  # fmt: skip
    assert how.timings[0].counts == {"find_identity": 1}
    assert op_names(module).count("migraphx.neg") == 1


def test_a_sequence_takes_every_spelling(module):
    steps = ["eliminate_identity", "mgx-eliminate-identity", "cse", OptimizeModule(rounds=1)]
    assert len(resolve(steps, CONTEXT)) == 4


def test_disabled_passes_are_left_out(module):
    how = run_pipeline(module, ["eliminate_identity", "cse"], disable=["mgx-eliminate-identity"])
    assert [t.name for t in how.timings] == ["cse"]
    assert "migraphx.identity" in str(module)
    how = run_pipeline(module, ["optimize_module"], disable=["simplify_algebra", "cse"])
    assert not any(t.name == "mgx-simplify-algebra" for t in how.timings)


def test_nested_passes_are_timed_below_theirs(module):
    how = run_pipeline(module, ["optimize_module"])
    assert how.timings[0].depth == 0
    assert {t.depth for t in how.timings[1:]} == {1}
    assert how.timings[0].ms >= sum(t.ms for t in how.timings[1:]) * 0.9


def test_a_trace_says_why_a_pattern_does_not_apply(module):
    trace = MatchTrace(frozenset({"find_rsqrt", "find_identity"}))
    run_pipeline(module, ["eliminate_identity"], trace=trace)
    assert [(name, outcome) for name, _, outcome, _ in trace.attempts] == [
        ("find_identity", "applied")
    ]


@dataclass(frozen=True)
class Vandal(Pass):
    """Leave an op behind that its verifier refuses."""

    name: ClassVar[str] = "vandal"
    how_many: int = option(1, "of them")

    def run(self, module):
        block = module.regions[0].blocks[0].operations[0].regions[0].blocks[0]
        op = block.operations[1].operation
        op.operands[0] = block.arguments[0]
        op.results[0].set_type(ir.RankedTensorType.get([3], ir.F32Type.get()))


def test_invalid_ir_is_found_at_the_end_and_after_each_pass(module):
    with pytest.raises(PassError, match="the IR is invalid") as e:
        run_pipeline(module, [Vandal()])
    assert "builtin.module(mgx-vandal)" in e.value.notes[-2]
    module = parse_module(TEXT, CONTEXT)
    with pytest.raises(PassError, match="pass 'mgx-vandal' failed: the IR is invalid"):
        run_pipeline(module, [Vandal()], instrumentation=Instrumentation(verify_each=True))


def test_print_hooks_are_called_around_each_pass(module):
    calls = []
    how = Instrumentation(
        print_before=True,
        print_after=True,
        after_change=True,
        print_ir=lambda when, step, _: calls.append((when, step.name)),
    )
    run_pipeline(module, ["eliminate_identity", "eliminate_convert"], instrumentation=how)
    assert calls == [
        ("before", "eliminate_identity"),
        ("after", "eliminate_identity"),
        ("before", "eliminate_convert"),
    ]


def test_a_pass_runs_outside_of_a_pipeline(module):
    assert run_pass(make_pass("eliminate_identity"), module.operation) is True
    assert run_pass(make_pass("eliminate_identity"), module.operation) is False


@pytest.mark.parametrize("target", PIPELINES)
def test_the_pipelines_of_the_targets_resolve(target):
    assert resolve(pipeline(target), CONTEXT)


def transformer(layers):
    """About 40 ops a layer that the simplifying passes leave alone."""
    store = WeightStore()
    with CONTEXT, ir.Location.unknown(), store.active():
        module = ir.Module.create()
        kind = ir.RankedTensorType.get([1, 8, 16], ir.F32Type.get())
        with ir.InsertionPoint(module.body):
            block = func.FuncOp("main", ([kind], [kind])).add_entry_block()
        with ir.InsertionPoint(block):
            b, x = Builder(), block.arguments[0]
            rng = np.random.default_rng(0)
            for _ in range(layers):
                for _ in range(6):
                    w = b.literal(rng.normal(size=(1, 16, 16)).astype(np.float32))
                    y = b.op("relu", b.add(b.op("dot", x, w), x))
                    m = b.op("reduce_max", y, axes=[2])
                    x = b.op("tanh", b.sub(y, m))
            func.ReturnOp([x])
    return module, store


def test_a_pass_that_finds_little_is_fast():
    module, store = transformer(42)
    assert len(op_names(module)) > 2000
    run_pipeline(module, ["optimize_module"], store=store)
    for name in ("normalize_ops", "simplify_reshapes", "simplify_algebra", "eliminate_convert",
                 "dead_code_elimination", "eliminate_common_subexpression", "eliminate_pad",
                 "propagate_constant"):  # fmt: skip
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            run_pipeline(module, [name], store=store, verify=False)
            best = min(best, time.process_time() - start)
        assert best < 0.2, f"{name} took {best:.2f} s on {len(op_names(module))} ops"
