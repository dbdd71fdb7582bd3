"""The driver's pages: one HTML file each that needs nothing else, made of a template and data."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

_SHARED = {"/*STYLE*/": "page.css", "/*COMMON*/": "common.js"}
PAGES = {  # the parts of each page's template
    "page": {**_SHARED, "/*LAYOUT*/": "layout.js", "/*SCRIPT*/": "page.js"},
    "quantize": {**_SHARED, "/*SCRIPT*/": "quantize.js"},
}


def page(data: dict[str, Any], name: str = "page") -> str:
    """Write a page: "page" about a model, "quantize" about a quantised one.

    `data` is what commands/report.py or quantize_report.py collects.
    """
    folder = files("mgx_mlir.tools.driver.page")
    text = (folder / f"{name}.html").read_text(encoding="utf-8")
    for mark, part in PAGES[name].items():
        text = text.replace(mark, (folder / part).read_text(encoding="utf-8"))
    # data can end no element, whatever a model's names hold
    held = json.dumps(data, allow_nan=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return text.replace("<!--TITLE-->", html.escape(data["title"])).replace("/*DATA*/", held)
