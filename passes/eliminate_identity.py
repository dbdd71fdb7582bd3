"""eliminate_identity: the op that does nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.dialects.migraphx.views import Identity
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Rewriter, pattern


@pattern(Identity)
def find_identity(op: Identity, rw: Rewriter) -> ir.Value:
    """identity(x) -> x"""
    return op.input


@dataclass(frozen=True)
class EliminateIdentity(PatternPass):
    """Replace identity by its operand."""

    name: ClassVar[str] = "eliminate_identity"
    patterns = (find_identity,)
