"""docs/driver.md is what docs/driver.py writes, and names every option and variable."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from mgx_mlir.driver.environment import VARIABLES
from mgx_mlir.driver.main import command_table
from tests.driver.test_options import OPTIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def written() -> str:
    spec = importlib.util.spec_from_file_location("docs_of_driver", DOCS / "driver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.text()


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "driver.md").read_text() == written(), "python docs/driver.py > docs/driver.md"


def test_everything_is_on_the_page() -> None:
    text = (DOCS / "driver.md").read_text()
    for _, options in command_table().values():
        for o in options:
            assert all(f"`{flag}`" in text for flag in o.flags), o.flags
    assert all(f"`MIGRAPHX_{name}`" in text for name in VARIABLES)
    page = text.split("## Options of MIGraphX's driver page\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.*?) \| (done|not yet) \|", page, re.M)
    flags = {f for cell, _ in rows for f in re.findall(r"`(.*?)`", cell)}
    assert flags == {f for spellings in OPTIONS for f in spellings}
    later = [cell for cell, status in rows if status != "done"]
    assert later == ["`--int8`", "`--fp8`"]
