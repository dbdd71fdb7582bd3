"""Documents that scripts of docs/ write: loads such a script, and fails with the command."""

from __future__ import annotations

import difflib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
SHOWN = 8  # lines of a difference


def script(name: str) -> ModuleType:
    """Load docs/NAME.py."""
    spec = importlib.util.spec_from_file_location(f"docs_of_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def check(document: str, text: str, by: str, folder: Path = DOCS) -> None:
    """Fail where docs/DOCUMENT is not `text`: the command that writes it, and the first lines."""
    written = (folder / document).read_text()
    if written == text:
        return
    lines = difflib.unified_diff(written.splitlines(), text.splitlines(), "written", "now", n=0)
    changed = [line for line in lines if not line.startswith("@@")]
    left = f"\n... {len(changed) - SHOWN} more lines" if len(changed) > SHOWN else ""
    pytest.fail(
        f"run `python docs/{by}.py > docs/{document}`: it is not up to date\n"
        + "\n".join(changed[:SHOWN])
        + left,
        pytrace=False,
    )
