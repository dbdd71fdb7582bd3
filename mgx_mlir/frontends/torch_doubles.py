"""Numbers beside f64 tensors: torch computes with them in f64, torch.onnx rounds them to f32.

Attributes of ONNX are f32, and so are numbers that torch.onnx makes operands. Calls whose numbers
f32 holds are left as they are. Others are written with operands of numbers (`scalar_tensor`), whose
translation here keeps all digits.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

_LARGEST_F32 = float(np.finfo(np.float32).max)
_SUMS = ("aten::add.Tensor", "aten::sub.Tensor")
_ALWAYS = ("aten::hardsigmoid", "aten::selu")  # whose numbers are their own


def is_rounded(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether torch.onnx rounds a number of a call that computes in f64."""
    name = target.name()
    if name not in FUNCTIONS or not _is_double(args, kwargs):
        return False
    # a number that is added is an operand already
    numbers = kwargs.values() if name in _SUMS else (*args, *kwargs.values())
    return name in _ALWAYS or any(_is_inexact(x) for x in numbers)


def in_f64(target: Any) -> Callable[..., Any]:
    """Return a function that writes such calls with exact numbers, and keeps others."""
    write = FUNCTIONS[target.name()]

    def compute(*args: Any, **kwargs: Any) -> Any:
        if not is_rounded(target, args, kwargs):
            return NotImplemented
        return write(*args, **kwargs)

    return compute


def _is_double(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    double = _torch().float64
    dtype = kwargs.get("dtype")
    if dtype is not None:
        return dtype is double
    return any(_kind(x) is double for x in args)


def _kind(x: Any) -> Any:
    """Return the type of a tensor, or of a node of a graph that is one; None of anything else."""
    value = x.meta.get("val") if hasattr(x, "meta") and hasattr(x, "op") else x
    return getattr(value, "dtype", None)


def _is_inexact(x: Any) -> bool:
    if not isinstance(x, float) or not math.isfinite(x):
        return False
    return abs(x) > _LARGEST_F32 or float(np.float32(x)) != x


def scalar_tensor_translations() -> dict[Any, Callable[..., Any]]:
    """Return the translation of scalar_tensor, for torch.onnx."""
    op: Any = importlib.import_module("onnxscript").opset18  # installed with the exporter
    ir: Any = importlib.import_module("onnx_ir")

    def scalar_tensor(s, dtype=None, **_):
        kind = ir.DataType.FLOAT if dtype is None else ir.DataType(dtype)
        if not isinstance(s, int | float | complex):
            return op.Cast(s, to=kind)
        with np.errstate(over="ignore"):  # an infinity, where the type holds no such number
            array = np.array(s).astype(kind.numpy())
        if array.dtype.kind == "c":  # torch.onnx has real and imaginary part along a last axis
            array = np.stack([np.real(array), np.imag(array)])
        return op.Constant(value=ir.tensor(array))

    return {_torch().ops.aten.scalar_tensor.default: scalar_tensor}


def _number(x: Any) -> Any:
    torch = _torch()
    return torch.scalar_tensor(x, dtype=torch.float64)


def _celu(x: Any, alpha: float = 1.0) -> Any:
    return _elu(x, alpha, 1.0, 1.0 / alpha)


def _selu(x: Any) -> Any:
    return _elu(x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    below = (x * input_scale).expm1() * (alpha * scale)
    return _torch().where(x > 0, x * scale, below)


def _leaky_relu(x: Any, slope: float = 0.01) -> Any:
    return _torch().where(x > 0, x, x * slope)


def _hardsigmoid(x: Any) -> Any:
    return (x + 3.0).clamp(0.0, 6.0) / 6.0


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x * beta
    found = scaled.exp().log1p() / beta
    return _torch().where(scaled > threshold, x, found)


def _clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    return x.clamp(*(None if v is None else _number(v) for v in (low, high)))


def _clamp_max(x: Any, high: Any) -> Any:
    return _clamp(x, None, high)


def _full(size: Any, value: Any, **_: Any) -> Any:
    return _number(value).expand(size)


def _full_like(x: Any, value: Any, **_: Any) -> Any:
    return _number(value).expand(x.shape)


def _new_full(x: Any, size: Any, value: Any, **_: Any) -> Any:
    return _number(value).expand(size)


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return _torch().where(mask, _number(value), x)


def _linspace(start: float, end: float, steps: int, **_: Any) -> Any:
    """Return evenly spaced numbers, each computed from the nearer end, as torch does."""
    torch = _torch()
    step = (end - start) / max(steps - 1, 1)
    place = torch.arange(steps, dtype=torch.float64)
    last = place.neg().add(float(steps - 1)).mul(step).neg().add(end)
    return torch.where(place < max(steps // 2, 1), place.mul(step).add(start), last)


def _sum(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x + y * alpha


def _difference(x: Any, y: Any, *, alpha: Any = 1) -> Any:
    return x - y * alpha


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "aten::add.Tensor": _sum,
    "aten::celu": _celu,
    "aten::clamp": _clamp,
    "aten::clamp_max": _clamp_max,
    "aten::clamp_min": _clamp,
    "aten::elu": _elu,
    "aten::fill.Scalar": _full_like,
    "aten::full": _full,
    "aten::full_like": _full_like,
    "aten::hardsigmoid": _hardsigmoid,
    "aten::hardtanh": _clamp,
    "aten::linspace": _linspace,
    "aten::leaky_relu": _leaky_relu,
    "aten::masked_fill.Scalar": _masked_fill,
    "aten::new_full": _new_full,
    "aten::selu": _selu,
    "aten::softplus": _softplus,
    "aten::sub.Tensor": _difference,
}


def _torch() -> Any:
    return importlib.import_module("torch")  # already imported: the program is torch's
