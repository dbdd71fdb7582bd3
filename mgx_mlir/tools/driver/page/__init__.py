"""The report's page: one HTML file that needs nothing else, made of a template and data."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

PARTS = {"/*STYLE*/": "page.css", "/*SCRIPT*/": "page.js", "/*LAYOUT*/": "layout.js"}


def page(data: dict[str, Any]) -> str:
    """Write the page about a model; `data` is what commands/report.py collects."""
    folder = files("mgx_mlir.tools.driver.page")
    text = (folder / "page.html").read_text(encoding="utf-8")
    for mark, name in PARTS.items():
        text = text.replace(mark, (folder / name).read_text(encoding="utf-8"))
    # what is data can end no element, whatever a model's names hold
    held = json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return text.replace("<!--TITLE-->", html.escape(data["title"])).replace("/*DATA*/", held)
