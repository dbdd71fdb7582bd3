"""What is wrong with a model, and how an operator leaves a node to ONNX's own body."""

from __future__ import annotations

from mgx_mlir.frontends.problems import NotSupported, Problems

__all__ = ["NotSupported", "Problems", "Refused", "UseBody"]


class Refused(NotSupported):
    """A node of an operator without importer; `message` says why it has none, or is empty."""


class UseBody(Exception):
    """Raised by an operator's function that leaves this node to the body ONNX gives it."""
