"""Evaluates single nodes on arrays: in onnxruntime, else in onnx.reference, in f64 where asked."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

KERNEL_MISSING = ("NOT_IMPLEMENTED", "Could not find an implementation", "is not a registered")
# onnx.reference leaves out groups, ties as onnxruntime has them, the rows of one iteration
DOUBTFUL = frozenset(("ConvTranspose", "Resize", "GroupNormalization", "LRN", "Loop", "Scan", "If"))
# with ceil_mode it moves windows back by half of what the end lacks; its GlobalMaxPool is one of
# two spatial axes, whatever the rank
POOLS = frozenset(("AveragePool", "LpPool", "MaxPool", "GlobalMaxPool"))
F32, F64 = TensorProto.FLOAT, TensorProto.DOUBLE


class Refusal(Exception):
    """No oracle runs the node; the text says why."""


def kind_of(array: np.ndarray) -> int:
    """The ONNX element type of an array."""
    if array.dtype == ml_dtypes.bfloat16:
        return TensorProto.BFLOAT16
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def captured(node: NodeProto) -> list[str]:
    """The names that the node reads: its inputs, and what its subgraphs take from outside."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]:
            own = {v.name for v in graph.input} | {v.name for v in graph.initializer}
            for inner in graph.node:
                found += [name for name in captured(inner) if name not in own]
                own.update(inner.output)
            found += [v.name for v in graph.output if v.name not in own]
    return list(dict.fromkeys(found))


def model_of(
    node: NodeProto,
    arrays: Mapping[str, np.ndarray],
    opset: int,
    fixed: frozenset[str] = frozenset(),
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of one node, the inputs named in `fixed` as initializers, and its feeds."""
    infos, weights, feeds = [], [], {}
    for name in captured(node):
        array = arrays[name]
        if name in fixed:
            weights.append(numpy_helper.from_array(array, name))
        else:
            infos.append(helper.make_tensor_value_info(name, kind_of(array), array.shape))
            feeds[name] = array
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "node", infos, outputs, weights)
    return wrapped(graph, opset), feeds


def wrapped(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """The model of a graph, with the oldest ir_version that has this opset."""
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    version = 7 if opset < 15 else 8 if opset < 19 else 10 if opset < 23 else 11
    return helper.make_model(
        graph, opset_imports=imports, ir_version=max(version, 10 if opset >= 21 else 7)
    )


@lru_cache(maxsize=256)
def _session(data: bytes) -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run_onnxruntime(data: bytes, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The results of a model, unoptimised. Refusal where onnxruntime raises."""
    import onnxruntime as ort

    try:
        session = _session(data)
        if any(x.dtype == ml_dtypes.bfloat16 for x in feeds.values()):
            raise Refusal("NOT_IMPLEMENTED: bfloat16 arrays")
        return [np.asarray(x) if not isinstance(x, list) else x for x in session.run(None, feeds)]
    except Refusal:
        raise
    except Exception as error:  # onnxruntime's exceptions share no base class
        raise Refusal(f"{type(error).__name__}: {str(error)[:400]}") from None
    finally:
        del ort


def run_reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The results in onnx.reference. Refusal where it raises."""
    from onnx.reference import ReferenceEvaluator

    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, dict(feeds))]
    except Exception as error:
        raise Refusal(f"reference: {type(error).__name__}: {str(error)[:300]}") from None


class Evaluator:
    """Evaluates nodes of one opset; counts what each oracle took and refused."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.refused: list[tuple[str, str]] = []

    def __call__(
        self,
        node: NodeProto,
        arrays: Mapping[str, np.ndarray],
        *,
        fixed: frozenset[str] = frozenset(),
        reference: bool = False,
    ) -> list[np.ndarray]:
        """The outputs that have a name. Refusal where neither oracle runs the node."""
        model, feeds = model_of(node, arrays, self.opset, fixed)
        if reference:
            return run_reference(model, feeds)
        try:
            return run_onnxruntime(model.SerializeToString(), feeds)
        except Refusal as error:
            missing = any(text in str(error) for text in KERNEL_MISSING)
            if not missing or node.op_type in DOUBTFUL | POOLS:
                raise
        return run_reference(model, feeds)

    def wide(
        self, node: NodeProto, arrays: Mapping[str, np.ndarray], fixed: frozenset[str]
    ) -> list[np.ndarray]:
        """The outputs with floats in f64, as far as an oracle has the node in f64."""
        widened = {
            k: v.astype(np.float64) if v.dtype in (np.float32, np.float16) else v
            for k, v in arrays.items()
        }
        try:
            return self(in_f64(node), widened, fixed=fixed)
        except Refusal:
            if node.op_type in POOLS:
                return self(node, arrays, fixed=fixed)
        model, feeds = model_of(in_f64(node), widened, self.opset, fixed)
        try:
            return run_reference(model, feeds)
        except Refusal:
            return self(node, arrays, fixed=fixed)


def in_f64(node: NodeProto) -> NodeProto:
    """The node with `f32` replaced by `f64` in its attributes and subgraphs."""
    made = NodeProto()
    made.CopyFrom(node)
    for attribute in made.attribute:
        if attribute.name in ("to", "dtype") and attribute.i == F32:
            attribute.i = F64
        if attribute.HasField("t") and attribute.t.data_type == F32:
            wide = numpy_helper.to_array(attribute.t).astype(np.float64)
            attribute.t.CopyFrom(numpy_helper.from_array(wide, attribute.t.name))
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                inner.CopyFrom(in_f64(inner))
            for tensor in attribute.g.initializer:
                if tensor.data_type == F32:
                    wide = numpy_helper.to_array(tensor).astype(np.float64)
                    tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))
            for info in (*attribute.g.input, *attribute.g.output, *attribute.g.value_info):
                if info.type.tensor_type.elem_type == F32:
                    info.type.tensor_type.elem_type = F64
    return made
