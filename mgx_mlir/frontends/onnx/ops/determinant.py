"""Det: the determinant, by elimination with the largest element of each column as pivot."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.helpers import (
    compare,
    convert,
    known_extent,
    number,
    slice_,
    squeeze,
    wide,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

_MOST = 64  # largest matrix; each row is a step in the program


@onnx_op("Det", since=11)
def det(b: Builder, node: Node, x: Value) -> Value:
    """Import Det: the product of the pivots, negated for each row exchange.

    A step removes the pivot's row and eliminates its column from the others, which keep their
    order. A pivot from row i passes i rows.
    """
    dims = b.dims(x)
    rank = len(dims)
    if rank < 2 or (DYN not in dims[-2:] and dims[-1] != dims[-2]):
        raise ModelError(f"expected square matrices, got dims {show_dims(dims)}")
    n, dtype = max(dims[-2:]), b.dtype(x)  # DYN is below every extent
    if n == DYN:
        raise NotSupported("matrices of dynamic dims")
    if n > _MOST:
        raise NotSupported(f"matrices of more than {_MOST} rows")
    rows, columns = rank - 2, rank - 1
    for axis in (rows, columns):
        x = known_extent(b, x, axis, n, "square matrices")
    x = convert(b, x, wide(dtype))
    total: Value | None = None
    for left in range(n, 0, -1):
        first = slice_(b, x, [columns], [0], [1])
        place = b.argmax(b.abs(first), axis=rows)  # .., 1, 1
        index = b.literal(np.arange(left).reshape(left, 1))
        here = compare(b, "equal", index, place)
        zero = number(b, 0, x)
        pivot_row = b.reduce_sum(b.where(here, x, zero), axes=[rows])
        pivot = slice_(b, pivot_row, [columns], [0], [1])
        odd = compare(b, "equal", b.mod(place, 2), 1)
        factor = b.where(odd, b.neg(pivot), pivot)
        total = factor if total is None else b.mul(total, factor)
        if left == 1:
            break
        # row i of the rest was row i, or i + 1 after the pivot
        before = compare(b, "less", b.literal(np.arange(left - 1).reshape(left - 1, 1)), place)
        rest = b.where(
            before,
            slice_(b, x, [rows], [0], [left - 1]),
            slice_(b, x, [rows], [1], [left]),
        )
        lead = slice_(b, rest, [columns], [0], [1])
        singular = compare(b, "equal", pivot, 0)
        share = b.div(lead, b.where(singular, number(b, 1, x), pivot))
        rest = b.sub(rest, b.mul(share, pivot_row))
        x = slice_(b, rest, [columns], [1], [left])
    if total is None:  # the matrices have no rows
        limits.filled(dims[:-2])
        return b.literal(np.broadcast_to(np.ones((), dtype.np), dims[:-2]))
    return convert(b, squeeze(b, total, [rows, columns]), dtype)
