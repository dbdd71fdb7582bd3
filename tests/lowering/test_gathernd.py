"""GatherND of slices with dynamic dims reads what numpy reads, negative indices too."""

from __future__ import annotations

import numpy as np
import pytest

import mgx_mlir as mgx
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import parsed


@pytest.mark.parametrize("columns", [1, 2])
def test_slices_of_dynamic_dims(columns: int) -> None:
    model = parsed(
        f"""(float[n,h,w,c] x, int64[n,p,q,{columns}] i) => (float[] y)
        {{ y = GatherND <batch_dims = 1> (x, i) }}"""
    )
    program = mgx.compile(model, target="cpu")
    r = np.random.default_rng(0)
    for n, h, w, c, p, q in ((3, 4, 5, 6, 7, 2), (1, 2, 9, 33, 1, 5)):
        x = r.standard_normal((n, h, w, c)).astype(np.float32)
        sizes = (h, w)[:columns]
        index = np.stack([r.integers(-d, d, (n, p, q)) for d in sizes], -1)
        [y] = program.run({"x": x, "i": index})
        entry = np.arange(n)[:, None, None]
        want = x[(entry, *(index[..., j] for j in range(columns)))]
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("batch", [0, 1])
def test_rows_are_one_vector_kernel(batch: int) -> None:
    """Rows of any length above a vector's eighth, with and without batch axes."""
    rng = np.random.default_rng(1)
    lead, tuples = ((3,), (3, 11, 2)) if batch else ((), (11, 2))
    for row in (8, 33):
        x = rng.standard_normal((*lead, 4, 6, row)).astype(np.float32)
        index = np.stack([rng.integers(-d, d, tuples[:-1]) for d in (4, 6)], -1)
        dims = ", ".join(map(str, x.shape)), ", ".join(map(str, index.shape))
        model = parsed(
            f"""(float[{dims[0]}] x, int64[{dims[1]}] i) => (float[] y)
            {{ y = GatherND <batch_dims = {batch}> (x, i) }}"""
        )
        program = mgx.compile(model, target="cpu")
        [y] = program.run({"x": x, "i": index})
        entry = (np.arange(3)[:, None],) if batch else ()
        np.testing.assert_array_equal(y, x[(*entry, index[..., 0], index[..., 1])])
        if isa_of("host") is not None:
            [launched] = program.executable.dispatches["main"]
            assert launched.endswith("_gathernd"), launched


def test_rows_of_an_empty_axis_are_zero() -> None:
    program = mgx.compile(
        parsed("(float[n,c] x, int64[p,1] i) => (float[] y) { y = GatherND (x, i) }"), target="cpu"
    )
    for n, c, p in ((3, 9, 4), (3, 9, 0), (0, 9, 0)):
        x, index = np.ones((n, c), np.float32), np.zeros((p, 1), np.int64)
        [y] = program.run({"x": x, "i": index})
        np.testing.assert_array_equal(y, np.ones((p, c), np.float32))
