"""Kernels on emulated GPUs with more tensors than a device binds, or that compare all pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mgx_mlir
from tests.support.models import parsed

RNG = np.random.default_rng(0)


def run(text: str, numbers: dict[str, np.ndarray], arch: str, **x: np.ndarray) -> list[np.ndarray]:
    made = parsed(text, numbers, opset=20).SerializeToString()
    compiled = mgx_mlir.compile(made, "gpu", arch=arch, emulate=True, cache=False)
    return compiled.run(x)


def test_a_determinant_of_eight_columns(gpu_arch: str, library: Path) -> None:
    """The last kernel would read the pivot and the row's number of each column, 17 buffers."""
    x = RNG.standard_normal((24, 8, 8)).astype(np.float32)
    (got,) = run("(float[24,8,8] x) => (float[24] y) { y = Det (x) }", {}, gpu_arch, x=x)
    np.testing.assert_allclose(got, np.linalg.det(x.astype(np.float64)), rtol=1e-3, atol=1e-4)


def test_sums_of_thirty_tensors(gpu_arch: str, library: Path) -> None:
    x = {f"x{i}": RNG.standard_normal((8, 48)).astype(np.float32) for i in range(30)}
    inputs = ", ".join(f"float[8,48] {name}" for name in x)
    text = f"({inputs}) => (float[8,48] y) {{ y = Sum ({', '.join(x)}) }}"
    (got,) = run(text, {}, gpu_arch, **x)
    np.testing.assert_allclose(got, np.sum(list(x.values()), 0, np.float64), atol=1e-5)


def test_unique_elements_of_many(gpu_arch: str, library: Path) -> None:
    """Each element is compared with 1,536."""
    x = RNG.integers(-300, 300, 1536).astype(np.float32)
    text = "(float[1536] x) => (float[n] y, int64[n] i, int64[m] j, int64[n] c) {" + (
        " y, i, j, c = Unique (x) }"
    )
    got = run(text, {}, gpu_arch, x=x)
    want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
