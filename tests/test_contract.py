"""Behaviour of dependencies that this package relies on: fails where an upgrade changes it."""

from __future__ import annotations

import subprocess

import iree.runtime as rt
import numpy as np
import pytest

import mgx_mlir.dialects  # noqa: F401
from benchmarks.hazards import source_of
from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.core import literals
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import func, ir, linalg, passmanager, rewrite, tensor
from mgx_mlir.core.op import OPS
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.runtime.device import vm_instance
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.branch_moves import mend
from mgx_mlir.targets.child import compiler_binary


def program(build, *types: str) -> ProgramIR:
    """A program of what `build(b, *arguments)` returns."""
    ctx = new_context()
    store = literals.WeightStore()
    with ctx, ir.Location.unknown(), store.active():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            f = func.FuncOp("main", ([ir.Type.parse(t) for t in types], []))
        block = f.add_entry_block()
        with ir.InsertionPoint(block):
            found = build(Builder(), *block.arguments)
            func.ReturnOp([found])
        f.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([a.type for a in block.arguments], [found.type])
        )
    return ProgramIR(ctx, module, store)


# ---- the bindings --------------------------------------------------------------------------------


def test_a_pattern_returning_true_did_not_match() -> None:
    """Callbacks say True for failure: the base inverts it."""
    ctx = new_context()
    with ctx, ir.Location.unknown():
        module = ir.Module.parse(
            "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
            '  %0 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
            "  return %0 : tensor<2xf32>\n}"
        )
        seen: list[str] = []

        def callback(op, rewriter):
            seen.append(op.operation.name)
            return True

        patterns = rewrite.RewritePatternSet()
        patterns.add("migraphx.neg", callback)
        before = str(module)
        rewrite.apply_patterns_and_fold_greedily(module.operation, patterns.freeze())
        assert seen
        assert str(module) == before


def test_python_exceptions_keep_their_type() -> None:
    """An exception of a callback reaches the caller."""
    ctx = new_context()
    with ctx, ir.Location.unknown():
        module = ir.Module.parse("module {}")

        def run(op, pass_):
            raise KeyError("mine")

        manager = passmanager.PassManager("builtin.module")
        manager.add(run, "mine", argument="mine")
        with pytest.raises(KeyError):
            manager.run(module.operation)


def test_upstream_cse_merges_our_ops() -> None:
    ctx = new_context()
    with ctx, ir.Location.unknown():
        module = ir.Module.parse(
            "func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {\n"
            '  %0 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
            '  %1 = "migraphx.neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>\n'
            "  return %0, %1 : tensor<2xf32>, tensor<2xf32>\n}"
        )
        passmanager.PassManager.parse("builtin.module(func.func(cse))").run(module.operation)
        assert str(module).count("migraphx.neg") == 1


def test_builders_that_the_lowering_uses_exist() -> None:
    for name in ("fill", "matmul", "batch_matmul", "conv_2d_nhwc_hwcf", "conv_2d_nchw_fchw",
                 "depthwise_conv_2d_nhwc_hwc", "GenericOp", "YieldOp", "IndexOp"):  # fmt: skip
        assert hasattr(linalg, name), name
    for name in ("PadOp", "ExpandShapeOp", "CollapseShapeOp", "ExtractSliceOp", "InsertSliceOp"):
        assert hasattr(tensor, name), name


def test_every_operator_is_known_to_the_context() -> None:
    ctx = new_context()
    with ctx:
        for name in OPS:
            assert ctx.is_registered_operation(f"migraphx.{name}"), name


# ---- the kernels ---------------------------------------------------------------------------------


def two_layers(b: Builder, x: ir.Value) -> ir.Value:
    """dot + bias + relu, layer norm, dot: three kernels."""
    rng = np.random.default_rng(0)

    def weight(*dims: int) -> ir.Value:
        return b.literal(rng.standard_normal(dims).astype(np.float32))

    h = b.relu(b.add(b.dot(x, weight(32, 64)), weight(64)))
    mean = b.reduce_mean(h, axes=[1])
    centred = b.sub(h, mean)
    variance = b.reduce_mean(b.mul(centred, centred), axes=[1])
    h = b.mul(centred, b.rsqrt(b.add(variance, 1e-5)))
    return b.dot(h, weight(64, 16))


@pytest.fixture(scope="module")
def compiled():
    p = program(two_layers, "tensor<16x32xf32>")
    return [
        compile_program(p, "cpu", threads=1, cache=False, kernel_boundaries=on)
        for on in (True, False)
    ]


def test_each_kernel_is_one_dispatch(compiled) -> None:
    """A region becomes one dispatch; the packing of data tiling is listed apart."""
    launched = [d for d in compiled[0].executable.dispatches["main"] if "encod" not in d]
    assert len(compiled[0].kernels) == 3
    assert len(launched) == 3


def test_kernel_boundaries_do_not_change_the_numbers(compiled) -> None:
    x = np.random.default_rng(1).standard_normal((16, 32)).astype(np.float32)
    (on,), (off,) = (c.run(x) for c in compiled)
    (want,) = compile_program(program(two_layers, "tensor<16x32xf32>"), "ref", ref_double=True).run(
        x
    )
    for got in (on, off):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())


def test_run_calls_no_reference(compiled, monkeypatch) -> None:
    """Nothing is interpreted in numpy inside `run`."""
    x = np.ones((16, 32), np.float32)
    compiled[0].run(x)

    def refuse(*_, **__):
        raise AssertionError("a reference was called inside run")

    for cls in OPS.values():
        monkeypatch.setattr(cls, "reference", staticmethod(refuse))
    compiled[0].run(x)


# ---- branches of the host's code -----------------------------------------------------------------


def called(vmfb: bytes, *numbers: int) -> list[int]:
    """The results of @f."""
    module = rt.VmModule.copy_buffer(vm_instance(), vmfb)
    context = rt.VmContext(vm_instance(), [module])
    given, found = rt.VmVariantList(len(numbers)), rt.VmVariantList(3)
    for n in numbers:
        given.push_int(n)
    context.invoke(module.lookup_function("f"), given, found)
    return [found.get_variant(i) for i in range(3)]


def test_moves_of_both_widths_at_a_branch_are_in_a_wrong_order(tmp_path) -> None:
    """Once they are right, targets/branch_moves.py is not needed."""
    source, made = source_of(20), tmp_path / "f.vmfb"
    command = [str(compiler_binary()), "--compile-mode=vm", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    x, y, z = 10**12 + 1, 20**9 + 2, 7
    want = {0: [2 * x, x + y, 4 * z], 1: [2 * y, x + y, 2 * z]}
    assert any(called(made.read_bytes(), c, x, y, z) != want[c] for c in want)
    for c in want:
        assert called(mend(made.read_bytes()), c, x, y, z) == want[c]


@pytest.mark.parametrize("kept", [True, False])
def test_assertions_are_dropped_unless_they_are_asked_for(tmp_path, kept: bool) -> None:
    """The checks of dynamic sizes stand on this flag (docs/iree-hazards.md, hazard 24)."""
    source, made = source_of(24), tmp_path / "f.vmfb"
    flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
    flags += ["--iree-opt-level=O3", *(["--iree-opt-strip-assertions=false"] if kept else [])]
    subprocess.run([str(compiler_binary()), *flags, str(source), "-o", str(made)], check=True)
    module = LoadedModule(made)
    assert module.run([np.ones(4, np.float32)])[0].shape == (4,)
    if kept:
        with pytest.raises(RunError, match="four elements"):
            module.run([np.ones(3, np.float32)])
    else:
        assert module.run([np.ones(3, np.float32)])[0].shape == (3,)
