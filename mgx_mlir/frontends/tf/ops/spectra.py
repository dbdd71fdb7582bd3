"""Complex numbers and Fourier transforms."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.extents import Extent, elements
from mgx_mlir.frontends.helpers import compare, slice_, squeeze, unsqueeze
from mgx_mlir.frontends.onnx.ops.spectral import dft
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.ops.math import atan2
from mgx_mlir.frontends.tf.registry import complex_op, tf_op
from mgx_mlir.frontends.tf.values import Complex
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder


def _of(x: Held) -> Complex:
    if not isinstance(x, Complex):
        raise ModelError(f"expected complex numbers, got a {getattr(x, 'what', 'tensor')}")
    return x


# ---- parts -------------------------------------------------------------------------------------


@tf_op("Complex")
def complex_(b: Builder, node: Node, re: Value, im: Value) -> Complex:
    """Import Complex from real and imaginary parts, whose dims broadcast."""
    return Complex(*b.broadcast(re, im))


@tf_op("Real", raw=True)
def real(b: Builder, node: Node, x: Held) -> Value:
    return _of(x).re


@tf_op("Imag", raw=True)
def imag(b: Builder, node: Node, x: Held) -> Value:
    return _of(x).im


@tf_op("Conj", raw=True)
def conj(b: Builder, node: Node, x: Held) -> Held:
    """Import Conj; real numbers are unchanged."""
    return Complex(x.re, b.neg(x.im)) if isinstance(x, Complex) else x


@tf_op("ComplexAbs", raw=True)
def complex_abs(b: Builder, node: Node, x: Held) -> Value:
    """Import ComplexAbs, without squares that overflow or underflow."""
    x = _of(x)
    re, im = b.abs(x.re), b.abs(x.im)
    large, small = b.max(re, im), b.min(re, im)
    zero = compare(b, "equal", large, 0)
    share = b.div(small, b.where(zero, 1, large))
    found = b.mul(large, b.sqrt(b.add(b.mul(share, share), 1)))
    infinite = compare(b, "equal", large, float("inf"))
    return b.where(infinite, large, found)


@tf_op("Angle", raw=True)
def angle(b: Builder, node: Node, x: Held) -> Value:
    x = _of(x)
    return atan2(b, node, x.im, x.re)


# ---- arithmetic --------------------------------------------------------------------------------


@complex_op("Mul")
def mul(b: Builder, node: Node, x: Held, y: Held) -> Complex:
    x, y = _of(x), _of(y)
    re = b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im))
    return Complex(re, b.add(b.mul(x.re, y.im), b.mul(x.im, y.re)))


@complex_op("Square")
def square(b: Builder, node: Node, x: Held) -> Complex:
    return mul(b, node, x, x)


@complex_op("Exp")
def exp(b: Builder, node: Node, x: Held) -> Complex:
    x = _of(x)
    size = b.exp(x.re)
    return Complex(b.mul(size, b.cos(x.im)), b.mul(size, b.sin(x.im)))


# ---- transforms --------------------------------------------------------------------------------


def _joined(b: Builder, x: Complex) -> Value:
    """Stack real and imaginary part along a new last dim."""
    rank = len(b.dims(x.re))
    return b.concat([unsqueeze(b, v, [rank]) for v in (x.re, x.im)], axis=rank)


def _along(
    b: Builder, node: Node, x: Value, n: Extent | None, axis: int, inverse: bool, onesided: bool
) -> Value:
    """Transform `x`, with real and imaginary part in the last dim, by the code of ONNX's DFT."""
    shared: Any = node  # a node of either format is passed on
    return dft(b, shared, x, n, axis, inverse, onesided)


def _parts(b: Builder, x: Value) -> Complex:
    last = len(b.dims(x)) - 1
    re, im = (squeeze(b, slice_(b, x, [last], [i], [i + 1]), [last]) for i in range(2))
    return Complex(re, im)


def _lengths(b: Builder, v: Value, count: int) -> list[Extent]:
    found = elements(b, v)
    if len(found) != count:
        raise ModelError(f"fft_length expected {count} numbers, got {len(found)}")
    return list(found)


def _axes(b: Builder, x: Value, count: int) -> list[int]:
    rank = len(b.dims(x))
    if rank < count:
        raise ModelError(f"expected rank {count} or more, got {rank}")
    return list(range(rank - count, rank))


def _count(node: Node) -> int:
    """Return the number of transformed axes: RFFT 1, RFFT2D 2."""
    return int(node.op_type[-2]) if node.op_type.endswith("D") else 1


@tf_op("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D", raw=True)
def fft(b: Builder, node: Node, x: Held) -> Complex:
    """Import FFT: transform the last axes, each whole."""
    x = _of(x)
    found, inverse = _joined(b, x), node.op_type.startswith("I")
    for axis in _axes(b, x.re, _count(node)):
        found = _along(b, node, found, None, axis, inverse, False)
    return _parts(b, found)


@tf_op("RFFT", "RFFT2D", "RFFT3D")
def rfft(b: Builder, node: Node, x: Value, fft_length: Value) -> Complex:
    """Import RFFT: transform real numbers; the last axis has n // 2 + 1 frequencies."""
    axes = _axes(b, x, _count(node))
    *lengths, last = _lengths(b, fft_length, len(axes))
    found = _along(b, node, unsqueeze(b, x, [len(b.dims(x))]), last, axes[-1], False, True)
    for axis, n in zip(axes, lengths, strict=False):
        found = _along(b, node, found, n, axis, False, False)
    return _parts(b, found)


@tf_op("IRFFT", "IRFFT2D", "IRFFT3D", raw=True)
def irfft(b: Builder, node: Node, x: Held, fft_length: Value) -> Value:
    """Import IRFFT: transform back to real numbers; the last axis has n // 2 + 1 frequencies of n
    points.
    """
    x = _of(x)
    axes = _axes(b, x.re, _count(node))
    *lengths, last = _lengths(b, fft_length, len(axes))
    found = _joined(b, x)
    for axis, n in zip(axes, lengths, strict=False):
        found = _along(b, node, found, n, axis, True, False)
    found = _along(b, node, found, last, axes[-1], True, True)
    return squeeze(b, found, [len(b.dims(found)) - 1])
