"""Kernels of our own vector loops, for CPUs: IREE compiles them as they are written."""
