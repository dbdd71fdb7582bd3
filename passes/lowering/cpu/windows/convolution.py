"""Convolutions as vector loops: sizes, tiling, and the dispatch.

A workgroup computes some rows and columns of one image and some panels (groups of output
channels). It copies the part of the input that it needs, with its zero border, to scratch on its
stack, as many channels at a time as fit there; an unpadded input is read in place.

Tiles of a few pixels by one panel accumulate in registers; with several channel blocks the result
holds the sums between them. Batch, height and width may be dynamic (DYN); then the extents of the
last workgroups are computed at run time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    ceil_div,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.byte_panels import BytePanels
from mgx_mlir.passes.lowering.cpu.matmul.panel import Panels
from mgx_mlir.passes.lowering.cpu.windows.convolution_loops import ConvolutionLoops
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvPlan, ConvShape, Extents
from mgx_mlir.passes.lowering.index_builder import IndexBuilder

FILLED = 0.75  # least share of the rows of a tile that are used
ROW_PIXELS = 448  # output pixels of a workgroup
STRIP = 48  # columns of a workgroup, where the width is dynamic or too large
# tiles across rows are used if their time is below this share of that of tiles in rows
ACROSS = 0.95
FEW_ROWS = 8
MANY = 32  # registers from which tiles are wide enough for any number of pixels
QUAD = 4  # channels that are copied at a time, at least
ENOUGH = 32  # channels of a block for which the whole width is worth it
GROUPS = 8  # workgroups of a convolution where possible


@dataclass(frozen=True)
class _Strip:
    """Columns of a workgroup with the input channels that then fit the scratch."""

    columns: int
    block: int


def plan(shape: ConvShape, isa: Isa) -> ConvPlan | None:
    """Return the cut of a convolution, None where these loops do not fit it."""
    high, wide = shape.counts
    if wide == 0 or 0 in (shape.inputs, shape.outputs):
        return None
    pixels, vectors = _tile(shape, isa)
    strip = _strip(shape, pixels)
    if strip is None:
        return None
    if strip.columns < wide:  # tiles of about equal size
        pixels = -(-strip.columns // -(-strip.columns // pixels))
    rows = high if shape.in_place else _rows(shape, strip)
    rows = min(ROW_PIXELS if rows == DYN else rows, max(1, ROW_PIXELS // strip.columns))
    parts = 1
    if high != DYN:
        parts = -(-high // rows)
        rows = -(-high // parts)  # blocks of about equal size
        if isa.registers < MANY:  # prefer one block, whose tiles may continue across rows
            rows = next((d for d in range(rows, rows // 2, -1) if not high % d), rows)
            parts = -(-high // rows)
    if wide != DYN:
        parts *= -(-wide // strip.columns)
    count = -(-shape.outputs // (vectors * isa.lanes))
    groups = max(1, min(count, GROUPS // (parts * max(1, shape.batch))))
    panels = next(n for n in range(-(-count // groups), count + 1) if count % n == 0)
    cut = ConvPlan(rows, strip.columns, panels, vectors * isa.lanes, pixels, strip.block)
    known = DYN not in shape.counts and not high % rows and not wide % strip.columns
    return _across(shape, cut, isa) if known else cut


def _tile(shape: ConvShape, isa: Isa) -> tuple[int, int]:
    """Return pixels and registers of a tile: the first of the CPU's that rows of pixels fill.

    The last register of the last panel may be partly empty; no register is empty.
    """
    wide = shape.counts[1]
    registers = -(-shape.outputs // isa.lanes)
    usable = [(rows, columns) for rows, columns in isa.tiles if not registers % columns]
    if wide == DYN:
        return usable[0]
    fits = [(-(-wide // -(-wide // rows)), columns, rows) for rows, columns in usable]
    if isa.registers < MANY and not (shape.unit or shape.planar):
        return fits[0][:2]  # tiles that rows do not fill continue across rows
    filled = (f for f in fits if -(-wide // f[0]) * f[2] * FILLED <= wide)
    pixels, columns, _ = next(filled, max(fits, key=lambda f: f[0] * f[1]))
    return pixels, columns


def _across(shape: ConvShape, cut: ConvPlan, isa: Isa) -> ConvPlan:
    """Return the plan with tiles across rows, where tiles in rows have too few sums.

    A tile takes as long as one of `isa.least_sums` registers at least.
    """
    if isa.registers >= MANY or shape.unit or shape.planar:
        return cut  # with many registers there is a tile that rows fill
    vectors = cut.width // isa.lanes
    most = max(rows for rows, columns in isa.tiles if columns == vectors)

    def work(pixels: int) -> int:
        return max(pixels * vectors, isa.least_sums)

    own, rest = divmod(cut.columns, cut.pixels)
    by_row = cut.rows * (own * work(cut.pixels) + (work(rest) if rest else 0))
    count = -(-cut.rows * cut.columns // most)
    long = -(-cut.rows * cut.columns // count)
    short = count * long - cut.rows * cut.columns
    across = (count - short) * work(long) + short * work(long - 1)
    return replace(cut, pixels=most, across=True) if across < ACROSS * by_row else cut


def _strip(shape: ConvShape, pixels: int) -> _Strip | None:
    """Return the widest columns at which enough channels fit, else the most channels."""
    best = None
    for columns in _widths(shape.counts[1], pixels):
        block = _block(shape, columns)
        if block is None:
            continue
        if block >= shape.inputs or block >= ENOUGH:
            return _Strip(columns, block)
        if best is None or block > best.block:
            best = _Strip(columns, block)
    return best


def _widths(wide: int, pixels: int) -> Iterator[int]:
    """Yield columns of a workgroup, from the whole width down to one tile."""
    if wide != DYN and wide <= ROW_PIXELS:
        yield wide
    tiles = max(1, STRIP // pixels)
    while tiles:
        columns = tiles * pixels
        if wide == DYN:
            yield columns
        elif columns < wide:
            # prefer strips of equal size, whose tiles are static
            even = (d for d in range(columns * 5 // 4, columns // 2, -1) if not wide % d)
            yield next(even, columns)
        tiles //= 2


def _row_elements(shape: ConvShape, strip: _Strip) -> int:
    """Return the scratch of one input row."""
    return shape.span(1, strip.columns) * strip.block


def _rows(shape: ConvShape, strip: _Strip) -> int:
    """Return the rows of the result whose input fits the scratch."""
    have = shape.room // _row_elements(shape, strip)
    most = (have - shape.span(0, 1)) // shape.stride[0] + 1
    return most if shape.counts[0] == DYN else min(shape.counts[0], most)


def _block(shape: ConvShape, columns: int) -> int | None:
    """Return the input channels that are copied at a time: all if the needed rows then fit."""
    c = shape.inputs
    if shape.in_place:
        return c
    if shape.unit:  # all, as the result cannot hold partial sums
        return shape.filled if _rows(shape, _Strip(columns, shape.filled)) >= 1 else None
    fits = [
        b
        for b in range(c, 0, -1)
        if c % b == 0
        and (b == c or not (shape.planar or shape.narrow or b % QUAD))
        and _rows(shape, _Strip(columns, b)) >= 1
    ]
    high = shape.counts[0]
    # few rows are in one workgroup, else weights would be read twice
    wanted = 4 if high == DYN or high > FEW_ROWS else high
    enough = (b for b in fits if _rows(shape, _Strip(columns, b)) >= wanted)
    return next(enough, fits[-1] if fits else None)


def panels_of(shape: ConvShape, width: int, isa: Isa) -> Panels:
    """Return the layout of the weights; a loop goes through a row of taps, or through one tap."""
    if not shape.is_bytes:
        return Panels(isa, shape.multiplied, width)
    kh, kw = shape.kernel
    pixel = shape.filled // shape.unit
    row = 1 if shape.dilation[1] != 1 else kw
    return BytePanels(isa, shape.multiplied, width, kh * kw * pixel, row * pixel)


def matrix_of(weights: np.ndarray, shape: ConvShape, block: int) -> np.ndarray:
    """Return weights [kh, kw, Ci, Co] as [depth, Co], in the order of the loops over a window.

    block: input channels that are multiplied at a time. Channels that are filled up are 0.
    """
    if shape.filled > shape.inputs:
        weights = np.pad(weights, [(0, 0), (0, 0), (0, shape.filled - shape.inputs), (0, 0)])
    kh, kw, ci, co = weights.shape
    w = weights.reshape(kh, kw, ci // block, block, co)
    as_planes = shape.planar and not shape.unit
    order = (2, 0, 3, 1, 4) if as_planes else (2, 0, 1, 3, 4)
    return w.transpose(order).reshape(-1, co)


def convolution(
    shape: ConvShape, cut: ConvPlan, isa: Isa, x: ir.Value, packed: ir.Value, epilogue: Epilogue,
    extents: Extents | None = None,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch.

    x: the input as a vector of all its elements. packed: `matrix_of` as panels of `panels_of`. The
    first result is f32 if there are channel blocks. extents: those that the shape leaves dynamic,
    as values.
    """
    known = extents or Extents.of(shape)
    high, wide = known.counts
    layout = panels_of(shape, cut.width, isa)
    strips: Index = ceil_div(wide, cut.columns)
    positions: tuple[Index, int] = (high, cut.rows)
    if strips != 1:  # rows and columns are one dim of the grid, of which there are three
        positions = (IndexBuilder().mul(ceil_div(high, cut.rows), strips), 1)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        at = list(k.at)
        if strips == 1:
            at.append(0)
        else:
            count = k.inner(strips)
            at[2:] = [k.mul(k.div(at[2], count), cut.rows), k.mul(k.rem(at[2], count), cut.columns)]
        inner = known.inside(k)
        return ConvolutionLoops(k, shape, cut, isa, layout, epilogue, inner, at).build()

    return dispatch(
        [x, packed, *epilogue.inputs],
        [((known.batch, high, wide, shape.outputs), d) for d in epilogue.stored],
        # the groups that read the same weights run after each other
        [(-(-shape.outputs // cut.width), cut.panels), (known.batch, 1), positions],
        body,
        [*known.all, strips],
    )
