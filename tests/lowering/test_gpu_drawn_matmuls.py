"""Matmuls of drawn sizes on GPUs, with what models add to them: each has the tile that was chosen.

One program a type, since what the compiler refuses or keeps in memory hangs on the kernel alone.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.parser import parse_model

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.targets.report import gpu_report

FORMS = (  # nodes after a matmul
    "y{i} = Add(a{i}, b{i})",
    "c{i} = Add(a{i}, b{i}) y{i} = Add(c{i}, r{i})",
    "c{i} = Add(a{i}, b{i}) y{i} = Relu(c{i})",
)
# rows, columns, depth: cut rows, few and odd columns, depths that are not whole steps; of the last
# four, six waves would load the same rows three times, which crashed the compiler (hazard 40)
DRAWN = (
    (196, 80, 240), (197, 768, 768), (60, 2112, 1600), (346, 547, 480), (54, 376, 672),
    (130, 64, 64), (480, 18, 3328), (1024, 142, 2048), (49, 192, 672), (348, 333, 2624),
    (100, 112, 480), (367, 242, 96), (504, 72, 576), (864, 1280, 752), (477, 88, 4032),
    (1479, 144, 544),
)  # fmt: skip


def _model() -> bytes:
    """Build one graph of all products, each of its own input, in turn with each of the forms."""
    rng = np.random.default_rng(0)
    ins, outs, nodes, weights = list[str](), list[str](), list[str](), list[onnx.TensorProto]()
    for i, (rows, columns, depth) in enumerate(DRAWN):
        text = FORMS[i % len(FORMS)].format(i=i)
        more = [f"float[{rows},{columns}] r{i}"] if f"r{i}" in text else []
        for name, shape in ((f"w{i}", (depth, columns)), (f"b{i}", (columns,))):
            weights.append(numpy_helper.from_array(rng.random(shape, np.float32), name))
        ins += [f"float[{rows},{depth}] x{i}", *more]
        outs.append(f"float[{rows},{columns}] y{i}")
        nodes.append(f"a{i} = MatMul(x{i}, w{i}) {text}")
    head = '<ir_version: 10, opset_import: ["" : 21]> g'
    made = parse_model(f"{head} ({', '.join(ins)}) => ({', '.join(outs)}) {{ {' '.join(nodes)} }}")
    made.graph.initializer.extend(weights)
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("arch", "kind"), [("gfx942", "f32"), ("gfx90a", "bf16"), ("gfx950", "f16")]
)
def test_each_has_its_tile_and_its_registers(arch: str, kind: str) -> None:
    read = mgx_mlir.parse_onnx_buffer(_model())
    if kind == "bf16":
        mgx_mlir.quantize_bf16(read)
    elif kind == "f16":
        mgx_mlir.quantize_fp16(read)
    program = mgx_mlir.compile(read, target="gpu", arch=arch, cache=False)
    assert isinstance(program, IreeProgram)
    assert program.executable is not None
    assert program.executable.fallbacks == ()
    report = gpu_report(program.executable.vmfb, program.executable.dispatches)
    assert sum("matmul" in k.name for k in report.kernels) == len(DRAWN)
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
