"""Weights in other files (external data), as inputs and by name."""

from __future__ import annotations

import os

import numpy as np
import onnx

from mgx_mlir.core.errors import MgxError
from mgx_mlir.frontends.onnx.load import load_file
from mgx_mlir.frontends.onnx.tensors import tensor_dtype


def outside_weights(graph: onnx.GraphProto) -> list[onnx.TensorProto]:
    """Return the float initializers in external data; integers are sizes, indices and codes, which
    are needed at import.
    """
    return [t for t in graph.initializer if _is_weight(t)]


def _is_weight(t: onnx.TensorProto) -> bool:
    if t.data_location != onnx.TensorProto.EXTERNAL:
        return False
    try:
        return tensor_dtype(t.data_type, t.name).is_float
    except MgxError:
        return False


def make_inputs(graph: onnx.GraphProto) -> None:
    """Replace external weights by inputs, after the others."""
    weights = outside_weights(graph)
    stated = {i.name for i in graph.input}
    for t in weights:
        if t.name not in stated:
            info = onnx.helper.make_tensor_value_info(t.name, t.data_type, list(t.dims))
            graph.input.append(info)
    kept = [t for t in graph.initializer if not _is_weight(t)]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def read_outside_weights(
    path: str | os.PathLike[str], external_data_path: str | None = None
) -> dict[str, np.ndarray]:
    """Read a model's external weights by name. Errors: FileError, ModelError."""
    with load_file(path, external_data_path=external_data_path) as model:
        return {t.name: model.reader.read(t) for t in outside_weights(model.proto.graph)}
