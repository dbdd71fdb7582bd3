"""The frame of vector kernels: grids, ragged ends, loops, scratch, several results."""

from __future__ import annotations

import numpy as np
import pytest
from iree import runtime as rt

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from tests.lowering.vector_kernels import compiled, run

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


# ---- extents that only the run knows -------------------------------------------------------------


def _dim(x: ir.Value, axis: int) -> ir.Value:
    index = arith.ConstantOp(ir.IndexType.get(), axis).result
    return tensor.DimOp(x, index).result


def _dynamic_rows(x: ir.Value) -> list[ir.Value]:
    """x * x + x and the sums of its rows, 8 rows a group, 16 columns a vector."""
    high, wide = _dim(x, 0), _dim(x, 1)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        row, (x,) = k.at[0], k.inputs
        rows, columns = k.min(8, k.sub(k.inner(high), row)), k.inner(wide)

        def one(i, carried):
            def some(j, masked, inner):
                v = k.read(x, [k.add(row, i), j], 16, masked=0.0 if masked else None)
                total = arith.AddFOp(inner[1], v).result
                return [k.write(k.fma(v, v, v), inner[0], [i, j], masked=masked), total]

            made, total = k.along(columns, 16, [carried[0], k.splat(0.0, 16)], some)
            return [made, k.put(k.reduce(total, "add"), carried[1], [i])]

        made = k.loop(0, rows, 1, [k.empty((rows, columns)), k.empty((rows,))], one)
        return [
            ResultTile(made[0], (row, 0), (rows, columns)),
            ResultTile(made[1], (row,), (rows,)),
        ]

    return dispatch([x], [((high, wide), F), ((high,), F)], [(high, 8)], body)


@pytest.mark.parametrize("threads", [1, 2])
def test_dynamic_extents(threads: int) -> None:
    """One program takes every size: tails, ones, and nothing at all."""
    module = rt.load_vm_flatbuffer(
        compiled(_dynamic_rows, [_random(1, 1)], fixed=False),
        driver="local-sync" if threads == 1 else "local-task",
    )
    for dims in [(64, 32), (37, 21), (1, 1), (8, 16), (7, 15), (9, 17), (0, 5), (5, 0), (200, 3)]:
        x = _random(*dims)
        made, sums = (f.to_host() for f in module.main(x))
        assert made.shape == x.shape
        assert sums.shape == dims[:1]
        np.testing.assert_allclose(made, x * x + x, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(sums, x.sum(1), rtol=1e-4, atol=1e-5)


def test_an_extent_that_no_tensor_has() -> None:
    """The grid's extent is computed outside: half of the rows, rounded up."""

    def half(x: ir.Value) -> list[ir.Value]:
        high = _dim(x, 0)
        two = arith.ConstantOp(ir.IndexType.get(), 2).result
        count = arith.CeilDivUIOp(high, two).result

        def body(k: WorkgroupBuilder) -> list[ResultTile]:
            (i,), (x,) = k.at, k.inputs
            value = k.element(x, [k.mul(i, 2)])
            return [ResultTile(k.put(value, k.empty((1,)), [0]), (i,), (1,))]

        return dispatch([x], [((count,), F)], [(count, 1)], body)

    module = rt.load_vm_flatbuffer(compiled(half, [_random(1)], fixed=False), driver="local-sync")
    for n in (1, 2, 7, 64):
        x = _random(n)
        np.testing.assert_array_equal(module.main(x).to_host(), x[::2])
