"""GatherND of slices with dynamic dims reads what numpy reads, negative indices too."""

from __future__ import annotations

import numpy as np
import pytest

import mgx_mlir as mgx
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
