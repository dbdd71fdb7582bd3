"""The onnx package's backend suite against mgx_mlir."""
