"""Functions of tensors that torch.onnx lacks, made of operators that it has."""

from __future__ import annotations

import importlib
import math
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel

_TRAINING = "it takes the statistics of training; call model.eval()"


def power(x: Any, y: Any) -> Any:
    """Return a power of operands of two types; torch.onnx returns the type of x."""
    kind = _torch().result_type(x, y)
    return NotImplemented if x.dtype == y.dtype == kind else x.to(kind).pow(y.to(kind))


def reversed_difference(x: Any, other: Any, alpha: Any = 1) -> Any:
    """Return other - alpha * x.

    torch.onnx lacks it for a number of another kind: `1.0 - mask` of integers (torch 2.13).
    """
    kind = _torch().result_type(x, other)
    return NotImplemented if kind == x.dtype else x.to(kind).mul(-alpha).add(other)


def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Return a softmax in another type; torch.onnx converts the result instead of the operand."""
    return NotImplemented if dtype in (None, x.dtype) else x.to(dtype).softmax(dim)


def log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    """Return a log softmax in another type."""
    return NotImplemented if dtype in (None, x.dtype) else x.to(dtype).log_softmax(dim)


def bools_in_order(x: Any, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    """Return a sort of bools, as of bytes: ONNX sorts numbers alone."""
    torch = _torch()
    if x.dtype != torch.bool:
        return NotImplemented
    values, places = torch.sort(x.to(torch.uint8), dim, descending)
    return values.to(torch.bool), places


def stable_sort(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    """Return a stable sort; every sort of ONNX is stable."""
    return _torch().sort(x, dim=dim, descending=descending)


def stable_argsort(x: Any, *, stable: bool, dim: int = -1, descending: bool = False) -> Any:
    """Return the source indices of a stable sort."""
    return _torch().sort(x, dim=dim, descending=descending)[1]


def grouped_product(rows: Any, matrices: Any, ends: Any = None, *more: Any, **named: Any) -> Any:
    """Return a grouped matmul; ends: the end row of each group.

    Rows after the last group are 0. Every row is multiplied by every matrix, because group sizes
    are dynamic.
    """
    if ends is None or more or named or [rows.ndim, matrices.ndim, ends.ndim] != [2, 3, 1]:
        return NotImplemented
    torch = _torch()
    place = torch.arange(rows.shape[0]).unsqueeze(0)
    end = ends.to(torch.int64).unsqueeze(1)
    begin = torch.cat([torch.zeros_like(end[:1]), end[:-1]])
    mine = ((place >= begin) & (place < end)).unsqueeze(-1)
    return torch.where(mine, torch.matmul(rows.unsqueeze(0), matrices), 0).sum(0)


def is_in(x: Any, among: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Return whether elements are in a set; torch sorts for larger sets."""
    torch = _torch()
    x, among = torch.as_tensor(x), torch.as_tensor(among)
    found = (x.unsqueeze(-1) == among.flatten()).any(-1)
    return found.logical_not() if invert else found


def search_sorted(
    edges: Any, values: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Any = None,
) -> Any:  # fmt: skip
    """Return the number of sorted edges below each value, or not above it."""
    torch = _torch()
    if sorter is not None:
        edges = edges.gather(-1, sorter)
    values = torch.as_tensor(values)
    at, of = values.unsqueeze(-1), edges if edges.ndim == 1 else edges.unsqueeze(-2)
    below = of <= at if right or side == "right" else of < at
    return below.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def bucket(x: Any, edges: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Return the bucket of each value, for a dynamic number of edges.

    Torch's decomposition unrolls a search, with as many steps as the trace's edges need.
    """
    if isinstance(edges.shape[0], int):
        return NotImplemented
    return search_sorted(edges, x, out_int32=out_int32, right=right)


def hypotenuse(x: Any, y: Any) -> Any:
    """Return sqrt(x^2 + y^2) without squares that overflow."""
    torch = _torch()
    x, y = x.abs(), y.abs()
    most, least = torch.maximum(x, y), torch.minimum(x, y)
    ratio = torch.where((most == 0) | most.isinf(), 0, least / most)
    return most * (1 + ratio * ratio).sqrt()


def with_sign(x: Any, y: Any) -> Any:
    """Return the magnitude of x, of integers and bools as a float, with the sign of y."""
    torch = _torch()
    kind = torch.result_type(x, y)
    size = x.to(kind if kind.is_floating_point else torch.get_default_dtype()).abs()
    return torch.where(torch.signbit(torch.as_tensor(y)), -size, size)


def leaky_mean(
    x: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
    generator: Any = None,
) -> Any:  # fmt: skip
    """Return rrelu in inference, a leaky ReLU. Raises UnsupportedModel in training."""
    if training:
        raise UnsupportedModel("rrelu: it draws slopes as in training; call model.eval()")
    return importlib.import_module("torch.nn.functional").leaky_relu(x, (lower + upper) / 2)


def distances(x: Any, y: Any, p: float = 2.0, mode: Any = None) -> Any:
    """Return the p-norms of the differences of all pairs of rows."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    return _torch().linalg.vector_norm(apart, p, dim=-1)


def selected(x: Any, mask: Any) -> Any:
    """Return the elements where a mask is true, in order."""
    x, mask = _torch().broadcast_tensors(x, mask)
    return x[mask]


def kth_value(x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """Return the k-th smallest element of a dim (1 is the smallest), and its index."""
    if x.ndim == 0:
        return x.clone(), _torch().zeros_like(x, dtype=_torch().int64)
    values, places = _torch().sort(x, dim=dim)
    found = tuple(t.narrow(dim, k - 1, 1) for t in (values, places))
    values, places = found if keepdim else (t.squeeze(dim) for t in found)
    return values, places


def median(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the lower median of all elements, or of a dim with its index; NaN if one is NaN."""
    torch = _torch()
    whole, dim = dim is None, -1 if dim is None else dim
    x = x.flatten() if whole else x
    values, places = kth_value(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if x.is_floating_point():
        values = torch.where(x.isnan().any(dim, keepdim=keepdim), float("nan"), values)
    return values if whole else (values, places)


def median_of_numbers(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return nanmedian: the lower median without NaN, of a dim with its index."""
    torch = _torch()
    whole, dim = dim is None, -1 if dim is None else dim
    keepdim = keepdim and not whole and x.ndim > 0
    x = x.flatten() if whole or not x.ndim else x
    values, places = torch.sort(x, dim=dim)
    count = values.isnan().logical_not().sum(dim, keepdim=True)
    at = torch.floor_divide(count - 1, 2).clamp(min=0)
    found = tuple(t.gather(dim, at) for t in (values, places))
    values, places = found if keepdim else (t.squeeze(dim) for t in found)
    return values if whole else (values, places)


def most_frequent(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """Return the most frequent value of a dim, the least of several, and its last index.

    Memory is quadratic in the extent.
    """
    torch = _torch()
    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    given = x.movedim(dim, -1)
    count = (given.unsqueeze(-1) == given.unsqueeze(-2)).sum(-1)
    often = count == count.amax(-1, keepdim=True)
    values = torch.where(often, given, _worst(x.dtype, largest=False)).amin(-1, keepdim=True)
    place = torch.arange(given.shape[-1])
    places = torch.where(often & (given == values), place, 0).amax(-1, keepdim=True)
    values, places = (t.movedim(-1, dim) for t in (values, places))
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def running_product(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return cumulative products along a dim."""
    torch = _torch()
    kind = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    if x.ndim == 0:
        return x.to(kind, copy=True)
    parts, seen, _ = _up_to_each(x.to(kind), dim)
    return torch.where(seen, parts, 1).prod(-1).movedim(-1, dim)


def running_maximum(x: Any, dim: int) -> tuple[Any, Any]:
    """Return cumulative maxima along a dim, and the last index of each."""
    return _running_extreme(x, dim, largest=True)


def running_minimum(x: Any, dim: int) -> tuple[Any, Any]:
    """Return cumulative minima along a dim, and the last index of each."""
    return _running_extreme(x, dim, largest=False)


def batch_norm(
    x: Any, scale: Any, shift: Any, mean: Any, variance: Any, training: bool, momentum: float,
    epsilon: float, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """Return a batch norm without running statistics: it uses its input's."""
    if mean is not None or not training:
        return NotImplemented
    axes = [i for i in range(x.ndim) if i != 1]
    y = x - x.mean(axes, keepdim=True)
    y = y * ((y * y).mean(axes, keepdim=True) + epsilon).rsqrt()
    for part, joined in ((scale, "mul"), (shift, "add")):
        if part is not None:
            y = getattr(y, joined)(part.reshape(-1, *(1 for _ in axes[1:])))
    return y


def native_batch_norm(
    x: Any, scale: Any, shift: Any, mean: Any, variance: Any, training: bool, momentum: float,
    epsilon: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Return a batch norm, and in training the input's statistics.

    Raises UnsupportedModel if it writes to running statistics.
    """
    if not training:
        aten, none = _torch().ops.aten, x.new_zeros(0)
        y, _, _ = aten._native_batch_norm_legit_no_training(
            x, scale, shift, mean, variance, momentum, epsilon
        )
        return y, none, none
    if mean is not None:
        raise UnsupportedModel(f"batch_norm: {_TRAINING}")
    axes = [i for i in range(x.ndim) if i != 1]
    own = x.mean(axes)
    apart = x - own.reshape(-1, *(1 for _ in axes[1:]))
    y = batch_norm(x, scale, shift, None, None, True, momentum, epsilon)
    return y, own, ((apart * apart).mean(axes) + epsilon).rsqrt()


def functional_batch_norm(*arguments: Any) -> tuple[Any, ...]:
    """Return a batch norm and the unchanged running statistics; training would change them."""
    return *native_batch_norm(*arguments), arguments[3].clone(), arguments[4].clone()


def instance_norm(
    x: Any, scale: Any, shift: Any, mean: Any, variance: Any, use_input_stats: bool,
    momentum: float, epsilon: float, cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """Refuse an instance norm that writes to running statistics."""
    if use_input_stats and mean is not None:
        raise UnsupportedModel(f"instance_norm: {_TRAINING}")
    return NotImplemented


def native_group_norm(
    x: Any, scale: Any, shift: Any, count: Any, channels: Any, size: Any, groups: int,
    epsilon: float,
) -> Any:  # fmt: skip
    """Return a group norm without images, and its statistics."""
    if not isinstance(count, int) or count:
        return NotImplemented
    none = x.new_zeros((0, groups))
    return x.clone(), none, none.clone()


def _running_extreme(x: Any, dim: int, largest: bool) -> tuple[Any, Any]:
    torch = _torch()
    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    parts, seen, place = _up_to_each(x, dim)
    parts = torch.where(seen, parts, _worst(x.dtype, largest))
    best = parts.amax(-1, keepdim=True) if largest else parts.amin(-1, keepdim=True)
    is_best = parts.isnan() | (parts == best) if x.is_floating_point() else parts == best
    places = torch.where(seen & is_best, place, 0).amax(-1)
    return best.squeeze(-1).movedim(-1, dim), places.movedim(-1, dim)


def _worst(kind: Any, largest: bool) -> float | int:
    """Return the least, or greatest, number of a type."""
    if kind.is_floating_point:
        return -math.inf if largest else math.inf
    if kind == _torch().bool:
        return not largest
    limits = _torch().iinfo(kind)
    return limits.min if largest else limits.max


def _up_to_each(x: Any, dim: int) -> tuple[Any, Any, Any]:
    """Return x with a dim last, and its inverse; the mask of earlier elements; indices.

    Memory is quadratic in the extent: the only scan of torch.onnx is a sum.
    """
    torch = _torch()
    x = x.movedim(dim, -1)
    place = torch.arange(x.shape[-1])
    seen = place <= place.unsqueeze(-1)
    return x.unsqueeze(-2).expand(*x.shape, x.shape[-1]), seen, place


def _torch() -> Any:
    return importlib.import_module("torch")  # already imported: the program is torch's
