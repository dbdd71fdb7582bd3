"""The part of a padded image that a workgroup reads: in place, or copied to scratch.

Scratch has the rows of the workgroup in sequence, each with its border. A row has pixels with a
block of channels. Where elements are multiplied one by one, planes are not interleaved: a row has a
line per channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvPlan, ConvShape, Extents
from mgx_mlir.passes.lowering.scalar import TypedScalar

WORD = 32  # bits of the adjacent elements that an instruction takes


@dataclass(frozen=True)
class _Strip:
    """Columns of the padded image that a workgroup reads."""

    left: Index  # columns of the border ahead of the image
    begin: Index  # first column of the image
    used: Index  # columns of the image
    right: Index  # columns of the border behind the image


@dataclass(frozen=True)
class Image:
    """The pixels of a workgroup."""

    k: WorkgroupBuilder
    shape: ConvShape
    cut: ConvPlan
    isa: Isa
    extents: Extents
    source: ir.Value  # all elements of all images
    number: Index  # image of the batch
    row: Index  # first row of the result
    column: Index  # first column of the result
    rows: Index  # rows of the result
    columns: Index  # columns of the result
    pitch: Index  # distance of rows, in elements
    shift: int  # number added to 8-bit integers in scratch

    @property
    def line(self) -> int:
        """Distance of the planes of channels in scratch; 0 where pixels have their channels."""
        shape = self.shape
        return shape.span(1, self.cut.columns) if shape.planar and not shape.unit else 0

    @property
    def step(self) -> int:
        """Return the distance of neighbouring pixels of a row, in elements."""
        if self.line:
            return 1
        return self.shape.inputs if self.shape.in_place else self.cut.block

    def start_of(self, r: Index, q: Index) -> Index:
        """Return where the window of a pixel of the workgroup starts, in elements."""
        k, s = self.k, self.shape
        return k.add(k.mul(k.mul(r, s.stride[0]), self.pitch), k.mul(q, s.stride[1] * self.step))

    def window(self, source: ir.Value, positions: Sequence[tuple[Index, Index]]) -> Window:
        """Return the windows of some pixels (row, column) in scratch, or in the image itself."""
        k, s = self.k, self.shape
        base, apart = self.start_of(*positions[0]), s.stride[1] * self.step
        offsets: list[Index] = [i * apart for i in range(len(positions))]
        # rows without gaps: a row's last pixel is followed by the next row's first
        whole = s.in_place and s.size[1] == s.counts[1] == self.cut.columns
        is_line = whole and s.kernel == s.stride == (1, 1)
        if self.cut.across and not is_line:
            offsets = [k.sub(self.start_of(*at), base) for at in positions]
        if s.in_place:
            top = k.add(k.mul(self.number, self.extents.size[0]), k.mul(self.row, s.stride[0]))
            base = k.add(base, k.mul(top, self.pitch), k.mul(self.column, apart))
        return Window(k, source, self.loops, base, offsets, s.unit)

    @property
    def loops(self) -> list[tuple[Index, Index]]:
        """The loops over a window: iterations, and elements between two of them."""
        (kh, kw), (dh, dw) = self.shape.kernel, self.shape.dilation
        block, unit = self.cut.block, max(1, self.shape.unit)
        rows: tuple[Index, Index] = (kh, self.k.mul(dh, self.pitch))
        if self.line:
            return [rows, (block, self.line), (kw, dw)]
        if dw == 1 or kw == 1:
            return [rows, (kw * block // unit, unit)]
        return [rows, (kw, dw * block), (block // unit, unit)]

    # ---- the copy ----------------------------------------------------------------------------

    @property
    def scratch(self) -> list[ir.Value]:
        """A new scratch, none where windows are read in place."""
        if self.shape.in_place:
            return []
        assert isinstance(self.pitch, int)
        size = self.shape.span(0, self.cut.rows) * self.pitch
        dtype = self.shape.multiplied
        return [self.k.empty((size,), dtypes.INT8 if dtype.is_integer else dtype)]

    def copied(self, scratch: ir.Value, b: Index) -> ir.Value:
        """Return the scratch with the part of the padded image, of a block of channels."""
        k, s = self.k, self.shape
        high, wide = self.extents.size
        first = k.sub(k.mul(self.row, s.stride[0]), s.low[0])
        count = k.add(k.mul(k.sub(self.rows, 1), s.stride[0]), s.span(0, 1))
        # columns [start, start + span) of the image: border, and those inside
        start = k.sub(k.mul(self.column, s.stride[1]), s.low[1])
        span = k.add(k.mul(k.sub(self.columns, 1), s.stride[1]), s.span(1, 1))
        left = k.min(span, k.max(0, k.sub(0, start)))
        inside = k.max(0, k.min(wide, k.add(start, span)))
        begin = k.min(inside, k.max(0, start))
        used = k.sub(inside, begin)
        strip = _Strip(left, begin, used, k.sub(k.sub(span, left), used))

        def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
            y, at = k.add(first, r), k.mul(r, self.pitch)
            # one comparison: a negative row is a huge unsigned number
            return k.when(
                k.is_below(y, high),
                lambda: [self._row(carried[0], at, y, b, strip)],
                lambda: [self._bordered(carried[0], at, self.pitch)],
                [scratch.type],
            )

        return k.loop(0, count, 1, [scratch], row)[0]

    def _row(self, into: ir.Value, at: Index, y: Index, b: Index, strip: _Strip) -> ir.Value:
        """Return the scratch with one row of the image and its border from `at` on."""
        k, s, block = self.k, self.shape, self.cut.block
        high, wide = self.extents.size
        if not s.planar:
            pixel = k.add(k.mul(k.add(k.mul(self.number, high), y), wide), strip.begin)
            source = k.add(k.mul(pixel, s.inputs), k.mul(b, block))

            def pixels(into: ir.Value, at: Index) -> ir.Value:
                if block == s.inputs:
                    return self._copied(into, at, source, k.mul(strip.used, block))
                if strip.used == 0:
                    return into

                def one(p: Index, c: list[ir.Value]) -> list[ir.Value]:
                    to, of = k.add(at, k.mul(p, block)), k.add(source, k.mul(p, s.inputs))
                    return [self._copied(c[0], to, of, min(block, s.inputs))]

                return k.loop(0, strip.used, 1, [into], one)[0]

            return self._between(into, at, block, strip, pixels)

        def plane(c: Index) -> Index:
            """Return where the row begins in the plane of a channel."""
            source = k.add(k.mul(self.number, s.inputs), c)
            return k.add(k.mul(k.add(k.mul(source, high), y), wide), strip.begin)

        if not self.line:
            return self._between(
                into, at, block, strip, lambda t, at: self._woven(t, at, strip, plane)
            )

        def one_plane(c: Index, carried: list[ir.Value]) -> list[ir.Value]:
            source, to = plane(c), k.add(at, k.mul(c, self.line))

            def copied(into: ir.Value, at: Index) -> ir.Value:
                return self._copied(into, at, source, strip.used)

            return [self._between(carried[0], to, 1, strip, copied)]

        return k.loop(0, block, 1, [into], one_plane)[0]

    def _between(
        self, into: ir.Value, at: Index, unit: int, strip: _Strip,
        image: Callable[[ir.Value, Index], ir.Value],
    ) -> ir.Value:  # fmt: skip
        """Return the scratch with a line: `image(scratch, index)` between the ends of the border.

        unit: elements of a column.
        """
        k = self.k
        into = self._bordered(into, at, k.mul(strip.left, unit))
        at = k.add(at, k.mul(strip.left, unit))
        into = image(into, at)
        return self._bordered(into, k.add(at, k.mul(strip.used, unit)), k.mul(strip.right, unit))

    def _bordered(self, into: ir.Value, at: Index, count: Index) -> ir.Value:
        """Return the scratch with elements of the border."""
        k, dtype, number = self.k, self.shape.multiplied, self.shape.border + self.shift
        stored = dtypes.INT8 if dtype.is_integer else dtype
        value = number - 256 if number > 127 else number

        def put(i: Index, lanes: int, t: ir.Value) -> ir.Value:
            return k.write(k.splat(value, lanes, stored), t, [k.add(at, i)])

        return self._chunks(into, count, put)

    def _copied(self, into: ir.Value, at: Index, source: Index, count: Index) -> ir.Value:
        def put(i: Index, lanes: int, t: ir.Value) -> ir.Value:
            return self.k.write(self._read(self.k.add(source, i), lanes), t, [self.k.add(at, i)])

        return self._chunks(into, count, put)

    def _read(self, at: Index, lanes: int) -> ir.Value:
        """Return elements of the image in the form of scratch."""
        k, v = self.k, self.k.read(self.source, [at], lanes)
        if self.shift:
            return arith.XOrIOp(v, k.splat(-128, lanes, dtypes.INT8)).result
        if self.shape.unit:  # the instruction widens them
            return v
        dtype = dtypes.from_mlir(ir.VectorType(v.type).element_type)
        return widen(k, TypedScalar(v, dtype), lanes).value

    def _chunks(
        self, into: ir.Value, count: Index, put: Callable[[Index, int, ir.Value], ir.Value]
    ) -> ir.Value:
        """`put` at 0, n, 2n .. up to `count`, as vectors of n = four registers, then less."""
        k, big, at = self.k, 4 * self.isa.lanes, 0
        sizes = [big, self.isa.lanes, 1]
        if isinstance(count, int):
            sizes = [big >> i for i in range(big.bit_length())]
        start: Index = at
        for n in sizes:
            stop = k.sub(count, k.rem(count, n))
            (into,) = k.each(start, stop, n, [into], lambda i, c, n=n: [put(i, n, c[0])])
            start = stop
        return into

    # ---- planes whose channels become neighbours ---------------------------------------------

    def _woven(
        self, into: ir.Value, at: Index, strip: _Strip, plane: Callable[[Index], Index]
    ) -> ir.Value:
        """Return the scratch with the pixels of a row, read from the planes of all channels."""
        k, block = self.k, self.cut.block
        lines = [plane(c) for c in range(self.shape.inputs)]

        def some(p: Index, lanes: int, t: ir.Value) -> ir.Value:
            planes = [self._read(k.add(line, p), lanes) for line in lines]
            return k.write(self._interleaved(planes, lanes), t, [k.add(at, k.mul(p, block))])

        return self._chunks(into, strip.used, some)

    def _interleaved(self, planes: Sequence[ir.Value], lanes: int) -> ir.Value:
        """Return pixels from a vector of each channel; channels that are filled up are 0."""
        k, block = self.k, self.cut.block
        dtype = self.shape.multiplied
        stored = dtypes.INT8 if dtype.is_integer else dtype
        if block == 1:
            return planes[0]
        count = WORD // stored.bits
        if block % count:
            none = k.splat(0, lanes, stored)
            return _shuffled([*planes, *[none] * (block - len(planes))], lanes)
        words: list[ir.Value] = []
        kind = k.vector_type(lanes, dtypes.INT32)
        bits = ir.VectorType.get([lanes], ir.IntegerType.get_signless(stored.bits))
        for first in range(0, block, count):
            word = k.splat(0, lanes, dtypes.INT32)
            for i, plane in enumerate(planes[first : first + count]):
                plane = vector.BitCastOp(bits, plane).result if stored.is_float else plane
                wide = arith.ExtUIOp(kind, plane).result
                shift = k.splat(stored.bits * i, lanes, dtypes.INT32)
                word = arith.OrIOp(word, arith.ShLIOp(wide, shift).result).result
            words.append(word)
        whole = _shuffled(words, lanes)
        return vector.BitCastOp(k.vector_type(block * lanes, stored), whole).result


def _shuffled(parts: Sequence[ir.Value], lanes: int) -> ir.Value:
    """Return the first lane of each part, the second of each, and so on."""
    found = parts[0]
    for count, part in enumerate(parts[1:], 1):
        # `found` has `count` elements of each lane; `part` is as long, for the shuffle
        order = [
            i * count + j if j < count else lanes * count + i
            for i in range(lanes)
            for j in range(count + 1)
        ]
        found = vector.ShuffleOp(found, part, order).result
    return found


@dataclass(frozen=True)
class Window:
    """The windows of some pixels: a Reader of a matmul."""

    k: WorkgroupBuilder
    source: ir.Value
    loops: Sequence[tuple[Index, Index]]
    start: Index  # element where the first window starts
    offsets: Sequence[Index]  # starts of the windows from the first
    unit: int  # neighbouring channels of a group, 0: one element at a time
    rest: Index = 0  # channels are filled up to whole groups

    def values(self, at: Index, *, masked: bool) -> Iterator[ir.Value]:
        """Yield the element, or the neighbouring channels, of each pixel."""
        for n in self.offsets:
            position = [self.k.add(at, n)]
            if self.unit:
                yield self.k.read(self.source, position, self.unit)
            else:
                yield self.k.element(self.source, position)
