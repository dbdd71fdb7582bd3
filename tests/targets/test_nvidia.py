"""NVIDIA's architectures: flags, nearest target, fat programs, and the report of their kernels."""

from __future__ import annotations

import logging
import struct

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import FileError
from mgx_mlir.hardware.architectures import ARCHITECTURES, runs_on, vendor_of
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.targets import base, flags, get_target
from mgx_mlir.targets.base import GpuTarget
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.ptx import ptx_executables
from mgx_mlir.targets.report import gpu_report
from tests.targets.modules import matmul_softmax

NVIDIA = [a.name for a in ARCHITECTURES.values() if a.vendor == "nvidia"]


def test_flags_name_the_target_that_iree_has() -> None:
    for arch in NVIDIA:
        target = ARCHITECTURES[arch].compiled_as
        for rung in flags.gpu_ladder(arch):
            assert "--iree-hal-target-device=cuda" in rung.flags
            assert f"--iree-cuda-target={target}" in rung.flags
            assert not any("rocm" in f for f in rung.flags)


def test_a_target_that_iree_lacks_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    base._say_nearest.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert [get_target("gpu", architecture=n).arch for n in ("h100", "sm_90", "sm_86")] == [
            "sm_90", "sm_90", "sm_86",
        ]  # fmt: skip
    assert [r.message for r in caplog.records] == [
        "IREE has no target sm_90: compiling for sm_89, whose PTX the driver compiles for sm_90"
    ]


def test_ptx_runs_on_newer_devices_and_machine_code_on_its_own() -> None:
    assert runs_on("sm_80", "sm_90")
    assert runs_on("sm_90", "sm_89")  # compiled as sm_89
    assert not runs_on("sm_89", "sm_86")
    assert runs_on("sm_86", "sm_121")  # a device that the table does not have
    assert not runs_on("sm_80", "gfx942")
    assert not runs_on("gfx942", "sm_90")
    assert not runs_on("gfx1100", "gfx1101")
    assert runs_on("gfx942", "gfx942")
    assert (vendor_of("sm_90"), vendor_of("gfx942"), vendor_of("znver4"), vendor_of(None)) == (
        "nvidia", "amd", None, None,
    )  # fmt: skip


@pytest.mark.parametrize("arch", NVIDIA)
def test_nvidia_architectures_compile_with_no_gpu(
    worker: IreeCompiler, cache: Cache, arch: str
) -> None:
    made = GpuTarget(architecture=arch).compile_lowered(
        Lowered(matmul_softmax().encode()), compiler=worker, cache=cache
    )
    assert (made.target, made.arch, made.fallbacks) == ("gpu", arch, ())
    report = gpu_report(made.vmfb, made.dispatches)
    assert {k.arch for k in report.kernels} == {ARCHITECTURES[arch].compiled_as}
    assert (report.dispatches, report.objects, report.on_host) == (2, 1, 0)
    assert {k.name for k in report.kernels} == set(made.dispatches["main"])
    assert all(k.is_ptx and k.wavefront == 32 and not k.spills for k in report.kernels)
    assert all(np.prod(k.workgroup) >= 32 for k in report.kernels)
    kernel = next(k for k in report.kernels if "matmul" in k.name)
    row = next(r for r in report.text().splitlines() if r.endswith(kernel.name))
    assert row.split()[:4] == ["-"] * 4  # registers and spills are the driver's


def test_kernels_of_a_damaged_executable_are_refused(worker: IreeCompiler, cache: Cache) -> None:
    made = GpuTarget(architecture="sm_89").compile_lowered(
        Lowered(matmul_softmax().encode()), compiler=worker, cache=cache
    )
    vmfb = bytes(made.vmfb)
    [kernels] = ptx_executables(vmfb)
    assert all(f".entry {k.name}(" in k.text for k in kernels)
    start = vmfb.find(b"CDA1")
    (size,) = struct.unpack_from("<Q", vmfb, start + 8)
    assert vmfb.find(kernels[-1].text.encode()) < start + 64 + size
    with pytest.raises(FileError, match="cut short"):
        list(ptx_executables(vmfb[: start + 64 + size - 8]))
    (root,) = struct.unpack_from("<I", vmfb, start + 64)
    for at in (64, 64 + root):  # offsets of the root and of its table of fields
        bad = bytearray(vmfb)
        bad[start + at : start + at + 4] = b"\xff\xff\xff\x7f"
        with pytest.raises(FileError, match="cut short"):
            list(ptx_executables(bytes(bad)))


def test_one_program_holds_code_of_both_vendors() -> None:
    w = numpy_helper.from_array(np.eye(32, dtype=np.float32) * 2, "w")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [16, 32]) for n in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    program = mgx_mlir.compile(onnx.shape_inference.infer_shapes(model), target="gpu",
                               arch="h100,gfx942,sm_86")  # fmt: skip
    assert isinstance(program, IreeProgram)
    assert [p.executable.arch for p in (program, *program.alternatives)] == [
        "sm_90", "gfx942", "sm_86",
    ]  # fmt: skip
    data = mgx_mlir.save_buffer(program)
    found = [{k.arch for k in kernels} for kernels in ptx_executables(data)]
    assert found == [{"sm_89"}, {"sm_86"}]
    assert {k.arch for k in gpu_report(data).kernels} == {"sm_89", "gfx942", "sm_86"}
