"""onnxruntime's error classes in the module from which `except` clauses import them."""

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
