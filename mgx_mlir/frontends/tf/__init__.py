"""Read TensorFlow graphs and SavedModels as programs, without TensorFlow.

Operators are in `ops/`, a family to a file.
"""
