"""Writes mgx_mlir/frontends/torch_routes.json: the way of every torch operator into ONNX.

`python docs/torch_routes.py > mgx_mlir/frontends/torch_routes.json`, where torch is installed. What
is decided by hand stands in mgx_mlir/frontends/torch_decisions.json.
"""

from __future__ import annotations

import json
from typing import Any

from mgx_mlir.frontends import torch_scan
from mgx_mlir.frontends.objects import quiet
from mgx_mlir.frontends.torch_operators import translations
from mgx_mlir.frontends.torch_routes import TABLE, decompositions

DECISIONS = TABLE.with_name("torch_decisions.json")
SPACES = ("aten", "prims", "quantized_decomposed", "torchvision")


def rows() -> dict[str, Any]:
    """The rows by operator: route, arguments that its translation reads, those that it drops."""
    decisions = json.loads(DECISIONS.read_text(encoding="utf-8"))
    general, decided = decisions["arguments"], decisions["operators"]
    decomposed = {
        target.name()
        for target in decompositions()
        if not target._schema.is_mutable and target.namespace in SPACES[:2]
    }
    own = {target.name() for target in translations() if hasattr(target, "_schema")}
    translated = {n for n in torch_scan.translations_of() if n.partition("::")[0] in SPACES}
    found: dict[str, Any] = {}
    for name in sorted(translated | decomposed | own | decided.keys()):
        row = dict(decided.get(name, {}))
        given = row.pop("arguments", {})
        read, dropped = torch_scan.arguments(name)
        kept = "translate" if name in own else "export" if name in translated else "decompose"
        row = {"route": kept, **row}
        if row["route"] == "export":
            row |= {"reads": read} if read else {}
            drops = {a: given.get(a, general.get(a, "undecided")) for a in (*dropped, *given)}
            row |= {"drops": drops} if drops else {}
        found[name] = row
    return found


def text() -> str:
    """The table, a line for each row."""
    decisions = json.loads(DECISIONS.read_text(encoding="utf-8"))
    parts = [
        f'"made_with": {json.dumps(torch_scan.installed())}',
        '"arguments": ' + _lines(decisions["arguments"]),
        '"operators": ' + _lines(rows()),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _lines(found: dict[str, Any]) -> str:
    return (
        "{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}"
    )


if __name__ == "__main__":
    with quiet():
        made = text()
    print(made, end="")
