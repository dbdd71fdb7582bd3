"""Matmuls with weights of 4 and 8 bits by 8-bit integer instructions; few rows as exactly as f32.

A group of a row's elements shares a scale, its largest magnitude. Divided by it, each element is a
24-bit integer: three digits of 8 bits. Instructions for 8-bit integers multiply digits by codes,
four of a column at once, and their sums are exact. The rounding to 24 bits is that of f32 for the
largest element. Rows are split once, in a separate dispatch, whose result all workgroups read.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from dataclasses import replace

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import widen
from mgx_mlir.passes.lowering.cpu.frame.exponential import MAGIC
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import (
    FEW_ROWS,
    MIDDLE,
    UNIT,
    FewBits,
    Widening,
)
from mgx_mlir.passes.lowering.cpu.rows.computed_rows import ComputedRows, GivenRows
from mgx_mlir.passes.lowering.scalar import TypedScalar

FEW = 3  # digits of few rows, which are as exact as f32
MANY = {16: 2, 8: 1}  # digits of many rows, by the bits that an element keeps
BITS = 8  # bits of a digit
TENSORS = 3  # digits, sums and scales
_WORD = 4  # codes of a column that one instruction multiplies
_SHARED = 32  # elements of a row that share a scale, where a block is a multiple of that
# value of the largest magnitude: 127 for each digit; less in 24 bits, since f32 rounds it
_TOPS = {FEW: 127 * (1 << 16) + 127 * (1 << 8) + 64, 2: 127 * (1 << 8) + 127, 1: 127}
_SPARE = 2  # registers for the digits of a row and for a mask
_ROWS = 8  # rows that a workgroup splits
LEAST_ROWS = 20  # for fewer rows vectors of f32 are faster
_WHOLE = float(1 << 23)  # f32 from here on are integers
_LEAST = 1e-30  # smallest largest magnitude: below it the scale would be subnormal
# weights from which the dispatch that splits rows pays off: for few rows, and for any number
WORK, MANY_WORK = 1 << 18, 1 << 16


def uses_digits(
    isa: Isa, form: FewBits | None, rows: Index, depth: Index, columns: Index
) -> bool:  # fmt: skip
    """Return whether few rows are multiplied as digits."""
    if form is None or not (form.bits == 4 or form.fours):
        return False
    if not (isa.byte_dot or isa.byte_pairs):
        return False
    if not isinstance(depth, int) or not isinstance(columns, int):
        return False
    are_few = isinstance(rows, int) and rows < LEAST_ROWS
    return depth * columns >= (WORK if are_few else MANY_WORK)


def takes_many(isa: Isa, form: FewBits, rows: Index, depth: Index, columns: Index) -> bool:
    """Return whether many rows are multiplied as digits: an instruction adds four products."""
    if not isa.byte_dot or (isinstance(rows, int) and rows < LEAST_ROWS):
        return False
    return uses_digits(isa, form, rows, depth, columns)


def takes_fours(isa: Isa, form: FewBits, rows: Index, depth: Index, columns: Index) -> bool:
    """Return whether all rows are multiplied as digits by codes of 8 bits whose zero points are 0.

    An instruction for two products of bytes would saturate.
    """
    some = isinstance(rows, int) and FEW_ROWS < rows < LEAST_ROWS
    if not isa.byte_dot or form.bits != 8 or form.zeros is not None or some:
        return False
    return uses_digits(isa, replace(form, fours=True), rows, depth, columns)


def middle_of(isa: Isa, form: FewBits) -> int:
    """Return the code of 0 as instructions read it, where the weights have no zero points."""
    if form.bits == 4:
        return MIDDLE
    return 0 if isa.signed_bytes else 1 << BITS - 1


def group_of(form: FewBits) -> int:
    """Return how many elements of a row share a scale: at most a block, and at most 32."""
    return numbers.gcd(form.block, _SHARED)


@dataclass(frozen=True)
class Digits:
    """Rows split into digits, as tensors: bytes [row, digit, depth], the sums of each digit and
    group [row, group, digit], times minus the zero point if all weights share one, and the
    scales [row, group]. With zero points of floats the sums are [row, group, 1], in f32, and with
    minima they are not negative ones.
    """

    count: int  # digits of a number
    bytes: ir.Value
    sums: ir.Value
    scales: ir.Value


def digits_of(
    x: GivenRows | ComputedRows, rows: Index, depth: int, form: FewBits, isa: Isa,
    counts: Sequence[int], most: int = 0,
) -> list[ir.Value]:  # fmt: skip
    """Make the dispatch that splits rows [rows, depth] into digits, which may compute them.

    counts: the number of digits; with two of them the second one is for more rows than `most`.
    """
    group, digits = group_of(form), max(counts)
    count = -(-depth // group)
    factor = -1 if form.zeros is not None else -middle_of(isa, form)
    factor = 1 if form.minima else factor
    joined = form.zeros is not None and form.zeros.is_float
    kind, width = (dtypes.FLOAT, 1) if joined else (dtypes.INT32, digits)
    at_once = min(rows, _ROWS) if isinstance(rows, int) else _ROWS

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (start,) = k.at
        high = k.covered(start, at_once, k.inner(rows))
        made = [k.empty((high, digits, depth), dtypes.INT8),
                k.empty((high, count, width), kind),
                k.empty((high, count))]  # fmt: skip
        whole, rest = divmod(depth, group)

        def split(own: int) -> list[ir.Value]:
            def row(r: Index, carried: list[ir.Value]) -> list[ir.Value]:
                found, scratch = carried[:TENSORS], carried[TENSORS:]
                source, at, scratch = x.row(k, k.add(start, r), scratch)

                def one(g: Index, carried: list[ir.Value], size: int = group) -> list[ir.Value]:
                    sizes = group, size, own
                    return _apart(k, source, (at, r), g, sizes, factor, carried, joined=joined)

                found = k.loop(0, whole, 1, found, one) if whole else found
                found = one(whole, found, rest) if rest else found
                return [*found, *scratch]

            return k.each(0, high, 1, [*made, *x.scratch(k)], row)[:TENSORS]

        few, *many = counts
        if many:
            is_few, kinds = k.is_less(k.inner(rows), most + 1), [v.type for v in made]
            made = k.when(is_few, lambda: split(few), lambda: split(many[0]), kinds)
        else:
            made = split(few)
        return [ResultTile(made[0], (start, 0, 0), (high, digits, depth)),
                ResultTile(made[1], (start, 0, 0), (high, count, width)),
                ResultTile(made[2], (start, 0), (high, count))]  # fmt: skip

    results: list[tuple[Sequence[Index], DType]] = [
        ([rows, digits, depth], dtypes.INT8),
        ([rows, count, width], kind),
        ([rows, count], dtypes.FLOAT),
    ]
    return dispatch(x.inputs, results, [(rows, at_once)], body, x.extents)


def _apart(
    k: WorkgroupBuilder,
    x: ir.Value,
    rows: tuple[Sequence[Index], Index],
    g: Index,
    sizes: tuple[int, int, int],
    factor: int,
    carried: Sequence[ir.Value],
    *,
    joined: bool,
) -> list[ir.Value]:
    """Split one group of a row.

    rows: the row's index in the tensor and its number in the tile. sizes: of groups, of this one,
    and how many digits.
    """
    (row, r), (group, size, digits) = rows, sizes
    top = float(_TOPS[digits])
    lanes = numbers.gcd(size, 16)
    start = k.mul(g, group)
    positions = [k.add(start, i) for i in range(0, size, lanes)]
    dtype = dtypes.from_mlir(ir.RankedTensorType(x.type).element_type)
    read = [TypedScalar(k.read(x, [*row, at], lanes), dtype) for at in positions]
    found = [widen(k, v, lanes).value for v in read]
    words, octets = k.vector_type(lanes, dtypes.INT32), k.vector_type(lanes, dtypes.INT8)
    largest = _largest(k, found, words)
    scale = arith.MulFOp(largest, k.number(1 / top)).result
    inverse = k.broadcast(arith.DivFOp(k.number(top), largest).result, lanes)
    out, sums, scales = carried
    scales = k.put(scale, scales, [r, g])
    totals: list[ir.Value | None] = [None] * (1 if joined else digits)
    for at, left in zip(positions, _integers(k, found, largest, inverse, digits), strict=True):
        if joined:
            totals[0] = _plus(totals[0], left)
        for d in reversed(range(digits)):
            octet = arith.TruncIOp(octets, left).result
            out = k.write(octet, out, [r, d, at])
            if joined and not d:
                continue
            digit = arith.ExtSIOp(words, octet).result
            if not joined:
                totals[d] = _plus(totals[d], digit)
            less = arith.SubIOp(left, digit).result
            left = arith.ShRSIOp(less, k.splat(BITS, lanes, dtypes.INT32)).result
    made: list[ir.Value] = []
    for total in totals:
        assert total is not None
        number = arith.MulIOp(k.reduce(total, "add"), k.number(factor, dtypes.INT32)).result
        made.append(arith.SIToFPOp(ir.F32Type.get(), number).result if joined else number)
    # 32 digits of 127 sum up to less than 2**12, and 32 numbers of three digits to less than 2**29
    for d, number in enumerate(made):
        sums = k.put(number, sums, [r, g, d])
    return [out, sums, scales]


def _plus(total: ir.Value | None, x: ir.Value) -> ir.Value:
    return x if total is None else arith.AddIOp(total, x).result


def _integers(
    k: WorkgroupBuilder,
    found: Sequence[ir.Value],
    largest: ir.Value,
    inverse: ir.Value,
    digits: int,
) -> list[ir.Value]:
    """Return elements times the inverse of the scale as integers.

    Beside an infinity, which is the top, others are 0. A NaN makes the scale NaN.
    """
    top, lanes = float(_TOPS[digits]), ir.VectorType(found[0].type).shape[0]
    words = k.vector_type(lanes, dtypes.INT32)

    def any_() -> list[ir.Value]:
        out: list[ir.Value] = []
        for v in found:
            near = _rounded(k, arith.MulFOp(v, inverse).result)
            is_none = arith.CmpFOp(14, near, near).result  # uno
            sign = math.CopySignOp(k.splat(top, lanes), v).result
            near = arith.SelectOp(is_none, sign, near).result
            out.append(arith.FPToSIOp(words, near).result)
        return out

    def finite() -> list[ir.Value]:
        # the sum's last mantissa bits are the integer
        magic = k.splat(MAGIC, lanes)
        bits = arith.BitcastOp(words, magic).result
        sums = [k.fma(v, inverse, magic) for v in found]
        return [arith.SubIOp(arith.BitcastOp(words, x).result, bits).result for x in sums]

    if top >= MAGIC - _WHOLE:
        return any_()
    is_finite = arith.CmpFOp(4, largest, k.number(numbers.inf)).result  # olt
    return k.when(is_finite, finite, any_, [words] * len(found))


def _rounded(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
    """Return numbers below 2^23 rounded to integers, ties to even: a sum of 2^23 has no fraction.

    IREE lowers `math.roundeven` to 30 instructions.
    """
    lanes = ir.VectorType(x.type).shape[0]
    whole = math.CopySignOp(k.splat(_WHOLE, lanes), x).result
    return arith.SubFOp(arith.AddFOp(x, whole).result, whole).result


def _largest(k: WorkgroupBuilder, found: Sequence[ir.Value], words: ir.Type) -> ir.Value:
    """Return the largest magnitude of some vectors, `_LEAST` at least; NaN where there is one.

    Magnitudes of floats have the order of their bits as integers, NaN behind infinity.
    """
    lanes = ir.VectorType(words).shape[0]
    bits = k.splat(0x7FFFFFFF, lanes, dtypes.INT32)
    most = k.splat(_LEAST, lanes)
    most = arith.BitcastOp(words, most).result
    for v in found:
        own = arith.AndIOp(arith.BitcastOp(words, v).result, bits).result
        most = arith.MaxSIOp(most, own).result
    return arith.BitcastOp(ir.F32Type.get(), k.reduce(most, "maxsi")).result


@dataclass(frozen=True)
class _Multiply:
    """Multiplication of codes: four to a lane of i32, or two to a lane of i16.

    A code is at most 15, so 8 sums of two code-by-digit products fit into 16 bits: one group.
    """

    k: WorkgroupBuilder
    isa: Isa

    @property
    def zero(self) -> ir.Value:
        """Return zero sums."""
        if self.isa.byte_dot:
            return self.k.splat(0, self.isa.lanes, dtypes.INT32)
        return self.k.splat(0, 2 * self.isa.lanes, dtypes.INT16)

    def added(self, codes: ir.Value, four: ir.Value, sums: ir.Value) -> ir.Value:
        """Multiply four codes of each column with four neighbours of a row, and add to `sums`."""
        k, lanes = self.k, self.isa.lanes
        octets = k.vector_type(4 * lanes, dtypes.INT8)
        word = vector.BitCastOp(k.vector_type(1, dtypes.INT32), four).result
        spread = vector.BroadcastOp(k.vector_type(lanes, dtypes.INT32), word).result
        a, b = (vector.BitCastOp(octets, v).result for v in (codes, spread))
        if self.isa.byte_dot:
            return k.intrinsic(self.isa.byte_dot, sums.type, sums, a, b)
        return arith.AddIOp(sums, k.intrinsic(self.isa.byte_pairs, sums.type, a, b)).result

    def of(self, sums: ir.Value, start: ir.Value | None) -> ir.Value:
        """Return i32 sums plus initial values, None for 0."""
        k, lanes = self.k, self.isa.lanes
        if not self.isa.byte_dot:
            ones = k.splat(1, 2 * lanes, dtypes.INT16)
            words = k.vector_type(lanes, dtypes.INT32)
            sums = k.intrinsic(self.isa.word_dot, words, sums, ones)
        return sums if start is None else arith.AddIOp(sums, start).result


def _start(
    k: WorkgroupBuilder, digits: Digits, at: Sequence[Index], points: ir.Value | None, lanes: int
) -> ir.Value:
    """Return the zero points' share of a digit's sums."""
    taken = k.broadcast(k.element(digits.sums, at), lanes)
    return taken if points is None else arith.MulIOp(taken, points).result


def _joined(k: WorkgroupBuilder, sums: Sequence[ir.Value], lanes: int) -> ir.Value:
    """Return the number of the sums of digits: the first two together are exact in f32."""
    if len(sums) == 1:
        return arith.SIToFPOp(k.vector_type(lanes), sums[0]).result
    first, second, *rest = sums
    bits = k.splat(BITS, lanes, dtypes.INT32)
    high = arith.AddIOp(arith.ShLIOp(first, bits).result, second).result
    wide = k.vector_type(lanes)
    above, *third = (arith.SIToFPOp(wide, v).result for v in (high, *rest))
    if not third:
        return above
    (below,) = third
    return k.fma(above, k.splat(float(1 << BITS), lanes), below)


def _columns_at_once(isa: Isa, rows: int, registers: int, digits: int) -> int:
    """Return for how many registers of columns the sums fit beside totals and codes."""
    room = isa.registers - _SPARE - rows * registers
    return next((n for n in range(registers, 1, -1) if n * (rows * digits + 1) <= room), 1)


def digit_sums(
    w: Widening,
    digits: Digits,
    rows: Sequence[Index],
    panel: Index,
    depth: int,
    registers: int,
) -> list[ir.Value]:
    """Return the same as `direct_sums`: for each row the sums of each register of columns."""
    k, lanes, form = w.k, w.lanes, w.form
    group = group_of(form)
    units = group // UNIT
    zero = k.splat(0, lanes)
    multiply = _Multiply(k, w.isa)
    at_once = _columns_at_once(w.isa, len(rows), registers, digits.count)

    def groups(first: Index, block: Index, size: int, totals: Sequence[ir.Value]) -> list[ir.Value]:
        """Add a group: units of eight codes of a column, then the scale of each row."""
        out = list(totals)
        scales = [k.broadcast(k.element(digits.scales, [row, first]), lanes) for row in rows]
        for begin in range(0, registers, at_once):
            columns = range(begin, min(begin + at_once, registers))
            sums = {(r, j, d): multiply.zero for r in range(len(rows)) for j in columns
                    for d in range(digits.count)}  # fmt: skip
            for u in range(size // UNIT):
                at = k.add(k.mul(first, units), u)
                if not begin:
                    w.ask_ahead(panel, at)
                halves = zip(*(w.halves(panel, at, j * lanes) for j in columns), strict=True)
                for half, codes in enumerate(halves):
                    depth_at = k.add(k.mul(at, UNIT), half * _WORD)
                    for r, row in enumerate(rows):
                        for d in range(digits.count):
                            four = k.read(digits.bytes, [row, d, depth_at], _WORD)
                            for j, own in zip(columns, codes, strict=True):
                                sums[r, j, d] = multiply.added(own, four, sums[r, j, d])
            for j in columns:
                points, floats = w.points(panel, block, j * lanes)
                weight = w.scale(panel, block, j * lanes) if form.minima else None
                for r, row in enumerate(rows):
                    found = [sums[r, j, d] for d in range(digits.count)]
                    if floats is not None:
                        found = [multiply.of(v, None) for v in found]
                        total = k.broadcast(k.element(digits.sums, [row, first, 0]), lanes)
                        number = _joined(k, found, lanes)
                        if weight is not None:
                            number = arith.MulFOp(number, weight).result
                        number = k.fma(total, floats, number)
                    else:
                        starts = [_start(k, digits, [row, first, d], points, lanes)
                                  for d in range(digits.count)]  # fmt: skip
                        found = [multiply.of(v, i) for v, i in zip(found, starts, strict=True)]
                        number = _joined(k, found, lanes)
                    spot = r * registers + j
                    out[spot] = k.fma(number, scales[r], out[spot])
        return out

    def block(b: Index, totals: Sequence[ir.Value], size: int) -> list[ir.Value]:
        start = k.mul(b, form.block // group)
        whole, rest = divmod(size, group)
        # minima are beside scaled numbers, so that groups add to the totals
        none = list(totals) if form.minima else [zero] * len(totals)
        sums = none
        if whole == 1:
            sums = groups(start, b, group, none)
        elif whole:
            sums = k.loop(0, whole, 1, none, lambda g, t: groups(k.add(start, g), b, group, t))
        if rest:
            sums = groups(k.add(start, whole), b, rest, sums)
        if form.minima:
            return sums
        scales = [w.scale(panel, b, j * lanes) for j in range(registers)]
        return [k.fma(s, scales[i % registers], t)
                for i, (s, t) in enumerate(zip(sums, totals, strict=True))]  # fmt: skip

    whole, rest = divmod(depth, form.block)
    totals = [zero] * (len(rows) * registers)
    if whole:
        totals = k.loop(0, whole, 1, totals, lambda b, t: block(b, t, form.block))
    return block(whole, totals, rest) if rest else totals
