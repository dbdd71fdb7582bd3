"""Spectra: DFT, STFT and MelWeightMatrix."""

from __future__ import annotations

import math

import numpy as np

from mgx_mlir.core.dtypes import DOUBLE, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.branches import choose
from mgx_mlir.frontends.extents import Extent, known, least, minus, plus, quotient, scalar, times
from mgx_mlir.frontends.helpers import (
    arange,
    axis_in,
    compare,
    convert,
    extent,
    greater_equal,
    less_equal,
    number,
    require,
    reshape,
    single,
    slice_,
    squeeze,
    transpose,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.linear import matmul_op
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.tensors import cast_number
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_SMALL = 16  # points of an unrolled transform
_MATRIX = 512  # points of a transform by one matmul
_MOST = 1 << 13  # points of a transform of prime length, whose matrix has half a gigabyte


# ---- one transform along the last axis ---------------------------------------------------------


def _circle(places: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return cos and sin of 2 pi place / n, exact at quarter turns."""
    quarters = 4 * (places % n)
    angle = quarters % n * (np.pi / (2 * n))
    cos, sin = np.cos(angle), np.sin(angle)
    turn = quarters // n
    return np.choose(turn, [cos, -sin, -cos, sin]), np.choose(turn, [sin, cos, -sin, -cos])


def _waves(
    b: Builder, rows: Extent, columns: Extent, n: Extent, dtype: DType
) -> tuple[Value, Value]:
    """Return cos and sin of 2 pi j k / n for j of `rows` and k of `columns`, exact at quarter
    turns.
    """
    if isinstance(rows, int) and isinstance(columns, int) and isinstance(n, int):
        if n > _MOST:
            raise NotSupported(f"a transform of {n} points, a number without small factors")
        limits.table((rows, columns), "waves")
        waves = _circle(np.outer(np.arange(rows), np.arange(columns)), max(n, 1))
        cos, sin = (b.literal(v.astype(dtype.np)) for v in waves)
        return cos, sin
    j = unsqueeze(b, arange(b, rows), [1])
    k = unsqueeze(b, arange(b, columns), [0])
    count = scalar(b, n)
    quarters = b.mul(b.mod(b.mul(j, k), count), 4)
    turn = b.div(quarters, count)
    place = convert(b, b.sub(quarters, b.mul(turn, count)), dtype)
    angle = b.div(b.mul(place, math.pi / 2), convert(b, count, dtype))
    cos, sin = b.cos(angle), b.sin(angle)
    odd = compare(b, "equal", b.mod(turn, 2), 1)
    left = b.logical_or(compare(b, "equal", turn, 1), compare(b, "equal", turn, 2))
    lower = compare(b, "greater", turn, 1)
    x, y = b.where(odd, sin, cos), b.where(odd, cos, sin)
    return b.where(left, b.neg(x), x), b.where(lower, b.neg(y), y)


def _divisor(n: int) -> int:
    """Return the largest divisor of n up to its square root; 1 for a prime."""
    return next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)


def _transform(
    b: Builder, node: Node, re: Value, im: Value | None, n: Extent, out: Extent, sign: float
) -> tuple[Value, Value]:
    """Return the first `out` of n frequencies of the last axis; a shorter axis is zero-padded.

    A length p q becomes p-point transforms, factors and q-point transforms if the matrix would be
    large, or for few points. A prime number of few points is folded. In between, one matmul is
    fastest.
    """
    dims = b.dims(re)
    dtype = b.dtype(re)
    length = dims[-1]
    if isinstance(n, int) and isinstance(out, int) and length == n and DYN not in dims:
        is_small = im is not None and n <= _SMALL
        if (n > _MATRIX or is_small) and _divisor(n) > 1:
            re, im = _in_two_steps(b, node, re, im, n, sign)
            if out != n:
                re, im = (slice_(b, v, [len(dims) - 1], [0], [out]) for v in (re, im))
            return re, im
        if im is not None and is_small and n > 2 and out == n:
            return _folded(b, node, re, im, n, sign)
    rows: Extent = length if length != DYN else extent(b, re, len(dims) - 1)
    cos, sin = _waves(b, rows, out, n, dtype)
    if sign < 0:
        sin = b.neg(sin)

    def by(x: Value, y: Value) -> Value:
        return matmul_op(b, node, x, y)

    if im is None:
        return by(re, cos), by(re, sin)
    return b.sub(by(re, cos), by(im, sin)), b.add(by(re, sin), by(im, cos))


def _folded(
    b: Builder, node: Node, re: Value, im: Value, n: int, sign: float
) -> tuple[Value, Value]:
    """Return a transform of an odd number of points by two matrices of half the size.

    Points j and n - j have the same cosines and opposite sines, and so do frequencies.
    """
    last, half = len(b.dims(re)) - 1, n // 2
    waves = _circle(np.outer(np.arange(1, half + 1), np.arange(1, half + 1)), n)
    cos, sin = (
        b.literal((v * w).astype(b.dtype(re).np)) for v, w in zip(waves, (1, sign), strict=True)
    )

    def parts(x: Value) -> tuple[Value, Value, Value]:
        """Return frequency 0, the common part of frequencies k and n - k, and the part with
        opposite signs.
        """
        first = slice_(b, x, [last], [0], [1])
        low = slice_(b, x, [last], [1], [half + 1])
        high = b.reverse(slice_(b, x, [last], [half + 1], [n]), axes=[last])
        sums = b.add(low, high)
        even = b.add(first, matmul_op(b, node, sums, cos))
        odd = matmul_op(b, node, b.sub(low, high), sin)
        return b.add(first, b.reduce_sum(sums, axes=[last])), even, odd

    def mirrored(first: Value, low: Value, high: Value) -> Value:
        return b.concat([first, low, b.reverse(high, axes=[last])], axis=last)

    first, even, odd = parts(re)
    first_i, even_i, odd_i = parts(im)
    return (
        mirrored(first, b.sub(even, odd_i), b.add(even, odd_i)),
        mirrored(first_i, b.add(even_i, odd), b.sub(even_i, odd)),
    )


def _in_two_steps(
    b: Builder, node: Node, re: Value, im: Value | None, n: int, sign: float
) -> tuple[Value, Value]:
    """Transform point j = q j1 + j2 to frequency k = k1 + p k2: along j1, times e^(i j2 k1), along
    j2.
    """
    dims = list(b.dims(re))
    p = _divisor(n)
    q, rank = n // p, len(dims) + 1
    swap = [*range(rank - 2), rank - 1, rank - 2]

    def turned(v: Value) -> Value:
        return transpose(b, reshape(b, v, [*dims[:-1], p, q]), swap)

    re = turned(re)
    im = None if im is None else turned(im)
    re, im = _transform(b, node, re, im, p, p, sign)  # j2, k1
    waves = _circle(np.outer(np.arange(q), np.arange(p)), n)
    cos, sin = (
        b.literal((v * w).astype(b.dtype(re).np)) for v, w in zip(waves, (1, sign), strict=True)
    )
    waved = (
        b.sub(b.mul(re, cos), b.mul(im, sin)),
        b.add(b.mul(re, sin), b.mul(im, cos)),
    )
    re, im = (transpose(b, v, swap) for v in waved)  # k1, j2
    re, im = _transform(b, node, re, im, q, q, sign)  # k1, k2
    re, im = (reshape(b, transpose(b, v, swap), dims) for v in (re, im))
    return re, im


def _real(b: Builder, node: Node, re: Value, im: Value, n: Extent) -> Value:
    """Return n real points from half of a spectrum; the other half mirrors it."""
    dims = b.dims(re)
    last = len(dims) - 1
    half = plus(b, quotient(b, n, 2), 1)
    re, im = (_cut(b, v, last, half) for v in (re, im))
    rows: Extent = b.dims(re)[last] if b.dims(re)[last] != DYN else extent(b, re, last)
    cos, sin = _waves(b, rows, n, n, b.dtype(re))
    k = arange(b, rows)
    alone = b.logical_or(compare(b, "equal", k, 0), compare(b, "equal", b.mul(k, 2), scalar(b, n)))
    weight = b.where(alone, b.literal(np.array(1, b.dtype(re).np)), 2)
    re, im = b.mul(re, weight), b.mul(im, weight)
    return b.sub(matmul_op(b, node, re, cos), matmul_op(b, node, im, sin))


def _cut(b: Builder, x: Value, axis: int, n: Extent) -> Value:
    """Return the first n along an axis, or all if there are fewer."""
    have = b.dims(x)[axis]
    if isinstance(n, int) and have != DYN:
        return slice_(b, x, [axis], [0], [min(n, have)])
    end = unsqueeze(b, scalar(b, least(b, n, extent(b, x, axis))), [0])
    return b.op("slice", x, b.ints([0]), end, axes=[axis])


# ---- DFT ---------------------------------------------------------------------------------------


def dft(
    b: Builder, node: Node, x: Value, n: Extent | None, axis: int, inverse: bool, onesided: bool
) -> Value:
    """Return the transform along `axis` of real (last dim 1) or complex (2) numbers."""
    rank = len(b.dims(x))
    axis = axis_in(axis, rank)
    parts = b.dims(x)[-1]
    if parts == DYN:  # real or complex: a missing imaginary part is 0
        count = extent(b, x, rank - 1)
        fits = b.logical_and(greater_equal(b, count, 1), less_equal(b, count, 2))
        count = require(b, count, fits, "a last dim of 1 or 2")
        real = slice_(b, x, [rank - 1], [0], [1])
        other = unsqueeze(b, b.gather(x, b.sub(count, 1), axis=rank - 1), [rank - 1])
        imaginary = b.where(compare(b, "equal", count, 2), other, number(b, 0, x))
        x, parts = b.concat([real, imaginary], axis=rank - 1), 2
    if rank < 2 or parts not in (1, 2) or axis == rank - 1:
        raise ModelError(
            "expected a last dim of 1 or 2 and an axis before it, got dims "
            f"{show_dims(b.dims(x))} and axis {axis}"
        )
    dtype = b.dtype(x)
    kind = wide(dtype)
    here = b.dims(x)[axis]
    own: Extent = here if here != DYN else extent(b, x, axis)
    if n is None:
        n = times(b, minus(b, own, 1), 2) if inverse and onesided else own
    order = [i for i in range(rank - 1) if i != axis] + [axis]

    def part(i: int) -> Value:
        v = squeeze(b, slice_(b, convert(b, x, kind), [rank - 1], [i], [i + 1]), [rank - 1])
        return transpose(b, v, order)

    re, im = part(0), part(1) if parts == 2 else None
    if inverse and onesided:
        im = b.mul(re, 0) if im is None else im
        found = [_real(b, node, re, im, n)]
    else:
        re = _cut(b, re, rank - 2, n)
        im = None if im is None else _cut(b, im, rank - 2, n)
        out = plus(b, quotient(b, n, 2), 1) if onesided else n
        found = list(_transform(b, node, re, im, n, out, 1.0 if inverse else -1.0))
    if inverse:
        count = float(n) if isinstance(n, int) else convert(b, n, kind)
        found = [b.div(v, count) for v in found]
    back = [order.index(i) for i in range(rank - 1)]
    found = [unsqueeze(b, transpose(b, v, back), [rank - 1]) for v in found]
    return convert(b, found[0] if len(found) == 1 else b.concat(found, axis=rank - 1), dtype)


def _points(b: Builder, n: Value | None) -> Extent | None:
    return None if n is None else _at_least_one(b, n, "dft_length")


def _at_least_one(b: Builder, n: Value, what: str) -> Extent:
    return known(b, within(b, single(b, n, what), what, 1))


@onnx_op("DFT", since=20)
def dft_op(
    b: Builder,
    node: Node,
    x: Value,
    n: Value | None = None,
    axis: Value | None = None,
    *,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """Import DFT; the axis is an operand."""
    size = _points(b, n)
    rank = len(b.dims(x))
    place: Extent = -2
    if axis is not None:
        place = known(b, within(b, single(b, axis, "axis"), "axis", -rank, rank - 1))
        if not isinstance(place, int):
            other = b.not_(compare(b, "equal", place, -1))
            place = require(
                b,
                place,
                other,
                f"an axis other than {rank - 1}, the axis of real and imaginary parts",
            )

    def along(i: int) -> Value:
        return dft(b, node, x, size, i, bool(inverse), bool(onesided))

    if isinstance(place, int):
        return along(place)
    from_front = b.where(compare(b, "less", place, 0), b.add(place, rank), place)
    return choose(b, from_front, rank - 1, along)


@onnx_op("DFT", since=17)
def dft_17(
    b: Builder,
    node: Node,
    x: Value,
    n: Value | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    """Import DFT of opsets 17 to 19, whose axis is an attribute."""
    return dft(b, node, x, _points(b, n), axis, bool(inverse), bool(onesided))


# ---- STFT --------------------------------------------------------------------------------------


@onnx_op("STFT", since=17)
def stft(
    b: Builder,
    node: Node,
    signal: Value,
    frame_step: Value,
    window: Value | None = None,
    frame_length: Value | None = None,
    *,
    onesided: int = 1,
) -> Value:
    """Import STFT: gather frames, multiply by the window, transform."""
    if len(b.dims(signal)) == 2:
        signal = unsqueeze(b, signal, [2])
    if len(b.dims(signal)) != 3:
        raise ModelError(f"signal expected rank 2 or 3, got {len(b.dims(signal))}")
    step = _at_least_one(b, frame_step, "frame_step")
    if frame_length is not None:
        short = Dim(signal, 1, "the signal's length", 1)
        n = known(b, within(b, single(b, frame_length, "frame_length"), "frame_length", 1, short))
    elif window is not None:
        n = b.dims(window)[0] if b.dims(window)[0] != DYN else extent(b, window, 0)
    else:
        n = None
    length: Extent = b.dims(signal)[1]
    if length == DYN:
        length = extent(b, signal, 1)
    n = length if n is None else n  # default: the whole signal
    if window is not None and frame_length is not None:
        window = _fitting(b, window, n)
    room = less_equal(b, scalar(b, n), scalar(b, length))
    signal = require(b, signal, room, "a signal no shorter than a frame")
    frames = plus(b, quotient(b, minus(b, length, n), step), 1)
    starts = b.mul(unsqueeze(b, arange(b, frames), [1]), step)
    places = b.add(starts, unsqueeze(b, arange(b, n), [0]))
    dtype = b.dtype(signal)
    found = convert(b, b.gather(signal, places, axis=1), wide(dtype))  # batch, frame, sample, part
    if window is not None:
        found = b.mul(found, unsqueeze(b, convert(b, window, b.dtype(found)), [1]))
    return convert(b, dft(b, node, found, n, 2, False, bool(onesided)), dtype)


def _fitting(b: Builder, window: Value, n: Extent) -> Value:
    """Return the window, with one weight for each sample of a frame."""
    have = b.dims(window)[0]
    if have != DYN and isinstance(n, int):
        if have != n:
            raise ModelError(f"a window of {have} elements does not fit frame_length {n}")
        return window
    fits = compare(b, "equal", extent(b, window, 0), scalar(b, n))
    return require(b, window, fits, "a window of frame_length elements")


# ---- MelWeightMatrix ---------------------------------------------------------------------------


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(
    b: Builder,
    node: Node,
    mel_bins: Value,
    dft_length: Value,
    sample_rate: Value,
    low: Value,
    high: Value,
    *,
    output_datatype: int = 1,
) -> Value:
    """Import MelWeightMatrix: triangles over a spectrum's bins, evenly spaced on the mel scale."""
    kind = cast_number(output_datatype)
    bins = _at_least_one(b, mel_bins, "num_mel_bins")
    points = _at_least_one(b, dft_length, "dft_length")
    rate = convert(b, scalar(b, _at_least_one(b, sample_rate, "sample_rate")), DOUBLE)
    edges = compare(b, "less", *(single(b, v, "edge") for v in (low, high)))
    edges = b.logical_and(edges, greater_equal(b, single(b, low, "edge"), 0))
    high = require(b, high, edges, "edges of 0 hertz or more, the lower below the upper")
    log = math.log(10.0)

    def mel(v: Value) -> Value:
        hertz = convert(b, single(b, v, "edge"), DOUBLE)
        return b.mul(b.log(b.add(b.div(hertz, 700), 1)), 2595 / log)

    first, last = mel(low), mel(high)
    step = b.div(b.sub(last, first), convert(b, scalar(b, plus(b, bins, 2)), DOUBLE))
    count = convert(b, scalar(b, plus(b, points, 1)), DOUBLE)

    def corner(shift: int) -> Value:
        index = b.add(convert(b, arange(b, bins), DOUBLE), float(shift))
        hertz = b.exp(b.mul(b.add(b.mul(index, step), first), log / 2595))
        place = b.div(b.mul(b.mul(b.sub(hertz, 1), 700), count), rate)
        return unsqueeze(b, b.floor(place), [0])

    left, middle, right = corner(0), corner(1), corner(2)
    place = unsqueeze(b, arange(b, plus(b, quotient(b, points, 2), 1), DOUBLE), [1])
    rise, fall = b.sub(middle, left), b.sub(right, middle)
    up = b.where(compare(b, "greater", rise, 0), b.div(b.sub(place, left), b.max(rise, 1)), 1)
    in_rise = b.logical_and(greater_equal(b, place, left), less_equal(b, place, middle))
    down = b.div(b.sub(right, place), b.max(fall, 1))
    in_fall = b.logical_and(greater_equal(b, place, middle), compare(b, "less", place, right))
    zero = b.literal(np.zeros(()))
    return convert(b, b.where(in_fall, down, b.where(in_rise, up, zero)), kind)
