"""docs/passes.md is up to date, and names every pass and rewrite of MIGraphX."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgx_mlir.passes import PASSES
from mgx_mlir.rewrite.registry import rewrites_of
from tests import written

DOC = written.script("passes")


def test_the_document_is_up_to_date() -> None:
    written.check("passes.md", DOC.text(), "passes")


def test_a_document_that_is_not_says_the_command_first(tmp_path: Path) -> None:
    (tmp_path / "passes.md").write_text(DOC.text().replace("rewrite", "rewritten"))
    with pytest.raises(pytest.fail.Exception) as error:
        written.check("passes.md", DOC.text(), "passes", tmp_path)
    first, *rest = str(error.value).splitlines()
    assert first == "run `python docs/passes.py > docs/passes.md`: it is not up to date"
    assert rest[-1].endswith(" more lines")
    assert len(rest) < 12


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_and_option_is_documented(name: str) -> None:
    cls = PASSES[name]
    assert cls().summary.endswith("."), "the first line of the docstring is one sentence"
    assert all(doc for *_, doc in DOC.option_docs(cls)), "an option has no line of documentation"
    assert all("->" in r.summary for r in rewrites_of(cls))


def test_every_name_of_migraphx_is_ours_or_explained() -> None:
    names = DOC.migraphx_names()
    assert len(names) > 200
    missing = [n for n, why in names.items() if why is None and not DOC.is_ours(n)]
    assert not missing, f"neither ours nor explained in {DOC.NAMES.name}: {', '.join(missing)}"
    stale = [n for n, why in names.items() if why is not None and DOC.is_ours(n)]
    assert not stale, f"ours by now, yet explained away in {DOC.NAMES.name}: {', '.join(stale)}"
