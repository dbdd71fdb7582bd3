"""Whole models that no other test has, on emulated GPUs, against onnxruntime."""
