"""Pooling as vector loops: vectors along the channels, or along the rows of a plane.

Channels-last: each pixel reduces the taps of its window that are inside of the image. Planes: for
each result row, the rows of its windows are first reduced to one line in scratch, with a border of
neutral elements. Then the line's columns are reduced, after the next row's line has been written.
With a dynamic width, or one that does not fit scratch, this is done in strips.
"""

from __future__ import annotations

from collections.abc import Callable

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, Spot, Stores
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.scalars import VectorScalars
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import Extents
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from mgx_mlir.passes.lowering.scalar import TypedScalar

GROUP_ELEMENTS = 8192  # results of a workgroup: enough to be worth starting
MAX_STRIDE = 4  # stride along a line up to which skipped columns are read as well
MAX_COLUMNS = 16  # columns of a window of a line, unrolled
STRIP = 128  # columns of the result in a strip
F32 = dtypes.FLOAT


@dataclass(frozen=True)
class Windows:
    """Pooling windows over two axes; pairs are (height, width)."""

    mode: str  # function of each window: max, average or lpnorm
    lengths: tuple[int, int]  # extents of a window
    stride: tuple[int, int]
    dilation: tuple[int, int]
    low: tuple[int, int]  # padding ahead of the image
    high: tuple[int, int]  # padding behind the image
    power: int | None = None  # order of the norm, None for other modes
    include: bool = False  # padding counts in an average
    dtype: DType = F32  # type of the image; an integer for max alone

    @property
    def neutral(self) -> float:
        if self.dtype.is_integer:
            return self.dtype.lowest()
        return float("-inf") if self.mode == "max" else 0.0


@dataclass(frozen=True)
class Line:
    """The scratch of one row of windows."""

    elements: int
    strip: int | None = None  # columns of the result made from one line; None: a whole row


def line_of(windows: Windows, images: Extents, isa: Isa) -> Line | None:
    """Return the scratch of one row of windows over planes; None where loops do not fit it."""
    width, count = images.size[1], images.counts[1]
    if windows.stride[1] > MAX_STRIDE or windows.lengths[1] > MAX_COLUMNS:
        return None
    if isinstance(width, int) and isinstance(count, int):
        written = windows.low[1] + -(-width // isa.lanes) * isa.lanes
        read = _read_by(windows, -(-count // isa.lanes) * isa.lanes)
        elements = -(-max(written, read) // isa.lanes) * isa.lanes
        if 2 * elements * 4 <= SCRATCH_BYTES:
            return Line(elements)
    elements = (-(-_read_by(windows, STRIP) // isa.lanes) + 1) * isa.lanes
    return Line(elements, STRIP) if (2 * elements + STRIP) * 4 <= SCRATCH_BYTES else None


def _read_by(windows: Windows, columns: int) -> int:
    """Return the length of a line that `columns` of the result read."""
    return columns * windows.stride[1] + (windows.lengths[1] - 1) * windows.dilation[1]


def channels_last(
    windows: Windows, images: Extents, isa: Isa, x: ir.Value, epilogue: Epilogue
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch over images [N, H, W, C]."""
    high, wide = images.counts
    c = images.channels
    rows = 1
    if isinstance(wide, int) and isinstance(c, int):
        rows = max(1, GROUP_ELEMENTS // (wide * c))
        rows = min(rows, high) if isinstance(high, int) else rows

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        return _Pixels(k, windows, images.inside(k), isa, epilogue).build(rows)

    return dispatch(
        [x, *epilogue.inputs],
        [((images.batch, high, wide, c), d) for d in epilogue.stored],
        [(images.batch, 1), (high, rows)],
        body,
        images.all,
    )


def planes(
    windows: Windows, images: Extents, isa: Isa, x: ir.Value, divisors: ir.Value | None,
    epilogue: Epilogue, line: Line,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch over planes [N * C, H, W].

    divisors: the number of counted columns of each window of a row, for averages.
    """
    high, wide = images.counts
    total = IndexBuilder().mul(images.batch, images.channels)
    step = 1
    if isinstance(high, int) and isinstance(wide, int) and isinstance(total, int):
        step = min(max(1, GROUP_ELEMENTS // max(1, high * wide)), max(1, total))

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        work = _Lines(k, windows, images.inside(k), isa, epilogue, line)
        return work.build(step, k.inner(total))

    inputs = [x, *([] if divisors is None else [divisors]), *epilogue.inputs]
    return dispatch(
        inputs,
        [((total, high, wide), d) for d in epilogue.stored],
        [(total, step)],
        body,
        images.all,
    )


class _Pools:
    """The part that both forms share: taps that count, and their combination."""

    def __init__(
        self, k: WorkgroupBuilder, windows: Windows, images: Extents, isa: Isa, epilogue: Epilogue
    ) -> None:
        self.k, self.windows, self.images, self.isa = k, windows, images, isa
        self.epilogue = epilogue

    def taps(self, axis: int, at: Index) -> tuple[Index, Index, Index]:
        """Return a window's start, its first tap inside of the image, and the end of those taps."""
        k, w = self.k, self.windows
        start = k.sub(k.mul(at, w.stride[axis]), w.low[axis])
        return (start, *self.between(axis, start, 0, self.images.size[axis]))

    def between(self, axis: int, start: Index, begin: Index, end: Index) -> tuple[Index, Index]:
        """Return the range of a window's taps that are in [begin, end)."""
        k, d = self.k, self.windows.dilation[axis]
        first = k.div(k.add(k.max(k.sub(begin, start), 0), d - 1), d)
        last = k.div(k.add(k.max(k.sub(end, start), 0), d - 1), d)
        last = k.min(last, self.windows.lengths[axis])
        return k.min(first, last), last

    def counted(self, axis: int, start: Index, first: Index, last: Index) -> ir.Value:
        """Return how many taps an average counts along an axis, at least 1, as f32."""
        k, w = self.k, self.windows
        if w.include:
            end = k.add(self.images.size[axis], w.high[axis])
            first, last = self.between(axis, start, -w.low[axis], end)
        count = k.index(k.max(k.sub(last, first), 1))
        number = arith.IndexCastOp(ir.IntegerType.get_signless(32), count).result
        return arith.SIToFPOp(ir.F32Type.get(), number).result

    def scalars(self, lanes: int) -> VectorScalars:
        return VectorScalars(self.k, lanes, F32, F32)

    def prepared(self, v: ir.Value, lanes: int) -> ir.Value:
        """Return an element's contribution to its window."""
        b, x, power = self.scalars(lanes), TypedScalar(v, F32), self.windows.power
        if power is None:
            return v
        if power == 0:
            return b.select(b.cmp("ne", x, 0), b.const(1), b.const(0)).value
        x = b.abs(x)
        if power == 2:
            x = b.mul(x, x)
        return (b.pow(x, float(power)) if power > 2 else x).value

    def combined(self, a: ir.Value, v: ir.Value, lanes: int) -> ir.Value:
        """Return the window's partial result combined with an element."""
        dtype = self.windows.dtype
        b = VectorScalars(self.k, lanes, dtype, dtype)
        how = b.max if self.windows.mode == "max" else b.add
        return how(TypedScalar(a, dtype), TypedScalar(v, dtype)).value

    def nothing(self, lanes: int) -> ir.Value:
        """Return the result of a window without elements."""
        return self.k.splat(self.windows.neutral, lanes, self.windows.dtype)

    def finished(self, v: ir.Value, lanes: int, divisor: Callable[[], ir.Value]) -> ir.Value:
        """Return the result of a window from its combined elements."""
        b, x, power = self.scalars(lanes), TypedScalar(v, F32), self.windows.power
        if self.windows.mode == "average":
            return arith.DivFOp(v, divisor()).result
        if power is None or power < 2:
            return v
        return (b.sqrt(x) if power == 2 else b.pow(x, 1.0 / power)).value


class _Pixels(_Pools):
    """Windows of channels-last images."""

    def build(self, rows: int) -> list[ResultTile]:
        k, images = self.k, self.images
        image, row = k.at
        (x, *others), (high, wide) = k.inputs, images.counts
        here = k.covered(row, rows, high)
        sizes = (1, here, wide, images.channels)
        tiles = [k.empty(sizes, d) for d in self.epilogue.stored]
        stores = Stores(k, self.epilogue, others)
        lanes = self.isa.lanes
        if isinstance(images.channels, int):
            lanes *= next(n for n in (4, 2, 1) if n == 1 or not images.channels % (n * lanes))

        def one_row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
            y, first_y, last_y = self.taps(0, k.add(row, r))

            def pixel(q: Index, carried: list[ir.Value]) -> list[ir.Value]:
                start, first, last = self.taps(1, q)

                def some(c: Index, masked: bool, into: list[ir.Value]) -> list[ir.Value]:
                    def tap_row(i: Index, acc: list[ir.Value]) -> list[ir.Value]:
                        at_y = k.add(y, k.mul(i, self.windows.dilation[0]))

                        def tap(j: Index, acc: list[ir.Value]) -> list[ir.Value]:
                            at = k.add(start, k.mul(j, self.windows.dilation[1]))
                            v = k.read(
                                x, [image, at_y, at, c], lanes, masked=0.0 if masked else None
                            )
                            return [self.combined(acc[0], self.prepared(v, lanes), lanes)]

                        return k.loop(first, last, 1, acc, tap)

                    zero = [self.nothing(lanes)]
                    (total,) = k.loop(first_y, last_y, 1, zero, tap_row)

                    def divisor() -> ir.Value:
                        a = self.counted(0, y, first_y, last_y)
                        b = self.counted(1, start, first, last)
                        return k.broadcast(arith.MulFOp(a, b).result, lanes)

                    total = self.finished(total, lanes, divisor)
                    spot = Spot([image, k.add(row, r), q, c], [0, r, q, c], masked)
                    return stores.stored([total], [spot], into)

                return k.along(images.channels, lanes, carried, some)

            return k.loop(0, wide, 1, carried, pixel)

        made = k.loop(0, here, 1, tiles, one_row)
        return [ResultTile(t, (image, row, 0, 0), sizes) for t in made]


@dataclass(frozen=True)
class _Strip:
    """Columns of the result, and the columns of the image that they are made of."""

    first: Index  # first column of the result
    count: Index  # columns of the result
    origin: Index  # image column at which the line begins; negative inside of the padding
    begin: Index  # first column of the image in the line
    width: Index  # columns of the image in the line


class _Lines(_Pools):
    """Windows of planes."""

    def __init__(
        self, k: WorkgroupBuilder, windows: Windows, images: Extents, isa: Isa,
        epilogue: Epilogue, line: Line,
    ) -> None:  # fmt: skip
        super().__init__(k, windows, images, isa, epilogue)
        self.form, self.average = line, windows.mode == "average"
        self.x, *rest = k.inputs
        self.divisors = rest.pop(0) if self.average and line.strip is None else None
        self.stores = Stores(k, epilogue, rest)

    def build(self, step: int, total: Index) -> list[ResultTile]:
        k, (high, wide) = self.k, self.images.counts
        plane = k.at[0]
        here = k.covered(plane, step, total)
        sizes = (here, high, wide)
        scratch = [k.empty((2 * self.form.elements,), self.windows.dtype)]
        strip = self.form.strip
        if strip is None:
            scratch = [self.filled(scratch[0], self.windows.neutral)]
        elif self.average:
            scratch.append(k.empty((strip,), F32))
        own = len(scratch)

        def one(p: Index, carried: list[ir.Value]) -> list[ir.Value]:
            if strip is None:
                width, origin = self.images.size[1], -self.windows.low[1]
                return self.rows(_Strip(0, wide, origin, 0, width), p, carried, own)
            return k.loop(0, wide, strip, carried, lambda q, c: self.strip(q, p, c, own))

        made = k.loop(
            0, here, 1, [*scratch, *(k.empty(sizes, d) for d in self.epilogue.stored)], one
        )
        return [ResultTile(t, (plane, 0, 0), sizes) for t in made[own:]]

    def filled(self, line: ir.Value, number: float) -> ir.Value:
        """Return a line that is one number everywhere."""
        k, lanes = self.k, self.isa.lanes
        v = k.splat(number, lanes, self.windows.dtype)
        size = 2 * self.form.elements
        return k.loop(0, size, lanes, [line], lambda i, c: [k.write(v, c[0], [i])])[0]

    def strip(self, q: Index, p: Index, carried: list[ir.Value], own: int) -> list[ir.Value]:
        """Build one strip of the result's columns from `q` on."""
        k, w, size = self.k, self.windows, self.form.strip
        assert size is not None
        width = self.images.size[1]
        origin = k.sub(k.mul(q, w.stride[1]), w.low[1])
        begin = k.max(origin, 0)
        end = k.min(width, k.add(origin, _read_by(w, size)))
        count = k.min(size, k.sub(self.images.counts[1], q))
        here = _Strip(q, count, origin, begin, k.max(k.sub(end, begin), 0))
        line, *rest = carried
        if self.average:
            line, rest[0] = self.counts(here, line, rest[0])
        return self.rows(here, p, [self.filled(line, w.neutral), *rest], own)

    def counts(
        self, strip: _Strip, line: ir.Value, divisors: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """Write the number of counted columns of each window: the window sums of a line of ones."""
        k, lanes, w = self.k, self.isa.lanes, self.windows
        first: Index = k.sub(strip.begin, strip.origin)
        end: Index = k.add(first, strip.width)
        if w.include:
            assert self.form.strip is not None
            image = k.sub(k.add(self.images.size[1], w.high[1]), strip.origin)
            first, end = 0, k.min(image, _read_by(w, self.form.strip))
        zero, one = (k.splat(n, lanes, F32) for n in (0.0, 1.0))
        ones = k.loop(
            first, end, lanes, [self.filled(line, 0.0)], lambda i, c: [k.write(one, c[0], [i])]
        )[0]
        ones = k.write(zero, ones, [end])  # the last vector of ones may reach past the end
        b = self.scalars(lanes)

        def some(q: Index, c: list[ir.Value]) -> list[ir.Value]:
            number = b.max(TypedScalar(self.gathered(ones, q), F32), b.const(1))
            return [k.write(number.value, c[0], [q])]

        return ones, k.loop(0, self.form.strip or 0, lanes, [divisors], some)[0]

    def rows(self, strip: _Strip, p: Index, carried: list[ir.Value], own: int) -> list[ir.Value]:
        """Make the strip of all rows of a plane; `own` values that are carried are scratch."""
        at = self.k.add(self.k.at[0], p)

        k, high = self.k, self.images.counts[0]

        def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
            # a line is read after the next one has been written, as an unaligned read just after a
            # write would stall on store forwarding
            made = self.line(strip, at, k.min(k.add(r, 1), k.sub(high, 1)), r, carried[0])
            scratch = [made, *carried[1:own]]
            divisors = scratch[-1] if own > 1 else self.divisors
            rows = self.counted(0, *self.taps(0, r)) if self.average else None
            position = (at, p, r)
            return [*scratch, *self.columns(strip, made, position, rows, divisors, carried[own:])]

        carried = [self.line(strip, at, 0, 1, carried[0]), *carried[1:]]
        return k.loop(0, high, 1, carried, row)

    def base(self, r: Index) -> Index:
        """Return the start of a row's line; even and odd rows have one each."""
        return self.k.mul(self.k.rem(r, 2), self.form.elements)

    def line(
        self, strip: _Strip, plane: Index, r: Index, other: Index, scratch: ir.Value
    ) -> ir.Value:
        """Return the rows of the windows of a row as one line, beside that of the row `other`."""
        k, lanes, w = self.k, self.isa.lanes, self.windows
        y, first, last = self.taps(0, r)
        shift = k.sub(strip.begin, strip.origin)

        def some(at: Index, masked: bool, into: list[ir.Value]) -> list[ir.Value]:
            def tap(i: Index, acc: list[ir.Value]) -> list[ir.Value]:
                position = [plane, k.add(y, k.mul(i, w.dilation[0])), k.add(strip.begin, at)]
                v = k.read(self.x, position, lanes, masked=w.neutral if masked else None)
                return [self.combined(acc[0], self.prepared(v, lanes), lanes)]

            def written_out() -> list[ir.Value]:
                acc = [self.nothing(lanes)]
                for i in range(w.lengths[0]):
                    acc = tap(i, acc)
                return acc

            def one_by_one() -> list[ir.Value]:
                return k.loop(first, last, 1, [self.nothing(lanes)], tap)

            if w.lengths[0] > MAX_COLUMNS:
                (total,) = one_by_one()
            else:
                whole = k.is_equal(k.sub(last, first), w.lengths[0])
                kind = [k.vector_type(lanes, w.dtype)]
                (total,) = k.when(whole, written_out, one_by_one, kind)
            return [k.write(total, into[0], [k.add(base, at, shift)])]

        base = self.base(k.add(other, 1))
        return k.along_twice(strip.width, lanes, [scratch], some)[0]

    def gathered(self, line: ir.Value, q: Index, base: Index = 0) -> ir.Value:
        """Return the windows of a vector of columns from `q` of the strip on, reduced."""
        k, lanes, w = self.k, self.isa.lanes, self.windows
        stride, total = w.stride[1], None
        for j in range(w.lengths[1]):
            at = k.add(base, k.mul(q, stride), j * w.dilation[1])
            v = k.read(line, [at], lanes * stride)
            if stride > 1:
                v = vector.ShuffleOp(v, v, [i * stride for i in range(lanes)]).result
            total = v if total is None else self.combined(total, v, lanes)
        assert total is not None
        return total

    def columns(
        self, strip: _Strip, line: ir.Value, position: tuple[Index, Index, Index],
        rows: ir.Value | None, divisors: ir.Value | None, tiles: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Make a row of a strip; `position`: the plane, that of the tile, and the row."""
        k, lanes = self.k, self.isa.lanes
        plane, p, r = position

        def some(q: Index, masked: bool, into: list[ir.Value]) -> list[ir.Value]:
            def divisor() -> ir.Value:
                assert divisors is not None
                assert rows is not None
                own = k.read(divisors, [q], lanes, masked=1.0 if masked else None)
                return arith.MulFOp(own, k.broadcast(rows, lanes)).result

            total = self.finished(self.gathered(line, q, self.base(r)), lanes, divisor)
            c, at = self.images.channels, k.add(strip.first, q)
            spot = Spot([k.div(plane, c), k.rem(plane, c), r, at], [p, r, at], masked)
            return self.stores.stored([total], [spot], into)

        return k.along_twice(strip.count, lanes, tiles, some)
