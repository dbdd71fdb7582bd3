"""The samples that are known to be refused, and what a row of outcomes says against them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("refused.tsv")
RIGHT = ("right", "strides", "skipped")
REFUSED = ("refused", "dynamo")


def refused() -> dict[tuple[str, str], int]:
    """The number of refused samples of (function, mode); refused.tsv says why."""
    found: dict[tuple[str, str], int] = {}
    for line in FILE.read_text().splitlines()[1:]:
        function, mode, count, reason = line.split("\t")
        assert reason, line
        found[function, mode] = int(count)
    return found


def complaints(row: Mapping[str, Any], known: Mapping[tuple[str, str], int]) -> list[str]:
    """Outcomes of a function that differ from the recorded ones."""
    key = (row["function"], row["mode"])
    found = [
        f"{key[0]} ({key[1]}) {s['kind']}: {s['sample']}: {s['text']}"
        for s in row["samples"]
        if s["kind"] not in RIGHT + REFUSED
    ]
    lines = [f"  {s['sample']}: {s['text']}" for s in row["samples"] if s["kind"] in REFUSED]
    if len(lines) > known.get(key, 0):
        found.append(
            f"{key[0]} ({key[1]}): {len(lines)} samples are refused, {known.get(key, 0)} of them "
            + "\n".join(["by refused.tsv:", *lines])
        )
    if len(lines) < known.get(key, 0) and not found:
        found.append(
            f"{key[0]} ({key[1]}): {len(lines)} samples are refused, refused.tsv has {known[key]}"
        )
    return found


def text_of(rows: Mapping[tuple[str, str], Mapping[str, Any]], before: str = "") -> str:
    """refused.tsv of such rows: function, mode, refused samples, the first reason.

    before: a text of the file, whose lines of other functions and modes are kept.
    """
    known = (line.split("\t") for line in before.splitlines()[1:])
    found = {(f, mode): rest for f, mode, *rest in known if (f, mode) not in rows}
    for key, row in rows.items():
        reasons = [s["text"] for s in row["samples"] if s["kind"] in REFUSED]
        if reasons:
            found[key] = [str(len(reasons)), _short(reasons[0])]
    lines = ["\t".join([*key, *rest]) for key, rest in sorted(found.items())]
    return "\n".join(["function\tmode\trefused\treason", *lines]) + "\n"


def _short(reason: str) -> str:
    """A reason on one line, without the classes of the errors."""
    text = reason.replace("\t", " ").removeprefix("UnsupportedModel: ").partition(" | ")[0]
    return text[:140].strip()
