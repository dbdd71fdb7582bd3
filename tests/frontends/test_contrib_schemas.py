"""Importers of com.microsoft against the schemas of the installed onnxruntime."""

from __future__ import annotations

import math
from typing import Any

import onnx
import pytest

from mgx_mlir.frontends.onnx import ops
from mgx_mlir.frontends.onnx.registry import find, operators, refused
from mgx_mlir.frontends.signatures import REQUIRED

state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
MS = "com.microsoft"
SCHEMAS = {s.name: s for s in state.get_all_operator_schema() if s.domain == MS}
CPU = {
    k.op_name
    for k in state.get_all_opkernel_def()
    if k.domain == MS and k.provider == "CPUExecutionProvider"
}
ops.load()
OURS = [name for domain, name in operators() if domain == MS]

# defaults that the schema leaves to the kernels, or states where they mean nothing
UNSTATED = {"mask_filter_value", "alpha", "activation", "axis"}
# not in onnxruntime under this domain, but in models
EXTRA = {"SimplifiedLayerNormalization"}
# of the CPU provider and not read yet
MISSING = {
    "AttnLSTM", "BifurcationDetector", "DynamicQuantizeLSTM", "DynamicTimeWarping",
    "LinearAttention", "NGramHashMapping", "VarlenNGramHashMapping",
}  # fmt: skip


def default_of(attribute: Any) -> Any:
    data = attribute._default_value
    if not data:
        return None
    value = onnx.helper.get_attribute_value(onnx.AttributeProto.FromString(data))
    return value.decode() if isinstance(value, bytes) else value


@pytest.mark.parametrize("name", OURS)
def test_attributes_and_inputs(name: str) -> None:
    if name in EXTRA:
        assert name not in SCHEMAS, "onnxruntime has it by now"
        return
    schema, op = SCHEMAS[name], find(MS, name, 1)
    assert op is not None
    assert set(op.attributes) == set(schema.attributes)
    for key, attribute in schema.attributes.items():
        ours = op.attributes[key]
        assert (ours is REQUIRED) == attribute.required or key == "kernel_shape", key
        theirs = default_of(attribute)
        if theirs is not None and key not in UNSTATED:
            same = ours == theirs or (
                isinstance(ours, float) and math.isclose(ours, theirs, rel_tol=1e-6)
            )
            assert same, f"{key}: {ours}, the schema says {theirs}"
    variadic = any("Variadic" in str(i.option) for i in schema.inputs)
    assert (op.most is None) == variadic
    if not variadic:
        assert op.most == len(schema.inputs)


def test_what_the_cpu_provider_runs_is_read_or_refused() -> None:
    left = {n for n in CPU if n not in OURS and not refused(MS, n)}
    assert left == MISSING, "fewer are missing by now" if left < MISSING else left - MISSING
