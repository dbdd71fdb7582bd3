"""Sessions, bindings and values in the module in which onnxruntime defines them."""

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
