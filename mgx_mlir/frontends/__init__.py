"""Readers of model files: ONNX, TensorFlow, `.mxr` and MLIR become programs.

Nothing here optimises or compiles. Every file is untrusted.
"""
