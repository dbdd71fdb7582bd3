"""Diagonals of matrices: reading, writing, and bands of them.

Bands other than the main diagonal need known dims.
"""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN, show_dims
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import Extent, extents, plus, product, reshaped, scalar, times
from mgx_mlir.frontends.helpers import (
    arange,
    axis_range,
    compare,
    convert,
    extent,
    less_equal,
    require,
    same_extent,
    settled,
    single,
    unsqueeze,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.runtime_axes import gather_or
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


@tf_op("MatrixBandPart")
def matrix_band_part(b: Builder, node: Node, x: Value, lower: Value, upper: Value) -> Value:
    """Import MatrixBandPart: up to `lower` diagonals below and `upper` above the main; negative:
    all.
    """
    rank = len(b.dims(x))
    if rank < 2:
        raise ModelError(f"expected matrices, got rank {rank}")
    above = b.sub(axis_range(b, x, rank - 1), unsqueeze(b, axis_range(b, x, rank - 2), [1]))

    def within(limit: Value, distance: Value) -> Value:
        limit = convert(b, single(b, limit, "limit"), INT64)
        return b.logical_or(compare(b, "less", limit, 0), less_equal(b, distance, limit))

    keep = b.logical_and(within(lower, b.neg(above)), within(upper, above))
    known = b.const(keep)
    keep = keep if known is None else b.literal(known)
    return b.where(keep, x, b.literal(np.zeros((), b.dtype(x).np)))


# ---- whole tensors -----------------------------------------------------------------------------


@tf_op("Diag")
def diag(b: Builder, node: Node, x: Value) -> Value:
    """Import Diag: dims {d..} become {d.., d..}, 0 unless both halves of the index are equal."""
    own = extents(b, x)
    n = product(b, own)
    if isinstance(n, int):
        limits.table((n, n), "a diagonal")
    keep = settled(b, _on_diagonal(b, n, n))
    return reshaped(b, b.where(keep, reshaped(b, x, [1, n]), _scalar_zero(b, x)), [*own, *own])


@tf_op("DiagPart")
def diag_part(b: Builder, node: Node, x: Value) -> Value:
    """Import DiagPart: the diagonal of a tensor with dims {d.., d..}."""
    rank = len(b.dims(x))
    if rank % 2:
        raise ModelError(f"expected dims of two equal halves, got {show_dims(b.dims(x))}")
    for i in range(rank // 2):
        x = same_extent(b, x, i, x, i + rank // 2, "dims of two equal halves")
    own = extents(b, x)[: rank // 2]
    n = product(b, own)
    places = b.mul(arange(b, n), plus(b, n, 1))
    return reshaped(b, b.gather(b.reshape(x, dims=[-1]), places, axis=0), own)


# ---- bands of matrices -------------------------------------------------------------------------


class _Band:
    """Diagonals `low` to `high` of a matrix, and the index of each element in their packed form.

    The packed form has one row per diagonal, the highest first, each as long as the longest.
    `align` has the end to which shorter diagonals are aligned, above and below the main one.
    """

    def __init__(self, rows: int, columns: int, low: int, high: int, align: str) -> None:
        if align not in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"):
            raise ModelError(f"attribute 'align' has unknown value {align}")
        bounds = (-rows, columns) if rows and columns else (0, 0)
        if not bounds[0] < low <= high < bounds[1] and (low, high) != (0, 0):
            raise ModelError(f"diagonals {low} to {high} of a matrix {rows} x {columns}")
        limits.table((rows, columns), "a band")
        self.rows, self.columns, self.low, self.high = rows, columns, low, high
        self.count = high - low + 1
        self.longest = min(rows + min(high, 0), columns - max(low, 0))
        above, below = align.split("_")
        self.right = {d: (above if d >= 0 else below) == "RIGHT" for d in range(low, high + 1)}

    def offset(self, d: int) -> int:
        """Return the offset of a diagonal in its row of the packed form."""
        length = min(self.rows + min(d, 0), self.columns - max(d, 0))
        return self.longest - length if self.right[d] else 0

    def places(self) -> np.ndarray:
        """Return each matrix element's index in the packed form, -1 off the band."""
        out = np.full((self.rows, self.columns), -1, np.int64)
        for d in range(self.low, self.high + 1):
            for i in range(min(self.rows + min(d, 0), self.columns - max(d, 0))):
                row = (self.high - d) * self.longest
                out[i - min(d, 0), i + max(d, 0)] = row + i + self.offset(d)
        return out

    def sources(self) -> np.ndarray:
        """Return the flat matrix index of each packed element, -1 for padding."""
        out = np.full(self.count * self.longest, -1, np.int64)
        places = self.places().reshape(-1)
        inside = places >= 0
        out[places[inside]] = np.nonzero(inside)[0]
        return out


def _range(node: Node, k: Value | None) -> tuple[int, int]:
    if k is None:
        return 0, 0
    found = node.ints(k, "k")
    if len(found) not in (1, 2) or found[0] > found[-1]:
        raise ModelError(f"k expected one number or a range, got {found}")
    return found[0], found[-1]


def _picked(b: Builder, flat: Value, places: np.ndarray, other: Value) -> Value:
    """Gather elements of the last axis at `places`; `other` for negative indices."""
    axis = len(b.dims(flat)) - 1
    found = b.gather(flat, b.literal(np.maximum(places, 0)), axis=axis)
    if (places >= 0).all():
        return found
    return b.where(b.literal(places >= 0), found, other)


def _flat_band(b: Builder, x: Value, one: bool) -> tuple[Value, int]:
    """Return the packed form with its axes merged, and the length of its rows."""
    dims = b.dims(x)
    if DYN in dims[-1 if one else -2 :] or len(dims) < (1 if one else 2):
        raise NotSupported("diagonals of unknown length")
    if one:
        return x, dims[-1]
    return reshaped(b, x, [*extents(b, x)[:-2], dims[-2] * dims[-1]]), dims[-1]


def _scalar_zero(b: Builder, x: Value) -> Value:
    return b.literal(np.zeros((), b.dtype(x).np))


# ---- main diagonals of matrices of dynamic dims ------------------------------------------------


def _on_diagonal(b: Builder, rows: Extent, columns: Extent) -> Value:
    """Return a matrix of bools, true where row and column are the same."""
    return compare(b, "equal", unsqueeze(b, arange(b, rows), [1]), arange(b, columns))


def _open_matrix(b: Builder, x: Value) -> tuple[Extent, Extent] | None:
    """Return the dims of matrices if one is dynamic, else None."""
    if len(b.dims(x)) < 2 or DYN not in b.dims(x)[-2:]:
        return None
    rows, columns = extents(b, x)[-2:]
    return rows, columns


def _shorter(b: Builder, rows: Extent, columns: Extent) -> Value:
    return b.min(scalar(b, rows), scalar(b, columns))


# ---- any diagonals -----------------------------------------------------------------------------


@tf_op("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag(
    b: Builder,
    node: Node,
    x: Value,
    k: Value | None = None,
    rows: Value | None = None,
    columns: Value | None = None,
    padding: Value | None = None,
    *,
    align: str = "LEFT_LEFT",
) -> Value:
    """Import MatrixDiag: matrices with given diagonals."""
    low, high = _range(node, k)
    given = [-1 if v is None else node.ints(v, "size")[0] for v in (rows, columns)]
    other = _scalar_zero(b, x) if padding is None else single(b, padding, "padding_value")
    if b.dims(x)[-1:] == (DYN,) and (low, high) == (0, 0) and given == [-1, -1]:
        [n] = extents(b, x)[-1:]
        return b.where(_on_diagonal(b, n, n), unsqueeze(b, x, [len(b.dims(x)) - 1]), other)
    flat, longest = _flat_band(b, x, low == high)
    least = (longest - min(high, 0), longest + max(low, 0))
    if given == [-1, -1]:
        height = width = max(least)
    else:
        height, width = (m if g == -1 else g for g, m in zip(given, least, strict=True))
    band = _Band(height, width, low, high, _align(node, align))
    if band.longest != longest or b.dims(flat)[-1] != band.count * longest:
        raise ModelError(f"diagonals of {longest} do not fit a matrix {height} x {width}")
    return _picked(b, flat, band.places(), other)


def _align(node: Node, align: str) -> str:
    """Return the alignment; V3 has another default."""
    if node.op_type.endswith("V3") and node.attribute("align") is None:
        return "RIGHT_LEFT"
    return align


def _matrix(b: Builder, x: Value) -> tuple[Value, int, int]:
    """Return the matrices with both axes merged."""
    dims = b.dims(x)
    if len(dims) < 2:
        raise ModelError(f"expected matrices, got rank {len(dims)}")
    if DYN in dims[-2:]:
        raise NotSupported("matrices of unknown dims")
    return reshaped(b, x, [*extents(b, x)[:-2], dims[-2] * dims[-1]]), dims[-2], dims[-1]


@tf_op("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part(
    b: Builder,
    node: Node,
    x: Value,
    k: Value | None = None,
    padding: Value | None = None,
    *,
    align: str = "LEFT_LEFT",
) -> Value:
    """Import MatrixDiagPart: a band of diagonals of each matrix."""
    low, high = _range(node, k)
    unknown = _open_matrix(b, x)
    if unknown and (low, high) == (0, 0):
        rows, columns = unknown
        flat = reshaped(b, x, [*extents(b, x)[:-2], times(b, rows, columns)])
        places = b.mul(arange(b, _shorter(b, rows, columns)), b.add(scalar(b, columns), 1))
        return b.gather(flat, places, axis=len(b.dims(flat)) - 1)
    flat, rows, columns = _matrix(b, x)
    band = _Band(rows, columns, low, high, _align(node, align))
    places = band.sources()
    if band.count > 1:
        places = places.reshape(band.count, band.longest)
    other = _scalar_zero(b, x) if padding is None else single(b, padding, "padding_value")
    return _picked(b, flat, places, other)


@tf_op("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(
    b: Builder,
    node: Node,
    x: Value,
    diagonal: Value,
    k: Value | None = None,
    *,
    align: str = "LEFT_LEFT",
) -> Value:
    """Import MatrixSetDiag: matrices with some diagonals replaced."""
    low, high = _range(node, k)
    unknown = _open_matrix(b, x)
    if unknown and (low, high) == (0, 0):
        at = len(b.dims(diagonal)) - 1
        length = extent(b, diagonal, at)
        fits = compare(b, "equal", length, _shorter(b, *unknown))
        diagonal = require(b, diagonal, fits, "diagonals as long as those of the matrices")
        whole = gather_or(b, diagonal, arange(b, unknown[1]), at, _scalar_zero(b, x))
        return b.where(_on_diagonal(b, *unknown), unsqueeze(b, whole, [at]), x)
    _, rows, columns = _matrix(b, x)
    band = _Band(rows, columns, low, high, _align(node, align))
    flat, longest = _flat_band(b, diagonal, low == high)
    if longest != band.longest:
        raise ModelError(f"diagonals expected {band.longest} elements, got {longest}")
    return _picked(b, flat, band.places(), x)
