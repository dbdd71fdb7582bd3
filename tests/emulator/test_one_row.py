"""Products of one row, as decoders and classifiers have them, on emulated GPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import mgx_mlir
from mgx_mlir.passes.lower.gpu.gemm_shape import DOT, GemmShape
from mgx_mlir.passes.lower.gpu.vector_tiles import VectorTile, vector_tile
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


def test_tiles_of_one_row() -> None:
    """Columns in pairs once all units have work; few columns share a workgroup's waves."""

    def found(n: int, k: int, rows: int = 1) -> VectorTile | None:
        return vector_tile("gfx942", GemmShape(DOT, "half_type", (rows, n, k)))

    assert found(4096, 4096) == VectorTile(2, 1, 8)
    assert found(1000, 2048) == VectorTile(1, 1, 8)
    assert found(10, 25088) == VectorTile(1, 4, 8)
    assert found(10, 100) == VectorTile(1, 1, 1)
    assert found(4096, 4096, rows=2) is None
