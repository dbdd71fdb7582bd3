"""Property tests of the CPU's kernel families, between guard pages."""
