"""The passes of this package: one module each, of the pass's name."""
