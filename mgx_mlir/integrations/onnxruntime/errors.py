"""Errors under onnxruntime's names, and the mapping from our errors to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mgx_mlir.core.errors import (
    CompileError,
    FileError,
    MgxError,
    ModelError,
    RunError,
    RunLimitError,
    UnsupportedModel,
    UsageError,
)

MODULE = "mgx_mlir.onnxruntime.capi.onnxruntime_pybind11_state"


class OrtError(MgxError):
    """An error with one of onnxruntime's status codes. Its text starts with the same prefix."""

    code = 1
    status = "FAIL"

    def __str__(self) -> str:
        return f"[ONNXRuntimeError] : {self.code} : {self.status} : {super().__str__()}"


class Fail(OrtError):
    """A model that cannot be prepared, or a run that failed."""


class InvalidArgument(OrtError):
    """Inputs or options that do not fit the model."""

    code, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(OrtError):
    """A model file that does not exist."""

    code, status = 3, "NO_SUCHFILE"


class NoModel(OrtError):
    """A session without a model; never raised here."""

    code, status = 4, "NO_MODEL"


class EngineError(OrtError):
    """A failure of the backend's compiler."""

    code, status = 5, "ENGINE_ERROR"


class RuntimeException(OrtError):
    """A failure inside of a run; never raised here, where it is a Fail."""

    code, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(OrtError):
    """A file that is no ONNX model."""

    code, status = 7, "INVALID_PROTOBUF"


class ModelLoaded(OrtError):
    """A session that has a model already; never raised here."""

    code, status = 8, "MODEL_LOADED"


class NotImplemented(OrtError):
    """An operator without an importer, or an unsupported part of onnxruntime's API."""

    code, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(OrtError):
    """A model whose nodes contradict each other."""

    code, status = 10, "INVALID_GRAPH"


class EPFail(OrtError):
    """A device that is missing or fails."""

    code, status = 11, "EP_FAIL"


class ModelLoadCanceled(OrtError):
    """A load that was cancelled; never raised here."""

    code, status = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(OrtError):
    """A session that must not compile, for a model that is not compiled."""

    code, status = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(OrtError):
    """An unknown name."""

    code, status = 14, "NOT_FOUND"


class DeviceReset(OrtError):
    """A device that was reset; never raised here."""

    code, status = 15, "DEVICE_RESET"


class MissingInputs(MgxError, ValueError):
    """Missing inputs of a run: a ValueError, as in onnxruntime."""


class BindingError(MgxError, RuntimeError):
    """A wrong binding or OrtValue: a RuntimeError, as in onnxruntime."""


CLASSES: tuple[type[OrtError], ...] = (
    Fail, InvalidArgument, NoSuchFile, NoModel, EngineError, RuntimeException, InvalidProtobuf,
    ModelLoaded, NotImplemented, InvalidGraph, EPFail, ModelLoadCanceled, ModelRequiresCompilation,
    NotFound, DeviceReset,
)  # fmt: skip
for _each in CLASSES:
    # module path of onnxruntime, which `except` clauses import the errors from
    _each.__module__ = MODULE


def refuse(name: str, notes: Iterable[str] = ()) -> OrtError:
    """Return the error for an unsupported part of onnxruntime's API."""
    return NotImplemented(f"'{name}' of onnxruntime's API is not supported", notes=notes)


@contextmanager
def loading(missing: str | None = None) -> Iterator[None]:
    """Raise errors of reading and compiling a model as onnxruntime's classes.

    `missing` is the path of a file that does not exist.
    """
    try:
        yield
    except OrtError:
        raise
    except MgxError as e:
        kind = NoSuchFile if missing is not None else _while_loading(e)
        raise kind(e.message, location=e.location, notes=e.notes) from e


def _while_loading(e: MgxError) -> type[OrtError]:
    if isinstance(e, UnsupportedModel):
        return NotImplemented
    if isinstance(e, ModelError | FileError):
        return InvalidProtobuf if "protobuf" in e.message else InvalidGraph
    if isinstance(e, CompileError):
        return EngineError
    return InvalidArgument if isinstance(e, UsageError) else Fail


def of_run(e: MgxError) -> OrtError:
    """Return the error of a run as onnxruntime's class."""
    if isinstance(e, OrtError):
        return e
    failed = isinstance(e, RunLimitError) or (
        isinstance(e, RunError)
        and e.message.startswith(("the program failed", "the device", "the process of the run"))
    )
    kind = InvalidArgument if isinstance(e, RunError | UsageError) and not failed else Fail
    return kind(e.message, location=e.location, notes=e.notes)
