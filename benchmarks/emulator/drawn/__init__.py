"""Graphs of many kinds, drawn from seeds, compiled for AMD GPUs and run on the emulator."""
