"""Another name of onnxruntime_pybind11_state, as in onnxruntime."""

from mgx_mlir.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
