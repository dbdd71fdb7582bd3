"""Run of the onnx package's backend suite against mgx_mlir."""
