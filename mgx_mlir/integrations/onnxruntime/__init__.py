"""onnxruntime's Python API over compiled programs; imported as mgx_mlir.onnxruntime."""
