"""ONNX models that are objects in memory, with weights in arrays of the caller."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.onnx.file_digest import LAYOUT
from mgx_mlir.frontends.onnx.load import LoadedModel, check_model, check_text
from mgx_mlir.frontends.onnx.tensors import TensorReader
from mgx_mlir.frontends.wire import Stripped

PLACE = "held"  # location of external data in memory


class HeldTensors(TensorReader):
    """Reads tensors whose external data names one of the given arrays of bytes."""

    def __init__(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__(name, memoryview(b""), Stripped(b"", LAYOUT.what), None)
        self._arrays = arrays

    def _external(self, tensor: onnx.TensorProto, nbytes: int, what: str) -> np.ndarray:
        found = self._arrays.get(tensor.name)
        if found is None or found.nbytes != nbytes:
            raise ModelError(f"{what} is external data, and not among the arrays that were given")
        return found


def load_held(
    proto: onnx.ModelProto, arrays: Mapping[str, np.ndarray], *, name: str = "<model>"
) -> LoadedModel:
    """Open a model; `arrays` has the bytes of tensors with external data, by the tensor's name.

    Raises ModelError if its versions are missing or newer than supported.
    """
    check_text(proto, name)
    check_model(proto, name)
    return LoadedModel(name, proto, HeldTensors(name, arrays))
