"""IREE's code for the regions of vector kernels: pinned, since their speed depends on it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.targets.child import compiler_binary
from mgx_mlir.targets.flags import cpu_ladder
from tests.lowering.vector_kernels import bytecode

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

F = dtypes.FLOAT
ROWS, WIDE, STEP = 64, 32, 16
LANES = 8


def _scaled(x: ir.Value, w: ir.Value, rows: Index) -> ir.Value:
    """x * w + w by rows: a workgroup for each 16 of them, through scratch of 128 bytes."""

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        row, count = k.at[0], STEP if isinstance(rows, int) else k.min(STEP, k.inner(rows))

        def one(i, carried):
            def some(j, tiles):
                weight = k.read(k.inputs[1], [j], LANES)
                v = k.fma(k.read(k.inputs[0], [k.add(row, i), j], LANES), weight, weight)
                return [k.write(v, tiles[0], [j])]

            line = k.loop(0, WIDE, LANES, [k.empty((WIDE,))], some)[0]

            def back(j, tiles):
                return [k.write(k.read(line, [j], LANES), tiles[0], [i, j])]

            return k.loop(0, WIDE, LANES, carried, back)

        made = k.loop(0, count, 1, [k.empty((count, WIDE))], one)
        return [ResultTile(made[0], (row, 0), (count, WIDE))]

    return dispatch([x, w], [((rows, WIDE), F)], [(rows, STEP)], body)[0]


def _code(folder: Path, *, is_dynamic: bool) -> str:
    """Return the LLVM IR of two kernels that differ in their weights; if dynamic, of one."""

    def build(x: ir.Value, w: ir.Value, v: ir.Value) -> list[ir.Value]:
        if not is_dynamic:
            return [_scaled(_scaled(x, w, ROWS), v, ROWS)]
        zero = arith.ConstantOp(ir.IndexType.get(), 0).result
        return [_scaled(x, w, tensor.DimOp(x, zero).result)]

    x, w = np.ones((ROWS, WIDE), np.float32), np.ones(WIDE, np.float32)
    source = folder / "kernels.mlirbc"
    source.write_bytes(bytecode(build, [x, w, w], [is_dynamic, False, False]))
    flags = [*cpu_ladder()[0].flags, "--compile-to=executable-targets"]
    return subprocess.run(
        [str(compiler_binary()), *flags, str(source)],
        check=True, capture_output=True, text=True, timeout=120,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_regions(tmp_path: Path, is_dynamic: bool) -> None:
    """One launch for each region, one executable for those that are alike, the grid as it was
    asked for.

    In it the multiply-adds are of vectors, results are written where they lie, and scratch is the
    only memory that is taken: that of a row, on the stack.
    """
    code = _code(tmp_path, is_dynamic=is_dynamic)
    assert code.count("hal.executable private @") == 1
    assert code.count("stream.cmd.dispatch @") == (1 if is_dynamic else 2)
    (grid,) = re.findall(r"hal.return (%\S+), %c1, %c1 : index, index, index", code)
    assert (grid == f"%c{ROWS // STEP}") is not is_dynamic
    assert re.search(rf"llvm.intr.fma.*-> vector<{LANES}xf32>", code)
    assert not re.search(r"memcpy|memmove|malloc|llvm.call ", code)
    assert re.findall(r"llvm.alloca .*array<(.*)>.*->", code) == [f"{WIDE} x f32"]
