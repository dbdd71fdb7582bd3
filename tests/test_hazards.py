"""benchmarks/hazards.py: which hazards of IREE it tries, and that IREE 3.13 still has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import hazards
from benchmarks.hazard_cases import CASES, NotTried
from mgx_mlir.core.errors import TargetError
from tests.test_docs import hazards as listed

TRIED = {n: way for n, way in CASES.items() if not isinstance(way, NotTried)}
# a refusal, wrong numbers, and code of the host alone
QUICK = (17, 19, 20)
ON_CPU = [n for n, way in TRIED.items() if getattr(way, "target", "cpu") in ("cpu", "vm")]


def test_the_table_has_the_hazards_of_the_page() -> None:
    assert [*CASES] == [*listed()]


def test_each_input_is_of_a_hazard_that_is_tried_and_named_on_the_page() -> None:
    assert {path.name for path in hazards.FOLDER.iterdir()} == {f"{n:02}.mlir" for n in TRIED}
    for n, text in listed().items():
        gone = text.partition("\n* Gone when: ")[2].partition("\n* ")[0]
        assert (f"`benchmarks/hazards/{n:02}.mlir`" in gone) is (n in TRIED), n
        if n in TRIED:
            assert hazards.source_of(n).read_text().startswith(f"// Hazard {n}: ")


@pytest.mark.parametrize(
    "number",
    [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in ON_CPU if n not in QUICK)],
)
def test_iree_still_has_the_hazard(number: int, tmp_path: Path) -> None:
    """If this fails, the lowering's form for the hazard can go (docs/iree-hazards.md)."""
    row = hazards.tried(number, CASES[number], hazards.Iree(None, 300), tmp_path)
    assert row.state == hazards.STILL, row


def test_right_numbers_are_gone_and_wrong_ones_are_not() -> None:
    way = CASES[19]
    assert isinstance(way, hazards.Wrong)
    right = [*way.want(*way.arguments())]
    assert hazards.compared(19, way, right).state == hazards.GONE
    assert hazards.compared(19, way, [right[0] + 0.004]).state == hazards.STILL
    assert hazards.compared(19, way, [right[0][:2]]).state == hazards.STILL


def test_a_program_that_compiles_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hazards.Iree, "compile", lambda *args: "")
    assert hazards.tried(17, CASES[17], hazards.Iree(None, 1), tmp_path).state == hazards.GONE


def test_folders_without_iree_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TargetError, match="no IREE compiler in"):
        hazards.Iree(tmp_path, 1)
    assert hazards.main(["--iree", str(tmp_path)]) == 2
    assert "no IREE compiler in" in capsys.readouterr().err
