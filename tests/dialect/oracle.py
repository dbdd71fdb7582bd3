"""onnxruntime on one node: the independent answer of an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

onnxruntime.set_default_logger_severity(4)


class NotImplementedByOracle(Exception):
    """onnxruntime has no kernel for these types."""


def run_node(
    op_type: str,
    *inputs: np.ndarray | None,
    outputs: int = 1,
    opset: int = 21,
    widen: bool = False,
    **attributes: Any,
) -> Any:
    """The outputs of an ONNX node on arrays; None is an absent input; `widen`: cast to f32."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {n: np.asarray(x) for n, x in zip(names, inputs, strict=True) if x is not None}
    results = [f"y{i}" for i in range(outputs)]
    nodes = [helper.make_node(op_type, names, results, **attributes)]
    if widen:
        nodes += [helper.make_node("Cast", [r], [f"f{r}"], to=1) for r in results]
        results = [f"f{r}" for r in results]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(
                n, helper.np_dtype_to_tensor_dtype(x.dtype), list(x.shape)
            )
            for n, x in given.items()
        ],
        [onnx.ValueInfoProto(name=r) for r in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    except Exception as e:
        text = str(e)
        if "NOT_IMPLEMENTED" in text or "is invalid" in text or "INVALID_GRAPH" in text:
            raise NotImplementedByOracle(text) from None
        raise
    try:
        found = session.run(None, given)
    except RuntimeError as e:
        if "Numpy_type" in str(e):
            raise NotImplementedByOracle(str(e)) from None
        raise
    return found[0] if outputs == 1 else tuple(found)
