"""docs/driver.md is what docs/driver.py writes, and names every option and variable."""

from __future__ import annotations

import re
from pathlib import Path

from mgx_mlir.tools.driver.environment import VARIABLES
from mgx_mlir.tools.driver.main import command_table
from tests import written
from tests.driver.test_options import OPTIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    written.check("driver.md", written.script("driver").text(), "driver")


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
    assert all(status == "done" for _, status in rows)
