"""Replacements of torch operators whose arguments torch.onnx drops or misreads.

Each takes its operator's own arguments, and returns NotImplemented if torch.onnx is correct.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel

# reductions of losses, by number
_NONE, _MEAN, _SUM = 0, 1, 2


def attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Return scaled dot-product attention; torch.onnx supports only rank 4.

    Raises UnsupportedModel for dropout, which torch applies in inference too.
    """
    if dropout_p:
        raise UnsupportedModel(f"scaled_dot_product_attention: dropout_p is {dropout_p}, not 0")
    given = (query, key, value)
    plain = all(t.ndim == 4 and t.shape[0] == query.shape[0] for t in given)
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        if plain:
            return NotImplemented
        if any(t.ndim != 3 for t in given):
            raise UnsupportedModel("scaled_dot_product_attention: enable_gqa needs equal batches")
        one = [t.unsqueeze(0) for t in given]
        return _sdpa(one, attn_mask, is_causal, scale, True).squeeze(0)
    if plain and all(t.shape[1] == query.shape[1] for t in given):
        if not enable_gqa:
            return NotImplemented
        return _sdpa(given, attn_mask, is_causal, scale, False)
    # batches and heads merged to one dim, to which a mask is broadcast
    lead = _torch().broadcast_shapes(*(t.shape[:-2] for t in given))
    flat = [t.expand(*lead, *t.shape[-2:]).reshape(1, -1, *t.shape[-2:]) for t in given]
    if attn_mask is not None and attn_mask.ndim > 2:
        attn_mask = attn_mask.expand(*lead, *attn_mask.shape[-2:])
        attn_mask = attn_mask.reshape(1, -1, *attn_mask.shape[-2:])
    out = _sdpa(flat, attn_mask, is_causal, scale, False)
    return out.reshape(*lead, *out.shape[-2:])


def _sdpa(given: Sequence[Any], mask: Any, causal: bool, scale: Any, many: bool) -> Any:
    f = importlib.import_module("torch.nn.functional")
    return f.scaled_dot_product_attention(
        *given, mask, is_causal=causal, scale=scale, enable_gqa=many
    )


def attention_on_cpu(
    query: Any, key: Any, value: Any, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: Any = None, scale: float | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Return attention, and the logarithms of its rows' sums."""
    if dropout_p:
        raise UnsupportedModel(f"scaled_dot_product_attention: dropout_p is {dropout_p}, not 0")
    out = _sdpa((query, key, value), attn_mask, is_causal, scale, False)
    return out, _sums(query, key, attn_mask, is_causal, scale)


def _sums(query: Any, key: Any, mask: Any, causal: bool, scale: float | None) -> Any:
    torch = _torch()
    scores = torch.matmul(query, key.transpose(-2, -1))
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(seen.logical_not(), -math.inf)
    return (scores if mask is None else scores + mask).logsumexp(-1)


def scatter_reduce(
    x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Return a scatter with reductions; torch.onnx has no mean, and a wrong initial extreme.

    Without include_self it starts with the least finite number, even if all are -inf.
    """
    if x.ndim == 0 and not include_self:  # ONNX scatters along an axis
        row = x.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce
        return _torch().scatter_reduce(*row, include_self=False).reshape(())
    torch, cut = _torch(), sources_of(src, index)
    if reduce == "mean":
        src = cut
        total = x.scatter_reduce(dim, index, src, "sum", include_self=include_self)
        ones = torch.ones_like(x) if include_self else torch.ones_like(x).scatter(dim, index, 0)
        count = ones.scatter_reduce(dim, index, torch.ones_like(src), "sum").clamp(min=1)
        rounding = None if x.is_floating_point() else "floor"
        return torch.div(total, count, rounding_mode=rounding)
    if include_self:
        return x.scatter_reduce(dim, index, cut, reduce) if cut is not src else NotImplemented
    src = cut
    first = {"sum": 0, "prod": 1, "amax": _least(x.dtype), "amin": _greatest(x.dtype)}[reduce]
    return x.scatter(dim, index, first).scatter_reduce(dim, index, src, reduce)


def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Return a scatter whose sources exceed the indices' dims."""
    cut = sources_of(src, index)
    return NotImplemented if cut is src else x.scatter(dim, index, cut)


def sources_of(src: Any, index: Any) -> Any:
    """Return the sources with an index: torch uses those within the indices' dims."""
    for axis, (have, need) in enumerate(zip(src.shape, index.shape, strict=True)):
        # sympy expressions: comparing symbols would add a guard
        have, need = (getattr(getattr(n, "node", None), "expr", n) for n in (have, need))
        if have != need:
            src = src.narrow(axis, 0, index.shape[axis])
    return src


def _least(kind: Any) -> Any:
    torch = _torch()
    if kind == torch.bool:
        return False
    return -math.inf if kind.is_floating_point else torch.iinfo(kind).min


def _greatest(kind: Any) -> Any:
    torch = _torch()
    if kind == torch.bool:
        return True
    return math.inf if kind.is_floating_point else torch.iinfo(kind).max


def index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """Return slices reduced at the indices of a list."""
    names = {"mean": "mean", "prod": "prod", "amax": "amax", "amin": "amin"}
    if x.ndim == 0:
        return x.reshape(1).scatter_reduce(
            0, index.reshape(-1), source.reshape(-1), names[reduce], include_self=include_self
        ).reshape(())  # fmt: skip
    shape = [1] * source.ndim
    shape[dim] = -1
    places = index.to(_torch().int64).reshape(shape).expand(source.shape)
    return x.scatter_reduce(dim, places, source, names[reduce], include_self=include_self)


def cross_entropy(
    x: Any, target: Any, weight: Any = None, reduction: int = _MEAN, ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Return the loss for class probabilities, for smoothed labels, and without a batch."""
    torch = _torch()
    if x.ndim == 1 and not target.is_floating_point():
        more = (weight, reduction, ignore_index, label_smoothing)
        found = torch.ops.aten.cross_entropy_loss(x.unsqueeze(0), target.unsqueeze(0), *more)
        return found.reshape(())
    if not target.is_floating_point() and not label_smoothing:
        return NotImplemented
    f = importlib.import_module("torch.nn.functional")
    axis = 0 if x.ndim == 1 else 1
    logs, classes = x.log_softmax(axis), x.shape[axis]
    weighted = logs
    if weight is not None:
        weighted = logs * weight.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    if target.is_floating_point():
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / classes
        loss = -(weighted * target).sum(axis)
        if reduction == _NONE:
            return loss
        return loss.sum() / loss.numel() if reduction == _MEAN else loss.sum()
    plain = f.nll_loss(
        logs, target, weight, ignore_index=ignore_index,
        reduction={_NONE: "none", _MEAN: "mean", _SUM: "sum"}[reduction],
    )  # fmt: skip
    ignored = target == ignore_index
    smooth = torch.where(ignored, 0, -weighted.sum(axis))
    if reduction != _NONE:
        smooth = smooth.sum()
    if reduction == _MEAN:
        shares = ignored.logical_not().to(x.dtype)
        if weight is not None:
            shares = shares * weight[torch.where(ignored, 0, target)]
        smooth = smooth / shares.sum()
    return plain * (1 - label_smoothing) + smooth * (label_smoothing / classes)


def avg_pool(
    x: Any, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor: int | None = None,
) -> Any:  # fmt: skip
    """Return average pooling with divisor_override."""
    if divisor is None:
        return NotImplemented
    f, n = importlib.import_module("torch.nn.functional"), len(kernel) if len(kernel) > 1 else 0
    n = n or (3 if x.ndim == 5 else 2)
    kernel, stride, padding = (
        [*p] * n if len(p) == 1 else [*p] for p in (kernel, stride or kernel, padding)
    )
    pads: list[Any] = []
    for size, k, s, p in zip(x.shape[-n:], kernel, stride, padding, strict=True):
        last = p
        if ceil_mode:  # windows that begin within the padded input extend beyond it
            count = -((k - size - 2 * p) // s) + 1
            count = count - ((count - 1) * s >= size + p)
            last = max((count - 1) * s + k - size - p, p)
        pads = [p, last, *pads]
    pool, count = f.avg_pool3d if n == 3 else f.avg_pool2d, math.prod(kernel)
    if x.is_floating_point():
        return pool(f.pad(x, pads), kernel, stride) * (count / divisor)
    torch = _torch()
    sums = (pool(f.pad(x.to(torch.float64), pads), kernel, stride) * count).round()
    return torch.div(sums.to(x.dtype), divisor, rounding_mode="trunc")


def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, Any, Any]:
    """Return slices that differ from the previous one, each input's index, and the counts."""
    torch = _torch()
    shape = x.shape
    x = x.flatten() if dim is None else x.movedim(dim, 0)
    differs = (x[1:] != x[:-1]).reshape(x.shape[0] - 1, -1).any(1)
    begins = torch.cat([torch.ones_like(x[:1].reshape(-1)[:1], dtype=torch.bool), differs])
    found, none = x[begins], torch.empty(0, dtype=torch.int64)
    inverse = counts = none
    if return_inverse:
        inverse = begins.to(torch.int64).cumsum(0) - 1
        inverse = inverse.reshape(shape) if dim is None else inverse
    if return_counts:
        places = torch.arange(x.shape[0] + 1)
        marks = torch.cat([begins, torch.ones_like(begins[:1])])
        ends = places[marks]
        counts = ends[1:] - ends[:-1]
    return (found if dim is None else found.movedim(0, dim)), inverse, counts


def quantized(
    x: Any, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any
) -> Any:
    """Return quantised numbers within given limits; torch.onnx uses the type's limits."""
    torch = _torch()
    plain = isinstance(scale, float) and isinstance(zero_point, int)
    if plain and dtype in _short_types():
        limits = torch.iinfo(dtype)
        if (quant_min, quant_max) == (limits.min, limits.max):
            return NotImplemented
        made = torch.ops.quantized_decomposed.quantize_per_tensor(
            x, scale, zero_point, limits.min, limits.max, dtype
        )
        return made.clamp(quant_min, quant_max)
    found = (x.to(torch.float32) * (1.0 / scale)).round() + zero_point
    return _within(found, quant_min, quant_max).to(dtype)


def _within(x: Any, low: Any, high: Any) -> Any:
    torch = _torch()
    if isinstance(low, torch.Tensor):
        return torch.minimum(torch.maximum(x, low.to(x.dtype)), high.to(x.dtype))
    return x.clamp(low, high)


def dequantized(
    x: Any, scale: Any, zero_point: Any, quant_min: Any, quant_max: Any, dtype: Any, *,
    out_dtype: Any = None,
) -> Any:  # fmt: skip
    """Return dequantised numbers; torch ignores limits as well."""
    kind = out_dtype or _torch().float32
    plain = isinstance(scale, float) and isinstance(zero_point, int)
    if plain and dtype in _short_types() and kind == _torch().float32:
        return NotImplemented
    return ((x.to(kind) - zero_point) * scale).to(kind)


def _short_types() -> tuple[Any, ...]:
    torch = _torch()
    return torch.int8, torch.uint8


def chosen_scale(x: Any, quant_min: int, quant_max: int, eps: float, dtype: Any) -> tuple[Any, Any]:
    """Return the scale and zero point for a range of numbers that includes 0."""
    torch = _torch()
    low, high = x.flatten().amin(0).clamp(max=0), x.flatten().amax(0).clamp(min=0)
    scale = ((high - low) / float(quant_max - quant_min)).clamp(min=eps)
    zero = (quant_min - (low / scale).round().to(torch.int32)).clamp(quant_min, quant_max)
    return scale.reshape(1).to(torch.float64), zero.reshape(1).to(torch.int64)


def chosen_symmetric_scale(
    x: Any, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Any, Any]:
    """Return the scale for a symmetric range; the zero point is 0, or 128 for unsigned types."""
    torch = _torch()
    most = x.flatten().abs().amax(0)
    scale = (most / (float(quant_max - quant_min) / 2)).clamp(min=eps)
    zero = torch.full((1,), 128 if dtype == torch.uint8 else 0, dtype=torch.int64)
    return scale.reshape(1).to(torch.float64), zero


def addmm(x: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return addmm: a sum with a matmul."""
    return _sum(x, lambda a, b: a @ b, (left, right), beta, alpha)


def addbmm(x: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return addbmm: a sum with batched matmuls, summed over the batch."""
    return _sum(x, lambda a, b: (a @ b).sum(0), (left, right), beta, alpha)


def baddbmm(x: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return baddbmm: a sum with batched matmuls."""
    return _sum(x, lambda a, b: a @ b, (left, right), beta, alpha)


def addmv(x: Any, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return addmv: a sum with a matrix-vector product."""
    return _sum(x, lambda a, b: a @ b, (matrix, vector), beta, alpha)


def addr(x: Any, column: Any, row: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return addr: a sum with an outer product."""
    return _sum(x, lambda a, b: a.unsqueeze(1) * b, (column, row), beta, alpha)


def addcmul(x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    """Return x + value y z."""
    return _sum(x, lambda a, b: a * b, (y, z), 1, value, always=True)


def addcdiv(x: Any, y: Any, z: Any, *, value: Any = 1) -> Any:
    """Return x + value y / z."""
    return _sum(x, lambda a, b: a / b, (y, z), 1, value, always=True)


def _sum(
    x: Any, product: Callable[[Any, Any], Any], factors: Sequence[Any], beta: Any, alpha: Any,
    *, always: bool = False,
) -> Any:  # fmt: skip
    """Return beta x + alpha product, if torch.onnx is wrong.

    torch.onnx reads x even if beta is 0, makes run-time numbers attributes, rounds numbers beside
    f64 to f32, and rounds the addends of 16-bit floats, which may be infinite where the sum is not.

    always: 16-bit floats are computed in f32 with factors of 1, too.
    """
    torch, kind = _torch(), x.dtype
    is_plain = _is_plain(beta) and _is_plain(alpha)
    is_short = kind in (torch.float16, torch.bfloat16)
    if is_plain and beta:
        is_one = beta == 1 and alpha == 1
        if not (is_short or kind is torch.float64) or (is_one and not (always and is_short)):
            return NotImplemented
    if any(f.dtype is not kind for f in factors):  # torch promotes them
        return NotImplemented
    wide = torch.float32 if is_short else kind
    found = _scaled(product(*(f.to(wide) for f in factors)), alpha)
    if is_plain and not beta:
        return found.to(kind)
    return (_scaled(x.to(wide), beta) + found).to(kind)


def _scaled(x: Any, alpha: Any) -> Any:
    return x if _is_plain(alpha) and alpha == 1 else x * alpha


def _is_plain(number: Any) -> bool:
    return isinstance(number, int | float)  # otherwise a symbol


def any_of_all(x: Any) -> Any:
    """Return whether an element is not 0, False for none; torch.onnx computes a maximum."""
    return _any(x, None, keepdim=False)


def any_of_dim(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Return whether an element along a dim is not 0."""
    return _any(x, dim, keepdim)


def any_of_dims(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return whether an element along dims is not 0."""
    return _any(x, dim, keepdim)


def _any(x: Any, dim: Any, keepdim: bool) -> Any:
    if all(isinstance(n, int) and n for n in x.shape):
        return NotImplemented
    zero = x == 0
    every = zero.all() if dim is None and not keepdim else zero.all(dim, keepdim)
    return every.logical_not()


def fake_quantized(x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    """Return fake quantisation with any limits."""
    torch = _torch()
    wide = x.to(torch.float32)
    found = ((wide * (1.0 / scale)).round() + zero_point).clamp(quant_min, quant_max)
    return ((found - zero_point) * scale).to(x.dtype)


def fake_quantized_channels(
    x: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int
) -> Any:
    """Return fake quantisation with scales along an axis."""
    shape = [-1 if dim == axis else 1 for dim in range(x.ndim)]
    parts = scale.reshape(shape), zero_point.reshape(shape)
    return fake_quantized(x, *parts, quant_min, quant_max)


def _torch() -> Any:
    return importlib.import_module("torch")  # already imported: the program is torch's
