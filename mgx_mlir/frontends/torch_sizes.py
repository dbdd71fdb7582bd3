"""Translations to ONNX of size arithmetic and ranges, which torch.onnx computes in f32."""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Callable
from typing import Any

_F32, _INT64, _F64 = 1, 7, 11  # data types of ONNX's TensorProto
_NO_TYPE = -1  # onnxscript's number for no type
_INTEGERS = {2, 3, 4, 5, 6, 7, 12, 13}  # data types of integers
_DEEPEST = 16  # most steps back to the shapes of which a size is made
# results are nonnegative if all operands are
_RISING = {"Add", "Cast", "Div", "Identity", "Max", "Min", "Mod", "Mul", "Reshape", "Squeeze"}


def size_translations() -> dict[Any, Callable[..., Any]]:
    """Return the translations of operators on sizes.

    Python's floats are f64, so that a size times 0.29 is rounded from f64. torch.onnx uses f32.
    """
    op: Any = importlib.import_module("onnxscript").opset18  # installed with the exporter
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
    return {
        operator.floordiv: _floor_divided(op),
        operator.truediv: lambda self, other: _narrow(
            op, op.Div(_wide(op, self), _wide(op, other))
        ),
        operator.add: _of_numbers(op, op.Add),
        operator.sub: _of_numbers(op, op.Sub),
        operator.mul: _of_numbers(op, op.Mul),
        operator.neg: _of_numbers(op, op.Neg),
        torch.sym_float: lambda self: _narrow(op, _wide(op, self)),
        torch._sym_sqrt: lambda self: _narrow(op, op.Sqrt(_wide(op, self))),
        math.floor: lambda self: op.Cast(op.Floor(_wide(op, self)), to=_INT64),
        math.ceil: lambda self: op.Cast(op.Ceil(_wide(op, self)), to=_INT64),
        math.trunc: lambda self: op.Cast(_wide(op, self), to=_INT64),
        **_ranges(op, torch),
    }


def _ranges(op: Any, torch: Any) -> dict[Any, Callable[..., Any]]:
    """Return the translations of aten's three aranges: length and floats in f64, as in torch."""

    def arange(start, end, step, dtype):
        given = (start, end, step)
        floats = any(isinstance(v, float) or _type(v) in (_F32, _F64) for v in given)
        if dtype is None or dtype == _NO_TYPE:
            dtype = _F32 if floats else _INT64
        if not floats and dtype in _INTEGERS:
            made = op.Range(*(op.Cast(_number(op, v), to=_INT64) for v in given))
            return made if dtype == _INT64 else op.Cast(made, to=dtype)
        first, last, by = (_wide(op, v) for v in given)
        length = op.Cast(op.Ceil(op.Div(op.Sub(last, first), by)), to=_INT64)
        numbers = op.Range(_number(op, 0), length, _number(op, 1))
        if dtype in _INTEGERS:
            first, by = (op.Cast(v, to=_INT64) for v in (first, by))
        else:
            numbers = op.Cast(numbers, to=_F64)
        return op.Cast(op.Add(first, op.Mul(numbers, by)), to=dtype)

    aten = torch.ops.aten.arange
    return {
        aten.default: lambda end, dtype=None, **_: arange(0, end, 1, dtype),
        aten.start: lambda start, end, dtype=None, **_: arange(start, end, 1, dtype),
        aten.start_step: lambda start, end, step=1, dtype=None, **_: arange(
            start, end, step, dtype
        ),
    }


def _number(op: Any, value: Any) -> Any:
    """Return an integer as a tensor of no dims."""
    return op.Constant(value_int=value) if isinstance(value, int) else value


def _of_numbers(op: Any, make: Callable[..., Any]) -> Callable[..., Any]:
    """Return the translation of an operator on sizes and floats: in f64 if one is a float."""

    def written(*operands):
        if not any(isinstance(v, float) or _type(v) in (_F32, _F64) for v in operands):
            return make(*operands)
        return _narrow(op, make(*(_wide(op, v) for v in operands)))

    return written


def _narrow(op: Any, value: Any) -> Any:
    """Return a float in the type of tensors; `_wide` finds the original."""
    value.dtype = _ir().DataType.DOUBLE
    return op.Cast(value, to=_F32)


def _wide(op: Any, value: Any) -> Any:
    """Return a number in f64."""
    if isinstance(value, int | float):
        return op.Constant(value=_ir().tensor(float(value), dtype=_ir().DataType.DOUBLE))
    node = value.producer()
    narrowed = node if node is not None and node.op_type == "Cast" else None
    if narrowed and (_type(narrowed.inputs[0]), narrowed.attributes["to"].value) == (_F64, _F32):
        return narrowed.inputs[0]
    return op.Cast(value, to=_F64)


def _type(value: Any) -> int | None:
    kind = getattr(value, "dtype", None)
    return None if kind is None else int(kind)


def _ir() -> Any:
    return importlib.import_module("onnx_ir")  # installed with onnxscript


def _floor_divided(op: Any) -> Callable[..., Any]:
    """Return the translation of a floor division; ONNX's Div truncates."""

    def floordiv(self, other):
        if _not_negative(self) and _not_negative(other):
            return op.Div(self, other)
        return op.Div(op.Sub(self, op.Mod(self, other)), other)  # Mod has the divisor's sign

    return floordiv


def _not_negative(value: Any, depth: int = 0) -> bool:
    """Return whether a number is known to be nonnegative: a size, or computed from sizes."""
    if isinstance(value, int):
        return value >= 0
    if getattr(value, "const_value", None) is not None:
        return bool((value.const_value.numpy() >= 0).all())
    node = value.producer()
    if node is None or depth == _DEEPEST:
        return False
    if node.op_type == "Shape":
        return True
    if node.op_type == "Reshape":  # the second operand is a shape
        return _not_negative(node.inputs[0], depth + 1)
    return node.op_type in _RISING and all(_not_negative(v, depth + 1) for v in node.inputs if v)
