"""Weights that a dot of a dynamic number of matrices repeats, in 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mgx_mlir as migraphx
from tests.quantization.test_int4_repeated import model

RNG = np.random.default_rng(6)


@pytest.mark.parametrize("options", [{}, {"bias_correction": True, "smooth": 0.5}])
def test_a_dot_of_dynamic_batches(options: dict[str, Any]) -> None:
    weights = RNG.standard_normal((48, 20)).astype(np.float32)
    shapes = migraphx.shape.dynamic_dimension(1, 64)
    p = migraphx.parse_onnx_buffer(model(["b", "s", 48], weights), default_dyn_dim_value=shapes)
    samples = [{"x": RNG.standard_normal((8, 40, 48)).astype(np.float32)}]
    found = migraphx.quantize_int8(p, migraphx.get_target("cpu"), samples, **options)
    assert found.names == ["MatMul_0"]
    assert not found.left_out
    compiled = migraphx.compile(p, "cpu", cache=False)
    for batch in (1, 5):
        x = RNG.standard_normal((batch, 7, 48)).astype(np.float32)
        got = np.asarray(compiled.run({"x": x})[0])
        want = x.astype(np.float64) @ weights
        assert 1e-3 < np.sqrt(((got - want) ** 2).mean() / (want**2).mean()) < 0.02
