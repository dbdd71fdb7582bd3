"""Extents: numbers where they are known, tensors where they are not, with one rule of rounding."""

from __future__ import annotations

from typing import Any

import pytest

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.extents import exact_quotient, minus, plus, quotient, times

BUILDER: Any = None  # numbers build nothing


def test_numbers_stay_numbers() -> None:
    found = [f(BUILDER, 7, 2) for f in (plus, minus, times, quotient)]
    assert found == [9, 5, 14, 3]
    assert exact_quotient(BUILDER, 8, 2) == 4


def test_a_quotient_that_must_be_whole_says_so() -> None:
    with pytest.raises(ModelError, match="2 does not divide an extent of 7"):
        exact_quotient(BUILDER, 7, 2)
