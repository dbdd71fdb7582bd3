"""A pass that makes relu another function where one instruction reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import no_match, pattern


@pattern("relu")
def find_lone_relu(op, rw):
    """relu(x) -> tanh(x), which is wrong, where it has one use"""
    if len(list(op.out.uses)) != 1:
        return no_match("it has several uses")
    return rw.op("tanh", op.input)


@dataclass(frozen=True)
class BreakLoneRelu(PatternPass):
    """Make relu another function where one instruction reads it."""

    name: ClassVar[str] = "break_lone_relu"
    patterns = (find_lone_relu,)
