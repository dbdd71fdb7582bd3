"""TensorFlow's operators against TensorFlow: the stored cases (make_op_cases.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.tf import ops, schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer
from mgx_mlir.frontends.tf.registry import find, operators
from tests.frontends.tf import stored_ops

# families of control flow, of values that are no tensors, and of nodes that pass values on
ELSEWHERE = {
    "basic", "control", "functions", "passing", "tensor_array", "tensor_list", "variables",
}  # fmt: skip
OLD = {"TopK"}  # no version of TensorFlow that still runs writes it


def run(group: stored_ops.Group, target: str) -> dict[str, np.ndarray]:
    """Every output of a group by name: one program."""
    options = TfOptions(output_names=group.names, batch_size=None)
    compiled = mgx_mlir.compile(parse_tf_buffer(group.graph, options=options), target, cache=False)
    inputs = {k: v for k, v in group.inputs.items() if k in compiled.input_names}
    return dict(zip(compiled.output_names, compiled.run(inputs), strict=True))


def faults(group: stored_ops.Group, target: str) -> list[str]:
    found = run(group, target)
    out = []
    for entry, want in group.outputs:
        fault = stored_ops.fault(entry, np.asarray(found[entry["name"]]), want)
        if fault:
            out.append(f"{entry['name']} ({entry['op']}): {fault}")
    return out


def _cases() -> Iterator[Any]:
    """Every group on both targets."""
    for name in stored_ops.groups():
        yield pytest.param(name, "ref")
        # windows and resizing of open heights and widths take the compiler minutes
        yield pytest.param(name, "cpu", marks=pytest.mark.slow if name == "open_sizes" else ())


@pytest.mark.parametrize(("name", "target"), list(_cases()))
def test_against_tensorflow(name: str, target: str) -> None:
    found = faults(stored_ops.load(name), target)
    assert not found, "\n".join(found)


def test_what_is_not_known_is_told_at_once() -> None:
    graph = schema.Graph.FromString(stored_ops.load("blocks").graph)
    names = {"SpaceToDepth": "Betainc", "BatchToSpace": "Digamma", "DepthToSpace": "Digamma"}
    changed = [n.name for n in graph.node if n.op in names]
    for node in graph.node:
        node.op = names.get(node.op, node.op)
    options = TfOptions(output_names=changed, batch_size=None)
    with pytest.raises(UnsupportedModel, match="not supported, of 2 kinds") as found:
        parse_tf_buffer(graph.SerializeToString(), options=options)
    assert "Betainc" in str(found.value)
    assert "Digamma" in str(found.value)


def test_every_operator_has_a_case() -> None:
    """But for those that other tests cover, and what TensorFlow's writer makes no more."""
    ops.load()
    seen = set()
    for name in stored_ops.groups():
        graph = schema.Graph.FromString(stored_ops.load(name).graph)
        seen |= {node.op for node in graph.node}
    missing = {o for o in operators() if o not in seen and _family(o) not in ELSEWHERE}
    assert missing == OLD


def _family(name: str) -> str:
    found = find(name)
    assert found is not None
    return found.function.__module__.rpartition(".")[2]
