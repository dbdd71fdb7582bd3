"""Torch functions that write parts of a tensor, and small ones that torch.onnx lacks."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.torch_arguments import sources_of
from mgx_mlir.frontends.torch_numbers import reduced_in_f32


def larger_number(x: Any, y: Any) -> Any:
    """Return fmax: the larger of two numbers, or the other one if one is NaN."""
    return _other_than_nan(x, y, _torch().maximum(x, y))


def smaller_number(x: Any, y: Any) -> Any:
    """Return fmin: the smaller of two numbers, or the other one if one is NaN."""
    return _other_than_nan(x, y, _torch().minimum(x, y))


def _other_than_nan(x: Any, y: Any, found: Any) -> Any:
    torch = _torch()
    if not found.is_floating_point():
        return found
    return torch.where(x.isnan(), y, torch.where(y.isnan(), x, found)).to(found.dtype)


def sign_bit(x: Any) -> Any:
    """Return whether numbers are negative, including -0.0; NaN counts as positive."""
    torch = _torch()
    if x.dtype == torch.bool:
        return torch.zeros_like(x)
    if not x.is_floating_point():
        return x < 0
    return torch.where(x == 0, 1 / x, x) < 0


def distances_of_pairs(x: Any, p: float = 2.0) -> Any:
    """Return pdist: the p-norms of the differences of rows i and j, for all i < j in order."""
    torch = _torch()
    n = x.shape[0]
    k = torch.arange(n * (n - 1) // 2)
    # a run-time number: a trace cannot print a symbol in a root
    n = torch.full((1,), n, dtype=torch.int64)
    # pairs before row i: i (2 n - i - 1) / 2, solved for i; exact in f64 up to 2^26 rows
    root = (4 * n * (n - 1) - 7 - 8 * k).to(torch.float64).sqrt()
    i = n - 2 - (root / 2 - 0.5).floor().to(torch.int64)
    j = k + i + 1 - torch.div(i * (2 * n - i - 1), 2, rounding_mode="floor")
    apart = x.index_select(0, i) - x.index_select(0, j)
    return torch.linalg.vector_norm(apart, p, dim=-1)


def with_diagonal(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return x with another diagonal: element k of it is source[..., k]."""
    torch = _torch()
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows = torch.arange(moved.shape[-2]).unsqueeze(1)
    columns = torch.arange(moved.shape[-1]).unsqueeze(0)
    if source.shape[-1] == 0:
        return x.clone()
    along = (rows if offset >= 0 else columns).expand(rows.shape[0], columns.shape[1])
    spread = source.index_select(-1, along.flatten().clamp(max=source.shape[-1] - 1))
    spread = spread.unflatten(-1, (rows.shape[0], columns.shape[1]))
    found = torch.where(columns - rows == offset, spread.to(x.dtype), moved)
    return found.movedim((-2, -1), (dim1, dim2))


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a diagonal by a gather; torch.onnx multiplies by a mask, which gives NaN for inf."""
    torch = _torch()
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    down, right = max(-offset, 0), max(offset, 0)
    count = torch.sym_max(torch.sym_min(rows - down, columns - right), 0)
    places = (torch.arange(count) + down) * columns + torch.arange(count) + right
    return moved.flatten(-2).index_select(-1, places)


def rolled(x: Any, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """Return a tensor rolled by shifts that are sizes; torch.onnx takes only numbers."""
    if all(isinstance(s, int) for s in shifts):
        return NotImplemented
    if not dims:
        return rolled(x.reshape(-1), shifts, (0,)).reshape(x.shape)
    torch = _torch()
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        places = torch.arange(size, device=x.device) - shift % size
        x = x.index_select(dim, torch.where(places < 0, places + size, places))
    return x


def histogram(x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Return a histogram of equal bins; equal limits mean the least and greatest element."""
    torch = _torch()
    x = x.flatten()
    low, high = torch.full((), min, dtype=x.dtype), torch.full((), max, dtype=x.dtype)
    if min == max and not _is(x.shape[0], 0):
        low, high = x.amin(0), x.amax(0)
    same = low == high
    low, high = low - same.to(x.dtype), high + same.to(x.dtype)
    bin_of = ((x - low) / (high - low) * bins).floor().clamp(0, bins - 1)
    inside = ((x >= low) & (x <= high)).to(x.dtype)
    counts = torch.zeros(bins, dtype=x.dtype)
    return counts.scatter_add(0, torch.where(inside > 0, bin_of, 0).to(torch.int64), inside)


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Return x with elements at flat indices written, or added to."""
    torch = _torch()
    flat, index, source = x.flatten(), index.flatten(), source.flatten()
    index = torch.where(index < 0, index + flat.shape[0], index)
    found = flat.scatter_add(0, index, source) if accumulate else flat.scatter(0, index, source)
    return found.reshape(x.shape)


def first_places(x: Any, *, size: Any, fill_value: int = -1) -> Any:
    """Return the indices of the first `size` nonzero elements, {size, dims}; then fill."""
    torch = _torch()
    found = (x != 0).flatten()
    number = torch.where(found, found.to(torch.int64).cumsum(0) - 1, size).clamp(max=size)
    flat = torch.zeros(size + 1, dtype=torch.int64)
    flat = flat.scatter(0, number, torch.arange(found.shape[0]))[:size]
    there = torch.arange(size) < found.to(torch.int64).sum()
    places, step = list[Any](), 1
    for extent in reversed(x.shape):
        at = torch.floor_divide(flat, step) % max(extent, 1)
        places.insert(0, torch.where(there, at, fill_value))
        step = step * max(extent, 1)
    return torch.stack(places, 1) if places else torch.zeros((size, 0), dtype=torch.int64)


def with_strided(
    x: Any, source: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None
) -> Any:
    """Return as_strided_scatter: x with the elements of a strided view written."""
    torch = _torch()
    if not x.is_contiguous():
        raise UnsupportedModel("as_strided_scatter: the tensor is not row-major")
    place = torch.full((), storage_offset or 0, dtype=torch.int64)
    for extent, step in zip(size, stride, strict=True):
        place = place.unsqueeze(-1) + torch.arange(extent) * step
    flat = x.flatten().scatter(0, place.flatten(), source.flatten().to(x.dtype))
    return flat.reshape(x.shape)


def strided(x: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> Any:
    """Return as_strided of a tensor whose elements lie together, in any order of its dims.

    torch.onnx counts elements in the order of the dims, from the first of the tensor: that is the
    memory only of tensors that lie in order. Raises UnsupportedModel for views that leave gaps.
    """
    own = x.storage_offset()
    begin = (own if storage_offset is None else storage_offset) - own
    numbers = [begin, *size, *stride, *x.shape]
    known = all(isinstance(n, int) for n in numbers)
    reach = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + begin if known else 0
    inside = not known or 0 in size or (begin >= 0 and reach <= x.numel())
    if inside and own == 0 and x.is_contiguous():
        return NotImplemented
    order = sorted(range(x.ndim), key=lambda i: (x.stride(i), x.shape[i]), reverse=True)
    ordered = x.permute(order)
    if not inside or not ordered.is_contiguous():
        raise UnsupportedModel("as_strided: the tensor does not lie in order")
    apart = ordered.clone(memory_format=_torch().contiguous_format)
    return _torch().as_strided(apart, size, stride, begin)


def empty_permuted(
    size: Sequence[Any], physical_layout: Any, *, dtype: Any = None, **_: Any
) -> Any:
    """Return an uninitialised tensor; the call's result has the strides."""
    return _torch().zeros(size, dtype=dtype)


def product(x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the product along a dim; a 0-d tensor is its own product."""
    if x.ndim:
        return reduced_in_f32("prod", x, dim, keepdim, dtype=dtype)
    return x.to(dtype or (x.dtype if x.is_floating_point() else _torch().int64)).clone()


def greatest_in_order(
    x: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    """Return topk of a 0-d tensor: itself, at index 0."""
    torch = _torch()
    return NotImplemented if x.ndim else (x.clone(), torch.zeros((), dtype=torch.int64))


def repeated_places(repeats: Any, *, output_size: Any = None) -> Any:
    """Return repeat_interleave's indices, for a given total."""
    torch = _torch()
    if output_size is None:
        return NotImplemented
    ends = repeats.cumsum(0)
    return (torch.arange(output_size).unsqueeze(1) >= ends).to(repeats.dtype).sum(1)


def scatter_with(x: Any, dim: int, index: Any, src: Any, *, reduce: str) -> Any:
    """Return a scatter that adds or multiplies."""
    torch = _torch()
    if not isinstance(src, torch.Tensor):
        src = torch.full(index.shape, src, dtype=x.dtype)
    if not x.ndim:
        found = scatter_with(x.reshape(1), 0, index.reshape(1), src.reshape(1), reduce=reduce)
        return found.reshape(())
    name = {"add": "sum", "multiply": "prod"}[reduce]
    return x.scatter_reduce(dim, index.to(torch.int64), sources_of(src, index), name)


def put_where(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Return x[..., mask, ...] = values, for one mask, which may cover several dims."""
    torch = _torch()
    given = [(i, m) for i, m in enumerate(indices) if m is not None]
    if len(given) != 1 or given[0][1].dtype not in (torch.bool, torch.uint8):
        return NotImplemented
    first, mask = given[0]
    if mask.ndim == 0:
        return NotImplemented
    mask = mask.to(torch.bool)
    last = first + mask.ndim
    shape = [*(1 for _ in range(first)), -1, *(1 for _ in range(last, x.ndim))]
    flat = x.flatten(first, last - 1) if mask.ndim > 1 else x
    chosen = mask.flatten()
    values = values.to(x.dtype)
    dim = values.ndim - (x.ndim - last) - 1  # dim of values for the selected elements
    if dim >= 0 and not _is(values.shape[dim], 1):
        # index of each element among the selected ones
        number = (chosen.cumsum(0) - 1).clamp(min=0)
        values = values.index_select(dim, number)
    found = torch.where(chosen.reshape(shape), flat + values if accumulate else values, flat)
    return found.reshape(x.shape)


def _is(size: Any, number: int) -> bool:
    return isinstance(size, int) and size == number


def projected_lstm(
    x: Any, hx: Sequence[Any], params: Sequence[Any], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> Any:  # fmt: skip
    """Return an LSTM with a projected hidden state (proj_size), as one without projection.

    The state before the projection, m, is that of an LSTM with recurrent weights W_hh W_hr. The
    first step reads h0 instead, as an additional input with the weights W_hh.
    """
    h0, c0 = hx
    if h0.shape[-1] == c0.shape[-1]:
        return NotImplemented
    torch = _torch()
    ways, each = 1 + bool(bidirectional), 5 if has_biases else 3
    x = x.transpose(0, 1) if batch_first else x
    ends: list[tuple[Any, Any]] = []
    for layer in range(num_layers):
        found: list[Any] = []
        for way in range(ways):
            i = layer * ways + way
            own = params[i * each : (i + 1) * each]
            given = x.flip(0) if way else x
            y, end = _one_projected(given, h0[i], c0[i : i + 1], own)
            found.append(y.flip(0) if way else y)
            ends.append(end)
        x = torch.cat(found, -1) if ways == 2 else found[0]
    hidden, cell = (torch.cat(parts, 0) for parts in zip(*ends, strict=True))
    return (x.transpose(0, 1) if batch_first else x), hidden, cell


def _one_projected(x: Any, h0: Any, c0: Any, own: Sequence[Any]) -> tuple[Any, tuple[Any, Any]]:
    """Return one layer's outputs in one direction, {length, batch, width}, and its final states."""
    torch = _torch()
    inner, recurrent, *biases, projection = own
    start = torch.zeros_like(x[1:, :, :1]).expand(-1, -1, h0.shape[-1])
    joined = torch.cat([x, torch.cat([h0.unsqueeze(0), start], 0)], -1)
    weights = [torch.cat([inner, recurrent], 1), recurrent @ projection, *biases]
    y, m, c = torch.ops.aten.lstm.input(
        joined, [torch.zeros_like(c0), c0], weights, bool(biases), 1, 0.0, False, False, False
    )
    return y @ projection.T, (m @ projection.T, c)


def least(x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
    """Return amin; without dims over all of them."""
    return _of_all_dims("amin", x, dim, keepdim)


def greatest(x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
    """Return amax; without dims over all of them."""
    return _of_all_dims("amax", x, dim, keepdim)


def _of_all_dims(name: str, x: Any, dim: Sequence[int], keepdim: bool) -> Any:
    if x.ndim == 0:
        return x.clone()
    return (
        reduced_in_f32(name, x, dim, keepdim)
        if dim
        else getattr(x, name)(list(range(x.ndim)), keepdim)
    )


def whole_product(x: Any, *, dtype: Any = None) -> Any:
    """Return the product of all elements; 16-bit floats keep their type."""
    return reduced_in_f32("prod", x, dtype=dtype)


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the norm of a 0-d tensor, that of one element, and of 16-bit floats from f32.

    Powers of f64 have f64 exponents, which torch.onnx rounds to f32.
    """
    torch = _torch()
    if not x.ndim:
        return torch.linalg.vector_norm(x.reshape(1), ord, 0, dtype=dtype)
    kind = dtype or x.dtype
    if kind is torch.float64 and ord not in (0, 1, 2) and math.isfinite(ord):
        powers = x.to(kind).abs() ** ord
        total = powers.sum() if dim is None and not keepdim else powers.sum(dim, keepdim)
        return total ** (1.0 / ord)
    if not kind.is_floating_point or kind.itemsize > 2:
        return NotImplemented
    return torch.linalg.vector_norm(x.to(kind).to(torch.float32), ord, dim, keepdim).to(kind)


def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    """Return scatter_add for 0-d tensors, and for more sources than indices."""
    if x.ndim:
        cut = sources_of(source, index)
        return NotImplemented if cut is source else x.scatter_add(dim, index, cut)
    return x.reshape(1).scatter_add(0, index.reshape(-1), source.reshape(-1)).reshape(())


def _torch() -> Any:
    return importlib.import_module("torch")
