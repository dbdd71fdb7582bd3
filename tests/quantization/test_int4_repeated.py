"""Weights that a dot of several matrices repeats, in 4 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import mgx_mlir as migraphx
from tests.support.models import bytes_of, node

RNG = np.random.default_rng(5)


def model(dims: Sequence[int | str], weights: np.ndarray) -> bytes:
    out = [*dims[:-1], weights.shape[-1]]
    multiply = node("MatMul", "x w", "y")
    return bytes_of([multiply], {"x": list(dims)}, {"y": out}, {"w": weights}, opset=18)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("dims", [[2, 5, 128], [2, 3, 1, 128], ["b", "s", 128], ["b", 128]])
def test_repeated(dims: Sequence[int | str], sampled: bool) -> None:
    weights = RNG.standard_normal((128, 96)).astype(np.float32)
    opened = {"default_dyn_dim_value": migraphx.shape.dynamic_dimension(1, 8)}
    is_dynamic = any(isinstance(d, str) for d in dims)
    p = migraphx.parse_onnx_buffer(model(dims, weights), **(opened if is_dynamic else {}))
    x = RNG.standard_normal([d if isinstance(d, int) else 3 for d in dims]).astype(np.float32)
    options = {"calibration": [{"x": x}]} if sampled else {}
    codes = migraphx.quantize_int4_weights(p, **options).codes
    assert list(codes) == ["MatMul_0"] * sampled
    assert "unpack_int4" in str(p)
    compiled = migraphx.compile(p, "cpu", cache=False)
    assert [k.name for k in compiled.kernels] == ["cpu::blocked_dot"]
    found = compiled.run({"x": x})[0]
    exact = x.astype(np.float64) @ weights
    assert np.sqrt(np.mean((found - exact) ** 2) / np.mean(exact**2)) < 0.12
    # the same numbers as the reference, of the same codes
    p.compile(migraphx.get_target("ref"))
    np.testing.assert_allclose(found, np.array(p.run({"x": x})[0]), rtol=1e-4, atol=1e-4)
