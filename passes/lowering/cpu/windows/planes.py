"""Convolutions of planes: lanes are neighbouring pixels of one channel.

For images that are N, C, H, W ahead of the convolution and behind it. One of 1x1 is a matmul of the
weights by the image, [C, pixels]. For depthwise ones, a workgroup computes rows of some channels.
It copies a channel's rows with their border to scratch on its stack, then sums tiles of several
rows by one vector or two: each vector that is read serves all taps and rows of its column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores, epilogue_of
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX512_BF16, Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul import dot, dot_kernel
from mgx_mlir.passes.lowering.cpu.windows import convolution_kernel
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape
from mgx_mlir.passes.lowering.expr import Opaque, View
from mgx_mlir.passes.lowering.scalar import TypedScalar
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_LEAST_PIXELS = 784  # pixels that panels of a matmul fill (28x28)
# (inputs x outputs) / (inputs + outputs): multiply-adds for each element that transposes would move
_MOST_WORK = 128
_LEAST_WIDE = 8  # columns of a result; half of the widest vector is empty with fewer
_MOST_STRIDE = 4  # vectors that are read for the columns of one vector of a result
_MOST_ROWS = 8  # rows of a tile: as many sums hide the latency of multiply-adds
_OTHERS = 4  # registers beside the sums of a tile: columns, and a weight
_MOST_STEPS = 800  # multiply-adds of a tile, which are unrolled
TO_FIRST = (0, 3, 1, 2)  # N, H, W, C -> N, C, H, W
CHANNEL = 1  # dim of the result

Carried = list[ir.Value]


@dataclass(frozen=True)
class PlanesPlan:
    """The tiling of a depthwise convolution of planes."""

    rows: int  # rows of a workgroup
    tile: int  # rows of a tile; the last one overlaps the one before it
    vectors: int  # vectors of a row of a tile
    channels: int  # channels of a workgroup
    span: int  # rows of the image that a workgroup reads
    pitch: int  # distance of rows in scratch, in elements


def plan(shape: ConvShape, isa: Isa) -> PlanesPlan | None:
    """Return the tiling; None where a tile's rows do not fit the scratch."""
    (high, wide), lanes, taps = shape.counts, isa.lanes, prod(shape.kernel)
    # weights that are read again for each sum are shared by two
    vectors = 2 if taps + _MOST_ROWS > isa.registers and wide >= 2 * lanes else 1
    sums = (isa.registers - _OTHERS) // vectors
    most = max(1, min(_MOST_ROWS, sums, _MOST_STEPS // (taps * vectors)))
    last = max(wide - lanes, 0) * shape.stride[1]
    reach = last + (shape.kernel[1] - 1) * shape.dilation[1] + shape.stride[1] * lanes
    pitch = -(-max(reach, shape.low[1] + shape.size[1] + lanes) // lanes) * lanes
    room = SCRATCH_BYTES // dtypes.FLOAT.size // pitch
    fits = (room - shape.span(0, 1)) // shape.stride[0] + 1
    if room < shape.span(0, 1):
        return None
    rows = -(-high // -(-high // fits))
    tile = -(-rows // -(-rows // most))
    channels = max(1, min(shape.outputs, GROUP_ELEMENTS // (rows * wide)))
    return PlanesPlan(rows, tile, vectors, channels, shape.span(0, rows), pitch)


def asks(conv: convolution_kernel.AnyConvolution) -> str | None:
    """Return why the rule does not take a channels-last convolution of a transposed image whose
    result is transposed back; None if it does. The answer is the same for all CPUs.
    """
    if not isinstance(conv, Convolution):
        return "it multiplies bytes"
    reason = convolution_kernel.asks(conv)
    if reason is not None:
        return reason
    if TensorType.of(conv.out).rank != 4:
        return "it has no rows of columns"
    shape = convolution_kernel.shape_of(conv, AVX512_BF16)
    if DYN in (*shape.size, *shape.counts):
        return "its image has dynamic dims"
    return _refusal_of_one(conv, shape) if conv.group == 1 else _refusal_of_depthwise(shape)


def _refusal_of_one(conv: Convolution, shape: ConvShape) -> str | None:
    """Return why a convolution of one group is no matmul by the image, None if it is."""
    if (shape.kernel, shape.stride) != ((1, 1), (1, 1)) or shape.size != shape.counts:
        return "its window is not one pixel"
    if shape.batch != 1 or TensorType.of(conv.input).dtype is not dtypes.FLOAT:
        return "it has several images, or they are not f32"
    ci, co = shape.inputs, shape.outputs
    if prod(shape.size) < _LEAST_PIXELS or ci * co > _MOST_WORK * (ci + co):
        return "transposes of its image and its result take little of its time"
    return None


def _refusal_of_depthwise(shape: ConvShape) -> str | None:
    """Return why the loops do not take a convolution of several groups, None if they do."""
    if shape.inputs != 1:
        return "its groups have several channels"
    if shape.counts[1] < _LEAST_WIDE or shape.stride[1] > _MOST_STRIDE:
        return "its rows are short, or its stride is long"
    if prod(shape.kernel) > _MOST_STEPS or plan(shape, AVX512_BF16) is None:
        return "its window is too large"
    return None


@dataclass(frozen=True)
class _Plan:
    """A convolution between two transposes, and the pointwise ops behind it."""

    conv: Convolution
    source: ir.Value  # input, N, C, H, W
    weights: ir.Value
    shape: ConvShape
    tiles: PlanesPlan | None  # None: a matmul
    epilogue: Epilogue


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel of one convolution between transposes from and to planes."""
    conv = next((o for o in site.body.operations if isinstance(o, Convolution)), None)
    if conv is None:
        return Refusal("it has no convolution")
    first, last = conv.input.owner, site.members[-1].operands[0].owner
    if not (is_a(first, Transpose) and is_a(last, Transpose)):
        return Refusal("its image and its result are not planes")
    source = first.operands[0]
    if not isinstance(source.owner, ir.Block) or len(site.stored) != 1:
        return Refusal("its input is computed in the kernel, or it has several results")
    reason = asks(conv)
    if reason is not None:
        return Refusal(reason)
    shape = convolution_kernel.shape_of(conv, site.isa)
    tiles = None if conv.group == 1 else plan(shape, site.isa)
    weights = convolution_kernel.literal_of(conv.weights)
    if (tiles is None and conv.group != 1) or weights is None:
        return Refusal("its window is too large for this CPU")
    batch = e.expr_extents(e.expr(source))[0]
    result = TensorType.of(conv.out).with_dtype(dtypes.FLOAT)
    planes = result.with_dims(result.dims[i] for i in TO_FIRST)
    total = Opaque(planes, [batch, shape.outputs, *shape.counts])
    seen = View(result, total, TO_FIRST, [batch, *shape.counts, shape.outputs])
    epilogue = epilogue_of(e, site, conv, total, [first], seen)
    if isinstance(epilogue, Refusal):
        return epilogue
    if tiles is None and epilogue.along - {CHANNEL}:
        return Refusal("an operand differs between pixels")
    return _Plan(conv, source, weights, shape, tiles, epilogue)


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the dispatch."""
    if plan.tiles is None:
        return _matmul(e, site, plan)
    shape, array, image = plan.shape, literals.seen_of(plan.weights), e.tensor(plan.source)
    weights = array.reshape((*shape.kernel, 1, shape.outputs))
    packed = e.parameter(e.repacked(array, ("planes",), lambda: pack(weights)))
    batch, dtype = e.extents(image)[0], TensorType.of(plan.conv.input).dtype
    return convolution(shape, plan.tiles, site.isa, image, packed, plan.epilogue, batch, dtype)


def _matmul(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the matmul of weights [outputs, inputs] by the image as [inputs, pixels]."""
    shape, array = plan.shape, literals.seen_of(plan.weights)
    ci, co, pixels = shape.inputs, shape.outputs, prod(shape.size)

    def turned() -> np.ndarray:
        return np.ascontiguousarray(array.reshape(ci, co).T.astype(np.float32))

    weights = e.parameter(e.repacked(array, ("rows",), turned))
    image = views.reshaped(e, e.tensor(plan.source), [ci, pixels])
    own = dot.DotShape(co, ci, pixels, b=(0, 1))
    epilogue = plan.epilogue.through(lambda k, at: [0, at[0], 0, at[1]])
    made = dot_kernel.of_computed(e, own, site.isa, (weights, image), 1, epilogue)
    return [views.reshaped(e, v, [1, co, *shape.size]) for v in made]


def pack(weights: np.ndarray) -> np.ndarray:
    """Weights [kh, kw, 1, channels] as [channels, taps], in f32."""
    flat = weights.astype(np.float32).reshape(-1, weights.shape[-1])
    return np.ascontiguousarray(flat.T)


def convolution(
    shape: ConvShape, tiles: PlanesPlan, isa: Isa, x: ir.Value, packed: ir.Value,
    epilogue: Epilogue, batch: Index, dtype: DType = dtypes.FLOAT,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch. x: the image [N, C, H, W], of type `dtype`. packed: of `pack`."""

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        return _Loops(k, shape, tiles, isa, epilogue, dtype).build()

    high, wide = shape.counts
    return dispatch(
        [x, packed, *epilogue.inputs],
        [((batch, shape.outputs, high, wide), d) for d in epilogue.stored],
        [(batch, 1), (shape.outputs, tiles.channels), (high, tiles.rows)],
        body,
        [batch],
    )


RULE = KernelRule("planes", (), match, build, asks=asks)


class _Loops:
    """Builds the body of one workgroup."""

    def __init__(
        self, k: WorkgroupBuilder, shape: ConvShape, tiles: PlanesPlan, isa: Isa,
        epilogue: Epilogue, dtype: DType,
    ) -> None:  # fmt: skip
        self.k, self.shape, self.tiles, self.lanes, self.dtype = k, shape, tiles, isa.lanes, dtype
        self.x, self.w, *others = k.inputs
        self.stores = Stores(k, epilogue, others)
        self.image, self.channel, row = k.at
        # the last rows overlap those before them
        self.row = k.min(row, shape.counts[0] - tiles.rows)

    def build(self) -> list[ResultTile]:
        k, s, tiles = self.k, self.shape, self.tiles
        mine = k.covered(self.channel, tiles.channels, s.outputs)
        sizes = (1, mine, tiles.rows, s.counts[1])
        scratch = k.empty((tiles.span, tiles.pitch))
        if any((*s.low, *s.high)):
            scratch = self.cleared(scratch)
        made = [k.empty(sizes, d) for d in self.stores.epilogue.stored]

        def one(c: Index, carried: Carried) -> Carried:
            channel = k.add(self.channel, c)
            scratch = self.copied(carried[0], k.div(channel, s.outputs // self.planes))
            return [scratch, *self.plane(scratch, channel, c, carried[1:])]

        made = k.loop(0, mine, 1, [scratch, *made], one)[1:]
        at = (self.image, self.channel, self.row, 0)
        return [ResultTile(t, at, sizes) for t in made]

    @property
    def planes(self) -> int:
        """Return the channels of the image."""
        return ir.RankedTensorType(self.x.type).shape[1]

    # ---- the copy ------------------------------------------------------------------------------

    def cleared(self, scratch: ir.Value) -> ir.Value:
        """Return the scratch with zeros, of which the border stays."""
        k, zero = self.k, self.k.splat(0.0, self.lanes)

        def row(r: Index, carried: Carried) -> Carried:
            return k.loop(
                0, self.tiles.pitch, self.lanes, carried,
                lambda j, c: [k.write(zero, c[0], [r, j])],
            )  # fmt: skip

        return k.loop(0, self.tiles.span, 1, [scratch], row)[0]

    def copied(self, scratch: ir.Value, plane: Index) -> ir.Value:
        """Return the scratch with the rows of a plane that are inside of the image."""
        k, s, lanes = self.k, self.shape, self.lanes
        high, wide = s.size
        start = k.sub(k.mul(self.row, s.stride[0]), s.low[0])
        first = k.max(0, k.sub(0, start))
        stop = k.min(self.tiles.span, k.sub(high, start))

        def row(r: Index, carried: Carried) -> Carried:
            def some(j: Index, masked: bool, c: Carried) -> Carried:
                at = [self.image, plane, k.add(start, r), j]
                read = k.read(self.x, at, lanes, masked=0.0 if masked else None)
                value = widen(k, TypedScalar(read, self.dtype), lanes).value
                return [k.write(value, c[0], [r, k.add(j, s.low[1])])]

            return self.across(wide, lanes, carried, some)

        return k.loop(first, stop, 1, [scratch], row)[0]

    def across(
        self, count: int, lanes: int, carried: Carried,
        body: Callable[[Index, bool, Carried], Carried],
    ) -> Carried:  # fmt: skip
        """Return `body(column, masked, carried)` over columns, `lanes` of them at a time; the last
        ones overlap those before them, or are masked where there are none.
        """
        k = self.k
        if count < lanes:
            return body(0, True, carried)
        whole = count // lanes * lanes
        carried = k.each(0, whole, lanes, carried, lambda j, c: body(j, False, c))
        return body(count - lanes, False, carried) if whole < count else carried

    # ---- the sums ------------------------------------------------------------------------------

    def plane(self, scratch: ir.Value, channel: Index, c: Index, made: Carried) -> Carried:
        """Return the tiles with the rows of a channel."""
        k, (rows, tile), lanes = self.k, (self.tiles.rows, self.tiles.tile), self.lanes
        weights = [
            k.broadcast(k.element(self.w, [channel, t]), self.lanes)
            for t in range(prod(self.shape.kernel))
        ]

        def block(i: Index, carried: Carried) -> Carried:
            r = k.min(i, rows - tile)

            def some(q: Index, masked: bool, carried: Carried) -> Carried:
                sums = self.sums(scratch, weights, r, q)

                def spots(i: Index) -> list[Spot]:
                    own = k.add(r, i)
                    columns = [k.add(q, v * lanes) for v in range(self.tiles.vectors)]
                    return [
                        Spot(
                            [self.image, channel, k.add(self.row, own), column],
                            [0, c, own, column], masked,
                        )
                        for column in columns
                    ]  # fmt: skip

                return self.stores.rows(sums, tile, spots, carried)

            wide = lanes * self.tiles.vectors
            return self.across(self.shape.counts[1], wide, carried, some)

        return k.each(0, rows, tile, made, block)

    def sums(self, scratch: ir.Value, weights: Carried, r: Index, q: Index) -> Carried:
        """Return the sums of a tile from row `r`, column `q` on: the vectors of each row."""
        k, s, vectors = self.k, self.shape, self.tiles.vectors
        (kh, kw), (sh, _), (dh, _) = s.kernel, s.stride, s.dilation
        found = [k.splat(0.0, self.lanes)] * (self.tiles.tile * vectors)
        top = k.mul(r, sh)
        for y in range(s.span(0, self.tiles.tile)):
            readers = [
                (p, t // dh)
                for p in range(self.tiles.tile)
                if 0 <= (t := y - p * sh) <= (kh - 1) * dh and t % dh == 0
            ]
            if not readers:
                continue
            at = [k.add(q, v * self.lanes) for v in range(vectors)]
            both = [self.columns(scratch, k.add(top, y), column) for column in at]
            for j, read in enumerate(zip(*both, strict=True)):
                for p, i in readers:
                    for v, value in enumerate(read):
                        to = p * vectors + v
                        found[to] = k.fma(value, weights[i * kw + j], found[to])
        return found

    def columns(self, scratch: ir.Value, y: Index, q: Index) -> Iterator[ir.Value]:
        """Yield the vector that each tap of a row reads, for sums from column `q` on."""
        k, lanes, (step, apart) = self.k, self.lanes, (self.shape.stride[1], self.shape.dilation[1])
        blocks: dict[int, ir.Value] = {}
        for j in range(self.shape.kernel[1]):
            begin, phase = divmod(j * apart, step)
            if begin not in blocks:
                at = [y, k.mul(k.add(q, begin), step)]
                blocks[begin] = k.read(scratch, at, lanes * step)
            block = blocks[begin]
            order = [phase + step * n for n in range(lanes)]
            yield block if step == 1 else vector.ShuffleOp(block, block, order).result
