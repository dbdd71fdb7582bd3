"""Products of rows that only the run counts, and f32 convolutions on RDNA, on emulated GPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import mgx_mlir
from mgx_mlir.compiler.dumps import kept_assembly
from mgx_mlir.debug.gpu_kernels import gpu_kernels
from mgx_mlir.passes.lower.gpu.gemm_shape import CONVOLUTION, GemmShape
from mgx_mlir.passes.lower.gpu.plain_tiles import plain_windows
from mgx_mlir.targets.report import gpu_report
from tests.emulator.models import Case
from tests.emulator.oracle import LIMITS, wanted, worst

pytestmark = pytest.mark.emulator
ROWS = (1, 2, 16, 17, 63, 130)
KINDS = {"float16": "f16", "float": "f32"}
# depths and columns of whole and of cut tiles; a product of what is computed; 8-bit rows
NET = """<ir_version: 8, opset_import: ["" : 17]>
g (TYPE[n,128] x, TYPE[48,40] k, int8[n,64] c) => (TYPE[n,30] y, TYPE[n,40] z, int32[n,40] i)
{ a = MatMul(x, w0)  b = Relu(a)  y = MatMul(b, w1)  d = MatMul(x, w2)  z = MatMul(d, k)
  i = MatMulInteger(c, w3) }"""
# images, channels, side, filters, window, stride: lines that no tile of several divides; few
# channels; a last tile of lines and of filters that is cut
CONVOLUTIONS = [(3, 16, 5, 40, 3, 1), (1, 3, 18, 24, 5, 2), (2, 8, 14, 64, 3, 1)]


def open_net(kind: str) -> ModelProto:
    rng = np.random.default_rng(2)
    model = onnx.parser.parse_model(NET.replace("TYPE", kind))
    to = np.float16 if kind == "float16" else np.float32
    for name, dims in (("w0", (128, 100)), ("w1", (100, 30)), ("w2", (128, 48))):
        w = (rng.standard_normal(dims) / dims[0] ** 0.5).astype(to)
        model.graph.initializer.append(numpy_helper.from_array(w, name))
    codes = rng.integers(-128, 128, (64, 40)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(codes, "w3"))
    return model


@pytest.mark.parametrize(("arch", "kind"), [("gfx942", "float16"), ("gfx1100", "float16"),
                                            ("gfx1100", "float")])  # fmt: skip
def test_open_rows(arch: str, kind: str, library: Path) -> None:
    model, rng = open_net(kind), np.random.default_rng(3)
    with kept_assembly() as assembly:
        made = mgx_mlir.compile(
            model.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
        )
    assert not made.executable.fallbacks
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    rows = [r for r in gpu_kernels(report, assembly, {}, arch).rows if "matmul" in r.kernel.name]
    assert len(rows) == 5
    assert [r.kernel.name for r in rows if r.kernel.spills or r.kernel.scratch] == []
    assert [(r.kernel.name, r.mix.matrix) for r in rows if not r.kernel.lds] == []
    assert sum(r.mix.matrix > 0 for r in rows) == (4 if kind == "float16" else 0)
    to = np.float16 if kind == "float16" else np.float32
    for n in ROWS:
        inputs = {
            "x": rng.standard_normal((n, 128)).astype(to),
            "k": (rng.standard_normal((48, 40)) / 7).astype(to),
            "c": rng.integers(-128, 128, (n, 64)).astype(np.int8),
        }
        got, want = made.run(inputs), wanted(Case(model, inputs))
        np.testing.assert_array_equal(got[2], want[2])
        assert worst(got[:2], want[:2]) <= LIMITS[KINDS[kind]], n


def convolutions() -> ModelProto:
    rng, nodes = np.random.default_rng(5), ""
    for i, (n, c, side, _, k, stride) in enumerate(CONVOLUTIONS):
        pads = [k // 2] * 4
        nodes += f"c{i} = Conv<pads={pads}, strides=[{stride},{stride}]>(x{i}, w{i}, b{i})"
        nodes += f"  y{i} = Relu(c{i})  "
        del n, c, side
    inputs = ", ".join(
        f"float[{n},{c},{s},{s}] x{i}" for i, (n, c, s, *_) in enumerate(CONVOLUTIONS)
    )
    outputs = ", ".join(f"float[a{i},b{i},c{i},d{i}] y{i}" for i in range(len(CONVOLUTIONS)))
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{ {nodes} }}'
    )
    for i, (_, c, _, f, k, _) in enumerate(CONVOLUTIONS):
        w = rng.standard_normal((f, c, k, k)).astype(np.float32) / (c * k * k) ** 0.5
        b = rng.standard_normal(f).astype(np.float32)
        model.graph.initializer.extend(
            numpy_helper.from_array(v, f"{name}{i}") for name, v in (("w", w), ("b", b))
        )
    return model


def test_convolutions_without_matrix_instructions(library: Path) -> None:
    """Several calls each: what one workgroup writes of another's shows where threads take turns."""
    model, rng = convolutions(), np.random.default_rng(6)
    made = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch="gfx1100", emulate=True, cache=False
    )
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert [k.name for k in kernels if k.spills or k.scratch] == []
    assert sum(k.lds > 0 for k in kernels if "conv" in k.name) == len(CONVOLUTIONS)
    inputs = {
        f"x{i}": rng.standard_normal((n, c, s, s)).astype(np.float32)
        for i, (n, c, s, *_) in enumerate(CONVOLUTIONS)
    }
    want = wanted(Case(model, inputs))
    for _ in range(8):
        assert worst(made.run(inputs), want) <= LIMITS["f32"]


@pytest.mark.parametrize("lines", [1, 5, 7, 13, 14, 28, 55, 56, 112])
def test_tiles_are_of_whole_lines(lines: int) -> None:
    """A thread has one line, and would write where it lies beyond the image."""
    for images, filters in ((1, 16), (2, 64), (32, 512)):
        shape = GemmShape(
            CONVOLUTION, "float_type", (images, lines, lines, filters, 3, 3, 32, 1, 1)
        )
        found = plain_windows("gfx1100", shape)
        assert found is not None
        tile, along = found
        assert lines % (tile.size[0] // along) == 0
        assert tile.threads % 32 == 0
