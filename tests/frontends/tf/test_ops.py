"""TensorFlow's operators against TensorFlow: the stored cases (make_op_cases.py)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.tf import ops, schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer
from mgx_mlir.frontends.tf.registry import operators
from tests.frontends.tf import stored_ops

DATA = stored_ops.DATA.parent
# names that mean the same: TensorFlow wrote the case under the second one
RENAMED = {
    "TopK": ("sorting", "TopKV2"),  # whose k is an attribute
    "PlaceholderV2": ("reshaping", "Placeholder"),
    "HostConst": ("reshaping", "Const"),
    "RefIdentity": ("reshaping", "Identity"),
    "DebugGradientRefIdentity": ("reshaping", "DebugGradientIdentity"),
}
VARIABLES = {"Variable", "VariableShape"}  # test_saved_models.py


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


# compiled in the slow tests: a hundred kernels of dynamic dims, and operators that are read as one
# op or two, which tests/lowering/test_conformance.py compiles
SLOW = (
    "binary_f32", "binary_other", "casts", "choices", "cutting", "dynamic_orders", "dynamic_sizes",
    "dynamic_spectra", "reductions", "reshaping", "spectra", "unary_f32", "unary_other",
)  # fmt: skip


def _cases() -> Iterator[Any]:
    """Every group on both targets."""
    for name in stored_ops.groups():
        yield pytest.param(name, "ref")
        yield pytest.param(name, "cpu", marks=pytest.mark.slow if name in SLOW else ())


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


@pytest.mark.parametrize("name", stored_ops.groups(stored_ops.DTYPES))
def test_in_other_types(name: str) -> None:
    found = faults(stored_ops.load(name, stored_ops.DTYPES), "ref")
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", stored_ops.groups(stored_ops.DTYPES))
def test_in_other_types_on_the_cpu(name: str) -> None:
    found = faults(stored_ops.load(name, stored_ops.DTYPES), "cpu")
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", RENAMED)
def test_older_names(name: str) -> None:
    group, newer = RENAMED[name]
    case = stored_ops.load(group)
    graph = schema.Graph.FromString(case.graph)
    nodes = {node.name: node for node in graph.node}
    renamed = [node for node in graph.node if node.op == newer]
    assert renamed
    for node in renamed:
        node.op = name
        if name == "TopK":
            t = nodes[node.input.pop()].attr["value"].tensor
            node.attr["k"].i = int((t.int_val or np.frombuffer(t.tensor_content, "<i4"))[0])
    found = faults(replace(case, graph=graph.SerializeToString()), "ref")
    assert not found, "\n".join(found)


def _stored_graphs() -> Iterator[Any]:
    for folder in (stored_ops.DATA, stored_ops.DTYPES):
        for path in folder.glob("*.pb"):
            yield schema.Graph.FromString(path.read_bytes())
    for path in (*DATA.glob("models/*.npz"), *DATA.glob("control/*.npz")):
        with np.load(path) as arrays:
            for key in {"graph", "v1", "v2", "lowered"} & set(arrays):
                yield schema.Graph.FromString(bytes(arrays[key]))
    for path in DATA.glob("saved/*.zip"):
        with zipfile.ZipFile(path) as z:
            saved = schema.SavedModel.FromString(z.read("saved_model.pb"))
            yield saved.meta_graphs[0].graph_def


def test_every_operator_has_a_case() -> None:
    ops.load()
    seen = set(RENAMED) | VARIABLES
    for graph in _stored_graphs():
        seen |= {node.op for node in graph.node}
        seen |= {node.op for f in graph.library.function for node in f.node_def}
    assert set(operators()) <= seen


def test_operators_have_cases_in_several_types() -> None:
    """At least 2500 pairs of an operator and the types that its attributes state."""
    seen = set()
    for folder in (stored_ops.DATA, stored_ops.DTYPES):
        for path in folder.glob("*.pb"):
            for node in schema.Graph.FromString(path.read_bytes()).node:
                kinds = {k: a.type for k, a in node.attr.items() if a.WhichOneof("value") == "type"}
                seen.add((node.op, *sorted(kinds.items())))
    assert len(seen) >= 2500
