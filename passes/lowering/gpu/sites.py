"""The sites that GPU kernel rules are given."""

from __future__ import annotations

from dataclasses import dataclass

from mgx_mlir.core.ir import ir


@dataclass(frozen=True)
class GpuKernelSite:
    """A kernel whose operands are bound under its body's arguments; nothing else is lowered."""

    op: ir.Operation
    body: ir.Block
    bounded: bool = True  # kernel may have its own dispatch region
