"""Nodes in a form that their model's opset does not have: which version of the operator is meant.

Exporters and hand-made models leave out the domain of onnxruntime's operators, use an operator
below its first opset, or keep the attributes of an older version. If the version of its opset does
not match, such a node is read as a version that has its attributes and number of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from mgx_mlir.frontends.onnx.registry import OnnxOp, find, versions
from mgx_mlir.frontends.signatures import REQUIRED

CONTRIB = "com.microsoft"


@dataclass(frozen=True)
class Form:
    """Operator that a node is read as; `domain` and `opset` select its version."""

    op: OnnxOp | None
    domain: str
    opset: int
    stated: bool = True  # version is that of the model's opset

    @property
    def name(self) -> str:
        """Name of the operator in messages."""
        assert self.op is not None
        text = f"{self.domain}::{self.op.name}" if self.domain else self.op.name
        return text if self.domain else f"{text} of opset {self.opset}"


def form_of(proto: onnx.NodeProto, domain: str, opset: int) -> Form:
    """Return the form of a node of a model of this opset; `op` is None for an unknown name.

    If no version fits, the stated one remains, so that errors refer to it.
    """
    stated = Form(find(domain, proto.op_type, opset), domain, opset)
    if stated.op is not None and _fits(stated.op, proto):
        return stated
    others = list(_others(proto, domain, opset))
    found = next((f for f in others if f.op is not None and _fits(f.op, proto)), None)
    if found is None and stated.op is None and others:
        return others[0]
    return found or stated


def _others(proto: onnx.NodeProto, domain: str, opset: int) -> Iterator[Form]:
    """Yield other versions: older ones from the newest, onnxruntime's, then later ones."""
    rows = versions(domain, proto.op_type)
    upper = {v.since: rows[i - 1].since - 1 if i else opset for i, v in enumerate(rows)}
    older = [v for v in rows if v.since <= opset][1:]
    for v in older:
        yield Form(v, domain, upper[v.since], False)
    if not domain and (op := find(CONTRIB, proto.op_type, 1)) is not None:
        yield Form(op, CONTRIB, 1, False)
    for v in reversed(rows):
        if v.since > opset:
            yield Form(v, domain, v.since, False)


def _fits(op: OnnxOp, proto: onnx.NodeProto) -> bool:
    """Return whether a version has the node's attributes and accepts its inputs."""
    given = {a.name for a in proto.attribute}
    if not given <= set(op.attributes):
        return False
    missing = {n for n, d in op.attributes.items() if d is REQUIRED}
    count = len(proto.input)
    while count and not proto.input[count - 1]:
        count -= 1
    if missing - given or (op.most is not None and count > op.most):
        return False
    return count >= op.required and all(proto.input[: op.required])
