"""NaN through the operators that compare, on GPUs: the compiler takes its own maximum for one that
passes over NaN, and our lowerings do without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core import dtypes
from mgx_mlir.core.op import OPS
from tests.emulator import operators
from tests.emulator.operators import ARCHS
from tests.lowering.harness import Case


def drawn(*dims: int) -> np.ndarray:
    """With a NaN at its second place and infinity at its last."""
    found = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    found.reshape(-1)[1], found.reshape(-1)[-1] = np.nan, np.inf
    return found


def in_every_float(cases: list[Case]) -> list[Case]:
    found = list(cases)
    for dtype in (dtypes.HALF, dtypes.BF16, dtypes.DOUBLE):
        made = [operators.in_dtype(c, dtype, first_only=False) for c in cases]
        found += [c for c in made if operators.is_taken(c)]
    return found


def case(name: str, *operands: Any, **attributes: Any) -> Case:
    return Case(OPS[name], operands, attributes)


X, AT = drawn(3, 4), np.array([[0, 1, 2, 0]])
BOX, FIRST = np.array([[0, 0, 4, 4]], np.float32), np.array([0])
CASES = [
    *(case(f"reduce_{how}", X, axes=[1]) for how in ("max", "min", "sum", "mean", "prod")),
    *(case(f"reduce_{how}", drawn(2, 70), axes=[0, 1]) for how in ("max", "min")),
    *(case(f"reduce_{how}", X, np.array([1])) for how in ("max", "min")),
    *(case(name, X, axis=1) for name in ("argmax", "argmin", "softmax", "logsoftmax")),
    *(case(f"scatter_{how}", X, AT, drawn(1, 4)) for how in ("max", "min", "add")),
    *(case("topk", X, k=2, axis=1, largest=largest) for largest in (True, False)),
    case("prefix_scan_sum", X, axis=1),
    case("pooling", drawn(1, 2, 4, 4), mode="average", lengths=[2, 2], stride=[2, 2]),
    case("roialign", drawn(1, 1, 6, 6), BOX, FIRST, mode="max", output_height=2, output_width=2),
    case("clip", X, np.full_like(X, -1), np.full_like(X, 1)),
    *(case(name, X, X[:, ::-1].copy()) for name in ("max", "min")),
    *(case(name, X) for name in ("relu", "tanh", "sin", "cos", "erf", "sigmoid")),
]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_nan_is_kept(arch: str, library: Path) -> None:
    cases = in_every_float(CASES)
    operators.run(operators.compiled(cases, arch), cases).check()


@pytest.mark.parametrize("arch", ARCHS)
def test_max_pooling_passes_over_nan(arch: str, library: Path) -> None:
    """A limit (docs/hip.md): windows are reduced by the compiler's maximum, for its tiles."""
    pool = {"mode": "max", "lengths": [2, 2], "stride": [2, 2]}
    cases = [case("pooling", drawn(1, n, 4, 4), **pool) for n in (2, 64)]
    ((where, program),) = operators.compiled(cases, arch)
    assert not isinstance(program, str), program
    for outcome in operators.outcomes(program, cases[where]):
        (got,), (want,) = outcome.got, outcome.want
        assert np.isnan(want).sum() == 1
        over = np.isnan(want)
        np.testing.assert_array_equal(got[~over], want[~over])
        assert got[over] == np.nanmax(outcome.case.operands[0][0, 0, :2, :2])
