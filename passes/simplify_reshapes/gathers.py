"""Patterns of simplify_reshapes on gathers by constant indices, and on gathers of gathers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.indexing import Gather, clamped
from mgx_mlir.passes.analysis.view_chains import Atom, Map, build_map, reshaped, start, steps_for
from mgx_mlir.passes.simplify_reshapes.slices import cut_along
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, defined_by, no_match, pattern

_MADE = 1 << 12  # elements of a merged table that are always allowed
_MOVES = 3  # most slices, steps and transposes that replace a gather


@pattern(Gather, benefit=2)
def find_gather_scalar(op: Gather, rw: Rewriter) -> Replacement:
    """gather(x, i) -> squeeze(gather(x, [i])), i a constant of rank 0"""
    data = TensorType.of(op.data)
    axis = op.axis % data.rank
    if TensorType.of(op.indices).rank:
        return no_match("the indices have rank {}", TensorType.of(op.indices).rank)
    if data.dims[axis] == DYN:
        return no_match("the extent of axis {} is unknown", axis)
    index = rw.const(op.indices)
    if index is None:
        return no_match("the index is not constant")
    row = rw.op("gather", op.data, rw.literal(index.reshape(1)), axis=axis)
    return rw.op("squeeze", row, axes=[axis])


@pattern(Gather, benefit=3)
def find_gather_gather(op: Gather, rw: Rewriter) -> Replacement:
    """gather(x, gather(places, i)) -> gather(gather(x, places), i), x and places constant

    Merges two lookups to one. Places may be converted in between.
    """
    data = TensorType.of(op.data)
    axis: int = op.axis % data.rank
    indices = op.indices
    while (convert := defined_by(indices, Convert)) is not None:
        if TensorType.of(convert.input).dtype.is_float:
            return no_match("the indices are of floats")
        indices = convert.input
    inner = defined_by(indices, Gather)
    if inner is None or not literals.is_literal(inner.data) or not literals.is_literal(op.data):
        return no_match("it does not look up in two constant tables")
    places = literals.array_of(inner.data)
    extent = data.dims[axis]
    if places.ndim != 1 or not places.size or not extent:
        return no_match("the places are no list, or a table is empty")
    made = places.size * (data.elements // extent)
    if made > max(data.elements, _MADE):
        return no_match("the table would have {} elements", made)
    if places.min() < -extent or places.max() >= extent:
        return no_match("a place lies outside of the table")
    rw.merge_location(inner)
    joined = np.take(literals.array_of(op.data), clamped(places, extent), axis)
    return rw.op("gather", rw.literal(joined), inner.indices, axis=axis)


@pattern(Gather)
def find_gather(op: Gather, rw: Rewriter) -> Replacement:
    """gather(x, constant) -> slices, steps and views of x where the indices are evenly spaced

    Spaced by one or several nested strides, a stride of 0 being a broadcast: `2 3 4`, `0 2 4`,
    `0 0 1 1`, `0 3 1 4 2 5`.
    """
    data, at = TensorType.of(op.data), TensorType.of(op.indices)
    axis: int = op.axis % data.rank
    extent = data.dims[axis]
    if not at.rank or not at.is_known or not at.elements or extent in (0, DYN) or is_named(extent):
        return no_match("the indices have rank 0 or no elements, or axis {} is unknown", axis)
    found = rw.const(op.indices)
    if found is None:
        return no_match("the indices are not constant")
    indices = clamped(found.reshape(-1), extent)
    atoms = _spacing(indices)
    if atoms is None or any(s < 0 for _, s in atoms):
        return no_match("the indices are not evenly spaced, or run backwards")
    strided = sorted((a for a in atoms if a[1]), key=lambda a: -a[1])
    window = _window(extent, int(indices[0]), strided)
    if window is None:
        return no_match("the indices are no rectangle in axis {} of {}", axis, op.data.type)
    if not data.is_static:
        if len(strided) != len(atoms) or len(strided) > 1 or at.rank > 1:
            return no_match("dims are unknown")
        return window.build(rw, op.data, axis)
    extents = tuple(n for n, _ in strided) or (1,)
    dims = (*data.dims[:axis], *extents, *data.dims[axis + 1 :])
    m = _arranged(dims, axis, atoms, strided)
    result = TensorType.of(op.results[0]).dims
    m = reshaped(m, result) if 0 not in dims else None
    if m is None:
        return no_match("dims {} do not align with the indices' spacing", at.dims)
    moves = window.moves + sum(s.kind == "transpose" for s in steps_for(dims, m))
    if moves > _MOVES:
        return no_match("it takes {} moves", moves)
    return build_map(rw, window.build(rw, op.data, axis), m)


def _spacing(indices: np.ndarray) -> list[Atom] | None:
    """Return (count, stride), outermost first, that describe `indices` relative to its first
    element.
    """
    if len(indices) == 1:
        return []
    steps = np.diff(indices)
    other = np.nonzero(steps != steps[0])[0]
    run = int(other[0]) + 1 if len(other) else len(indices)
    if len(indices) % run:
        return None
    rows = indices.reshape(-1, run)
    if not np.array_equal(rows - rows[:, :1], np.broadcast_to(rows[0] - rows[0, 0], rows.shape)):
        return None
    outer = _spacing(rows[:, 0])
    return None if outer is None else [*outer, (run, int(steps[0]))]


class _Piece(NamedTuple):
    """Elements low to high of an axis, then every `step`-th, or split into (.., `split`)."""

    low: int
    high: int
    extent: int
    step: int = 1
    split: int = 0


class _Window(NamedTuple):
    """Split of one axis into one axis for each stride."""

    pieces: Sequence[_Piece]

    @property
    def moves(self) -> int:
        """Ops that copy."""
        return sum(((p.low, p.high) != (0, p.extent)) + (p.step > 1) for p in self.pieces)

    def build(self, rw: Rewriter, x: ir.Value, axis: int) -> ir.Value:
        for p in self.pieces:
            x = cut_along(rw, x, axis, p.low, p.high)
            if p.step > 1:
                x = rw.op("step", x, axes=[axis], steps=[p.step])
            if p.split:
                dims = list(rw.dims(x))
                dims[axis : axis + 1] = [dims[axis] // p.split, p.split]
                x = rw.op("reshape", x, dims=dims)
                axis += 1
        return x


def _window(extent: int, base: int, strided: Sequence[Atom]) -> _Window | None:
    """Return the slices that leave elements base + i*s + j*t of an axis, s, t falling strides."""
    pieces: list[_Piece] = []
    for k, (n, stride) in enumerate(strided):
        if k == len(strided) - 1:
            pieces.append(_Piece(base, base + (n - 1) * stride + 1, extent, stride))
            break
        if n * stride > extent:
            return None
        # whole blocks of `stride` elements, each with the remaining spacing inside
        low = min(base, extent - n * stride)
        base -= low
        if base + sum((m - 1) * s for m, s in strided[k + 1 :]) >= stride:
            return None
        pieces.append(_Piece(low, low + n * stride, extent, split=stride))
        extent = stride
    return _Window(pieces or [_Piece(base, base + 1, extent)])


def _arranged(
    dims: Sequence[int], axis: int, atoms: Sequence[Atom], strided: Sequence[Atom]
) -> Map:
    """Return the window's axes in the order of the indices, including repeated ones."""
    own = start(dims)
    inner: list[tuple[Atom, ...]] = [
        own[axis + strided.index(a)] if a[1] else ((a[0], 0),) for a in atoms
    ]
    return (*own[:axis], *inner, *own[axis + max(len(strided), 1) :])
