"""Writes the page of a run on a GPU: `python -m benchmarks.gpu_page gpu-device.json > PAGE.md`.

Of several files of one card later ones take the place of a part.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_CHECKED = ("edges", "programs", "families")
_SHOWN = 25  # cases that are wrong, by name


def page(report: Row) -> str:
    """Return the page as Markdown."""
    parts: dict[str, list[Row]] = report["parts"]
    text = [
        f"# Measured on an NVIDIA GPU: {report['card'].split(',')[0]}",
        "",
        f"Written by `benchmarks/gpu_page.py` from a run of `benchmarks/gpu_device.py`: card and "
        f"driver {report['card']}, {report['date']}, Python {report['python']}, {report['cpus']} "
        "CPUs. IREE 3.13 compiles for sm_89, and the driver makes code of that PTX.",
        *(line for part in report.get("note", "").split("\n\n") if part for line in ("", part)),
        "",
        *_right(parts),
        *_memory(parts),
        *_launches(parts.get("launches", [])),
        *_calls(parts.get("calls", [])),
        *_models(parts.get("models", [])),
        *_sanitizer(parts.get("sanitizer", [])),
        *_faults(parts.get("faults", [])),
    ]
    return "\n".join(map(_wrapped, text)).rstrip() + "\n"


def _wrapped(line: str) -> str:
    """Return a paragraph in lines of the documents' width; rows of tables as they are."""
    if line.startswith(("|", "#")):
        return line
    return textwrap.fill(line, 120, subsequent_indent="  " if line.startswith("*") else "")


def _right(parts: dict[str, list[Row]]) -> Iterator[str]:
    yield from ("## Right or wrong", "", "| part | programs | right | different | errors |")
    yield "|---|---|---|---|---|"
    bad: list[tuple[str, str]] = []
    for part in _CHECKED:
        rows = [r for r in parts.get(part, []) if "case" in r]
        of = Counter(_verdict(r) for r in rows)
        yield f"| {part} | {len(rows)} | {of['right']} | {of['different']} | {of['error']} |"
        bad += [(r["case"], r.get("error") or r["wrong"]) for r in rows if _verdict(r) != "right"]
    yield ""
    if bad:
        yield from ("| not right | said |", "|---|---|")
        for case, why in sorted(bad)[:_SHOWN]:
            yield f"| {case} | {_cell(why)[:160]} |"
        yield ""


def _verdict(row: Row) -> str:
    return "error" if row.get("error") else "different" if row.get("wrong") else "right"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _memory(parts: dict[str, list[Row]]) -> Iterator[str]:
    rows = [r for p in ("memory", "torch", "compiler") for r in parts.get(p, []) if "check" in r]
    if not rows:
        return
    yield from ("## Memory, threads, streams, torch", "", "| check | |", "|---|---|")
    for r in rows:
        said = r.get("skipped") or r.get("wrong") or "right"
        if not (r.get("wrong") == "" and any("skipped" in o and o["check"] == r["check"]
                                             for o in rows)):  # fmt: skip
            yield f"| {r['check']} | {_cell(said)[:200]} |"
    yield ""
    call = next((r for r in parts.get("compiler", []) if "torch_compile_call_us" in r), None)
    if call:
        us = call["torch_compile_call_us"]
        yield f"A call of a compiled `nn.Linear` of 64 x 64 on 4 rows takes {us} us."
        yield ""


def _launches(rows: list[Row]) -> Iterator[str]:
    each = [r for r in rows if "each_us" in r]
    if not each:
        return
    yield from ("## What a launch costs", "")
    yield "| | a call, on the device | arrays in and out | kernels | one kernel more |"
    yield "|---|---|---|---|---|"
    for r in rows:
        if "launch" in r:
            how = "graph" if r["graph"] else "stream"
            more = next(e["each_us"] for e in each if e["graph"] == r["graph"])
            yield (f"| {how}, chain of {r['launch']} | {r['us']} us | {r['host_us']} us | "
                   f"{r['kernels']} | {more} us |")  # fmt: skip
    yield ""


def _calls(rows: list[Row]) -> Iterator[str]:
    timed = [r for r in rows if "row_us" in r]
    if not timed:
        return
    yield from ("## What a call costs", "")
    yield ("One `nn.Linear` of 64 x 64 on 4 rows, f16, all in turns in one process. Microseconds: "
           "a call that is waited for, the least and the median of 15 turns, and a call's share of "
           "200 in a row.")  # fmt: skip
    yield from ("", "| by | least | waited for | in a row |", "|---|---|---|---|")
    for r in timed:
        yield f"| {r['call']} | {r['least_us']} | {r['us']} | {r['row_us']} |"
    yield ""


def _models(rows: list[Row]) -> Iterator[str]:
    # a network is timed again once slow compilers are done: the last time counts
    timed = list({(r["model"], r["by"]): r for r in rows if "row_us" in r}.values())
    if not timed:
        return
    yield from ("## Times", "")
    yield ("Microseconds: a call that is waited for, the least and the median of 15 turns, and a "
           "call's share of ten in a row. All of a network run in one process, interleaved, with "
           "inputs and results on the device. The last columns: the least as a multiple of ours, "
           "and the bandwidth at which weights and inputs are read once in it.")  # fmt: skip
    yield ""
    yield "| network, f16 | by | least | waited for | in a row | to ours | GB/s |"
    yield "|---|---|---|---|---|---|---|"
    ours = {r["model"]: r["least_us"] for r in timed if r["by"] == "ours"}
    for r in timed:
        base = ours.get(r["model"])
        least = r["least_us"]
        share = f"{least / base:.2f}" if base else ""
        rate = f"{r['moved_bytes'] / least / 1e3:.0f}"
        figures = f"{least} | {r['us']} | {r['row_us']} | {share} | {rate}"
        yield f"| {r['model']} | {r['by']} | {figures} |"
    yield ""
    said = [r for r in rows if r.get("error") or r.get("wrong")]
    for r in said:
        who = f"{r['model']}, {r.get('by', '')}".rstrip(", ")
        yield f"* {who}: {_cell(r.get('error') or r['wrong'])[:200]}"
    if said:
        yield ""


def _sanitizer(rows: list[Row]) -> Iterator[str]:
    if not rows:
        return
    yield from (
        "## compute-sanitizer",
        "",
        "| tool | programs | status | said |",
        "|---|---|---|---|",
    )
    for r in rows:
        said = r.get("said", "")
        last = said if isinstance(said, str) else " ".join(said[-1:])
        yield f"| {r['sanitizer']} | {r.get('ran', '')} | {r.get('status', '')} | {_cell(last)} |"
    yield ""


def _faults(rows: list[Row]) -> Iterator[str]:
    found = [r for r in rows if "fault" in r]
    if not found:
        return
    yield from ("## A kernel that faults", "", "| then | the error |", "|---|---|")
    for r in found:
        yield f"| {r['fault']} | {_cell(r['said'])[:220]} |"
    yield ""


def main(argv: list[str]) -> int:
    first, *more = [json.loads(Path(a).read_text()) for a in argv]
    for other in more:
        first["parts"] |= other["parts"]
    sys.stdout.write(page(first))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
