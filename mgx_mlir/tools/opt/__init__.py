"""mgx-opt: runs passes over MLIR text and shows what they do."""
