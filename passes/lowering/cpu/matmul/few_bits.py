"""Weights of 4, 8 and 16 bits in the layout of matmuls, and their widening to f32.

A 32-bit word has eight 4-bit codes of a column. Put into the last mantissa bits of the f32 2^n, a
code adds its value to that number: a mask inserts it, and one subtraction removes 2^n and the zero
point. Without zero points, CPUs with a table instruction look codes up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.filling import Packing
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.computed import Rows
from mgx_mlir.passes.lowering.cpu.matmul.panel import pack
from mgx_mlir.passes.lowering.scalar import TypedScalar

UNIT = 8  # codes of a column that are widened together, whatever their bits
FOUR = 4  # bytes whose products an instruction adds
MIDDLE = 8  # the 4-bit code of 0 where there are no zero points
CHAINS = 12  # independent sums, to hide the latency of additions
FEW_ROWS = 3  # rows for which codes are widened in registers; for more, once to scratch
# the row of a unit in each half byte of a word, lowest first: low halves have the first four rows,
# high halves the others
_ROWS = (0, 4, 1, 5, 2, 6, 3, 7)
_PLACES = tuple(_ROWS.index(i) for i in range(UNIT))  # the half byte of each row
_BYTE = 8  # bits
LINE = 64  # bytes of a line of a cache
_MANTISSA = 23  # bits of an f32 below its exponent
_STRIP = 1 << 18  # bytes of codes that are put in order together: their words fit in a cache
_SHIFT = 12  # bits by which the half bytes that reach into the exponent are shifted down
# the lowest bit of each half byte, some after the shift
_BITS = tuple(4 * i if 4 * i + 4 < _MANTISSA else 4 * i - _SHIFT for i in range(UNIT))


@dataclass(frozen=True)
class FewBits:
    """The form of packed weights: bits of a code, rows of a block, the type of the zero points,
    None without. fours: codes of 8 bits lie as in `fours`, and are multiplied by digits alone.
    minima: zero points are added behind the scale.
    """

    bits: int
    block: int
    zeros: DType | None = None
    fours: bool = False
    minima: bool = False


def words(codes: np.ndarray, width: int) -> Packing:
    """Codes of 4 bits, two of a column in each byte of [K / 2, N], as [panel, K / 8, width], i32.

    K is a multiple of 8.
    """
    halves, columns = codes.shape
    pairs, count = UNIT // 2, -(-columns // width)
    step = max(_STRIP // (halves * width), 1) * width

    def fill(out: np.ndarray) -> None:
        for start in range(0, columns, step):
            strip = codes[:, start : start + step]
            panels = -(-strip.shape[1] // width)
            whole = np.zeros((halves, panels * width), np.uint32)
            whole[:, : strip.shape[1]] = strip
            units = whole.reshape(-1, pairs, panels, width)
            packed = np.zeros((len(units), panels, width), np.uint32)
            for i, row in enumerate(_ROWS):
                codes_of_row = units[:, row // 2] >> np.uint32(4 * (row % 2)) & np.uint32(15)
                packed |= codes_of_row << np.uint32(4 * i)
            first = start // width
            out[first : first + panels] = packed.transpose(1, 0, 2).view(np.int32)

    return Packing((count, 2 * halves // UNIT, width), np.dtype(np.int32), fill)


def fours(codes: np.ndarray, width: int) -> np.ndarray:
    """Codes of 8 bits [K, N] as [panel, K / 4, 4 * width]: four of a column are neighbours."""
    return pack(codes, width, FOUR)


class Widening:
    """Reads packed weights as vectors of f32.

    tensors: the codes of `words`, `fours` or `pack`, and the scales and zero points of `pack`.
    """

    def __init__(
        self, k: WorkgroupBuilder, isa: Isa, form: FewBits, tensors: Sequence[ir.Value]
    ) -> None:
        self.k, self.isa, self.form, self.lanes = k, isa, form, isa.lanes
        self.codes, self.scales = tensors[:2]
        self.zeros = tensors[2] if form.zeros is not None else None
        # all codes mean the same numbers
        self.by_table = bool(isa.table) and form.bits == 4 and self.zeros is None

    def scale(self, panel: Index, block: Index, column: int) -> ir.Value:
        """Return the scales of a block for a register of columns."""
        return self._numbers(self.scales, panel, block, column)

    def starts(self, panel: Index, block: Index, column: int) -> list[list[ir.Value]]:
        """Return the numbers to subtract for each row of a unit, in order; minima are none."""
        k, lanes, form = self.k, self.lanes, self.form
        zero = []
        if self.zeros is not None and not form.minima:
            zero = [self._numbers(self.zeros, panel, block, column)]
        if form.bits != 4 or self.by_table:
            return [zero] * UNIT
        made: dict[int, list[ir.Value]] = {}
        for bit in sorted(set(_BITS)):
            base = 2.0 ** (_MANTISSA - bit)
            if not zero:
                middle = 0 if form.minima else MIDDLE
                made[bit] = [k.splat(base + middle, lanes)]
            elif form.zeros is not None and form.zeros.is_float:
                # not an integer: it would be rounded when added to 2^23
                made[bit] = [k.splat(base, lanes), *zero]
            else:
                made[bit] = [arith.AddFOp(zero[0], k.splat(base, lanes)).result]
        return [made[_BITS[i]] for i in _PLACES]

    def packed(
        self, panel: Index, first: Index, count: Index, registers: int, into: ir.Value
    ) -> ir.Value:
        """Return scratch with `count` rows of depth of a panel, from unit `first` on."""
        k = self.k

        def unit(u: Index, carried: list[ir.Value]) -> list[ir.Value]:
            out = carried[0]
            for j in range(registers):
                found = self.scaled(panel, k.add(first, u), j * self.lanes)
                for i, v in enumerate(found):
                    out = k.write(v, out, [k.add(k.mul(u, UNIT), i), j * self.lanes])
            return [out]

        return k.loop(0, k.div(count, UNIT), 1, [into], unit)[0]

    @property
    def _rows(self) -> int:
        """Return how many rows of the codes' tensor a unit has."""
        if self.form.bits == 4:
            return 1
        return UNIT // FOUR if self.form.fours else UNIT

    def ask_ahead(self, panel: Index, unit: Index) -> None:
        """Ask for the codes that are read some time after a unit: the panels lie in that order."""
        if not self.isa.ahead:
            return
        k, kind = self.k, ir.RankedTensorType(self.codes.type)
        width, rows = kind.shape[-1], self._rows
        row_bytes = width * self._type_of(self.codes).size
        row = k.mul(k.add(unit, -(-self.isa.ahead // (rows * row_bytes))), rows)
        for at in range(0, rows * row_bytes, LINE):
            column = at % row_bytes * width // row_bytes
            k.prefetch(self.codes, [panel, k.add(row, at // row_bytes), column])

    def unit(
        self, panel: Index, unit: Index, column: int, starts: Sequence[Sequence[ir.Value]]
    ) -> list[ir.Value]:
        """Return the codes less their zero points, of the rows of a unit."""
        read = self._words if self.form.bits == 4 else self._bytes
        found: list[ir.Value] = []
        for v, taken in zip(read(panel, unit, column), starts, strict=True):
            for x in taken:
                v = arith.SubFOp(v, x).result
            found.append(v)
        return found

    def _words(self, panel: Index, unit: Index, column: int) -> list[ir.Value]:
        """Return each code plus a power of two, inserted as its low mantissa bits.

        With a table instruction, return the codes' values.
        """
        k, lanes = self.k, self.lanes
        word = k.read(self.codes, [panel, unit, column], lanes)
        if self.by_table:
            return [self._looked_up(word, i) for i in _PLACES]
        high = arith.ShRUIOp(word, k.splat(_SHIFT, lanes, dtypes.INT32)).result
        found: list[ir.Value] = []
        for i in _PLACES:
            bit = _BITS[i]
            code = word if 4 * i == bit else high
            code = arith.AndIOp(code, k.splat(15 << bit, lanes, dtypes.INT32)).result
            exponent = 127 + _MANTISSA - bit << _MANTISSA
            code = arith.OrIOp(code, k.splat(exponent, lanes, dtypes.INT32)).result
            found.append(arith.BitcastOp(k.vector_type(lanes), code).result)
        return found

    def halves(self, panel: Index, unit: Index, column: int) -> list[ir.Value]:
        """Return codes as bytes, four to a word: the first rows of a unit, the others.

        Codes of 8 bits are u8 with zero point `middle_of`, where no instruction takes i8.
        """
        k, lanes = self.k, self.lanes
        if self.form.bits == 8:
            found = [self._four(panel, unit, i, column) for i in range(UNIT // FOUR)]
            if self.isa.signed_bytes:
                return found
            top = k.splat(-0x7F7F7F80, lanes, dtypes.INT32)  # the sign of each byte
            return [arith.XOrIOp(v, top).result for v in found]
        word = k.read(self.codes, [panel, unit, column], lanes)
        mask = k.splat(0x0F0F0F0F, lanes, dtypes.INT32)
        high = arith.ShRUIOp(word, k.splat(4, lanes, dtypes.INT32)).result
        return [arith.AndIOp(v, mask).result for v in (word, high)]

    def points(
        self, panel: Index, block: Index, column: int
    ) -> tuple[ir.Value | None, ir.Value | None]:
        """Return the zero points of a block: i32, or f32 where they are floats; None without."""
        if self.zeros is None:
            return None, None
        if self._type_of(self.zeros).is_float:
            return None, self._numbers(self.zeros, panel, block, column)
        k, lanes = self.k, self.lanes
        found = k.read(self.zeros, [panel, block, column], lanes)
        return arith.ExtSIOp(k.vector_type(lanes, dtypes.INT32), found).result, None

    def _looked_up(self, word: ir.Value, half_byte: int) -> ir.Value:
        """Return the numbers of the half bytes at an index: the instruction reads the lowest."""
        k, lanes = self.k, self.lanes
        if half_byte:
            word = arith.ShRUIOp(word, k.splat(4 * half_byte, lanes, dtypes.INT32)).result
        table = k.table([code - MIDDLE for code in range(16)])
        return k.intrinsic(self.isa.table, k.vector_type(lanes), table, word)

    def _four(self, panel: Index, unit: Index, half: int, column: int) -> ir.Value:
        """Return four codes of 8 bits of each column of a register, as a word."""
        k, lanes = self.k, self.lanes
        row = k.add(k.mul(unit, UNIT // FOUR), half)
        found = k.read(self.codes, [panel, row, FOUR * column], FOUR * lanes)
        return vector.BitCastOp(k.vector_type(lanes, dtypes.INT32), found).result

    def _bytes(self, panel: Index, unit: Index, column: int) -> list[ir.Value]:
        first = self.k.mul(unit, UNIT)
        return [self._numbers(self.codes, panel, self.k.add(first, i), column) for i in range(UNIT)]

    def _numbers(self, source: ir.Value, panel: Index, row: Index, column: int) -> ir.Value:
        """Return a register of any type as f32."""
        k, lanes = self.k, self.lanes
        v = k.read(source, [panel, row, column], lanes)
        dtype = self._type_of(source)
        if dtype.is_float:
            return widen(k, TypedScalar(v, dtype), lanes).value
        wide = arith.ExtSIOp(k.vector_type(lanes, dtypes.INT32), v).result
        return arith.SIToFPOp(k.vector_type(lanes), wide).result

    def _type_of(self, source: ir.Value) -> DType:
        return dtypes.from_mlir(ir.RankedTensorType(source.type).element_type)

    def minimum(self, panel: Index, block: Index, column: int) -> ir.Value:
        """Return the minima of a block for a register of columns."""
        assert self.zeros is not None
        return self._numbers(self.zeros, panel, block, column)

    def scaled(self, panel: Index, unit: Index, column: int) -> list[ir.Value]:
        """Return the weights of the rows of a unit."""
        block = self.k.div(unit, self.form.block // UNIT)
        starts, scale = self.starts(panel, block, column), self.scale(panel, block, column)
        codes = self.unit(panel, unit, column, starts)
        if not self.form.minima:
            return [arith.MulFOp(v, scale).result for v in codes]
        minimum = self.minimum(panel, block, column)
        return [self.k.fma(v, scale, minimum) for v in codes]


def direct_sums(
    w: Widening, rows: Rows, panel: Index, depth: int, registers: int
) -> list[ir.Value]:
    """Return the sums of a few rows over all of the depth, for each row those of each register.

    Codes are widened for these rows alone; scales come in once a block, beside minima once a code.
    """
    k, lanes, form = w.k, w.lanes, w.form
    spots = len(rows.rows) * registers
    chains = next(c for c in (4, 2, 1) if c == 1 or c * spots <= CHAINS)
    zero = k.splat(0, lanes)
    units = form.block // UNIT

    def block(g: Index, totals: Sequence[ir.Value], count: int) -> list[ir.Value]:
        starts = [w.starts(panel, g, j * lanes) for j in range(registers)]
        first = k.mul(g, units)
        scales = [w.scale(panel, g, j * lanes) for j in range(registers)]
        minima = [w.minimum(panel, g, j * lanes) for j in range(registers) if form.minima]

        def unit(u: Index, sums: list[ir.Value]) -> list[ir.Value]:
            at, out = k.add(first, u), list(sums)
            w.ask_ahead(panel, at)
            codes = [w.unit(panel, at, j * lanes, starts[j]) for j in range(registers)]
            for j, low in enumerate(minima):
                codes[j] = [k.fma(v, scales[j], low) for v in codes[j]]
            for i in range(UNIT):
                found = rows.values(k.add(k.mul(at, UNIT), i), masked=False)
                for r, value in enumerate(k.broadcast(v, lanes) for v in found):
                    for j in range(registers):
                        spot = (r * registers + j) * chains + i % chains
                        out[spot] = k.fma(value, codes[j][i], out[spot])
            return out

        sums = k.loop(0, count, 1, [zero] * (spots * chains), unit)
        out: list[ir.Value] = []
        for spot, total in enumerate(totals):
            parts = sums[spot * chains : (spot + 1) * chains]
            while len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=True)
                parts = [arith.AddFOp(a, b).result for a, b in pairs]
            if minima:
                out.append(arith.AddFOp(parts[0], total).result)
            else:
                out.append(k.fma(parts[0], scales[spot % registers], total))
        return out

    whole, rest = divmod(depth, form.block)
    totals = [zero] * spots
    if whole:
        totals = k.loop(0, whole, 1, totals, lambda g, t: block(g, t, units))
    return block(whole, totals, rest // UNIT) if rest else totals
