"""Tables that a matmul multiplies, too: rows are read out of its panels, and stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import Programs

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

STEPS = ("pack_weights", "propagate_constant", "dead_code_elimination", "fuse_pointwise_reduce")
# depths that fill vectors of bytes and that do not, more columns than whole panels have
SHAPES = [(2100, 256), (4099, 72)]
INDICES = np.array([[0, 3, 31, 32], [-1, 47, 48, 2099]])


def _tied(made: Programs, kind: str, rows: int, depth: int, *, dynamic: bool) -> tuple[int, int]:
    """Add a lookup and a matmul of one table; return the bytes of its numbers and of its scales."""
    rng = np.random.default_rng(rows)
    block = 8
    scales = rng.integers(1, 99, (rows, depth // block)).astype(np.float32) / 64
    spread = np.repeat(scales, block, 1)
    if kind in ("i8", "u8"):
        table = rng.integers(-128 if kind == "i8" else 0, 128, (rows, depth))
        table = table.astype(np.int8 if kind == "i8" else np.uint8)
        wide = (table.astype(np.float64) - (128 if kind == "u8" else 0)) * spread
    else:
        table = rng.normal(0, 1, (rows, depth)).astype(np.float32)
        table = table.astype({"f16": dtypes.HALF, "bf16": dtypes.BF16}.get(kind, dtypes.FLOAT).np)
        wide = table.astype(np.float64)

    def weights(b: Any) -> Any:
        whole = b.op("convert", b.literal(table), target_type=dtypes.FLOAT)
        if kind == "u8":
            whole = b.sub(whole, b.literal(np.full(table.shape, 128, np.float32)))
        if kind in ("i8", "u8"):
            whole = b.mul(whole, b.literal(spread))
        return whole if kind != "f32" else b.literal(table)

    def looked_up(b: Any, i: Any) -> Any:
        found = b.op("convert", b.gather(b.literal(table), i, axis=0), target_type=dtypes.FLOAT)
        own = b.gather(b.literal(scales), i, axis=0)
        return b.concat([found, own], axis=-1)

    x = rng.normal(0, 1, (3, depth)).astype(np.float32)
    want = np.concatenate([table.astype(np.float32), scales], -1)[INDICES]
    kinds = (["tensor<?x?xi64>"], [f"tensor<?x{depth}xf32>"]) if dynamic else ((), ())
    made.add(looked_up, [INDICES], want, types=kinds[0], name=f"rows of {kind}")
    made.add(
        lambda b, x: b.op("dot", x, b.transpose(weights(b), permutation=[1, 0])), [x],
        x.astype(np.float64) @ wide.T, types=kinds[1], name=kind, tolerance=2e-6,
    )  # fmt: skip
    return table.nbytes, scales.nbytes


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("kind", ["i8", "u8", "f16", "bf16", "f32"])
def test_a_table_is_stored_once(kind: str, dynamic: bool) -> None:
    """Beside the numbers are scales alone, in f16 for the matmul; panels are filled up."""
    made = Programs()
    sizes = [_tied(made, kind, *shape, dynamic=dynamic) for shape in SHAPES]
    lowered = made.lowered(*STEPS)
    held = sum(a.nbytes for a in lowered.params.values())
    numbers, scales = (sum(column) for column in zip(*sizes, strict=True))
    # scales of i8 and u8: shared in f16 by the matmul and the lookup; of others read by the lookup
    wanted = numbers + (scales // 2 if kind in ("i8", "u8") else scales)
    assert wanted <= held < 1.05 * wanted
    made.compare(lowered, threads=(1, 2))


@pytest.mark.parametrize("arch", ["haswell", "neoverse-v1", "znver5", "sapphirerapids"])
def test_layouts_of_other_cpus_are_shared(arch: str) -> None:
    made = Programs()
    sizes = [_tied(made, kind, *SHAPES[0], dynamic=True) for kind in ("u8", "f32")]
    lowered = made.lowered(*STEPS, arch=arch)
    held = sum(a.nbytes for a in lowered.params.values())
    assert held < 1.05 * sum(map(sum, sizes))
