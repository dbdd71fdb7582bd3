"""Matmuls and convolutions on GPUs: tiles, split-k, stored weights, biases."""
