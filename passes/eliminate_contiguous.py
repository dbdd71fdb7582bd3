"""eliminate_contiguous: copies into standard layout, which tensor values do not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.dialects.migraphx.views import Contiguous
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Rewriter, pattern


@pattern(Contiguous)
def find_contiguous(op: Contiguous, rw: Rewriter) -> ir.Value:
    """contiguous(x) -> x"""
    return op.input


@dataclass(frozen=True)
class EliminateContiguous(PatternPass):
    """Drop every contiguous.

    Tensors are values: strides are derived for printing and files, never stored, so a copy that
    only changes them computes nothing. Where memory order matters (a returned buffer, a library
    call) bufferization writes it in standard order.
    """

    name: ClassVar[str] = "eliminate_contiguous"
    patterns = (find_contiguous,)
