"""merge_rolls: one roll in place of two along one axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_example.ops import Roll
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern


@pattern(Roll)
def find_nested_roll(op: Roll, rw: Rewriter) -> Replacement:
    """roll(roll(x, a), b) -> roll(x, a + b)"""
    inner = rw.defining(op.input, Roll)
    if inner is None:
        return no_match("input is not a roll")
    if inner.axis != op.axis:
        return no_match("axes {} and {} differ", inner.axis, op.axis)
    return rw.op("roll", inner.input, axis=op.axis, shift=inner.shift + op.shift)


@dataclass(frozen=True)
class MergeRolls(PatternPass):
    """Two rolls along one axis become one."""

    name: ClassVar[str] = "merge_rolls"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_nested_roll,)
