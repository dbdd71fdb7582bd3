"""Kernels on CPUs that move or map elements: transposes, gathers, pads, pointwise ops."""
