"""Limits of GPU code: launches, spills, matrix instructions, wide reads of the LDS.

Small models stand for large ones, whose figures `mgx-driver report --gpu` prints (docs/hip.md);
those of files in $MGX_MODELS are tested with `-m slow`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest

import mgx_mlir
from mgx_mlir.compiler.dump_files import kept_assembly
from mgx_mlir.debug.gpu_kernels import GpuKernels, gpu_kernels
from mgx_mlir.targets.assembly import mixes
from mgx_mlir.targets.report import gpu_report
from tests.emulator.models import Graph, bert

MODELS = os.environ.get("MGX_MODELS", "")


def figures(model: Any, arch: str) -> GpuKernels:
    """Return the figures of a model that is compiled in f16."""
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    mgx_mlir.quantize_fp16(program)
    with kept_assembly() as assembly:
        compiled = mgx_mlir.compile(program, target="gpu", arch=arch, cache=False)
    made = compiled.executable
    assert made.fallbacks == ()
    return gpu_kernels(gpu_report(made.vmfb, made.dispatches), assembly, {}, arch)


def check(found: GpuKernels, most: int) -> None:
    totals = found.totals()
    assert totals["dispatches"] <= most
    assert totals["on_host"] == 0
    assert [r.kernel.name for r in found.rows if r.kernel.spills or r.kernel.scratch] == []
    products = [r for r in found.rows if is_product(r.kernel.name)]
    assert products
    assert [r.kernel.name for r in products if not r.mix.matrix] == []
    assert totals["lds_wide_share"] >= 0.9


def is_product(name: str) -> bool:
    """Return whether IREE's name of a kernel is a matmul's; a matrix by a vector is a `matvec`."""
    return any(word in name for word in ("matmul", "conv_2d_nhwc_fhwc", "attention", "contract"))


def resnet(seed: int = 0) -> onnx.ModelProto:
    """ResNet's ends and one stage: the image's convolution, pooling, two bottlenecks of which one
    steps, mean, classes."""
    g = Graph(seed, "f32")
    x = g.input("x", 1, 3, 64, 64)

    def conv(v: str, into: int, out: int, size: int, stride: int = 1) -> str:
        w = g.weight(out, into, size, size, scale=0.1)
        return g.op(
            "Conv", v, w, g.weight(out), pads=[size // 2] * 4, strides=[stride] * 2,
            kernel_shape=[size] * 2,
        )  # fmt: skip

    h = g.op("Relu", conv(x, 3, 64, 7, 2))
    h = g.op("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for into, stride in ((64, 2), (256, 1)):
        short = conv(h, into, 256, 1, stride) if stride > 1 else h
        y = g.op("Relu", conv(h, into, 64, 1))
        y = g.op("Relu", conv(y, 64, 64, 3, stride))
        h = g.op("Relu", g.op("Add", conv(y, 64, 256, 1), short))
    h = g.op("Flatten", g.op("GlobalAveragePool", h))
    y = g.op("Gemm", h, g.weight(256, 100, scale=0.1), g.weight(100))
    return g.case(y, 1, 100).model


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_resnet(arch: str) -> None:
    """A launch for each of 8 convolutions, with all that is round them, pooling, mean, classes."""
    check(figures(resnet(), arch), most=11)


# on gfx1100 the deep dot of few rows is in parts, whose sum is a launch of its own
@pytest.mark.parametrize(("arch", "most"), [("gfx942", 8), ("gfx1100", 9)])
def test_bert_layer(arch: str, most: int) -> None:
    """The input's type; one dot for q, k and v; attention; dot; norm; dot with gelu; dot; norm."""
    check(figures(bert("f32", 0, width=512, heads=8, length=64).model, arch), most)


def test_a_shallow_dot_with_a_residual() -> None:
    """A depth of 256 on gfx1100, whose loop LLVM would unroll whole: 124 registers in memory."""
    g = Graph(0, "f16")
    x, r = g.input("x", 64, 256), g.input("r", 64, 256)
    y = g.op("Add", g.op("MatMul", x, g.weight(256, 256)), g.weight(256))
    found = figures(g.case(g.op("Add", y, r), 64, 256).model, "gfx1100")
    assert found.totals()["with_spills"] == 0


@pytest.mark.parametrize(("arch", "dtype"), [("gfx942", "f16"), ("gfx1100", "f32")])
def test_windows_do_not_lie_in_memory(arch: str, dtype: str) -> None:
    """Depthwise convolutions of 3x3 and 5x5, pooling of few channels, a convolution of one axis,
    with their borders: windows that are cut took 24 to 104 bytes of each lane's scratch memory, the
    last one thousands of registers' worth."""
    g = Graph(0, dtype)
    for channels, size in ((32, 3), (48, 5)):
        x = g.input(f"x{size}", 1, channels, 14, 14)
        h = g.op("Conv", x, g.weight(channels, channels, 1, 1))
        edge = [size // 2] * 4
        deep = g.op("Conv", h, g.weight(channels, 1, size, size), group=channels, pads=edge)
        pool = g.op("MaxPool", h, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        g.output(g.op("Conv", deep, g.weight(16, channels, 1, 1)), 1, 16, 14, 14)
        g.output(g.op("Conv", pool, g.weight(16, channels, 1, 1)), 1, 16, 7, 7)
    row = g.op("Conv", g.input("row", 1, 32, 60), g.weight(48, 32, 3), pads=[1, 1], strides=[2])
    g.output(g.op("Relu", row), 1, 48, 30)
    compiled = mgx_mlir.compile(
        g.model(g.arrays, g.outputs).SerializeToString(), target="gpu", arch=arch, cache=False
    )
    report = gpu_report(compiled.executable.vmfb)
    assert sum("depthwise" in k.name for k in report.kernels) == 2
    rows = ("conv_2d_nhwc_fhwc", "matmul_like_1x30x48x96")  # the second: a product of windows
    assert sum(any(n in k.name for n in rows) for k in report.kernels) == 1
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []


# rows, depth, columns: whole and cut tiles, few rows, deep and flat ones
SHAPES = [(64, 64, 64), (49, 512, 256), (7, 33, 65), (100, 100, 100), (197, 256, 256),
          (2, 512, 512), (333, 257, 129), (64, 96, 24)]  # fmt: skip


def products(dtype: str, shapes: Sequence[tuple[int, int, int]], constant: bool) -> Any:
    """Dots with matrices that are constant, or arguments."""
    g = Graph(0, dtype)
    for n, (m, k, columns) in enumerate(shapes):
        x = g.input(f"x{n}", m, k)
        w = g.weight(k, columns) if constant else g.input(f"w{n}", k, columns)
        if dtype == "i8":
            g.output(g.op("MatMulInteger", x, w), m, columns, kind=onnx.TensorProto.INT32)
        else:
            g.output(g.op("MatMul", x, w), m, columns)
    return g.model(g.arrays, g.outputs)


@pytest.mark.parametrize(
    ("dtype", "constant"),
    [
        ("f16", True),
        pytest.param("f16", False, marks=pytest.mark.slow),
        pytest.param("bf16", True, marks=pytest.mark.slow),
        pytest.param("bf16", False, marks=pytest.mark.slow),
        pytest.param("f32", True, marks=pytest.mark.slow),
        pytest.param("f32", False, marks=pytest.mark.slow),
        pytest.param("i8", True, marks=pytest.mark.slow),
        pytest.param("i8", False, marks=pytest.mark.slow),
    ],
)
def test_dots_do_not_spill(dtype: str, constant: bool) -> None:
    """On gfx1100, whose waves have 256 registers."""
    model = products(dtype, SHAPES, constant)
    compiled = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch="gfx1100", cache=False
    )
    report = gpu_report(compiled.executable.vmfb)
    assert len(report.kernels) >= len(SHAPES)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []


@pytest.mark.slow
@pytest.mark.skipif(not MODELS, reason="$MGX_MODELS names no folder of models")
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize(
    ("name", "most"), [("resnet50", 56), ("bert_base", 12 * 8 + 4), ("vit_b", 88), ("gpt2", 100)]
)
def test_whole_models(name: str, most: int, arch: str) -> None:
    # on gfx1100 two deep dots of ResNet-50 are in parts, whose sums are launches of their own
    parts = 2 if (name, arch) == ("resnet50", "gfx1100") else 0
    check(figures(onnx.load(Path(MODELS) / f"{name}_script.onnx"), arch), most + parts)


def test_a_narrow_read_is_seen() -> None:
    """The share that has to be 0.9 counts what it is to count."""
    found = mixes(["k:", "\tds_read_u16 v0, v1", "\tds_read_b64 v[0:1], v2", "\ts_endpgm"])
    assert (found["k"].lds_reads, found["k"].lds_wide_share) == (2, 0.5)
