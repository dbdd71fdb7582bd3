"""Models that tests and benchmarks share: ONNX graphs, torch modules, exports of families."""
