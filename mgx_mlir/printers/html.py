"""A compiled program as HTML, for notebooks: inputs, outputs and kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from mgx_mlir.core.names import safe_text
from mgx_mlir.programs.lowered import KernelInfo
from mgx_mlir.programs.signature import Port

_NODES = re.compile(r'"([^"]*)"\(')  # names in a location: "conv1"("model.onnx":1:0)
MOST = 200  # most kernels in the list


def compiled_html(
    target: str, inputs: Sequence[Port], outputs: Sequence[Port], kernels: Sequence[KernelInfo]
) -> str:
    """Return an HTML fragment: a table of inputs and outputs, and a collapsible one of kernels."""
    ports = [("input", p.name, str(p)) for p in inputs]
    ports += [("output", p.name, str(p)) for p in outputs]
    out = [f"<b>Compiled for {escape(target)}</b>", *_table(("", "name", "type and dims"), ports)]
    if kernels:
        rows = [
            (str(n), k.name, ", ".join(dict.fromkeys(_NODES.findall(k.location))))
            for n, k in enumerate(kernels[:MOST])
        ]
        left = len(kernels) - len(rows)
        rows += [("", f"... and {left} more", "")] * (left > 0)
        out += [f"<details><summary>{len(kernels)} kernels</summary>",
                *_table(("", "kernel", "nodes of the model"), rows), "</details>"]  # fmt: skip
    return "\n".join(out)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table>"
    yield "<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{escape(safe_text(cell))}</td>" for cell in row) + "</tr>"
    yield "</table>"
