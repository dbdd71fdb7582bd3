"""One ONNX node run by ONNX Runtime, or by the reference evaluator of the onnx package."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper
from onnx.reference import ReferenceEvaluator


def _model(
    op: str, inputs: dict[str, np.ndarray], names: list[str], outputs: int, opset: int, at: Any
) -> onnx.ModelProto:
    kinds = [helper.np_dtype_to_tensor_dtype(a.dtype) for a in inputs.values()]
    outs = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, outs, **at)],
        "one_node",
        [
            helper.make_tensor_value_info(n, k, a.shape)
            for (n, a), k in zip(inputs.items(), kinds, strict=True)
        ],
        [helper.make_value_info(o, helper.make_empty_tensor_value_info(o).type) for o in outs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def run_onnx(
    op: str,
    *operands: np.ndarray | None,
    outputs: int = 1,
    opset: int = 18,
    reference: bool = False,
    **attributes: Any,
) -> Any:
    """Results of an ONNX node; None stands for an absent input."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(operands)]
    inputs = {n: a for n, a in zip(names, operands, strict=True) if a is not None}
    model = _model(op, inputs, names, outputs, opset, attributes)
    if reference:
        found = ReferenceEvaluator(model).run(None, inputs)
    else:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found = session.run(None, inputs)
    return found[0] if outputs == 1 else found
