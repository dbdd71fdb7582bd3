"""CPU kernels whose loops depend on values: nonzero, box suppression, trees, sorts."""
