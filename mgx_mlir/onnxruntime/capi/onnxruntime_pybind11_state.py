"""onnxruntime's error classes under the module's name that `except` clauses import them from."""

from mgx_mlir.integrations.onnxruntime.errors import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from mgx_mlir.integrations.onnxruntime.module import get_default_session_options
from mgx_mlir.integrations.onnxruntime.public import *  # noqa: F403
from mgx_mlir.integrations.onnxruntime.public import __all__ as _names
from mgx_mlir.integrations.onnxruntime.values import OrtValueVector

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "OrtValueVector",
    "RuntimeException",
    "get_default_session_options",
    *_names,
]
