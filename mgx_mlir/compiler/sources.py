"""The kinds of models that users name; `models` reads them.

No importer and no binding is loaded here: the cache finds a program by the model's bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR


@runtime_checkable
class HasProgram(Protocol):
    """An API program, or anything else that holds a compiler's program."""

    @property
    def program_ir(self) -> ProgramIR:
        """The ProgramIR."""
        ...


ModelSource: TypeAlias = str | os.PathLike[str] | bytes | ProgramIR | HasProgram


def fixed(model: Any, onnx_options: Mapping[str, Any]) -> ModelSource:
    """Return what a user gave as a source that is read as often as wished, and that a cache can
    name: objects of other libraries as their program, open files as their bytes.

    Raises UsageError for what is no model, and what program_of_object raises.
    """
    if isinstance(model, bytearray | memoryview):
        return bytes(model)  # a view may change while it is read
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
            "expected a model, got a torch module, which says nothing about its inputs",
            notes=[
                "mgx_mlir.torch.compile(module, example_inputs) compiles it for inputs like those",
                "torch.compile(module, backend='mgx') compiles it at its first call",
            ],
        )
    if hasattr(model, "read"):
        return bytes_of_file(model)
    return model
