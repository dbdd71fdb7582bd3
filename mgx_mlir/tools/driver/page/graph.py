"""A listing as the nodes, edges and groups of the report's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.printers.dot import kind_of
from mgx_mlir.printers.instructions import ListedInstruction
from mgx_mlir.printers.text import instruction_text

COLLAPSED_FROM = 120  # from this many nodes on, groups are collapsed
GROUPS = 60  # approximate number of groups of a large graph
TEXT = 2000  # characters of an instruction that are shown


def graph(
    lines: Sequence[ListedInstruction], times: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    """Return `nodes`, `edges` and `groups` of a main module, without its literals.

    `times`: milliseconds and share by an instruction's name. A group is a run of instructions that
    later ones read a single value of, if there are such runs.
    """
    shown = [i for i in lines if not i.is_literal]
    ids = {id(i): n for n, i in enumerate(shown)}
    edges = sorted(
        {(ids[id(x)], ids[id(i)]) for i in shown for x in i.inputs if id(x) in ids}
    )  # fmt: skip
    nodes = [_node(n, i, times) for n, i in enumerate(shown)]
    groups = _groups(nodes, edges) if len(nodes) >= COLLAPSED_FROM else []
    return {"nodes": nodes, "edges": edges, "groups": groups}


def _node(n: int, i: ListedInstruction, times: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    ms, share = times.get(i.lhs, (None, None))
    title = i.lhs if i.op == "@param" else i.op.removeprefix("@")
    text = instruction_text(i)
    return {
        "id": n,
        "kind": kind_of(i),
        "title": title,
        "second": _shape(i),
        "text": text if len(text) <= TEXT else text[: TEXT - 1] + "…",
        "ms": ms,
        "share": share,
    }


def _shape(i: ListedInstruction) -> str:
    """Return the type and dims of an instruction in short."""
    text = "" if i.shape is None else str(i.shape)
    dtype, _, rest = text.removeprefix("dynamic, ").partition("_type, {")
    return f"{dtype} {{{rest.partition('}')[0]}}}" if rest else text


def _groups(
    nodes: Sequence[Mapping[str, Any]], edges: Sequence[tuple[int, int]]
) -> list[list[int]]:
    """Return runs of nodes, cut where few values are alive; parameters and results are left out."""
    inner = [n["id"] for n in nodes if n["kind"] not in ("param", "return")]
    if not inner:
        return []
    last = {}
    for a, b in edges:
        last[a] = max(last.get(a, a), b)
    alive = 0
    ends: dict[int, int] = {}
    crossing = []
    for n in inner:
        alive -= ends.pop(n, 0)
        end = last.get(n, n)
        if end > n:
            alive += 1
            ends[end] = ends.get(end, 0) + 1
        crossing.append(alive)
    size = max(4, len(inner) // GROUPS)
    found: list[list[int]] = []
    start = 0
    while start < len(inner):
        if start + size >= len(inner):
            end = len(inner) - 1
        else:
            stops = range(start + size // 2, min(start + 2 * size, len(inner)))
            end = min(stops, key=lambda s: (crossing[s], abs(s - start - size)))
        found.append(inner[start : end + 1])
        start = end + 1
    return [g for g in found if len(g) > 1]
