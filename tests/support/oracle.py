"""onnxruntime as the oracle of the tests: a session, and one node run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator


class NotImplementedByOracle(Exception):
    """onnxruntime has no kernel for these types."""


def exact_options() -> Any:
    """Session options of one thread without warnings; products with constant i8 are exact.

    By default x86 processors without VNNI multiply u8 by i8 in pairs that saturate at 16 bits:
    hardly a sum is right where the weights are large. An optimisation of graphs mends that for
    constant weights, so that a session with few optimisations does not have it.
    """
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return options


def ort_session(model: onnx.ModelProto | bytes | str | Path, *, optimised: bool = True) -> Any:
    """A session of one thread on the CPU, exact where `exact_options` says; `optimised`: graphs."""
    options = exact_options()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if isinstance(model, onnx.ModelProto):
        model = model.SerializeToString()
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_node(
    op_type: str,
    *inputs: np.ndarray | None,
    outputs: int = 1,
    opset: int = 21,
    widen: bool = False,
    reference: bool = False,
    **attributes: Any,
) -> Any:
    """The outputs of an ONNX node on arrays, by onnxruntime or (`reference`) the onnx package.

    None is an absent input; `widen`: cast to f32.
    """
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {n: np.asarray(x) for n, x in zip(names, inputs, strict=True) if x is not None}
    results = [f"y{i}" for i in range(outputs)]
    nodes = [helper.make_node(op_type, names, results, **attributes)]
    if widen:
        nodes += [helper.make_node("Cast", [r], [f"f{r}"], to=1) for r in results]
        results = [f"f{r}" for r in results]
    kinds = {n: helper.np_dtype_to_tensor_dtype(x.dtype) for n, x in given.items()}
    ports = [helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in given.items()]
    graph = helper.make_graph(nodes, "g", ports, [onnx.ValueInfoProto(name=r) for r in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    try:
        program = ReferenceEvaluator(model) if reference else ort_session(model, optimised=False)
        found = program.run(None, given)
    except Exception as e:
        text = str(e)
        unknown = ("NOT_IMPLEMENTED", "is invalid", "INVALID_GRAPH", "Numpy_type")
        if not reference and any(t in text for t in unknown):
            raise NotImplementedByOracle(text) from None
        raise
    return found[0] if outputs == 1 else tuple(found)
