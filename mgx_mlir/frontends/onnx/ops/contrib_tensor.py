"""com.microsoft: shapes, windows and transforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.dtypes import BOOL, INT32, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.extents import Extent, known, scalar
from mgx_mlir.frontends.helpers import (
    arange,
    axis_in,
    compare,
    convert,
    extent_as,
    less_equal,
    number,
    reshape,
    single,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.contrib_fused import channels_first, channels_last
from mgx_mlir.frontends.onnx.ops.conv import (
    ConvAttributes,
    PoolAttributes,
    conv_transpose,
    max_pool,
)
from mgx_mlir.frontends.onnx.ops.generate import range_op
from mgx_mlir.frontends.onnx.ops.indexing import gather_nd, trilu
from mgx_mlir.frontends.onnx.ops.linear import matmul
from mgx_mlir.frontends.onnx.ops.pad import pad
from mgx_mlir.frontends.onnx.ops.sampling import grid_sample
from mgx_mlir.frontends.onnx.ops.shape import unsqueeze_op
from mgx_mlir.frontends.onnx.registry import onnx_op, onnx_table
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.products import squared_distances
from mgx_mlir.frontends.runtime_axes import element, length
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"

# ---- shapes ------------------------------------------------------------------------------------


onnx_op("Trilu", domain=MS)(trilu)
onnx_table(
    {
        "ComplexMul": lambda b, x, y: _complex_product(b, x, y, 1),
        "ComplexMulConj": lambda b, x, y: _complex_product(b, x, y, -1),
    },
    domain=MS,
)


@onnx_op("ExpandDims", domain=MS)
def expand_dims(b: Builder, node: Node, x: Value, axis: Value) -> Value:
    """Import ExpandDims: Unsqueeze of one axis."""
    return unsqueeze_op(b, node, x, single(b, axis, "axis"))


@onnx_op("Pad", domain=MS)
def pad_ms(
    b: Builder,
    node: Node,
    x: Value,
    pads: Value,
    value: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    """Import com.microsoft's Pad, whose `pads` may be of rank 2, {1, n}."""
    if len(b.dims(pads)) == 2:
        pads = squeeze(b, pads, [0])
    return pad(b, node, x, pads, value, mode=mode)


@onnx_op("Range", domain=MS)
def range_ms(
    b: Builder, node: Node, start: Value, limit: Value, delta: Value | None = None
) -> Value:
    """Import com.microsoft's Range, with an optional step."""
    start, limit, *rest = (
        reshape(b, v, []) if b.dims(v) else v
        for v in ((start, limit) if delta is None else (start, limit, delta))
    )
    return range_op(b, node, start, limit, rest[0] if rest else number(b, 1, start))


@onnx_op("GatherND", domain=MS)
def gather_nd_ms(b: Builder, node: Node, data: Value, indices: Value) -> Value:
    """Import com.microsoft's GatherND, without batch dims."""
    return gather_nd(b, node, data, indices)


@onnx_op("TorchEmbedding", domain=MS)
def torch_embedding(
    b: Builder,
    node: Node,
    weight: Value,
    indices: Value,
    padding_idx: Value | None = None,
    scale_grad_by_freq: Value | None = None,
) -> Value:
    """Import TorchEmbedding: gather rows; the other two inputs are for training."""
    indices = within(b, indices, "indices", 0, Dim(weight, 0, "the number of rows"))
    return b.gather(weight, indices, axis=0)


@onnx_op("UnfoldTensor", domain=MS)
def unfold_tensor(
    b: Builder, node: Node, x: Value, *, dim: int = -1, size: int, step: int = 1
) -> Value:
    """Import UnfoldTensor: slices of `size` along one axis with a stride of `step`, on a new last
    axis.
    """
    rank = len(b.dims(x))
    axis = axis_in(dim, rank)
    extent = b.dims(x)[axis]
    if extent == DYN:
        raise NotSupported("a dynamic extent")
    if size < 1 or step < 1 or size > extent:
        raise ModelError(f"size {size} and step {step} do not fit an extent of {extent}")
    count = (extent - size) // step + 1
    limits.table((count, size), "places")
    places = np.arange(count)[:, None] * step + np.arange(size)[None, :]
    found = b.gather(x, b.literal(places), axis=axis)
    order = [i for i in range(rank + 1) if i != axis + 1]
    return transpose(b, found, [*order, axis + 1])


@onnx_op("Unique", domain=MS)
def unique_ms(b: Builder, node: Node, x: Value) -> Outputs:
    """Import com.microsoft's Unique: values in order of first occurrence, each element's index, and
    counts.
    """
    values, _, places, counts = b.unique(x, sorted=False)
    return values, places, counts


@onnx_op("IsAllFinite", domain=MS)
def is_all_finite(
    b: Builder, node: Node, *inputs: Value, isinf_only: int = 0, isnan_only: int = 0
) -> Value:
    """Return whether no element of any input is infinite or NaN."""
    if isinf_only and isnan_only:
        raise ModelError("isinf_only and isnan_only exclude each other")
    bad = None
    for x in inputs:
        found = []
        if not isnan_only:
            found.append(convert(b, b.isinf(x), BOOL))
        if not isinf_only:
            found.append(convert(b, b.isnan(x), BOOL))
        wrong = found[0] if len(found) == 1 else b.logical_or(*found)
        axes = list(range(len(b.dims(x))))
        here = (
            b.reduce_max(convert(b, wrong, INT32), axes=axes) if axes else convert(b, wrong, INT32)
        )
        here = b.reshape(here, dims=[])
        bad = here if bad is None else b.max(bad, here)
    assert bad is not None
    return compare(b, "equal", bad, 0)


# ---- windows -----------------------------------------------------------------------------------


@onnx_op("NhwcMaxPool", domain=MS)
def nhwc_max_pool(
    b: Builder,
    node: Node,
    x: Value,
    *,
    window: PoolAttributes,
) -> Value:
    """Import NhwcMaxPool: MaxPool with the channels last."""
    out, _ = max_pool(b, node, channels_first(b, x), window=window)
    return channels_last(b, out)


@onnx_op("ConvTransposeWithDynamicPads", domain=MS)
def conv_transpose_with_dynamic_pads(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    pads: Value | None = None,
    bias: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    output_padding: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """Import ConvTransposeWithDynamicPads: ConvTranspose with pads as an operand."""
    known = None if pads is None else node.ints(pads, "Pads")
    window = ConvAttributes(auto_pad, dilations, group, kernel_shape, known, strides)
    return conv_transpose(b, node, x, w, bias, window=window, output_padding=output_padding)


@onnx_op("GridSample", domain=MS)
def grid_sample_ms(
    b: Builder,
    node: Node,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Value:
    """Import com.microsoft's GridSample, with the former names of its modes."""
    return grid_sample(
        b, node, x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode
    )


@onnx_op("CropAndResize", domain=MS)
def crop_and_resize(
    b: Builder,
    node: Node,
    x: Value,
    rois: Value,
    batch: Value,
    size: Value,
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
) -> Value:
    """Import CropAndResize: boxes [y1, x1, y2, x2] as fractions of the image, sampled between their
    corners.
    """
    if mode not in ("bilinear", "nearest"):
        raise ModelError(f"attribute 'mode' expected bilinear or nearest, got {mode}")
    if length(b, size, "crop_size") != 2:
        raise ModelError(f"crop_size expected 2 numbers, got dims {show_dims(b.dims(size))}")
    batch = within(b, batch, "batch_indices", 0, Dim(x, 0, "the number of images"))
    rows, columns = (known(b, element(b, size, i)) for i in range(2))
    kind = wide(b.dtype(x))
    rois = convert(b, rois, kind)
    bottom, right_end = (b.sub(extent_as(b, x, axis, kind), 1) for axis in (2, 3))

    def places(first: int, last: Value, count: Extent) -> Value:
        """Return sample positions {rois, count}; a single position is the middle."""
        begin, end = (slice_(b, rois, [1], [i], [i + 1]) for i in (first, first + 2))
        n = scalar(b, count)
        single = compare(b, "equal", n, 1)
        steps = convert(b, b.where(single, b.literal(1, INT64), b.sub(n, 1)), kind)
        origin = b.where(single, b.mul(b.add(begin, end), 0.5), begin)
        step = b.div(b.mul(b.sub(end, begin), last), steps)
        return b.add(b.mul(origin, last), b.mul(step, arange(b, count, kind)))

    def inside(v: Value, last: Value) -> Value:
        return b.logical_and(b.not_(compare(b, "less", v, 0)), less_equal(b, v, last))

    y, z = places(0, bottom, rows), places(1, right_end, columns)
    ok = b.logical_and(
        unsqueeze(b, inside(y, bottom), [2]), unsqueeze(b, inside(z, right_end), [1])
    )
    image = convert(b, b.gather(x, batch, axis=0), kind)
    image = transpose(b, image, [0, 2, 3, 1])  # {rois, height, width, C}

    def at(i: Value, j: Value) -> Value:
        """Return {rois, rows, columns, C} at integer positions."""
        whole = [
            convert(b, b.min(b.max(v, 0), last), INT64) for v, last in ((i, bottom), (j, right_end))
        ]
        pair = b.broadcast(unsqueeze(b, whole[0], [2]), unsqueeze(b, whole[1], [1]))
        index = b.concat([unsqueeze(b, v, [3]) for v in pair], axis=3)
        return b.gathernd(image, index, batch_dims=1)

    if mode == "nearest":
        half = number(b, 0.5, y)  # halves round away from 0, as in C
        value = at(b.floor(b.add(y, half)), b.floor(b.add(z, half)))
    else:
        top, left = b.floor(y), b.floor(z)
        down, right = b.ceil(y), b.ceil(z)
        dy, dz = unsqueeze(b, b.sub(y, top), [2, 3]), unsqueeze(b, b.sub(z, left), [1, 3])

        def between(i: Value, j: Value, t: Value) -> Value:
            return b.add(i, b.mul(b.sub(j, i), t))

        upper = between(at(top, left), at(top, right), dz)
        lower = between(at(down, left), at(down, right), dz)
        value = between(upper, lower, dy)
    value = b.where(unsqueeze(b, ok, [3]), value, float(extrapolation_value))
    return convert(b, transpose(b, value, [0, 3, 1, 2]), b.dtype(x))


# ---- matrices and transforms -------------------------------------------------------------------

_MOST_ROWS = 1 << 11  # largest inverted matrix; each row is a step of 15 operations


@onnx_op("Inverse", domain=MS)
def inverse(b: Builder, node: Node, x: Value) -> Value:
    """Import Inverse by Gauss-Jordan elimination with column pivots; n steps for n rows."""
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    dims = b.dims(x)
    if DYN in dims[-2:]:
        raise NotSupported("matrices of a size that is known at run time only")
    if len(dims) < 2 or dims[-1] != dims[-2]:
        raise ModelError(f"expected square matrices, got dims {show_dims(dims)}")
    n, rank = dims[-1], len(dims)
    if n > _MOST_ROWS:
        raise NotSupported(f"matrices of more than {_MOST_ROWS} rows")
    eye = b.literal(np.eye(n, dtype=kind.np))
    m = convert(b, x, kind)
    both = b.concat([m, b.broadcast(eye, m)[0]], axis=rank - 1)
    index = b.literal(np.arange(n))
    for i in range(n):
        column = squeeze(b, slice_(b, both, [rank - 1], [i], [i + 1]), [rank - 1])
        size = b.where(b.literal(np.arange(n) < i), -1.0, b.abs(column))
        best = b.argmax(size, axis=rank - 2)  # {.., 1}
        here = unsqueeze(b, compare(b, "equal", index, best), [rank - 1])
        zero = number(b, 0, both)
        pivot = b.reduce_sum(b.where(here, both, zero), axes=[rank - 2])  # {.., 1, 2n}
        old = slice_(b, both, [rank - 2], [i], [i + 1])
        both = b.where(here, old, both)  # row i moves to the pivot's index
        scaled = b.div(pivot, slice_(b, pivot, [rank - 1], [i], [i + 1]))
        factors = slice_(b, both, [rank - 1], [i], [i + 1])
        mine = b.literal((np.arange(n) == i)[:, None])
        both = b.where(mine, scaled, b.sub(both, b.mul(factors, scaled)))
    return convert(b, slice_(b, both, [rank - 1], [n], [2 * n]), dtype)


def _fourier(node: Node, normalized: int, onesided: int, signal_ndim: int) -> None:
    if normalized or not onesided or signal_ndim != 1:
        raise NotSupported("a form other than one-sided over one axis and not normalised")


@onnx_op("Rfft", domain=MS)
def rfft(
    b: Builder,
    node: Node,
    x: Value,
    *,
    normalized: int = 0,
    onesided: int = 1,
    signal_ndim: int = 1,
) -> Value:
    """Import Rfft as matmuls with the cosines and sines of all frequencies: exact, n^2 work."""
    _fourier(node, normalized, onesided, signal_ndim)
    dtype, kind = b.dtype(x), wide(b.dtype(x))
    n = b.dims(x)[-1]
    if n == DYN:
        raise NotSupported("a signal of dynamic length")
    limits.table((n, n // 2 + 1), "waves")
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(n // 2 + 1)) / n
    rank = len(b.dims(x))
    parts = [
        unsqueeze(b, matmul(b, convert(b, x, kind), b.literal(m.astype(kind.np))), [rank])
        for m in (np.cos(angle), -np.sin(angle))
    ]
    return convert(b, b.concat(parts, axis=rank), dtype)


@onnx_op("Irfft", domain=MS)
def irfft(
    b: Builder, node: Node, x: Value, *, normalized: int = 0, onesided: int = 1, signal_ndim: int
) -> Value:
    """Import Irfft: the inverse of Rfft for signals of even length n, with n / 2 + 1
    frequencies.
    """
    _fourier(node, normalized, onesided, signal_ndim)
    dtype, kind, rank = b.dtype(x), wide(b.dtype(x)), len(b.dims(x))
    bins = b.dims(x)[-2]
    if bins == DYN:
        raise NotSupported("a signal of dynamic length")
    n = 2 * (bins - 1)
    limits.table((bins, n), "waves")
    angle = 2 * np.pi * np.outer(np.arange(bins), np.arange(n)) / n
    weight = np.full((bins, 1), 2.0)
    weight[0] = weight[-1] = 1
    total = None
    for i, m in enumerate((np.cos(angle), -np.sin(angle))):
        part = squeeze(b, slice_(b, convert(b, x, kind), [rank - 1], [i], [i + 1]), [rank - 1])
        term = matmul(b, part, b.literal((weight * m / n).astype(kind.np)))
        total = term if total is None else b.add(total, term)
    assert total is not None
    return convert(b, total, dtype)


def _complex_product(b: Builder, x: Value, y: Value, sign: int) -> Value:
    last = max(len(b.dims(x)), len(b.dims(y))) - 1

    def part(v: Value, i: int) -> Value:
        axis = len(b.dims(v)) - 1
        return slice_(b, v, [axis], [i], [i + 1])

    a, c, d, e = part(x, 0), part(x, 1), part(y, 0), part(y, 1)
    e = b.mul(e, sign) if sign != 1 else e
    one = b.sub(b.mul(a, d), b.mul(c, e))
    two = b.add(b.mul(a, e), b.mul(c, d))
    return b.concat([one, two], axis=last)


@onnx_op("CDist", domain=MS)
def cdist(b: Builder, node: Node, x: Value, y: Value, *, metric: str = "sqeuclidean") -> Value:
    """Import CDist: the distances between all rows of x and y."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise NotSupported(f"metric {metric}")
    distance = squared_distances(b, x, y)
    return b.sqrt(distance) if metric == "euclidean" else distance
