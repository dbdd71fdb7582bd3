"""Targets: registry, options, the ladder of flag sets, the five AMD architectures, the report."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest

from mgx_mlir.core.errors import FileError, TargetError
from mgx_mlir.hardware.architectures import ARCHITECTURES, check_arch
from mgx_mlir.programs.lowered import IOSpec, KernelInfo, Lowered, io_specs, kernel_infos
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets import base, flags
from mgx_mlir.targets.base import BackendOptions, CpuTarget, GpuTarget, get_target
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.devices import default_target, gpu_devices
from mgx_mlir.targets.diagnostics import CompileFailed, read_failure
from mgx_mlir.targets.flags import DEFAULT_ARCH, FlagSet
from mgx_mlir.targets.report import code_objects, gpu_report, short_name
from tests.targets.modules import LOG10, add, matmul_softmax

FIVE = ("gfx942", "gfx950", "gfx90a", "gfx1100", "gfx1201")


def test_registry_and_options() -> None:
    assert get_target("cpu", threads=2).thread_count == 2
    assert get_target("cpu").thread_count >= 1
    assert get_target("gpu", architecture="MI300X").arch == "gfx942"
    for name, options, said in (
        ("cpus", {}, "did you mean cpu"),
        ("cpu", {"thread": 1}, "did you mean threads"),
        ("gpu", {"architecture": "gfx94"}, "did you mean .*gfx942"),
        ("gpu", {"architecture": "gfx900"}, "unknown GPU architecture"),
        ("cpu", {"threads": 0}, "at least 1 thread"),
        ("cpu", {"opt_level": "O7"}, "O0, O1, O2, O3"),
    ):
        with pytest.raises(TargetError) as caught:
            get_target(name, **options)
        import re

        assert re.search(said, str(caught.value))
    assert default_target() == ("gpu" if gpu_devices() else "cpu")


def test_names_of_gpu_products() -> None:
    for arch in ARCHITECTURES.values():
        assert all(check_arch(n) == arch.name for n in (arch.name, *arch.products))
        assert check_arch(arch.name.upper()) == arch.name
    assert check_arch("gfx942:sramecc+:xnack-") == "gfx942"
    assert [check_arch(n) for n in ("H100", "RTX 4090", "sm90", "RTX-A6000")] == [
        "sm_90", "sm_89", "sm_90", "sm_86",
    ]  # fmt: skip


def test_a_second_compile_comes_from_the_cache(binary: IreeCompiler, cache: Cache) -> None:
    target, lowered = CpuTarget(threads=1), Lowered(add().encode())
    first = target.compile_lowered(lowered, compiler=binary, cache=cache)
    second = target.compile_lowered(lowered, compiler=binary, cache=cache)
    assert (first.cached, second.cached) == (False, True)
    assert bytes(first.vmfb) == bytes(second.vmfb)
    same = {f.name for f in dataclasses.fields(first)} - {"vmfb", "cached"}
    assert all(getattr(first, n) == getattr(second, n) for n in same)
    (y,) = LoadedModule(second.vmfb, threads=1).run([np.arange(32, dtype=np.float32)])
    np.testing.assert_array_equal(y, 2 * np.arange(32, dtype=np.float32))
    off = target.compile_lowered(lowered, BackendOptions(cache=False), compiler=binary, cache=cache)
    assert not off.cached


def test_keys_differ_by_all_that_matters() -> None:
    a, b = Lowered(add(8).encode()), Lowered(add(9).encode())
    keys = {
        CpuTarget().lowered_key(a),
        CpuTarget().lowered_key(b),
        CpuTarget(opt_level="O3").lowered_key(a),
        CpuTarget(data_tiling=False).lowered_key(a),
        CpuTarget(cpu="generic").lowered_key(a),
        CpuTarget(extra_flags=("--iree-opt-const-eval=false",)).lowered_key(a),
        *(GpuTarget(architecture=n).lowered_key(a) for n in FIVE),
    }
    assert len(keys) == 6 + 5
    assert CpuTarget(threads=1).lowered_key(a) == CpuTarget(threads=2).lowered_key(a)


def test_the_host_s_processor_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    # one that the compiler is to find by itself, and not by a name
    monkeypatch.setattr(flags, "processor_features", frozenset)
    lowered = Lowered(add().encode())
    here = CpuTarget().lowered_key(lowered)
    generic = CpuTarget(cpu="generic").lowered_key(lowered)
    monkeypatch.setattr(flags, "host_cpu", lambda: "another")
    assert CpuTarget().lowered_key(lowered) != here
    assert CpuTarget(cpu="generic").lowered_key(lowered) == generic


def test_a_failed_flag_set_falls_back_and_says_so(
    binary: IreeCompiler,
    cache: Cache,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    good = dataclasses.replace(flags.cpu_ladder()[0], cures=frozenset({"stack"}))
    bad = dataclasses.replace(
        flags.cpu_ladder(stack_limit=64)[0], name="bad", cures=frozenset({"stack"})
    )
    monkeypatch.setattr(CpuTarget, "ladder", lambda self: (bad, good))
    lowered = Lowered(matmul_softmax().encode())
    with caplog.at_level(logging.WARNING):
        made = CpuTarget().compile_lowered(lowered, compiler=binary, cache=cache)
    assert made.flag_set == good.name
    assert len(made.fallbacks) == 1
    assert made.fallbacks[0].startswith("bad: ")
    assert "'bad' failed" in caplog.text
    again = CpuTarget().compile_lowered(lowered, compiler=binary, cache=cache)
    assert again.cached
    assert again.fallbacks == made.fallbacks
    monkeypatch.setattr(CpuTarget, "ladder", lambda self: (bad, bad))
    with pytest.raises(CompileFailed, match="exceeded stack allocation limit of 64") as caught:
        CpuTarget().compile_lowered(lowered, compiler=binary, cache=cache)
    assert "it fails also with the flag sets bad" in str(caught.value)
    assert caught.value.cause == "stack"


@pytest.mark.parametrize(
    ("stderr", "cause", "tried"),
    [
        ("a.mlir:1:2: error: 'func.func' op exceeded stack allocation limit of 9 bytes\n"
         "a.mlir:1:2: error: failed to run translation of source executable to target executable",
         "stack", ["best", "large-stack", "no-data-tiling", "O1"]),
        ("a.mlir:1:2: error: One or more operations with large vector sizes (9 bytes) were found\n"
         "a.mlir:1:2: error: failed to run translation of source executable to target executable",
         "kernel", ["best", "no-data-tiling", "O1"]),
        ("a.mlir:1:2: error: failed to legalize operation 'iree_encoding.set_encoding'",
         "layout", ["best", "no-data-tiling", "O1"]),
        # the constant was refused, and the flag sets below computed wrong numbers
        ("a.mlir:1:2: error: constant @__hoisted_tensor_20xi64 with size 20 cannot be evaluated",
         "other", ["best"]),
        ("a.mlir:1:2: error: failed to solve for timepoint coverage", "other", ["best"]),
        ("iree-lld: error: undefined symbol: log10f", "other", ["best"]),
    ],
)  # fmt: skip
def test_a_flag_set_is_tried_only_for_what_it_is_there_for(
    monkeypatch: pytest.MonkeyPatch, stderr: str, cause: str, tried: list[str]
) -> None:
    names = {s.flags: s.name for s in CpuTarget().ladder()}
    seen: list[str] = []

    def run(self: object, source: bytes, flags: tuple[str, ...], **_: object) -> None:
        seen.append(names[flags])
        raise CompileFailed(read_failure(stderr, 1))

    monkeypatch.setattr(IreeCompiler, "run", run)
    compiler = IreeCompiler(use_worker=False, reproducers=None)
    with pytest.raises(CompileFailed) as caught:
        CpuTarget().compile_lowered(Lowered(b""), BackendOptions(cache=False), compiler=compiler)
    assert (caught.value.cause, seen) == (cause, tried)


def test_loops_that_the_compiler_does_not_end_on_are_not_vectorized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LLVM crashes in its lowering of buffer pointers, as on a convolution to 8 f16 channels."""
    target = GpuTarget(architecture="gfx942")
    names = {s.flags: s.name for s in target.ladder()}
    seen: list[str] = []
    frame = (
        "(anonymous namespace)::SplitPtrStructs::visitGetElementPtrInst(llvm::GetElementPtrInst&)"
    )

    def run(self: object, source: bytes, flags: tuple[str, ...], **_: object) -> None:
        seen.append(names[flags])
        raise CompileFailed(
            read_failure(f"Stack dump:\n  #4 0x00007f57cedb0718 {frame} A.cpp:0:0", -11)
        )

    monkeypatch.setattr(IreeCompiler, "run", run)
    compiler = IreeCompiler(use_worker=False, reproducers=None)
    with pytest.raises(CompileFailed, match="SIGSEGV"):
        target.compile_lowered(Lowered(b"ML\xefR"), BackendOptions(cache=False), compiler=compiler)
    assert seen == ["best", "loops-as-they-are"]


def test_a_crash_in_code_generation_is_known_by_its_frames() -> None:
    trace = " #7 0x00007f00 (anonymous namespace)::TranslateTargetExecutableVariantsPass::run()\n"
    assert read_failure(trace, -11).cause == "kernel"
    assert (
        read_failure(" #7 0x00007f00 mlir::iree_compiler::ScheduleAllocation()", -11).cause
        == "other"
    )
    assert read_failure(trace, -9).cause == "kernel"


def test_a_failure_names_the_kernel(binary: IreeCompiler, cache: Cache) -> None:
    kernels = [KernelInfo("cpu::log10", ("log10",), 'loc("the_log"("model.onnx":12:0))')]
    with pytest.raises(CompileFailed) as caught:
        CpuTarget().compile_lowered(
            Lowered(LOG10.encode(), kernels=kernels), compiler=binary, cache=cache
        )
    assert caught.value.location is not None
    assert "cpu::log10" in caught.value.location
    assert "model.onnx:12:0" in caught.value.location
    # a symbol that is missing is missing with every flag set: only the first was tried
    assert "fails also" not in str(caught.value)


@pytest.mark.parametrize("rung", flags.cpu_ladder(), ids=lambda r: r.name)
def test_every_cpu_flag_set_compiles_and_is_right(worker: IreeCompiler, rung: FlagSet) -> None:
    n = 64
    rng = np.random.default_rng(0)
    a, w = (rng.standard_normal((n, n)).astype(np.float32) for _ in range(2))
    vmfb = worker.compile(matmul_softmax(n).encode(), rung.flags)
    (y,) = LoadedModule(vmfb, {"w": w}, threads=1).run([a])
    e = np.exp((z := a.astype(np.float64) @ w) - z.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), atol=2e-6)


def test_f64_is_not_demoted(worker: IreeCompiler) -> None:
    text = add().replace("f32", "f64")
    vmfb = worker.compile(text.encode(), flags.cpu_ladder()[0].flags)
    x = np.full(32, 1 + 2**-40)
    (y,) = LoadedModule(vmfb, threads=1).run([x])
    np.testing.assert_array_equal(y, x + x)


@pytest.mark.parametrize("arch", FIVE)
def test_five_architectures_compile_with_no_gpu(
    worker: IreeCompiler, cache: Cache, arch: str
) -> None:
    cpu = CpuTarget().compile_lowered(
        Lowered(matmul_softmax().encode()), compiler=worker, cache=cache
    )
    made = GpuTarget(architecture=arch).compile_lowered(
        Lowered(matmul_softmax().encode()), compiler=worker, cache=cache
    )
    assert (made.target, made.arch, made.fallbacks) == ("gpu", arch, ())
    report = gpu_report(made.vmfb, made.dispatches)
    assert {k.arch for k in report.kernels} == {arch}
    assert report.dispatches == 2
    assert len(made.kernels) == len(cpu.kernels) == 2
    assert report.objects == 1  # IREE links the executables of a module into one
    assert {k.name for k in report.kernels} == set(made.dispatches["main"])
    assert (report.missing, report.foreign, report.on_host) == ((), (), 0)
    # kernels compiled apart have other names in the code than in the launches
    symbols = {f"launch{i}": k.name for i, k in enumerate(report.kernels)}
    assert gpu_report(made.vmfb, {"main": [*symbols]}, symbols).on_host == 0
    assert gpu_report(made.vmfb, {"main": [*symbols]}).on_host == 2
    for k in report.kernels:
        assert 0 < k.vgprs <= k.given <= 512  # allocated by the descriptor
        assert k.given % 8 == 0
        assert k.wavefront in (32, 64)
        assert np.prod(k.workgroup) >= k.wavefront
    text = report.text()
    assert f"arch: {arch}" in text
    assert "dispatches: 2, code objects: 1, kernels: 2, not on the GPU: 0" in text
    assert "kernels with spills: 0" in text


def test_tables_shorten_digests_in_names() -> None:
    """Kernels that are compiled apart begin with 40 digits, which a profiler shows whole."""
    name = f"k{'0f94eae6c07e52547bcd166f028c3709ef98840b'}_matmul_like_784x512x128_f32"
    assert short_name(name) == "k0f94eae_matmul_like_784x512x128_f32"
    for other in ("main_dispatch_0_matmul_4x3x5_f32", "k0f94eae_matmul", name.upper()):
        assert short_name(other) == other


def test_small_floats_an_architecture_lacks_fall_back_to_emulation(
    binary: IreeCompiler, cache: Cache
) -> None:
    text = """func.func @main(%a: tensor<64x64xf8E4M3FN>, %b: tensor<64x64xf8E4M3FN>)
        -> tensor<64x64xf32> {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<64x64xf32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
      %r = linalg.matmul ins(%a, %b : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>)
        outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
      return %r : tensor<64x64xf32>
    }"""
    made = GpuTarget(architecture="gfx90a").compile_lowered(
        Lowered(text.encode()), compiler=binary, cache=cache
    )
    assert made.flag_set == "small-float-emulation"
    assert len(made.fallbacks) == 1
    assert gpu_report(made.vmfb, made.dispatches).on_host == 0


def test_a_cpu_module_is_not_a_gpu_report(worker: IreeCompiler, cache: Cache) -> None:
    made = CpuTarget().compile_lowered(Lowered(add().encode()), compiler=worker, cache=cache)
    report = gpu_report(made.vmfb, made.dispatches)
    assert report.kernels == ()
    assert len(report.foreign) == 1
    assert report.missing == tuple(made.dispatches["main"])
    assert report.on_host == 2


def test_damaged_code_objects_are_clean_errors(worker: IreeCompiler, cache: Cache) -> None:
    made = GpuTarget(architecture="gfx942").compile_lowered(
        Lowered(add().encode()), compiler=worker, cache=cache
    )
    data = bytes(made.vmfb)
    at = data.find(b"\x7fELF")
    (_, elf), *_ = code_objects(data)
    assert elf[:4] == b"\x7fELF"
    for bad in (data[: at + 20], data[: at + len(elf) // 2], data[:at] + b"\x7fELF\x02\x01" * 40):
        with pytest.raises(FileError):
            gpu_report(bad)
    note = data.replace(b"amdhsa.kernels", b"amdhsa.kernelz")
    assert gpu_report(note, made.dispatches).missing == tuple(made.dispatches["main"])


def test_a_gpu_module_on_a_cpu_is_refused(worker: IreeCompiler, cache: Cache) -> None:
    made = GpuTarget(architecture="gfx942").compile_lowered(
        Lowered(add().encode()), compiler=worker, cache=cache
    )
    with pytest.raises(TargetError, match="not compiled for a local-sync device"):
        LoadedModule(made.vmfb, threads=1)


def test_the_signature_survives_json() -> None:
    lowered = Lowered(
        b"", {}, [IOSpec("x", "float_type", (-1, 3))], [IOSpec("y", "bool_type", ())],
        [KernelInfo("cpu::add", ("add",), "n")],
    )  # fmt: skip
    import json

    back = json.loads(json.dumps(lowered.signature()))
    assert io_specs(back["inputs"]) == lowered.inputs
    assert io_specs(back["outputs"]) == lowered.outputs
    assert kernel_infos(back["kernels"]) == lowered.kernels


def test_what_the_compiler_planned() -> None:
    text = (
        ";\n; Aggregate Statistics (static, whole-program)\n;\n\n"
        '"Constants","Constant Size","Variables","Variable Size","Transient Size"\n'
        '1,75,0,0,413864\n\n; Execution\n"Depth","Command"\n1,"dispatch"\n'
    )
    assert base.parse_plan(text) == {"constants": 75, "transient": 413864}
    assert base.parse_plan("") == {}
    assert base.parse_plan('"Constants","Constant Size"\n1\n') == {}
    assert base.parse_plan('"Constants","Constant Size"\n1,much\n') == {}


def test_an_architecture_that_nobody_named_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(base, "gpu_devices", lambda: ())
    base._assumed_arch.cache_clear()
    assert base.GpuTarget().arch == DEFAULT_ARCH
    assert base.GpuTarget(architecture="gfx1100").arch == "gfx1100"
    assert base.GpuTarget().arch == DEFAULT_ARCH
    assert [r.message for r in caplog.records] == [
        "no GPU is found and no architecture is named: compiling for gfx942"
    ]
