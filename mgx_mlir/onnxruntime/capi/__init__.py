"""Modules under onnxruntime's names, for code that imports its error classes and sessions."""

from mgx_mlir.onnxruntime.capi import onnxruntime_inference_collection, onnxruntime_pybind11_state

__all__ = ["onnxruntime_inference_collection", "onnxruntime_pybind11_state"]
