"""Products of bf16 in tile registers: their layout, how they are cut, and their sums."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir, tensor
from mgx_mlir.hardware.machine import has_tile_registers, processor_features
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import AMX, AVX512_BF16, isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import index_constant
from mgx_mlir.passes.lowering.cpu.matmul import tiled_dot as loops
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import CHUNK, COLUMNS, ROWS, TilePanels
from mgx_mlir.targets.flags import STACK_LIMIT
from tests.lowering.vector_kernels import run

BF16 = ml_dtypes.bfloat16
has_tiles = pytest.mark.skipif(not has_tile_registers(), reason="no tile registers of bf16 here")


def test_processors_that_have_them() -> None:
    for name in ("sapphirerapids", "graniterapids"):
        assert isa_of(name) is AMX
    assert isa_of("znver4") is AVX512_BF16
    if not {"amx_tile", "amx_bf16"} <= processor_features():
        assert not has_tile_registers()


def test_who_takes_them() -> None:
    assert loops.takes(128, 768, dtypes.BF16, AMX)
    assert not loops.takes(128, 768, dtypes.BF16, AVX512_BF16)
    assert not loops.takes(128, 768, dtypes.FLOAT, AMX)
    assert not loops.takes(1, 768, dtypes.BF16, AMX)
    assert not loops.takes(128, 8, dtypes.BF16, AMX)


@given(
    st.one_of(st.none(), st.integers(1, 5000)), st.integers(1, 20000), st.integers(1, 40000)
)  # fmt: skip
def test_cut(rows: int | None, depth: int, columns: int) -> None:
    """Scratch fits the stack, work-groups are whole blocks, and no group of panels is empty."""
    cut = loops.plan(rows, depth, columns)
    assert cut.rows % (cut.blocks * ROWS) == 0
    assert 1 <= cut.groups <= -(-columns // cut.width)
    assert cut.scratch(depth) <= STACK_LIMIT * 3 // 4


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 2))
def test_layout(depth: int, columns: int, across: int) -> None:
    """A register has pairs of the depth beside each other; what is beyond an end is 0."""
    matrix = np.arange(1, depth * columns + 1, dtype=np.float32).reshape(depth, columns)
    packed = TilePanels(across).packed(matrix)
    panels, chunks, _ = packed.shape
    assert panels % across == 0
    whole = packed.reshape(panels, chunks, CHUNK // 2, COLUMNS, 2).transpose(1, 2, 4, 0, 3)
    whole = whole.reshape(chunks * CHUNK, panels * COLUMNS)
    np.testing.assert_array_equal(whole[:depth, :columns], matrix)
    assert not whole[depth:].any()
    assert not whole[:, columns:].any()


sizes = st.tuples(
    st.one_of(st.integers(1, 40), st.sampled_from((64, 130))),
    st.one_of(st.integers(1, 70), st.sampled_from((768, 1600, 5000))),
    st.one_of(st.integers(1, 70), st.sampled_from((96, 200))),
)


@has_tiles
@settings(deadline=None, max_examples=6)
@given(sizes, st.booleans())
def test_sums(size: tuple[int, int, int], is_dynamic: bool) -> None:
    """Partial blocks, panels and chunks; a depth in parts; what follows sees each row once."""
    rows, depth, columns = size
    numbers = np.random.default_rng(rows + depth + columns)
    x, w = (numbers.standard_normal(s).astype(BF16) for s in ((rows, depth), (depth, columns)))
    cut = loops.plan(None if is_dynamic else rows, depth, columns)
    same = Epilogue([], [dtypes.FLOAT], lambda k, given, sums, at, reads, masked: [sums])

    def build(x: ir.Value, w: ir.Value) -> list[ir.Value]:
        count = tensor.DimOp(x, index_constant(0)).result if is_dynamic else rows
        return loops.matmul((count, depth, columns), cut, AMX, [x, w], same)

    (found,) = run(build, [x, cut.layout.packed(w)], is_dynamic=[is_dynamic, False])
    want = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(found, want, atol=1e-5 * np.abs(want).max())


@has_tiles
def test_numbers_that_are_none() -> None:
    """NaN and infinities of a row reach that row alone, and no partial block or chunk."""
    x, w = np.ones((18, 40), BF16), np.ones((40, 20), BF16)
    x[3, 2], x[17, 39] = np.nan, np.inf
    same = Epilogue([], [dtypes.FLOAT], lambda k, given, sums, at, reads, masked: [sums])
    cut = loops.plan(18, 40, 20)
    (found,) = run(
        lambda x, w: loops.matmul((18, 40, 20), cut, AMX, [x, w], same), [x, cut.layout.packed(w)]
    )
    want = np.full((18, 20), 40.0)
    want[3], want[17] = np.nan, np.inf
    np.testing.assert_array_equal(found, want)
