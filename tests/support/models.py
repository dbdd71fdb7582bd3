"""Small ONNX models: a graph of nodes, its ports and its weights in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Dims = Sequence[int | str | None] | None
Weights = Mapping[str, Any] | Iterable[TensorProto]
# the first in which an initializer need not be an input too, and has no size of its own
LEAST_IR = 8


def value_info(name: str, dims: Dims, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """A port; dims: None for an unknown rank, else numbers, names, None."""
    return helper.make_tensor_value_info(name, kind, dims)


def onnx_model(
    nodes: Iterable[onnx.NodeProto],
    inputs: Iterable[onnx.ValueInfoProto],
    outputs: Iterable[onnx.ValueInfoProto],
    weights: Weights = (),
    *,
    opset: int = 18,
    domains: Mapping[str, int] | None = None,
    ir_version: int | None = None,
    name: str = "g",
    **fields: Any,
) -> onnx.ModelProto:
    """A model of `opset`, and of other domains' versions, with the oldest IR that has these.

    weights: arrays by name, or tensors.
    """
    if isinstance(weights, Mapping):
        weights = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    opsets = [helper.make_opsetid(d, v) for d, v in {"": opset, **(domains or {})}.items()]
    least = max(LEAST_IR, helper.find_min_ir_version_for(opsets, ignore_unknown=True))
    graph = helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(weights))
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version or least, **fields)
