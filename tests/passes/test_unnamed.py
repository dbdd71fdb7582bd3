"""A pass that cannot work on named open dims costs speed, not the compile."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.compiler import stages
from mgx_mlir.core.ir import ir
from mgx_mlir.core.open_dims import is_named
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.rewrite.passes import run_pipeline

TEXT = "g (float[N,4] x) => (float[N,4] y) { a = Relu (x) y = Softmax (a) }"


def _model() -> bytes:
    graph = onnx.parser.parse_graph(TEXT)
    opsets = [onnx.helper.make_opsetid("", 18)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def _named(module: ir.Module) -> bool:
    types = [TensorType.of(r) for f in module.body for op in f.body.blocks[0].operations
             for r in op.results]  # fmt: skip
    return any(is_named(d) for t in types for d in t.dims)


def test_all_passes_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []

    def fails_on_names(module: ir.Module, steps: tuple[str, ...], **options: Any) -> Any:
        seen.append(tuple(steps))
        if "name_open_dims" not in steps:
            return run_pipeline(module, steps, **options)
        until = steps.index("name_open_dims") + 1
        run_pipeline(module, steps[:until], **options)
        assert _named(module)
        raise OverflowError("a name is no number")

    monkeypatch.setattr(stages, "run_pipeline", fails_on_names)
    program = mgx_mlir.compile(_model(), target="cpu", cache=False)
    assert ["name_open_dims" in steps for steps in seen[:2]] == [True, False]
    assert program.stats.unnamed_open_dims == "OverflowError: a name is no number"
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    e = np.exp(np.maximum(x, 0).astype(np.float64))
    np.testing.assert_allclose(program.run({"x": x})[0], e / e.sum(1, keepdims=True), rtol=1e-6)


def test_names_are_used() -> None:
    program = mgx_mlir.compile(_model(), target="cpu", cache=False)
    assert program.stats.unnamed_open_dims is None
