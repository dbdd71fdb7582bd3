"""Operators with complex operands: by real and imaginary parts, or by their registered function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.frontends.importer import outputs_of
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import TfOp, find_complex
from mgx_mlir.frontends.tf.values import Complex
from mgx_mlir.frontends.values import Held, Outputs, Value
from mgx_mlir.programs.build import Builder

# operators that move, choose or add numbers: real parts of results depend only on real parts
_BY_PARTS = {
    "Add", "AddN", "AddV2", "BroadcastTo", "ConcatV2", "ExpandDims", "GatherNd", "GatherV2", "Mean",
    "Neg", "Pack", "Pad", "Reshape", "ReverseV2", "Roll", "Select", "SelectV2", "Slice", "Split",
    "SplitV", "Squeeze", "StridedSlice", "Sub", "Sum", "Tile", "Transpose", "Unpack",
}  # fmt: skip
_OF_DIMS = {"Rank", "Shape", "ShapeN", "Size"}


def complex_result(
    b: Builder, node: Node, op: TfOp, inputs: Sequence[Held], given: Mapping[str, Any]
) -> Outputs:
    """Return the operator's result. NotSupported if it has no complex version."""
    own = find_complex(op.name)
    if own is not None:
        return own(b, node, *inputs)
    if op.name in _OF_DIMS:
        return op.function(b, node, *(_part(v, "re") for v in inputs), **given)
    if op.name not in _BY_PARTS:
        raise NotSupported("complex numbers")
    re, im = (
        outputs_of(op.function(b, node, *(_part(v, name) for v in inputs), **given))
        for name in ("re", "im")
    )
    return tuple(
        Complex(x, y) if isinstance(x, Value) and isinstance(y, Value) else None
        for x, y in zip(re, im, strict=True)
    )


def _part(v: Held, name: str) -> Held:
    return getattr(v, name) if isinstance(v, Complex) else v
