"""Reductions long enough for many lanes, which the compiler joins in steps of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.op import OPS
from tests.emulator import operators
from tests.emulator.operators import ARCHS
from tests.lower.harness import Case, as_dynamic

TYPES = (
    dtypes.FLOAT, dtypes.HALF, dtypes.BF16, dtypes.DOUBLE,
    dtypes.INT8, dtypes.UINT8, dtypes.INT32, dtypes.UINT32, dtypes.INT64, dtypes.UINT64,
)  # fmt: skip


def drawn(dims: tuple[int, ...], dtype: DType, low: int, high: int) -> np.ndarray:
    """Between two bounds: what is padded must be neutral for numbers of either sign."""
    rng = np.random.default_rng([low + 100, high + 100, dtype.number])
    if dtype.is_float:
        return rng.uniform(low, high, dims).astype(np.float32).astype(dtype.np)
    return rng.integers(low, high, dims).astype(dtype.np)


def cases(dtype: DType) -> Iterator[Case]:
    for low, high in ((1, 4), (-4, -1)):
        if low < 0 and dtype.is_unsigned:
            continue
        rows, columns = drawn((3, 700), dtype, low, high), drawn((700, 5), dtype, low, high)
        for how in ("max", "min", "sum", "mean"):
            for x, axes in ((rows, [1]), (columns, [0]), (rows, [0, 1])):
                yield Case(OPS[f"reduce_{how}"], (x,), {"axes": axes})
        names = ["argmax", "argmin", *(["softmax", "logsoftmax"] if dtype.is_float else [])]
        for name in names:
            yield Case(OPS[name], (rows,), {"axis": 1})


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("arch", ARCHS)
def test_long_reductions(arch: str, dtype: DType, library: Path) -> None:
    static = list(cases(dtype))
    found = static + [d for c in static if (d := as_dynamic(c))]
    operators.run(operators.compiled(found, arch), found).check()


@pytest.mark.parametrize("arch", ARCHS)
def test_long_reductions_of_integers(arch: str, library: Path) -> None:
    """A few of them, in CI, along run-time dims: what is neutral for them is not that of others."""
    own = [c for c in cases(dtypes.INT32) if c.cls.mnemonic in ("reduce_max", "reduce_min")]
    found = [d for c in own if (d := as_dynamic(c))]
    operators.run(operators.compiled(found, arch), found).check()
