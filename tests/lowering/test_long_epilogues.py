"""Long functions behind sums are loops over rows of registers, with the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mgx_mlir import compile as compile_program
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.passes.lowering.cpu.frame import epilogue
from zoo.made import Graph


def net(rows: int | str) -> bytes:
    """Return a convolution, a depthwise one and a matmul, each with a sigmoid behind its sums."""
    g = Graph(5)
    x = g.input("x", [rows, 24, 13, 11])
    conv = g.op("Conv", x, g.weight(40, 24, 3, 3), g.vector(40), pads=[1, 1, 1, 1])
    g.output(g.op("Mul", conv, g.op("Sigmoid", conv)), "a", [rows, 40, 13, 11])
    deep = g.op("Conv", x, g.weight(24, 1, 3, 3), group=24)
    g.output(g.op("Sigmoid", deep), "b", [rows, 24, 11, 9])
    y = g.input("y", [rows, 17, 24])
    g.output(g.op("Tanh", g.op("MatMul", y, g.weight(24, 50))), "c", [rows, 17, 50])
    return g.model().SerializeToString()


def made(rows: int | str) -> IreeProgram:
    found = compile_program(net(rows), "cpu", cache=False)
    assert isinstance(found, IreeProgram)
    return found


@pytest.mark.parametrize("rows", [2, "n"])
def test_rows_of_registers_are_a_loop_with_equal_results(
    rows: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = made(rows)
    monkeypatch.setattr(epilogue, "_LEAST_ROWS", 1000)
    flat = made(rows)
    rng = np.random.default_rng(1)
    for n in (2,) if rows == 2 else (2, 1, 3):
        given: dict[str, Any] = {
            "x": rng.standard_normal((n, 24, 13, 11)).astype(np.float32),
            "y": rng.standard_normal((n, 17, 24)).astype(np.float32),
        }
        for a, b in zip(loops.run(given), flat.run(given), strict=True):
            np.testing.assert_array_equal(a, b)
    # weights, launches and IREE's library of C functions are in both
    assert len(bytes(loops.executable.vmfb)) < 0.85 * len(bytes(flat.executable.vmfb))
