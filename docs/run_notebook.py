"""Runs a notebook and writes its page: `python docs/run_notebook.py NOTEBOOK PAGE.md`.

Cells run in order and share their names; what a cell prints and the figures that it makes stand
below it. That is all that these notebooks need, and it needs matplotlib alone, where Jupyter's
own converter brings forty packages.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def page(notebook: Path, at: Path) -> str:
    """Run the cells in the folder of `at`; the page. Figures are written beside it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts: list[str] = []
    for i, cell in enumerate(json.loads(notebook.read_text())["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, f"{notebook.name}, cell {i}", "exec"), names)
        parts.append(f"```python\n{source}\n```")
        if printed.getvalue():
            parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
        for number in plt.get_fignums():
            name = f"{at.stem}-{i}-{number}.png"
            plt.figure(number).savefig(at.with_name(name), dpi=120)
            parts.append(f"![a plot of the cell above]({name})")
        plt.close("all")
    return "\n\n".join(parts) + "\n"


def main(given: list[str]) -> int:
    """Run the notebook in a folder beside its page."""
    notebook, at = (Path(p).resolve() for p in given)
    work = at.parent / f"{at.stem}-files"
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    text = page(notebook, at)
    at.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
