"""Matmuls: MatMul, Gemm, Einsum."""

from __future__ import annotations

from mgx_mlir.core.dtypes import FLOAT, INT32
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends.helpers import (
    compare,
    convert,
    extent,
    require,
    same_extent,
    unsqueeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.elementwise import legacy_operand
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.products import einsum, matmul
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@onnx_op("MatMul", since=1)
def matmul_op(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """Import MatMul, with numpy's broadcast of batch dims."""
    dtype = b.dtype(x)
    if dtype is not b.dtype(y):
        raise ModelError(f"expected operands of one type, got {dtype} and {b.dtype(y)}")
    return matmul(b, x, y)


def gemm_of(
    b: Builder, x: Value, y: Value, c: Value | None, alpha: float, beta: float, ta: int, tb: int
) -> Value:
    """Return alpha op(x) op(y) + beta c, with c broadcast."""
    if len(b.dims(x)) != 2 or len(b.dims(y)) != 2:
        raise ModelError(
            f"expected matrices, got dims {show_dims(b.dims(x))} and {show_dims(b.dims(y))}"
        )
    if ta:
        x = b.transpose(x, permutation=[1, 0])
    if tb:
        y = b.transpose(y, permutation=[1, 0])
    out = b.dot(x, y)
    if alpha != 1:
        out = scaled(b, out, alpha)
    if c is None or beta == 0:
        return out
    return b.add(out, _spread(b, c if beta == 1 else scaled(b, c, beta), out))


def _spread(b: Builder, c: Value, out: Value) -> Value:
    """Return `c` broadcast to the dims of `out`; `out` is never broadcast to `c`."""
    rank = len(b.dims(c))
    if rank > 2:
        raise ModelError(f"C expected rank 2 or less, got {rank}")
    for axis, d in enumerate(b.dims(c)):
        at = axis + 2 - rank
        if d == DYN and not b.probe.same(c, axis, out, at):
            own = extent(b, c, axis)
            fits = compare(b, "equal", own, extent(b, out, at))
            fits = b.logical_or(fits, compare(b, "equal", own, 1))
            c = require(b, c, fits, f"a C that broadcasts to dim {at} of the result")
        elif d not in (1, DYN):
            c = same_extent(b, c, axis, out, at, f"a C that broadcasts to dim {at} of the result")
    return c


def scaled(b: Builder, x: Value, factor: float) -> Value:
    """Return x * factor; an integer x needs an integral factor, or is scaled in f32."""
    dtype = b.dtype(x)
    if dtype.is_float or factor == int(factor):
        return b.mul(x, factor)
    return convert(b, b.mul(convert(b, x, FLOAT), factor), dtype)


@onnx_op("Gemm", since=7)
def gemm(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """Import Gemm: alpha x y + beta c; c broadcasts."""
    return gemm_of(b, x, y, c, alpha, beta, transA, transB)


@onnx_op("Gemm", since=1)
def gemm_1(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    c: Value,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: int = 0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """Import Gemm of opsets 1 to 6, whose c broadcasts where an attribute allows it."""
    if not broadcast:
        bare = gemm_of(b, x, y, None, alpha, beta, transA, transB)
        legacy_operand(b, bare, c, None, 0)
    return gemm_of(b, x, y, c, alpha, beta, transA, transB)


@onnx_op("MatMulInteger", since=10)
def matmul_integer(
    b: Builder,
    node: Node,
    x: Value,
    y: Value,
    x_zero: Value | None = None,
    y_zero: Value | None = None,
) -> Value:
    """Import MatMulInteger: zero points are subtracted in i32, where the matmul is exact as
    well.
    """

    def centred(v: Value, zero: Value | None, row: bool) -> Value:
        v = convert(b, v, INT32)
        if zero is None:
            return v
        zero = convert(b, zero, INT32)
        if row and len(b.dims(zero)) == 1 and b.dims(zero)[0] != 1:
            zero = unsqueeze(b, zero, [1])
        return b.sub(v, zero)

    return matmul(b, centred(x, x_zero, True), centred(y, y_zero, False))


# ---- Einsum ------------------------------------------------------------------------------------


@onnx_op("Einsum", since=12)
def einsum_op(b: Builder, node: Node, *xs: Value, equation: str) -> Value:
    """Import Einsum; with three or more operands, 16-bit floats have intermediate results in
    f32.
    """
    dtype = b.dtype(xs[0])
    if len(xs) < 3:
        return einsum(b, xs, equation)
    return convert(b, einsum(b, [convert(b, x, wide(dtype)) for x in xs], equation), dtype)
