"""nonzero in our own loops: numpy finds the same places, of any type, rank and number of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import Programs, execute, kernels_of

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES: list[Any] = [
    np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.bool_, np.int8, np.uint8, np.int16,
    np.uint16, np.int32, np.uint32, np.int64, np.uint64,
]  # fmt: skip
# one part, its end, parts of which the last is short, and as many dims as there are
DIMS = [(1,), (16384,), (16385,), (3, 5461), (40000,), (2, 3, 7), (70, 1, 470), (1, 2, 1, 3, 2)]


def drawn(rng: np.random.Generator, dtype: Any, dims: tuple[int, ...]) -> np.ndarray:
    """Few, many or no elements that are 0; floats have both zeros, NaN and the least numbers."""
    x = rng.integers(-3, 4, dims).astype(dtype)
    if np.dtype(dtype).kind not in "biu":
        tiny = np.array([1], f"u{np.dtype(dtype).itemsize}").view(dtype)[0]
        odd = np.array([-0.0, np.nan, np.inf, tiny]).astype(dtype)
        odd[3] = tiny
        x = np.where(rng.random(dims) < 0.4, rng.choice(odd, dims), x)
    return np.where(rng.random(dims) < rng.choice([0.0, 0.5, 1.0]), np.zeros((), dtype), x)


def nonzero(b: Any, x: Any) -> Any:
    return b.nonzero(x)


@pytest.mark.parametrize(
    ("fixed", "threads", "arch"),
    [(True, 2, "host"), (False, 1, "neoverse-v1"), (False, 2, "haswell")],
)
def test_places(fixed: bool, threads: int, arch: str) -> None:
    """The vectors of any processor run on every other one."""
    rng, programs = np.random.default_rng(7), Programs()
    build: Callable[..., Any] = nonzero
    for i, dims in enumerate(DIMS):
        for dtype in TYPES[i % 3 :: 3]:
            x = drawn(rng, dtype, dims)
            programs.add(build, [x], np.array(np.nonzero(x)), fixed=fixed)
    lowered = programs.lowered("fuse_pointwise_reduce", arch=arch)
    assert kernels_of(lowered) >= 2 * len(programs.want), "some are no vector kernels"
    for got, want in zip(execute(lowered, programs.inputs, threads), programs.want, strict=True):
        np.testing.assert_array_equal(got, want)
