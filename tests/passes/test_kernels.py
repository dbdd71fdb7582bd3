"""Random programs through the passes that form kernels, and through the cpu target."""

import numpy as np
import pytest
from evaluate import CONTEXT, assert_same
from kernel_graphs import KINDS, KernelGraph

from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.pattern import observing
from tests.support.draws import parts, seeds

PASSES = {
    "layout_convolution": ("layout_convolution",),
    "insert_pad": ("layout_convolution", "mgx-insert-pad{dense=true}"),
    "rewrite_dot": ("rewrite_dot",),
    "fuse_pointwise_reduce": ("fuse_pointwise_reduce",),
    "cpu": pipeline("cpu"),
    "gpu": pipeline("gpu"),
}
KERNELS = ("migraphx.pointwise", "migraphx.fused_reduce", "migraphx.group")


def check(graph: KernelGraph, passes) -> None:
    """The values of a graph before and after passes; the IR stays valid (verified after each)."""
    inputs = graph.inputs()
    before = Interpreter(graph.module, graph.store).run(inputs)
    run_pipeline(graph.module, passes, store=graph.store)
    assert_same(before, Interpreter(graph.module, graph.store).run(inputs), 1e-5)


@pytest.mark.parametrize("drawn", parts(0, 20, 40))
@pytest.mark.parametrize("name", PASSES)
def test_the_passes_keep_the_values(name, drawn):
    for seed in drawn:
        check(KernelGraph(seed, CONTEXT), PASSES[name])


@pytest.mark.parametrize("drawn", parts(100, 12, 25))
@pytest.mark.parametrize("name", PASSES)
def test_the_passes_keep_the_values_with_a_dynamic_batch(name, drawn):
    for seed in drawn:
        check(KernelGraph(seed, CONTEXT, dynamic=True), PASSES[name])


@pytest.mark.parametrize("drawn", parts(200, 6, 12))
@pytest.mark.parametrize("name", ["fuse_pointwise_reduce", "cpu"])
def test_large_programs(name, drawn):
    for seed in drawn:
        check(KernelGraph(seed, CONTEXT, steps=60), PASSES[name])


@pytest.mark.parametrize("drawn", parts(300, 10, 20))
@pytest.mark.parametrize("name", PASSES)
def test_data_movement_is_exact(name, drawn):
    for seed in drawn:
        graph = KernelGraph(seed, CONTEXT, kinds=("move", "move", "pooled"), steps=12)
        inputs = graph.inputs()
        before = Interpreter(graph.module, graph.store).run(inputs)
        run_pipeline(graph.module, PASSES[name], store=graph.store)
        assert_same(before, Interpreter(graph.module, graph.store).run(inputs), 0)


def test_fusing_again_changes_nothing():
    for seed in range(400, 430):
        graph = KernelGraph(seed, CONTEXT, steps=30)
        run_pipeline(
            graph.module, ["fuse_pointwise_reduce", "dead_code_elimination"], store=graph.store
        )
        once = graph.program.text()
        run_pipeline(
            graph.module, ["fuse_pointwise_reduce", "dead_code_elimination"], store=graph.store
        )
        assert graph.program.text() == once


def test_every_pointwise_op_and_reduction_is_in_a_kernel():
    for seed in range(500, 520):
        graph = KernelGraph(seed, CONTEXT)
        run_pipeline(graph.module, ["fuse_pointwise_reduce"], store=graph.store)
        left = {op.name for op in graph.program.main().regions[0].blocks[0].operations}
        assert not left & {"migraphx.add", "migraphx.relu", "migraphx.dot", "migraphx.softmax",
                           "migraphx.convolution", "migraphx.reduce_sum"}, left  # fmt: skip


def test_the_kernels_of_a_pointwise_kernel_share_their_dims():
    for seed in range(520, 540):
        graph = KernelGraph(seed, CONTEXT)
        run_pipeline(graph.module, ["fuse_pointwise_reduce"], store=graph.store)
        for op in graph.program.main().regions[0].blocks[0].operations:
            if op.name == "migraphx.pointwise":
                assert len({tuple(ir.RankedTensorType(r.type).shape) for r in op.results}) == 1


def test_the_graphs_are_worth_it():
    kinds: set[str] = set()
    with observing() as on_gpu:  # our own loops, which pad, are for CPUs
        for seed in range(40):
            graph = KernelGraph(seed, CONTEXT)
            run_pipeline(graph.module, PASSES["gpu"], store=graph.store)
    assert on_gpu.counts["find_convolution_padding"] >= 3
    with observing() as seen:
        for seed in range(40):
            graph = KernelGraph(seed, CONTEXT)
            run_pipeline(graph.module, PASSES["cpu"], store=graph.store)
            for op in graph.program.main().regions[0].blocks[0].operations:
                if op.name == "migraphx.group":
                    kinds.add(ir.StringAttr(op.attributes["tag"]).value)
                elif op.name in KERNELS:
                    kinds.add(op.name)
    assert kinds >= {"convolution", "dot", "pooling", "migraphx.pointwise", "migraphx.fused_reduce"}
    often = {name for name, n in seen.counts.items() if n >= 3}
    assert often >= {
        "find_convolution_layout", "find_dot_batch",
        "find_dot_broadcast_rows", "find_pointwise_layout", "find_pointwise_reshape",
        "find_reduce_layout", "find_reduce_rows", "find_reshape_pair", "find_transpose_broadcast",
        "find_transpose", "find_transpose_unit",
    }  # fmt: skip


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compiled_programs(seed, dynamic):
    from mgx_mlir.compiler.compile import compile as compile_program

    graph = KernelGraph(600 + seed, new_context(), steps=24, dynamic=dynamic)
    inputs = graph.inputs()
    wanted = Interpreter(graph.module, graph.store).run(inputs)
    program = compile_program(graph.program, target="cpu", threads=1)
    assert program.executable.flag_set == "best", program.executable.fallbacks
    assert_same(wanted, program.run(inputs), 2e-5)


def test_poolings_and_grouped_convolutions_compile():
    """Forms that IREE once refused inside a dispatch region."""
    from mgx_mlir.compiler.compile import compile as compile_program

    kinds = ("pooling", "convolution", "pooling", "unary", "binary")
    assert set(kinds) <= set(KINDS)
    graph = KernelGraph(700, new_context(), kinds=kinds, steps=24)
    inputs = graph.inputs()
    wanted = Interpreter(graph.module, graph.store).run(inputs)
    program = compile_program(graph.program, target="cpu", threads=1)
    assert program.executable.flag_set == "best", program.executable.fallbacks
    got = program.run(inputs)
    assert_same(wanted, got, 2e-5)
    assert all(np.isfinite(a).all() for a in got)


@pytest.mark.parametrize("seed", [65, 68, 602, 911, 915, 916])
def test_programs_that_were_compiled_wrong(seed):
    """Seeds whose numbers were wrong, or whose compile did not end: equal results of a region,
    windows of one step over longer axes, padded windows along one axis, two readers of a kernel
    over dynamic dims of which one is strided."""
    from mgx_mlir.compiler.compile import compile as compile_program

    graph = KernelGraph(seed, new_context(), steps=24, dynamic=seed > 900)
    inputs = graph.inputs()
    wanted = Interpreter(graph.module, graph.store).run(inputs)
    program = compile_program(graph.program, target="cpu", threads=1, timeout=120)
    assert not any(f.startswith("kernel-boundaries") for f in program.executable.fallbacks)
    assert_same(wanted, program.run(inputs), 2e-5)


def test_without_boundaries_all_readers_of_a_loop_see_all_of_it():
    """A softmax of dynamic dims is read by a strided window and as it is."""
    from mgx_mlir.compiler.compile import compile as compile_program

    graph = KernelGraph(911, new_context(), steps=24, dynamic=True)
    inputs = graph.inputs()
    wanted = Interpreter(graph.module, graph.store).run(inputs)
    program = compile_program(graph.program, target="cpu", threads=1, kernel_boundaries=False)
    assert_same(wanted, program.run(inputs), 2e-5)
