"""The forms of models that users pass; `models` reads them.

This loads neither importers nor bindings, as a cache hit needs only the model's bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR

MODEL_SUFFIXES = {
    ".onnx": "onnx", ".mlir": "mlir", ".mxr": "mxr", ".json": "json",
    ".pb": "tf", ".pbtxt": "tf", ".keras": "tf", ".h5": "tf",
}  # fmt: skip


@runtime_checkable
class HasProgram(Protocol):
    """An API program, or another object that holds a ProgramIR."""

    @property
    def program_ir(self) -> ProgramIR:
        """The ProgramIR."""
        ...


ModelSource: TypeAlias = str | os.PathLike[str] | bytes | ProgramIR | HasProgram


def fixed(model: Any, onnx_options: Mapping[str, Any]) -> ModelSource:
    """Return a user's model in a form that can be read repeatedly and that a cache can name.

    Objects of other libraries become programs, open files their bytes. Raises UsageError for
    objects that are not models, and errors of program_of_object.
    """
    if isinstance(model, bytearray | memoryview):
        return bytes(model)  # a memoryview's buffer may change
    if isinstance(model, str | os.PathLike | bytes | ProgramIR):
        return model
    # start-up: a file needs no other library
    from mgx_mlir.frontends.objects import (
        bytes_of_file,
        is_module,
        is_object,
        program_of_object,
    )

    if is_object(model):
        return program_of_object(model, onnx_options)
    if is_module(model):
        raise UsageError(
            "expected a model, got a torch module, which does not state its inputs",
            notes=[
                "mgx_mlir.torch.compile(module, example_inputs) compiles it for inputs like those",
                "torch.compile(module, backend='mgx') compiles it at its first call",
            ],
        )
    if hasattr(model, "read"):
        return bytes_of_file(model)
    return model
