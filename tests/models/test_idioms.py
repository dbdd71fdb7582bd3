"""Five drawn networks of each way that converters write models: cpu and ref against onnxruntime.

The five are one model, compiled once and run at two sizes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import version_converter

import mgx_mlir
from tests.support.oracle import ort_session
from zoo.drawn import Drawn
from zoo.idioms import IDIOMS

LIMIT = {"float16": 5e-3}  # share of the largest element; onnxruntime computes parts in f32
EACH = 5


def drawn(idiom: str, seed: int) -> Drawn:
    g = Drawn(seed)
    for _ in range(EACH):
        IDIOMS[idiom](g)
    return g


def check(g: Drawn, data: bytes, limit: float) -> None:
    oracle = ort_session(data)
    programs = [mgx_mlir.compile(data, target, cache=False) for target in ("ref", "cpu")]
    assert programs[1].executable.fallbacks == ()  # a refused kernel is compiled in another way
    for call in (0, 1):
        inputs = g.arrays(call)
        wanted = oracle.run(None, inputs)
        for program in programs:
            for a, b in zip(program.run(inputs), wanted, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                assert np.isfinite(b).all()
                scale = max(np.abs(b).max(initial=0), 1e-3)
                np.testing.assert_allclose(a, b, rtol=0, atol=limit * scale)


@pytest.mark.parametrize("idiom", [i for i in IDIOMS if i != "encoder"])
def test_against_onnxruntime(idiom: str) -> None:
    g = drawn(idiom, 1)
    check(g, g.made().SerializeToString(), LIMIT.get(idiom, 1e-4))


@pytest.mark.parametrize("idiom", [i for i in IDIOMS if i != "encoder"])
def test_with_fixed_dims(idiom: str) -> None:
    """The sizes of one call are those of the file."""
    g = Drawn(13)
    IDIOMS[idiom](g)
    model = g.made()
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = g.sizes[dim.dim_param][0]
    g.sizes = {name: (n, n) for name, (n, _) in g.sizes.items()}
    check(g, model.SerializeToString(), LIMIT.get(idiom, 1e-4))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("idiom", IDIOMS)
def test_more_against_onnxruntime(idiom: str, seed: int) -> None:
    g = drawn(idiom, seed)
    check(g, g.made().SerializeToString(), LIMIT.get(idiom, 1e-4))


@pytest.mark.parametrize("idiom", ["encoder", pytest.param("tf2onnx", marks=pytest.mark.slow)])
def test_files_that_onnxruntime_has_optimised(idiom: str, tmp_path: Path) -> None:
    g = drawn(idiom, 20)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(
        g.made().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    data = (tmp_path / "optimised.onnx").read_bytes()
    domains = {n.domain for n in onnx.load_from_string(data).graph.node}
    assert "com.microsoft" in domains, "nothing was fused"
    check(g, data, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("opset", [20, 23])
def test_newer_opsets(opset: int) -> None:
    g = Drawn(opset)
    for idiom in ("tf2onnx", "folded", "float16"):
        IDIOMS[idiom](g)
    newer = version_converter.convert_version(g.made(), opset)
    check(g, newer.SerializeToString(), 5e-3)
