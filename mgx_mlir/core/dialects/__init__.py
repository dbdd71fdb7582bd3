"""Dialect modules that the bindings find before their own, which import slower."""
