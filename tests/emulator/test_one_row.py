"""Products of one row, as decoders and classifiers have them, and of few, on emulated GPUs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import mgx_mlir
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import DOT, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.scalar_tiles import LaneTile, lane_tile
from mgx_mlir.targets.report import gpu_report
from tests.emulator.models import Case
from tests.emulator.oracle import LIMITS, wanted, worst

# depth, columns: what one load of all lanes is more than; no whole number of loads; four waves;
# two columns each; fewer elements than a wave has lanes
SIZES = [(128, 10), (1000, 33), (16500, 12), (264, 2434), (32, 8)]


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("arch", "kind"), [("gfx942", "f16"), ("gfx942", "f32"), ("gfx1100", "f32")]
)
def test_one_row(arch: str, kind: str, library: Path) -> None:
    """None lies in scratch memory: one of 10 columns took 1,028 bytes of it for a lane."""
    rng, to = np.random.default_rng(1), np.dtype("float16" if kind == "f16" else "float32")
    name = "float16" if kind == "f16" else "float"
    ports = [", ".join(f"{name}[1,{size[i]}] {v}{n}" for n, size in enumerate(SIZES))
             for i, v in enumerate("xy")]  # fmt: skip
    nodes = "".join(
        f"a{i} = MatMul(x{i}, w{i}) b{i} = Add(a{i}, c{i}) y{i} = Relu(b{i}) "
        for i in range(len(SIZES))
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({ports[0]}) => ({ports[1]}) {{ {nodes} }}'
    )
    for i, (k, n) in enumerate(SIZES):
        w, c = rng.standard_normal((k, n)) / k**0.5, rng.standard_normal(n)
        model.graph.initializer.append(numpy_helper.from_array(w.astype(to), f"w{i}"))
        model.graph.initializer.append(numpy_helper.from_array(c.astype(to), f"c{i}"))
    made = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch=arch, emulate=True, cache=False
    )
    assert not made.executable.fallbacks
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert [k.name for k in kernels if k.spills or k.scratch] == []
    inputs = {f"x{i}": rng.standard_normal((1, k)).astype(to) for i, (k, _) in enumerate(SIZES)}
    assert worst(made.run(inputs), wanted(Case(model, inputs))) <= LIMITS[kind]


# rows of a wave by weights, by columns that no whole tile has; of less depth and by what is
# computed, tiles of threads; each but the integers had 12 or 68 bytes of scratch memory
FEW = """<ir_version: 8, opset_import: ["" : 17]>
g (float[6,24] x0, float[7,16] x1, float[15,100] x2, float[8,264] x3, float[2,1024] x4,
   float[5,272] x5, float[272,40] x6, float[3,7,64] x7, float[3,64,20] x8, int32[3,24] x9,
   int32[24,24] x10) =>
  (float[6,24] y0, float[7,3] y1, float[15,33] y2, float[8,100] y3, float[2,24] y4, float[5,40] y5,
   float[3,7,20] y6, int32[3,24] y7)
{ a = MatMul(x0, w0)  b = Add(a, c0)  y0 = Relu(b)  y1 = MatMul(x1, w1)  d = MatMul(x2, w2)
  y2 = Relu(d)  y3 = MatMul(x3, w3)  e = MatMul(x4, w4)  f = Add(e, c4)  y4 = Relu(f)
  y5 = MatMul(x5, x6)  y6 = MatMul(x7, x8)  y7 = MatMul(x9, x10) }"""


@pytest.mark.emulator
def test_few_rows(library: Path) -> None:
    """Rows that no matrix instruction multiplies do not use scratch memory."""
    model, rng = onnx.parser.parse_model(FEW), np.random.default_rng(4)
    for i, dims in enumerate([(24, 24), (16, 3), (100, 33), (264, 100), (1024, 24)]):
        w, c = rng.standard_normal(dims) / dims[0] ** 0.5, rng.standard_normal(dims[1])
        model.graph.initializer.append(numpy_helper.from_array(w.astype(np.float32), f"w{i}"))
        model.graph.initializer.append(numpy_helper.from_array(c.astype(np.float32), f"c{i}"))
    made = mgx_mlir.compile(
        model.SerializeToString(), target="gpu", arch="gfx1100", emulate=True, cache=False
    )
    assert not made.executable.fallbacks
    kernels = gpu_report(made.executable.vmfb, made.executable.dispatches).kernels
    assert [k.name for k in kernels if k.spills or k.scratch] == []
    inputs = {}
    for value in model.graph.input:
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type == onnx.TensorProto.INT32
        inputs[value.name] = (
            rng.integers(-100, 100, dims).astype(np.int32)
            if whole
            else rng.standard_normal(dims).astype(np.float32)
        )
    got, want = made.run(inputs), wanted(Case(model, inputs))
    np.testing.assert_array_equal(got[-1], want[-1])
    assert worst(got[:-1], want[:-1]) <= LIMITS["f32"]


def test_tiles_of_one_row() -> None:
    """Columns in pairs once all units have work; few columns share a workgroup's waves."""

    def found(n: int, k: int, rows: int = 1) -> LaneTile | None:
        return lane_tile("gfx942", GemmShape(DOT, "half_type", (rows, n, k)))

    assert found(4096, 4096) == LaneTile(1, 2, 1, 8)
    assert found(1000, 2048) == LaneTile(1, 1, 1, 8)
    assert found(10, 25088) == LaneTile(1, 1, 4, 8)
    assert found(10, 100) == LaneTile(1, 1, 1, 1)
    assert found(4096, 4096, rows=2) is None
    few = GemmShape(DOT, "float_type", (15, 100, 768))
    assert lane_tile("gfx1100", few) == LaneTile(15, 1, 1, 4)
    assert lane_tile("gfx1100", replace(few, dims=(16, 100, 768))) is None
    assert lane_tile("gfx942", few) is None  # has matrix instructions
