"""mgx-reduce: shrinks a model or a module that makes a command fail."""
