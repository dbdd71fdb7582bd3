"""Element types that the dialect lacks: the ONNX type of each value in a storage type."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.subbyte_types import BY_ONNX
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.values import Held, Value

_MOVES = frozenset(
    (
        "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements",
        "GatherND", "Identity", "Pad", "Reshape", "ReverseSequence", "ScatterElements",
        "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu",
        "Unsqueeze",
    )
)  # fmt: skip
_MAKES = frozenset(("Constant", "ConstantOfShape"))


def moves(op: OnnxOp) -> bool:
    """Return whether an operator returns elements of its first input unchanged."""
    return (op.domain == "" and op.name in _MOVES) or op.name == "ArrayFeatureExtractor"


class Kinds:
    """ONNX element type of each value whose tensor type is only its storage."""

    def __init__(self) -> None:
        self._kinds: dict[Value, int] = {}

    def of(self, value: Held | None) -> int:
        """Return the ONNX type number, 0 for a value of its own type."""
        return self._kinds.get(value, 0) if isinstance(value, ir.Value) else 0

    def mark(self, value: Held, number: int) -> None:
        """Record a value's type; do nothing for types that the dialect has."""
        kind = BY_ONNX.get(number)
        if kind is None or not isinstance(value, ir.Value):
            return
        if TensorType.of(value).dtype is kind.held:
            self._kinds[value] = number

    def carry(
        self,
        op: OnnxOp,
        given: Sequence[onnx.AttributeProto],
        inputs: Sequence[Held | None],
        results: Sequence[Held | None],
    ) -> None:
        """Record the types of an operator's results that follow from its input or its value."""
        number = 0
        if op.domain:
            return
        if op.name in _MOVES:
            if not self._kinds:
                return
            number = self.of(inputs[0])
        elif op.name in _MAKES:
            number = next((a.t.data_type for a in given if a.name == "value"), 0)
        if number in BY_ONNX:
            for value in results:
                if isinstance(value, ir.Value):
                    self.mark(value, number)
