"""Every backend case of the onnx package through the importer, on the reference interpreter."""

from __future__ import annotations

import collections
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))

import backend_cases
import pytest

NOT_COMPARED = (
    "test_bernoulli",  # random numbers, compared with those of another generator
    # fractional scales: onnx.reference divides by the size before rounding (docs/special-values.md)
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
)
LEAST_PASSED = 1700  # out of 2024; a newer onnx package has more cases


@pytest.fixture(scope="module")
def outcome() -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    cases = list(backend_cases.node_cases())
    for kind in ("pytorch-converted", "pytorch-operator", "simple"):
        cases += backend_cases.stored_cases(kind)
    for case in cases:
        kind, why = backend_cases.run(case)
        found[kind].append((case.name, why))
    return found


def test_none_is_wrong(outcome: dict[str, list[tuple[str, str]]]) -> None:
    wrong = [(name, why) for name, why in outcome["wrong"] if not name.startswith(NOT_COMPARED)]
    assert wrong == []


def test_what_is_refused_is_refused_as_unsupported(
    outcome: dict[str, list[tuple[str, str]]],
) -> None:
    assert outcome["failed"] == []


def test_enough_pass(outcome: dict[str, list[tuple[str, str]]]) -> None:
    counts = {kind: len(names) for kind, names in outcome.items()}
    assert counts["passed"] >= LEAST_PASSED, counts
