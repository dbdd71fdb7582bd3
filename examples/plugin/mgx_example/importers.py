"""The ONNX operator org.example::Roll."""

from __future__ import annotations

from mgx_mlir.frontends.helpers import Value
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.programs.build import Builder


@onnx_op("Roll", domain="org.example")
def roll(b: Builder, node: Node, x: Value, *, axis: int = -1, shift: int) -> Value:
    """Import Roll; the axis may be negative."""
    return b.roll(x, axis=axis, shift=shift)
