"""The ONNX operator org.example::Roll."""

from __future__ import annotations

from typing import Any

from mgx_mlir.frontends.onnx.registry import onnx_op


@onnx_op("Roll", domain="org.example")
def roll(b: Any, node: Any, x: Any, *, axis: int = -1, shift: int) -> Any:
    return b.roll(x, axis=axis, shift=shift)
