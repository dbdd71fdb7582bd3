"""Writes the lists of docs/onnxruntime.md: onnxruntime's public names, and what each means here.

`python docs/onnxruntime.py` prints the page, `python docs/onnxruntime.py --write` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

sys.path.pop(0)  # this folder has a module of the name that is imported from elsewhere

from mgx_mlir.integrations.onnxruntime.gpu_options import MEANINGS as GPU_OPTIONS
from mgx_mlir.integrations.onnxruntime.names import MEMBERS, MODULE, STATUSES
from mgx_mlir.integrations.onnxruntime.options import CONFIG_ENTRIES, Meaning

PAGE = Path(__file__).with_suffix(".md")
MARK = "<!-- from here on written by `python docs/onnxruntime.py --write` -->\n"


def rows(table: Mapping[str, Meaning]) -> Iterator[str]:
    """The rows of a table, by status; names without a sentence share a row."""
    for status in STATUSES:
        found = {n: m.text for n, m in table.items() if m.status == status}
        plain = [n for n, text in found.items() if not text]
        if plain:
            yield f"| {', '.join(f'`{n}`' for n in sorted(plain))} | {status} | |"
        for text in dict.fromkeys(t for t in found.values() if t):
            names = ", ".join(f"`{n}`" for n in sorted(n for n, t in found.items() if t == text))
            yield f"| {names} | {status} | {text} |"


def table(title: str, entries: Mapping[str, Meaning]) -> Iterator[str]:
    yield from ("", f"## {title}", "| name | | |", "|---|---|---|", *rows(entries))


def lists() -> str:
    lines = [*table("The module", MODULE)]
    for kind, members in MEMBERS.items():
        lines += table(kind, members)
    lines += table("Entries of add_session_config_entry", CONFIG_ENTRIES)
    lines += table("Options of MIGraphXExecutionProvider and ROCMExecutionProvider", GPU_OPTIONS)
    return "\n".join(lines) + "\n"


def page() -> str:
    head, mark, _ = PAGE.read_text().partition(MARK)
    assert mark, f"{PAGE} has no mark"
    return head + mark + lists()


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page(), end="")
