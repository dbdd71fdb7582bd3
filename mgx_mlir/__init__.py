"""mgx_mlir."""
