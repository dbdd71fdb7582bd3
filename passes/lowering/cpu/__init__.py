"""Kernels of our own vector loops, for processors: IREE compiles them as they are written."""
