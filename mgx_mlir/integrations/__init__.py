"""Adapters to other packages: the ONNX backend class and its report."""
