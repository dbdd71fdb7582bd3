"""Products and convolutions of sizes that only the run knows, on emulated GPUs.

Also f32 convolutions on RDNA.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, numpy_helper

import mgx_mlir
from mgx_mlir.compiler.dump_files import kept_assembly
from mgx_mlir.core.errors import RunError
from mgx_mlir.debug.gpu_kernels import gpu_kernels
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import CONVOLUTION, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.scalar_tiles import thread_windows
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


def compiled(model: ModelProto, arch: str) -> tuple[Any, Any]:
    """Return the program, compiled as asked for, and a row for each of its kernels."""
    with kept_assembly() as assembly:
        made: Any = mgx_mlir.compile(
            model.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
        )
    assert not made.executable.fallbacks
    report = gpu_report(made.executable.vmfb, made.executable.dispatches)
    return made, gpu_kernels(report, assembly, {}, arch).rows


@pytest.mark.parametrize(("arch", "kind"), [("gfx942", "float16"), ("gfx1100", "float16"),
                                            ("gfx1100", "float")])  # fmt: skip
def test_dynamic_rows(arch: str, kind: str, library: Path) -> None:
    model, rng = open_net(kind), np.random.default_rng(3)
    made, found = compiled(model, arch)
    rows = [r for r in found if "matmul" in r.kernel.name]
    assert len(rows) == 5
    assert [r.kernel.name for r in rows if r.kernel.spills or r.kernel.scratch] == []
    assert [(r.kernel.name, r.mix.matrix) for r in rows if not r.kernel.lds] == []
    assert sum(r.mix.matrix > 0 for r in rows) == (5 if kind == "float16" else 1)
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


# loops of few turns, which LLVM unrolled whole, with 10 to 64 registers in memory: the last tile is
# cut, rows are dynamic, what is added is read behind the loop
SHORT = """<ir_version: 8, opset_import: ["" : 17]>
g (float16[n,256] t, float16[784,240] u, float16[784,40] r, float[150,48] v, float[m,96] w) =>
  (float16[n,64] y0, float16[784,40] y1, float[150,48] y2, float[m,24] y3)
{ a = MatMul(t, k0)  b = Add(a, c0)  y0 = Relu(b)  d = MatMul(u, k1)  e = Add(d, c1)  y1 = Add(e, r)
  f = MatMul(v, k2)  h = Add(f, c2)  y2 = Relu(h)  i = MatMul(w, k3)  j = Add(i, c3)  y3 = Relu(j)
}"""


def test_a_dynamic_depth(library: Path) -> None:
    """The weights alone tell the depth; rows of another length are refused."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (bfloat16[n,k] x) => (bfloat16[n,5] y)
        { y = com.microsoft.MatMulBnb4<K = 32, N = 5, block_size = 16, quant_type = 0>(x, w, s) }"""
    )
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, 80).astype(np.uint8)
    scales = rng.uniform(0.5, 2, 10).astype(ml_dtypes.bfloat16)
    for name, held in (("w", codes), ("s", scales)):
        model.graph.initializer.append(numpy_helper.from_array(held, name))
    data = model.SerializeToString()
    x = rng.standard_normal((3, 32)).astype(ml_dtypes.bfloat16)
    program = mgx_mlir.compile(data, "gpu", arch="gfx942", emulate=True)
    [want] = mgx_mlir.compile(data, "ref").run({"x": x})
    [got] = program.run({"x": x})
    assert worst([np.asarray(got)], [np.asarray(want)]) < LIMITS["bf16"]
    with pytest.raises(RunError, match="= 32, got 31"):
        program.run({"x": x[:, :31]})


@pytest.mark.parametrize("arch", ["gfx1100", pytest.param("gfx1201", marks=pytest.mark.slow)])
def test_short_loops_stay(arch: str, library: Path) -> None:
    model, rng = onnx.parser.parse_model(SHORT), np.random.default_rng(11)
    shapes = [(256, 64, np.float16), (240, 40, np.float16), (48, 48, np.float32),
              (96, 24, np.float32)]  # fmt: skip
    for i, (depth, columns, to) in enumerate(shapes):
        k = (rng.standard_normal((depth, columns)) / depth**0.5).astype(to)
        c = rng.standard_normal(columns).astype(to)
        model.graph.initializer.extend(
            numpy_helper.from_array(v, f"{name}{i}") for name, v in (("k", k), ("c", c))
        )
    made, found = compiled(model, arch)
    assert [r.kernel.name for r in found if r.kernel.spills or r.kernel.scratch] == []
    rows = [r for r in found if "matmul" in r.kernel.name]
    assert [bool(r.mix.matrix) for r in rows] == [True, True, False, False]
    inputs = {
        name: rng.standard_normal(dims).astype(to)
        for name, dims, to in (
            ("t", (130, 256), np.float16), ("u", (784, 240), np.float16),
            ("r", (784, 40), np.float16), ("v", (150, 48), np.float32), ("w", (65, 96), np.float32),
        )
    }  # fmt: skip
    got, want = made.run(inputs), wanted(Case(model, inputs))
    assert worst(got[:2], want[:2]) <= LIMITS["f16"]
    assert worst(got[2:], want[2:]) <= LIMITS["f32"]


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


# groups of few channels that no matrix instruction divides (28 to 156 bytes of scratch memory, 26
# registers), and of whole ones
GROUPED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,64,9,9] x0, float16[n,24,8,8] x1, float16[2,32,20] x2) =>
  (float[1,64,9,9] y0, float16[n,48,8,8] y1, float16[2,32,20] y2)
{ y0 = Conv<group=4, pads=[1,1,1,1]>(x0, w0)  a = Conv<group=6, pads=[1,1,1,1]>(x1, w1)
  y1 = Relu(a)  y2 = Conv<group=2, pads=[1,1]>(x2, w2) }"""


def test_groups_of_few_channels(library: Path) -> None:
    model, rng = onnx.parser.parse_model(GROUPED), np.random.default_rng(13)
    shapes = {"w0": ((64, 16, 3, 3), np.float32), "w1": ((48, 4, 3, 3), np.float16),
              "w2": ((32, 16, 3), np.float16)}  # fmt: skip
    for name, (dims, to) in shapes.items():
        w = (rng.standard_normal(dims) / prod(dims[1:]) ** 0.5).astype(to)
        model.graph.initializer.append(numpy_helper.from_array(w, name))
    made, found = compiled(model, "gfx1100")
    assert [r.kernel.name for r in found if r.kernel.spills or r.kernel.scratch] == []
    assert sum(r.mix.matrix > 0 for r in found) == 1
    inputs = {
        name: rng.standard_normal(dims).astype(to)
        for name, dims, to in (("x0", (1, 64, 9, 9), np.float32), ("x1", (3, 24, 8, 8), np.float16),
                               ("x2", (2, 32, 20), np.float16))
    }  # fmt: skip
    got, want = made.run(inputs), wanted(Case(model, inputs))
    assert worst(got[:1], want[:1]) <= LIMITS["f32"]
    assert worst(got[1:], want[1:]) <= LIMITS["f16"]


# a filter for each channel: of one axis (260 bytes of scratch memory as a grouped one), once with a
# border and dynamic sizes, and of three (112); two filters for each (40)
DEPTHWISE = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,48,14] x0, float[n,32,t] x1, float[1,8,5,6,7] x2, float[1,16,9,9] x3) =>
  (float[1,48,11] y0, float[n,32,t] y1, float[1,8,5,6,7] y2, float[1,32,5,5] y3)
{ y0 = Conv<group=48>(x0, w0, b0)  a = Conv<group=32, pads=[3,0]>(x1, w1)  y1 = Relu(a)
  y2 = Conv<group=8, pads=[1,1,1,1,1,1]>(x2, w2)
  y3 = Conv<group=16, pads=[1,1,1,1], strides=[2,2]>(x3, w3) }"""


def test_filters_of_one_channel(library: Path) -> None:
    model, rng = onnx.parser.parse_model(DEPTHWISE), np.random.default_rng(12)
    made_of = {"w0": (48, 1, 4), "b0": (48,), "w1": (32, 1, 4), "w2": (8, 1, 3, 3, 3),
               "w3": (32, 1, 3, 3)}  # fmt: skip
    for name, dims in made_of.items():
        w = rng.standard_normal(dims).astype(np.float32) / 3
        model.graph.initializer.append(numpy_helper.from_array(w, name))
    made, found = compiled(model, "gfx942")
    assert sum("conv" in r.kernel.name for r in found) == len(made_of) - 1
    assert [r.kernel.name for r in found if r.kernel.spills or r.kernel.scratch] == []
    for n, t in ((1, 5), (3, 70)):
        inputs = {
            f"x{i}": rng.standard_normal(dims).astype(np.float32)
            for i, dims in enumerate([(1, 48, 14), (n, 32, t), (1, 8, 5, 6, 7), (1, 16, 9, 9)])
        }
        assert worst(made.run(inputs), wanted(Case(model, inputs))) <= LIMITS["f32"]


# channels, filters, window, stride; one whose windows are gathered, where the image is fixed
STEM = (3, 16, 5, 1)
OPEN = [(16, 32, 1, 1), (32, 64, 3, 2), (64, 64, 3, 1), (64, 40, 1, 2)]
SIZES = [(1, 9, 14), (3, 20, 7), (2, 33, 33)]


def layers(fixed: tuple[int, int] | None) -> list[tuple[int, ...]]:
    return [STEM, *OPEN] if fixed else [*OPEN]


def dynamic_images(fixed: tuple[int, int] | None) -> ModelProto:
    """Convolutions in a row of a dynamic batch and, but for `fixed`, of dynamic images."""
    h, w = fixed or ("h", "w")
    of = layers(fixed)
    last = len(of)
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float16[n,{of[0][0]},{h},{w}] t0) => '
    text += f"(float16[n,40] y, float16[a,b,c,d] t{last}) {{ "
    for i, (into, out, k, stride) in enumerate(of):
        strides = f"strides=[{stride},{stride}]"
        text += f"c{i} = Conv<pads={[k // 2] * 4}, {strides}>(t{i}, w{i}, b{i}) "
        joined = "s" if into == out else "c"
        text += f"s{i} = Add(c{i}, t{i}) " if into == out else ""
        text += f"t{i + 1} = Relu({joined}{i}) "
    text += f"m = GlobalAveragePool(t{last}) y = Flatten(m) }}"
    model, rng = onnx.parser.parse_model(text), np.random.default_rng(7)
    for i, (c, f, k, _) in enumerate(of):
        w0 = (rng.standard_normal((f, c, k, k)) * (2 / (c * k * k)) ** 0.5).astype(np.float16)
        b0 = rng.standard_normal(f).astype(np.float16)
        model.graph.initializer.extend(
            numpy_helper.from_array(v, f"{name}{i}") for name, v in (("w", w0), ("b", b0))
        )
    return model


@pytest.mark.parametrize(
    ("arch", "fixed"),
    [("gfx942", (9, 14)), ("gfx942", None), ("gfx1201", None)],
)
def test_dynamic_convolutions(arch: str, fixed: tuple[int, int] | None, library: Path) -> None:
    """A kernel each, with its border, what follows it and matrix instructions."""
    model, rng = dynamic_images(fixed), np.random.default_rng(8)
    made, rows = compiled(model, arch)
    assert [r.kernel.name for r in rows if r.kernel.spills or r.kernel.scratch] == []
    assert sum(r.mix.matrix > 0 for r in rows) == len(layers(fixed))
    assert [r.kernel.name for r in rows if "memcpy" in r.kernel.name] == []
    for n, h, w in SIZES:
        h, w = fixed or (h, w)
        inputs = {"t0": rng.standard_normal((n, layers(fixed)[0][0], h, w)).astype(np.float16)}
        assert worst(made.run(inputs), wanted(Case(model, inputs))) <= LIMITS["f16"], (n, h, w)


@pytest.mark.parametrize("zero", [0, 128])
def test_dynamic_convolution_of_bytes(zero: int, library: Path) -> None:
    """Alone in the program: the compiler's own kernel was wrong where the border is not 0."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (uint8[n,32,h,w] x) => (int32[a,b,c,d] y) { y = ConvInteger<pads=[1,1,1,1]>(x, w0, z) }
    """)
    rng = np.random.default_rng(9)
    w = rng.integers(-128, 128, (40, 32, 3, 3)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(w, "w0"))
    model.graph.initializer.append(numpy_helper.from_array(np.uint8(zero), "z"))
    made = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch="gfx942", emulate=True, cache=False
    )
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert [k.name for k in kernels if k.spills or k.scratch] == []
    for n, h, wide in ((1, 9, 14), (3, 20, 7)):
        x = rng.integers(0, 256, (n, 32, h, wide)).astype(np.uint8)
        padded = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), (1, 1), (1, 1)))
        want = sum(
            np.einsum("nchw,fc->nfhw", padded[:, :, i : i + h, j : j + wide], w[:, :, i, j])
            for i in range(3) for j in range(3)
        )  # fmt: skip
        np.testing.assert_array_equal(made.run({"x": x})[0], want)


@pytest.mark.parametrize("lines", [1, 5, 7, 13, 14, 28, 55, 56, 112])
def test_tiles_are_of_whole_lines(lines: int) -> None:
    """A thread has one line, and would write where it lies beyond the image."""
    for images, filters in ((1, 16), (2, 64), (32, 512)):
        shape = GemmShape(
            CONVOLUTION, "float_type", (images, lines, lines, filters, 3, 3, 32, 1, 1)
        )
        found = thread_windows("gfx1100", shape)
        assert found is not None
        tile, along = found
        assert lines % (tile.size[0] // along) == 0
        assert tile.threads % 32 == 0
