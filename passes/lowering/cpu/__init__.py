"""CPU kernels written as vector loops, which IREE compiles without changing their structure."""
