"""The modules that code written for onnxruntime imports error classes and sessions from."""

from mgx_mlir.onnxruntime.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["onnxruntime_inference_collection", "onnxruntime_pybind11_state"]
