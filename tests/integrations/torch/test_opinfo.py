"""torch's own samples of its functions through torch.compile: right, or refused with the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from tests.integrations.torch.opinfo import expected, processes
from tests.integrations.torch.opinfo.__main__ import main
from tests.integrations.torch.opinfo.compare import difference
from tests.integrations.torch.opinfo.samples import drawn

pytestmark = pytest.mark.slow


@pytest.mark.skipif("MGX_OPINFO_ALL" not in os.environ, reason="takes hours: MGX_OPINFO_ALL=FILE")
def test_all_functions() -> None:
    """Results are in the file that MGX_OPINFO_ALL names; a second run does what is left."""
    assert main(["--out", os.environ["MGX_OPINFO_ALL"]]) == 0


def test_nothing_drawn_is_wrong_in_silence() -> None:
    """Samples of 60 functions on ref: none has other results than eager, none ends a process.

    MGX_OPINFO_SEED and MGX_OPINFO_DRAWN draw others, or fewer.
    """
    seed = int(os.environ.get("MGX_OPINFO_SEED", "1"))
    names = drawn(int(os.environ.get("MGX_OPINFO_DRAWN", "60")), seed)
    rows = list(processes.run(names, ["fixed"], "ref"))
    assert {row["function"] for row in rows} == set(names)
    found = [(row["function"], s) for row in rows for s in row["samples"]]
    assert any(s["kind"] == "right" for _, s in found)
    bad = [(name, s) for name, s in found if s["kind"] in ("wrong", "died", "timeout")]
    assert bad == [], f"seed {seed}"


def test_what_is_known_names_functions_and_reasons() -> None:
    lines = [line.split("\t") for line in expected.FILE.read_text().splitlines()[1:]]
    keys = [(function, mode) for function, mode, _, _ in lines]
    assert keys == sorted(set(keys))
    assert all(int(count) > 0 and reason for _, _, count, reason in lines)


def test_a_sample_that_is_newly_refused_or_wrong_is_a_complaint() -> None:
    def row(*kinds: str) -> dict:
        samples = [{"sample": "s", "kind": k, "text": "t"} for k in kinds]
        return {"function": "f", "mode": "fixed", "samples": samples}

    known = {("f", "fixed"): 1}
    assert expected.complaints(row("right", "refused"), known) == []
    assert expected.complaints(row("skipped", "strides"), {}) == []
    for kinds in (("refused", "dynamo"), ("right", "right"), ("wrong", "refused"), ("crash",),
                  ("died",), ("timeout",)):  # fmt: skip
        assert expected.complaints(row(*kinds), known), kinds


def test_written_rows_take_the_place_of_their_functions_alone() -> None:
    def row(*texts: str) -> dict:
        return {"samples": [{"kind": "refused" if t else "right", "text": t} for t in texts]}

    first = expected.text_of({("b", "fixed"): row("why", ""), ("c", "fixed"): row("c")})
    both = {("b", "fixed"): row(""), ("a", "fixed"): row("a | more"), ("c", "dynamic"): row("d")}
    assert expected.text_of(both, first).splitlines()[1:] == [
        "a\tfixed\t1\ta", "c\tdynamic\t1\td", "c\tfixed\t1\tc"
    ]  # fmt: skip


def test_a_difference_is_found() -> None:
    x = torch.tensor([1.0, 2.0, float("nan"), float("inf")])
    assert difference([x], [x.clone()]) == ""
    for other in (x.double(), x[:3], x.view(2, 2), x + 1e-3, x.nan_to_num(), -x, 1.0):
        assert difference([x], [other]), other
    assert difference(torch.tensor([1, 2]), torch.tensor([1, 3])) == "1 of 2 elements differ"
    assert difference(x + 1e-3, x, x.double() + 1e-3) == ""  # eager's own rounding is as large
    assert Path(expected.FILE).exists()
