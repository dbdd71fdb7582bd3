"""docs/passes.md is up to date, and names every pass and rewrite of MIGraphX."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from mgx_mlir.core.registry import rewrites_of
from mgx_mlir.passes import PASSES

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_of_passes", DOCS / "passes.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


DOC = tool()


def test_the_document_is_up_to_date() -> None:
    assert (DOCS / "passes.md").read_text() == DOC.text(), "python docs/passes.py > docs/passes.md"


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
