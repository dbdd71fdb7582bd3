"""Random programs for simplify_algebra."""

from graphs.simplify_algebra import elements, parts, weights

__all__ = ["elements", "parts", "weights"]
