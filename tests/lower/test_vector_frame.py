"""The frame of vector kernels: grids, ragged ends, loops, scratch, several results."""

from __future__ import annotations

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.passes.lower.cpu.workgroup_builder import ResultTile, WorkgroupBuilder, dispatch
from tests.lower.vector_kernels import run

F = dtypes.FLOAT


def _random(*dims: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_two_results(threads: int) -> None:
    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        row, (x, w) = k.at[0], k.inputs

        def one(i, carried):
            v = k.read(x, [k.add(row, i), 0], 32)
            scaled = k.fma(v, k.read(w, [0], 32), k.splat(1.0, 32))
            total = k.reduce(v, "add")
            return [k.write(scaled, carried[0], [i, 0]), k.put(total, carried[1], [i])]

        made = k.loop(0, 16, 1, [k.empty((16, 32)), k.empty((16,))], one)
        return [ResultTile(made[0], (row, 0), (16, 32)), ResultTile(made[1], (row,), (16,))]

    x, w = _random(64, 32), _random(32)
    out = run(
        lambda x, w: dispatch([x, w], [((64, 32), F), ((64,), F)], [(64, 16)], body),
        [x, w],
        threads,
    )
    np.testing.assert_allclose(out[0], x * w + 1, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(out[1], x.sum(1), rtol=1e-5, atol=1e-5)


def test_ragged_grid_and_masked_lanes() -> None:
    """37 x 21 in tiles of 8 x 16: the ends are smaller."""

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (r, c), (x,) = k.at, k.inputs
        rows, columns = k.min(8, k.sub(37, r)), k.min(16, k.sub(21, c))

        def one(i, carried):
            v = k.read(x, [k.add(r, i), c], 16, masked=0.0)
            return [k.write(k.fma(v, v, v), carried[0], [i, 0], masked=True)]

        made = k.loop(0, rows, 1, [k.empty((rows, columns))], one)
        return [ResultTile(made[0], (r, c), (rows, columns))]

    x = _random(37, 21)
    out = run(lambda x: dispatch([x], [((37, 21), F)], [(37, 8), (21, 16)], body), [x])
    np.testing.assert_allclose(out[0], x * x + x, rtol=1e-6, atol=1e-6)


def test_three_dims_scratch_condition_and_broadcast() -> None:
    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (a, b, c), (x,) = k.at, k.inputs
        scratch = k.empty((16, 16))
        kind = scratch.type

        def keep(i, carried):
            def copied():
                return [k.write(k.read(x, [a, b, i, c], 16), carried[0], [i, 0])]

            def zero():
                return [k.write(k.splat(0.0, 16), carried[0], [i, 0])]

            return k.when(k.is_less(i, 9), copied, zero, [kind])

        (scratch,) = k.loop(0, 16, 1, [scratch], keep)
        square = k.read(scratch, [0, 0], (16, 16))
        first = k.broadcast(k.element(x, [a, b, 0, c]), 16)
        turned = k.write(k.transpose(square), k.empty((1, 1, 16, 16)), [0, 0, 0, 0])
        (turned,) = [k.write(first, turned, [0, 0, 15, 0])]
        return [ResultTile(turned, (a, b, 0, c), (1, 1, 16, 16))]

    x = _random(2, 3, 16, 32)
    out = run(lambda x: dispatch([x], [((2, 3, 16, 32), F)], [(2, 1), (3, 1), (32, 16)], body), [x])
    want = np.zeros_like(x)
    for c in (0, 16):
        block = x[..., c : c + 16].copy()
        block[..., 9:, :] = 0
        want[..., c : c + 16] = block.swapaxes(-1, -2)
        want[..., 15, c : c + 16] = x[..., 0, c : c + 1]
    np.testing.assert_array_equal(out[0], want)
