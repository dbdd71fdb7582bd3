"""Axes that a Squeeze without axes, or an `If`, removes if their extent is 1 at run time.

Ranks of a program are static, so its tensors keep such an axis. Elementwise ops do not depend on
it, and outputs drop it when the user receives them. If another operator reads such a value, the
extent must not be 1, which is checked at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.helpers import compare, extent, require
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder

# ops whose result elements depend only on operand elements of the same index
_BY_ELEMENT = frozenset(
    (
        "Abs", "Acos", "Add", "And", "Asin", "Atan", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh",
        "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
        "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less",
        "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
        "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
        "Softsign", "Sqrt", "Sub", "Sum", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor",
    )
)  # fmt: skip
# ops on rows along `axis`, each row separately
_BY_ROW = frozenset(("LayerNormalization", "LogSoftmax", "Softmax"))
# ops whose operands all have the same rank, which includes the axis
_OF_ONE_RANK = frozenset(("Conv", "ConvTranspose", "GRU", "Gemm", "LSTM", "RNN"))


class UnitAxes:
    """Axes of extent 1 that a value has only at run time."""

    def __init__(self) -> None:
        self._axes: dict[Value, tuple[int, ...]] = {}
        self.strict = False  # if set, no operator may depend on such an axis

    def of(self, value: Held | None) -> tuple[int, ...]:
        """Return the axes of a value, none for most."""
        return self._axes.get(value, ()) if isinstance(value, ir.Value) else ()

    def mark(self, value: Value, axes: Sequence[int]) -> None:
        """Record the axes of a value."""
        self._axes[value] = tuple(axes)

    def read(
        self,
        b: Builder,
        op: OnnxOp,
        inputs: Sequence[Held | None],
        attributes: Mapping[str, Any],
        *,
        inner: bool,
    ) -> tuple[list[Held | None], tuple[int, ...]]:
        """Return the operands as an operator may read them, and such axes of its result.

        inner: the operator is in a body, whose values have none.
        """
        given = list(inputs)
        marked = [v for v in given if self.of(v)]
        if not marked or (op.domain == "" and op.name in _OF_ONE_RANK):
            return given, ()
        if op.domain == "" and not inner:
            axes = self._carried(op, given, attributes)
            if axes is not None and op.name not in _BY_ELEMENT:
                given[0] = self.settled(b, given[0], set(self.of(given[0])) - set(axes))
            if axes is not None:
                return given, axes
        return [self.settled(b, v, self.of(v)) for v in given], ()

    def _carried(
        self, op: OnnxOp, inputs: Sequence[Held | None], attributes: Mapping[str, Any]
    ) -> tuple[int, ...] | None:
        """Return such axes of the result; None if the operator depends on them.

        An operand without such axes may only broadcast along axes after them.
        """
        marked = [v for v in inputs if isinstance(v, ir.Value) and self.of(v)]
        rest = [v for v in inputs if isinstance(v, ir.Value) and not self.of(v)]
        others = [TensorType.of(v).rank for v in rest]
        kinds = {(TensorType.of(v).rank, self.of(v)) for v in marked}
        if len(kinds) != 1:
            return None
        ((rank, axes),) = kinds
        before = tuple(a for a in axes if a < rank - 1)
        if op.name in _BY_ELEMENT:
            return axes if all(r < rank - max(axes) for r in others) else None
        if marked != [inputs[0]] or not before:
            return None
        by_row = op.name in _BY_ROW and attributes["axis"] == -1 and max(others, default=0) <= 1
        return before if by_row or (op.name == "MatMul" and others == [2]) else None

    def settled(self, b: Builder, value: Held | None, axes: Iterable[int]) -> Held | None:
        """Return a value for an operator that depends on its rank: none of these extents is 1."""
        for axis in axes:
            assert isinstance(value, ir.Value)
            if self.strict:
                raise NotSupported("a value whose rank is known only at run time")
            other = b.not_(compare(b, "equal", extent(b, value, axis), 1))
            what = f"an extent other than 1 of dim {axis}, which would be dropped"
            value = require(b, value, other, what)
        return value

    def whole(self, b: Builder, value: Held) -> Held:
        """Return a value that any operator may read."""
        found = self.settled(b, value, self.of(value))
        return value if found is None else found
