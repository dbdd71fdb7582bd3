"""Data movement, indexing and selection in every element type, against the numpy references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from tests.lowering import harness
from tests.lowering.harness import OPS, Case

harness.load_dialect()

INDICES = (
    dtypes.INT8, dtypes.UINT8, dtypes.INT16, dtypes.UINT16,
    dtypes.INT32, dtypes.UINT32, dtypes.INT64, dtypes.UINT64,
)  # fmt: skip


def values(dims: tuple[int, ...], dtype: DType, rng: np.random.Generator) -> np.ndarray:
    """Small numbers that every type holds, with ties; floats in halves."""
    if dtype.is_float:
        return np.round(rng.standard_normal(dims) * 6).astype(np.float32).astype(dtype.np)
    low, high = 0 if not dtype.is_signed else -9, 2 if dtype.is_bool else 10
    return rng.integers(low, high, dims).astype(dtype.np)


def cases(dtype: DType, index: DType) -> list[Case]:
    rng = np.random.default_rng([dtype.number, index.number])
    x, small = values((5, 4), dtype, rng), values((2, 3), dtype, rng)
    # beyond the ends on both sides, as far as the index type goes
    at = np.array([[0, 3, index.highest()], [index.lowest(), 1, 2]], object).astype(index.np)

    def case(name: str, *operands: Any, **attributes: Any) -> Case:
        return Case(OPS[name], operands, attributes, note=f"{dtype.short} {index.short}")

    found = [
        case("gather", x, at, axis=1),
        case("gather", values((6, 16), dtype, rng), at, axis=0),
        case("gathernd", x, at[:, :2]),
        case("gathernd", values((3, 4, 9), dtype, rng), at[:, :1]),
        case("onehot", at, None, values((2,), dtype, rng), depth=4),
        case("concat", [x, values((5, 3), dtype, rng)], axis=1),
        case("pad", x, pads=[1, 0, 2, 1], value=1.0),
        case("pad", x, pads=[1, 0, 2, 1], mode="edge"),
        case("reverse", x, axes=[0, 1]),
        case("slice", x, axes=[0, 1], starts=[1, -3], ends=[4, -1]),
        case("nonzero", x),
        case("scatter_none", x, at, small),
        case("scatter_none", x, at, small, skip_out_of_bounds=True),
        case("scatternd_none", x, at[:, :1], values((2, 4), dtype, rng)),
        case("argmax", x, axis=1),
        case("argmin", x, axis=0, select_last_index=True),
    ]
    if not dtype.is_bool:
        found += [
            case("scatter_add", x, at, small),
            case("scatternd_mul", x, at[:, :1], values((2, 4), dtype, rng)),
            case("topk", x, k=3, axis=0),
            case("topk", x, k=2, axis=1, largest=False),
            case("prefix_scan_sum", x, axis=0, reverse=True),
            case("prefix_scan_sum", x, axis=1, exclusive=True),
        ]
    return found


@pytest.mark.parametrize("group", range(4))
def test_types(group: int) -> None:
    found = []
    for n, dtype in enumerate(dtypes.DTYPES):
        if n % 4 == group:
            found += cases(dtype, INDICES[n % len(INDICES)])
    harness.check_cases(found, batch=200)


@pytest.mark.slow
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_index_types(index: DType) -> None:
    """Every index type, static and dynamic."""
    found = cases(dtypes.FLOAT, index)
    found += [d for c in found if (d := harness.as_dynamic(c))]
    harness.check_cases(found, batch=200)
