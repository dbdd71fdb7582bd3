"""Weights in the order in which kernels read them, held once more and not twice."""

from __future__ import annotations

import gc
import re
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.filling import Filling, Packing
from mgx_mlir.core.huge_pages import PAGE
from mgx_mlir.passes.lowering.cpu.matmul.panel import pack, packing
from mgx_mlir.passes.lowering.module import ModuleLowering
from mgx_mlir.passes.lowering.options import LowerOptions
from tests.support.models import parsed_bytes


@pytest.mark.parametrize("kind", [np.float32, np.int8, ml_dtypes.bfloat16])
@pytest.mark.parametrize("unit", [1, 2, 4])
def test_each_element_of_a_panel(kind: type, unit: int) -> None:
    draw = np.random.default_rng(0)
    for depth, columns, width in ((1, 1, 8), (5, 17, 8), (7, 16, 16), (33, 40, 24), (4, 5, 16)):
        whole = (draw.standard_normal((depth, columns)) * 50).astype(kind)
        for weights in (whole, np.asfortranarray(whole)):
            found = pack(weights, width, unit)
            count, units = -(-columns // width), -(-depth // unit)
            assert found.shape == (count, units, width * unit)
            want = np.zeros(found.shape, kind)
            for k in range(depth):
                for n in range(columns):
                    at = n // width, k // unit, n % width * unit + k % unit
                    want[at] = weights[k, n]
            assert found.tobytes() == want.tobytes()


def test_large_weights_are_packed_where_they_stay() -> None:
    """9 MB are written once, in large pages, by a thread of their own; small ones at once."""
    e, seen = ModuleLowering({}, LowerOptions(), "main"), list[tuple[str, int]]()

    def packed(size: int) -> np.ndarray:
        array = np.full((size, size), size, np.float32)
        made = packing(array.shape, array.dtype, lambda: array, 16, 1)

        def fill(found: np.ndarray) -> None:
            seen.append((threading.current_thread().name, found.ctypes.data))
            made.fill(found)

        return e.repacked(array, "panels", lambda: Packing(made.shape, made.dtype, fill))

    large, small = packed(1536), packed(64)
    assert small.min() == 64
    e.filling.wait()
    assert large.min() == large.max() == 1536
    assert dict(seen)["mgx-weights"] == large.ctypes.data
    assert [name for name, _ in seen].count("MainThread") == 1
    assert large.ctypes.data % PAGE == 0


def test_what_fills_weights_fails_where_it_is_waited_for() -> None:
    filling, done = Filling(), list[int]()

    def fails() -> None:
        raise MemoryError("no room")

    filling.add(fails)
    filling.add(lambda: done.append(1))
    with pytest.raises(MemoryError, match="no room"):
        filling.wait()
    assert not done
    filling.add(lambda: done.append(2))
    filling.wait()
    assert done == [2]


def large_model(size: int) -> bytes:
    """x times a matrix of ones."""
    text = f"(float[2,{size}] x) => (float[2,{size}] y) {{ y = MatMul (x, w) }}"
    return parsed_bytes(text, {"w": np.ones((size, size))})


def own_bytes() -> int:
    found = re.search(r"^RssAnon:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_weights_go_with_their_program() -> None:
    """100 MB, held twice at most; nothing of a compile keeps them until Python looks for cycles."""
    size = 5000
    data = large_model(size)
    mgx_mlir.compile(large_model(8), "cpu", cache=False).run({"x": np.ones((2, 8), np.float32)})
    gc.collect()
    gc.disable()
    try:
        before = own_bytes()
        program = mgx_mlir.compile(data, "cpu", cache=False)
        [y] = program.run({"x": np.ones((2, size), np.float32)})
        assert own_bytes() - before < 2.3 * 4 * size**2
        del program
        assert own_bytes() - before < 0.3 * 4 * size**2
    finally:
        gc.enable()
    assert np.allclose(y, size)
