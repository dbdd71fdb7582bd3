"""Text generation: from a checkpoint to tokens.

Needs the packages of the extra `text`; within mgx_mlir only its commands import it.
"""

from __future__ import annotations

from mgx_mlir.text.engine import Decoder, Engine
from mgx_mlir.text.grammar import Grammar
from mgx_mlir.text.model import TextModel, load
from mgx_mlir.text.requests import Constraint, Handle, Piece, Request
from mgx_mlir.text.sampling import Sampling

__all__ = [
    "Constraint",
    "Decoder",
    "Engine",
    "Grammar",
    "Handle",
    "Piece",
    "Request",
    "Sampling",
    "TextModel",
    "load",
]
