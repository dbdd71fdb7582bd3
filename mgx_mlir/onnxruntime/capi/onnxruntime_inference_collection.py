"""Sessions, bindings and values under the module's name that onnxruntime defines them in."""

from mgx_mlir.integrations.onnxruntime.public import (
    InferenceSession,
    IOBinding,
    OrtDevice,
    OrtDeviceVendorId,
    OrtValue,
    copy_tensors,
)
from mgx_mlir.integrations.onnxruntime.session import Session

__all__ = [
    "IOBinding",
    "InferenceSession",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "copy_tensors",
]
