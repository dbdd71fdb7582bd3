"""An example of a plugin of mgx-mlir: `plugin.py` is what its entry point names."""
