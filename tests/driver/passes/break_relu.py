"""A pass that makes relu another function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import pattern


@pattern("relu")
def find_relu(op, rw):
    """relu(x) -> tanh(x), which is wrong"""
    return rw.op("tanh", op.input)


@dataclass(frozen=True)
class BreakRelu(PatternPass):
    """Make relu another function."""

    name: ClassVar[str] = "break_relu"
    patterns = (find_relu,)
