"""Importers of com.microsoft against the schemas of the installed onnxruntime.

They hold for the version that peers.py names. Of another one they tell what it adds or lacks.
"""

from __future__ import annotations

import math
from typing import Any

import onnx
import pytest

from mgx_mlir.frontends.onnx import ops
from mgx_mlir.frontends.onnx.registry import OnnxOp, find, operators, refused
from mgx_mlir.frontends.signatures import REQUIRED
from tests import peers

state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
MS = "com.microsoft"
SCHEMAS = {s.name: s for s in state.get_all_operator_schema() if s.domain == MS}
ops.load()
OURS = [name for domain, name in operators() if domain == MS]

# defaults that the schema leaves to the kernels, or states where they mean nothing
UNSTATED = {"mask_filter_value", "alpha", "activation", "axis"}
# not in onnxruntime under this domain, but in models
EXTRA = {"SimplifiedLayerNormalization"}


def default_of(attribute: Any) -> Any:
    data = attribute._default_value
    if not data:
        return None
    value = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(data))
    return value.decode() if isinstance(value, bytes) else value


# attributes that models have beyond the schema; MIGraphX reads them
ADDED = {"QLinearAveragePool": {"dilations"}}


def differences(op: OnnxOp, schema: Any) -> list[str]:
    """Return the differences of an importer's signature and a schema."""
    ours, theirs = set(op.attributes), set(schema.attributes)
    found = [f"new attribute {k}" for k in sorted(theirs - ours)]
    found += [f"no attribute {k}" for k in sorted(ours - theirs - ADDED.get(op.name, set()))]
    for key in sorted(ours & theirs):
        mine, attribute = op.attributes[key], schema.attributes[key]
        if (mine is REQUIRED) != attribute.required and key != "kernel_shape":
            found.append(f"{key} is {'' if attribute.required else 'not '}required")
        default = default_of(attribute)
        if default is None or key in UNSTATED:
            continue
        close = isinstance(mine, float) and math.isclose(mine, default, rel_tol=1e-6)
        if mine != default and not close:
            found.append(f"{key} is {default} by default, not {mine}")
    variadic = any("Variadic" in str(i.option) for i in schema.inputs)
    most = None if variadic else len(schema.inputs)
    if op.most != most:
        names = [i.name for i in schema.inputs][op.most or 0 :]
        found.append(f"{most} inputs, not {op.most}: {', '.join(names) or 'fewer'}")
    return [f"{op.name}: {text}" for text in found]


@pytest.mark.parametrize("name", OURS)
def test_attributes_and_inputs(name: str) -> None:
    op = find(MS, name, 1)
    assert op is not None
    if (name in SCHEMAS) == (name in EXTRA):
        peers.differs("onnxruntime", [f"{name}: {'new' if name in EXTRA else 'not there'}"])
        return
    if name not in EXTRA:
        peers.differs("onnxruntime", differences(op, SCHEMAS[name]))


def test_every_schema_is_read_or_refused() -> None:
    left = {n for n in SCHEMAS if n not in OURS and not refused(MS, n)}
    peers.differs("onnxruntime", [f"new operator {n}" for n in sorted(left)])


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.KNOWN, "onnxruntime", "1.0.0")


def test_differences_fail_for_the_known_version_alone(
    monkeypatch: pytest.MonkeyPatch, newer: None
) -> None:
    with pytest.warns(UserWarning, match=r"the tests know 1\.0\.0: X: new attribute y"):
        peers.differs("onnxruntime", ["X: new attribute y"])
    monkeypatch.setitem(peers.KNOWN, "onnxruntime", peers.version("onnxruntime"))
    with pytest.raises(AssertionError, match="X: new attribute y"):
        peers.differs("onnxruntime", ["X: new attribute y"])
    peers.differs("onnxruntime", [])


def test_differences_are_found() -> None:
    """Two operators that share little have differences."""
    op = find(MS, "MoE", 1)
    assert op is not None
    found = " ".join(differences(op, SCHEMAS["GroupQueryAttention"]))
    assert "MoE: new attribute causal" in found
    assert "MoE: no attribute activation_type" in found
    assert "num_heads" in found
    assert "inputs, not 8: " in found
