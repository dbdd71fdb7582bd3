"""Lowerings of ops to linalg, a family to a file. Each function is registered by `@lowers`."""
