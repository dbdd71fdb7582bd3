"""Comparison of a report's page with an older one: totals, each kernel's time and rule."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import read_bytes

_LARGEST = 1 << 28  # bytes of a page that is read
_BEGIN = b'<script type="application/json" id="data">'
_END = b"</script>"


def read_page(path: str) -> dict[str, Any]:
    """Return the data of a page that `report` wrote. Errors: FileError."""
    data = read_bytes(path)
    if len(data) > _LARGEST:
        raise FileError(f"a page of {len(data)} bytes is too large", location=path)
    text = bytes(data)
    begin = text.find(_BEGIN)
    end = text.find(_END, begin)
    try:
        found = json.loads(text[begin + len(_BEGIN) : end]) if 0 <= begin < end else None
        return _checked(found)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        raise FileError(
            "expected a page that mgx-driver report wrote", location=path,
            notes=["mgx-driver report MODEL -o FILE.html writes one"],
        ) from None  # fmt: skip


def _checked(found: Any) -> dict[str, Any]:
    """Return what a comparison reads of a page's data. Errors: KeyError, TypeError, ValueError."""
    if not isinstance(found, Mapping):
        raise TypeError("not a page's data")
    calls = [_time(t) for t in found["calls"]]
    kernels = [
        {"nodes": str(k["nodes"]), "text": str(k["text"]), "ms": _time(k["ms"]),
         "rule": str(k.get("rule", ""))}
        for k in found["kernels"]
    ]  # fmt: skip
    versions = {str(name): str(value) for name, value in found["versions"]}
    if not calls:
        raise ValueError("no calls")
    return {"title": str(found["title"]), "calls": calls, "kernels": kernels, "versions": versions}


def _time(value: Any) -> float:
    found = float(value)
    if not (math.isfinite(found) and found >= 0):
        raise ValueError("not a time")
    return found


def compared(data: Mapping[str, Any], old: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return how a page's data differ from an older page's: calls, kernels, options and versions.

    Kernels are matched by their source nodes, several of the same nodes by their order.
    """
    left: dict[str, list[Mapping[str, Any]]] = {}
    for k in old["kernels"]:
        left.setdefault(_key(k), []).append(k)
    rows = []
    for k in data["kernels"]:
        same = left.get(_key(k))
        rows.append(_row(k, same.pop(0) if same else None))
    rows += [_row(None, k) for rest in left.values() for k in rest]
    now = {str(n): str(v) for n, v in data["versions"]}
    changed = [
        [n, old["versions"].get(n, ""), now.get(n, "")]
        for n in dict.fromkeys([*old["versions"], *now])
        if old["versions"].get(n) != now.get(n)
    ]
    before, after = _median(old["calls"]), _median(data["calls"])
    return {
        "with": name, "title": old["title"], "before_ms": before, "ms": after,
        "ratio": after / before if before else None, "kernels": rows, "changed": changed,
    }  # fmt: skip


def _key(k: Mapping[str, Any]) -> str:
    return k["nodes"] or k["text"].partition(" ")[2]


def _row(now: Mapping[str, Any] | None, before: Mapping[str, Any] | None) -> dict[str, Any]:
    named = now or before
    assert named is not None
    return {
        "nodes": named["nodes"], "text": named["text"],
        "before_ms": before and before["ms"], "ms": now and now["ms"],
        "before_rule": before["rule"] if before else "", "rule": now["rule"] if now else "",
    }  # fmt: skip


def _median(times: Sequence[float]) -> float:
    ordered = sorted(times)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def lines(found: Mapping[str, Any], most: int = 5) -> list[str]:
    """Write the comparison for a terminal: the medians, and the kernels that moved most."""
    ratio = "" if found["ratio"] is None else f", {found['ratio']:.2f}x"
    out = [
        f"Against {found['with']}: {found['ms']:.4g} ms, {found['before_ms']:.4g} ms there{ratio}"
    ]
    both = [k for k in found["kernels"] if k["ms"] is not None and k["before_ms"] is not None]
    for k in sorted(both, key=lambda k: -abs(k["ms"] - k["before_ms"]))[:most]:
        rule = "" if k["rule"] == k["before_rule"] else f", {k['before_rule']} -> {k['rule']}"
        out.append(f"  {k['before_ms']:.4g} -> {k['ms']:.4g} ms{rule}  {k['nodes'] or k['text']}")
    alone = len(found["kernels"]) - len(both)
    return [*out, *([f"  {alone} kernels are in one of the two alone"] if alone else [])]
