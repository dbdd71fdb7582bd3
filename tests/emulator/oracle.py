"""Expected values of a case, and the errors of computed ones.

The oracle computes in f32 what the model says with its weights and inputs as they are rounded to
the case's type: an error is what rounding between the operators, and mistakes, amount to.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.emulator.models import Case

# relative to the norm of the wanted values: what a correct kernel's rounding amounts to
LIMITS = {"f32": 1e-5, "f16": 2e-3, "bf16": 1e-2, "i8": 0.0}
SMALL = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def widened(model: ModelProto) -> ModelProto:
    """The model in f32, where it is in 16-bit floats: the same weights, casts and constants."""
    wide = ModelProto()
    wide.CopyFrom(model)
    for w in wide.graph.initializer:
        if w.data_type in SMALL:
            value = numpy_helper.to_array(w).astype(np.float32)
            w.CopyFrom(numpy_helper.from_array(value, w.name))
    for node in wide.graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i in SMALL:
                a.i = TensorProto.FLOAT
            if node.op_type in ("Constant", "ConstantOfShape") and a.t.data_type in SMALL:
                a.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(a.t).astype(np.float32)))
    for port in (*wide.graph.input, *wide.graph.output):
        if port.type.tensor_type.elem_type in SMALL:
            port.type.tensor_type.elem_type = TensorProto.FLOAT
    return wide


def narrowed(model: ModelProto, dtype: Any = np.float16) -> ModelProto:
    """A model of f32 in f16 or bf16: its weights, casts, constants, inputs and outputs."""
    small, kind = ModelProto(), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    small.CopyFrom(model)

    def rounded(tensor: TensorProto) -> TensorProto:
        value = numpy_helper.to_array(tensor)
        # masks add the lowest number of their type
        largest = float(ml_dtypes.finfo(dtype).max)
        value = np.where(np.isfinite(value), np.clip(value, -largest, largest), value)
        return numpy_helper.from_array(value.astype(dtype), tensor.name)

    for w in small.graph.initializer:
        if w.data_type == TensorProto.FLOAT:
            w.CopyFrom(rounded(w))
    for node in small.graph.node:
        for a in node.attribute:
            if node.op_type == "Cast" and a.name == "to" and a.i == TensorProto.FLOAT:
                a.i = kind
            held = node.op_type in ("Constant", "ConstantOfShape")
            if held and a.t.data_type == TensorProto.FLOAT:
                a.t.CopyFrom(rounded(a.t))
    for port in (*small.graph.input, *small.graph.output):
        if port.type.tensor_type.elem_type == TensorProto.FLOAT:
            port.type.tensor_type.elem_type = kind
    return small


def wanted(case: Case) -> list[np.ndarray]:
    """The case's own values, else what onnxruntime computes in f32."""
    if case.wanted is not None:
        return case.wanted
    inputs = {
        k: v.astype(np.float32) if helper.np_dtype_to_tensor_dtype(v.dtype) in SMALL else v
        for k, v in case.inputs.items()
    }
    return session(widened(case.model)).run(None, inputs)


def session(model: ModelProto | str, folded: str | None = None) -> Any:
    """An onnxruntime session; `folded` is a file for the model with its batch norms folded."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    if folded is not None:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = folded
    source = model if isinstance(model, str) else model.SerializeToString()
    return ort.InferenceSession(source, options)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """||got - want|| / ||want|| in float64. AssertionError: another shape, or a blind test."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    assert a.shape == b.shape
    assert b.std() > 0.01 * np.abs(b).max(), "the wanted values are flat: a blind test"
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def worst(got: list[np.ndarray], want: list[np.ndarray]) -> float:
    """The largest error of several outputs."""
    return max(error(a, b) for a, b in zip(got, want, strict=True))
