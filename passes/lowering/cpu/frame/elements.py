"""Elements and vectors of a workgroup, for the readers of passes/analysis/access_maps.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.op import attributes_of, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering.cpu.frame import exponential
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa, current_isa
from mgx_mlir.passes.lowering.cpu.frame.scalars import VectorScalars
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import (
    ArithScalars,
    Number,
    ScalarLike,
    TypedScalar,
    computed,
    constant,
    constant_of,
    rounded_bf16,
    signless,
)
from mgx_mlir.passes.lowering.scalar import widen as widen_scalar

_BYTES = 16  # rows of a square of bytes
_SQUARE = 8  # rows of 32 bits that are transposed together
# rows of squares that shuffles transpose, by bits of an element; narrow types have rows of 128 bits
_SQUARES = {8: ([16, 16],), 16: ([8, 8],), 32: ([_SQUARE, _SQUARE], [16, 16])}


class StoredScalars(VectorScalars):
    """VectorScalars that also round to 16-bit types, with a polynomial for exp."""

    def exp(self, x: ScalarLike) -> TypedScalar:
        """Return e^x, of f32 by the polynomial that all kernels have."""
        one = self._one(x)
        if one.dtype is not dtypes.FLOAT:
            return super().exp(one)
        return TypedScalar(exponential.exp_of_any(self.k, one.value), dtypes.FLOAT)

    def sigmoid(self, x: ScalarLike) -> TypedScalar:
        """Return 1 / (1 + e^-x); for f32 without exp's handling of large arguments."""
        one = self._one(x)
        if one.dtype is not dtypes.FLOAT:
            return super().sigmoid(one)
        return TypedScalar(exponential.sigmoid(self.k, one.value), dtypes.FLOAT)

    def tanh(self, x: ScalarLike) -> TypedScalar:
        """Return tanh, of f32 by the quotient of polynomials that recurrent networks have."""
        one = self._one(x)
        if one.dtype is not dtypes.FLOAT:
            return super().tanh(one)
        return TypedScalar(exponential.tanh(self.k, one.value), dtypes.FLOAT)

    def rounded(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        """Round to a narrow type and return to the type that is computed in."""
        return widen(self.k, narrow(self.k, x, dtype, self.lanes), self.lanes)


def widen(k: WorkgroupBuilder, x: TypedScalar, lanes: int) -> TypedScalar:
    """Return stored elements as the type that they are computed in."""
    if not x.dtype.is_low_precision:
        return x
    kind = k.vector_type(lanes, dtypes.FLOAT)
    wide = arith.ExtFOp(kind, x.value).result
    if x.dtype is dtypes.FP8E4M3FN:  # equal to scalar.widen
        byte = arith.BitcastOp(k.vector_type(lanes, dtypes.INT8), x.value).result
        nan = arith.CmpIOp(arith.CmpIPredicate.eq, byte, k.splat(-1, lanes, dtypes.INT8)).result
        wide = arith.SelectOp(nan, k.splat(float("nan"), lanes), wide).result
    return TypedScalar(wide, dtypes.FLOAT, x)


def narrow(k: WorkgroupBuilder, x: TypedScalar, dtype: DType, lanes: int) -> TypedScalar:
    """Return computed elements as the type that they are stored in."""
    if x.dtype is dtype:
        return x
    if x.stored is not None and x.stored.dtype is dtype:
        return x.stored
    if x.dtype is not dtypes.FLOAT or not dtype.is_low_precision:
        raise TypeError(f"vectors of {x.dtype} where {dtype} is stored")
    if dtype is dtypes.BF16:  # equal to scalar.narrow
        isa = current_isa()
        if isa is not None and isa.bf16_round and lanes % isa.lanes == 0:
            return TypedScalar(_by_instruction(k, isa, x.value), dtype)
        x = rounded_bf16(VectorScalars(k, lanes, dtypes.FLOAT, dtypes.FLOAT), x)
    return TypedScalar(arith.TruncFOp(k.vector_type(lanes, dtype), x.value).result, dtype)


def _by_instruction(k: WorkgroupBuilder, isa: Isa, x: ir.Value) -> ir.Value:
    """Return f32 rounded to bf16 by the CPU's instruction, a register at a time."""
    one = k.vector_type(isa.lanes, dtypes.BF16)
    return k.by_registers(isa.lanes, lambda parts: k.intrinsic(isa.bf16_round, one, *parts), x)


def unrounded(total: ir.Value) -> TypedScalar:
    """Return an f32 sum marked for narrow conversions, which take it without rounding first."""
    return TypedScalar(total, dtypes.FLOAT, TypedScalar(total, dtypes.FLOAT))


class Elements:
    """Reads and computes elements of a kernel's operands; `lanes` 0 is one element.

    operands: the input tensor of each block argument of the kernel. Bools are bytes. extent:
    returns the kernel's value of a named extent. While `masked` is set, a vector may reach past the
    end of its tensor; its lanes there are 0.
    """

    masked = False

    def __init__(
        self,
        group: WorkgroupBuilder,
        operands: Mapping[ir.Value, ir.Value],
        extent: Callable[[Index], Index] = lambda d: d,
    ) -> None:
        self.group, self.operands, self.extent = group, operands, extent

    def add(self, *terms: Index) -> Index:
        """Return the sum of indices."""
        return self.group.add(*map(self.extent, terms))

    def mul(self, a: Index, b: Index) -> Index:
        """Return a * b."""
        return self.group.mul(self.extent(a), self.extent(b))

    def div(self, a: Index, b: Index) -> Index:
        """Return a // b."""
        return self.group.div(self.extent(a), self.extent(b))

    def rem(self, a: Index, b: Index) -> Index:
        """Return a % b."""
        return self.group.rem(self.extent(a), self.extent(b))

    def constant(self, number: Number, dtype: DType, lanes: int) -> TypedScalar:
        """Build a constant, in f32 for 16- and 8-bit floats."""
        wide = dtypes.FLOAT if dtype.is_low_precision else dtype
        if lanes:
            return TypedScalar(self.group.splat(number, lanes, wide), wide)
        return constant(number, wide)

    def leaf(self, value: ir.Value, at: Sequence[Index], lanes: int, along: bool) -> TypedScalar:
        """Return the element at `at`, or a vector of it, or the vector along the last dim."""
        dtype, source = TensorType.of(value).dtype, self.operands[value]
        stored = dtypes.INT8 if dtype.is_bool else dtype
        if not lanes:
            found = widen_scalar(TypedScalar(self.group.element(source, at), stored))
            return self.as_bool(found, 0) if dtype.is_bool else found
        if along:
            read = self.group.read(source, at, lanes, masked=0.0 if self.masked else None)
        else:
            read = self.group.broadcast(self.group.element(source, at), lanes)
        found = widen(self.group, TypedScalar(read, stored), lanes)
        return self.as_bool(found, lanes) if dtype.is_bool else found

    def pointwise(self, op: ir.OpView, args: Sequence[TypedScalar]) -> TypedScalar:
        """Return one pointwise op on elements or vectors."""
        cls = op_class(op.operation)
        out = TensorType.of(op.operation.results[0]).dtype
        first = TensorType.of(op.operation.operands[0]).dtype if args else out
        kind = args[0].value.type
        b: ArithScalars = ArithScalars(first, out)
        if isinstance(kind, ir.VectorType):
            b = StoredScalars(self.group, kind.shape[0], first, out)
        if cls is not None and cls.discontinuous:
            types = [TensorType.of(v).dtype for v in op.operation.operands]
            args = [b.exact(v, t) for v, t in zip(args, types, strict=True)]
        scalar: Any = getattr(cls, "scalar", None)
        return scalar(b, *args, **attributes_of(op.operation))

    def unrounded(self, op: ir.OpView, args: Sequence[TypedScalar]) -> TypedScalar:
        """Return `pointwise`, of 16 bits as the f32 that it is computed in."""
        found = self.pointwise(op, args)
        dtype = TensorType.of(op.operation.results[0]).dtype
        return unrounded(found.value) if dtype.is_low_precision else found

    def choose(
        self,
        at: Index,
        starts: Sequence[int],
        extents: Sequence[int],
        part: Callable[[int, Index], TypedScalar],
        dtype: DType,
        lanes: int,
    ) -> TypedScalar:
        """Return the part of a concatenation that an index is in, read at its own index.

        Found by bisection: iree-compile's time doubles with each nested `if`.
        """
        begins = [self.extent(i) for i in starts]
        if isinstance(at, int):
            known = [i for i in begins if isinstance(i, int)]
            if len(known) == len(begins):
                i = next(i for i in reversed(range(len(known))) if known[i] <= at)
                return part(i, at - known[i])
        wide = computed(dtype)
        scalar = signless(wide)
        kind = self.group.vector_type(lanes, wide) if lanes else scalar

        def among(first: int, stop: int) -> ir.Value:
            if first + 1 == stop:
                return part(first, self.group.sub(at, begins[first])).value
            middle = (first + stop) // 2
            return self.group.when(
                self.group.is_less(at, begins[middle]),
                lambda: [among(first, middle)],
                lambda: [among(middle, stop)],
                [kind],
            )[0]

        return TypedScalar(among(0, len(starts)), wide)

    def as_bool(self, x: TypedScalar, lanes: int) -> TypedScalar:
        """Return whether x is not 0."""
        b = StoredScalars(self.group, lanes, x.dtype, x.dtype) if lanes else None
        return (b or ArithScalars(x.dtype, x.dtype)).cmp("ne", x, 0)

    def f32(self, x: TypedScalar, lanes: int) -> ir.Value:
        """Return a vector of any type as one of f32."""
        if x.dtype is dtypes.FLOAT:
            return x.value
        b = StoredScalars(self.group, lanes, x.dtype, dtypes.FLOAT)
        return b.cast(x, dtypes.FLOAT).value

    def rows(self, vectors: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the columns of a matrix whose rows are these vectors."""
        kind = ir.VectorType(vectors[0].type)
        shape, bits = [len(vectors), kind.shape[0]], _bits_of(kind.element_type)
        if bits == 1 and shape[0] == _BYTES and shape[1] <= _BYTES:
            return self._columns_of_bools(vectors)
        if shape in _SQUARES.get(bits, ()):
            return transposed(vectors)
        whole = constant_of(
            ir.VectorType.get(shape, kind.element_type),
            ir.DenseElementsAttr.get_splat(
                ir.VectorType.get(shape, kind.element_type), _zero(kind.element_type)
            ),
        )
        for i, v in enumerate(vectors):
            whole = vector.InsertOp(v, whole, [], [i]).result
        columns = self.group.transpose(whole)
        return [vector.ExtractOp(columns, [], [i]).result for i in range(shape[1])]

    def _columns_of_bools(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the columns of a matrix of 16 rows of bools, transposed as bytes: lanes of masks
        are moved one by one.
        """
        count = ir.VectorType(rows[0].type).shape[0]
        octets = self.group.vector_type(count, dtypes.INT8)
        wide = [arith.ExtUIOp(octets, v).result for v in rows]
        if count < _BYTES:
            order = [i % count for i in range(_BYTES)]
            wide = [vector.ShuffleOp(v, v, order).result for v in wide]
        bools = ir.VectorType.get([_BYTES], ir.IntegerType.get_signless(1))
        return [arith.TruncIOp(bools, v).result for v in transposed(wide)[:count]]


def transposed(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Return the columns of a square: vectors of a power of two of elements, as many as those."""
    is_word = _bits_of(ir.VectorType(rows[0].type).element_type) == 32
    return _transposed_square(rows) if is_word and len(rows) == _SQUARE else _interleaved(rows)


def _transposed_square(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Transpose 8 vectors of 8 elements of 32 bits, each shuffle one instruction of AVX2.

    Neighbours of two rows are interleaved within halves of a register, then pairs of neighbours,
    then halves are exchanged.
    """

    def both(a: ir.Value, b: ir.Value, *orders: Sequence[int]) -> list[ir.Value]:
        return [vector.ShuffleOp(a, b, list(order)).result for order in orders]

    singles = [
        v
        for i in range(0, _SQUARE, 2)
        for v in both(
            rows[i], rows[i + 1], (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
        )
    ]
    pairs: list[ir.Value] = []
    for i in (0, 4):
        for j in (0, 1):
            pairs += both(
                singles[i + j], singles[i + j + 2],
                (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15),
            )  # fmt: skip
    low = [both(pairs[i], pairs[i + 4], (0, 1, 2, 3, 8, 9, 10, 11))[0] for i in range(4)]
    high = [both(pairs[i], pairs[i + 4], (4, 5, 6, 7, 12, 13, 14, 15))[0] for i in range(4)]
    return [*low, *high]


def _interleaved(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Transpose 2^n vectors of 2^n elements by shuffles of one instruction each.

    Each round interleaves a row of the upper half with the matching row of the lower half.
    """
    count = len(rows)
    both = [i // 2 + i % 2 * count for i in range(2 * count)]
    found: list[ir.Value] = list(rows)
    for _ in range(count.bit_length() - 1):
        found = [
            vector.ShuffleOp(a, b, order).result
            for a, b in zip(found[: count // 2], found[count // 2 :], strict=True)
            for order in (both[:count], both[count:])
        ]
    return found


def _bits_of(t: ir.Type) -> int:
    return t.width if isinstance(t, ir.IntegerType | ir.FloatType) else 0


def _zero(t: ir.Type) -> ir.Attribute:
    if isinstance(t, ir.IntegerType):
        return ir.IntegerAttr.get(t, 0)
    return ir.FloatAttr.get(t, 0.0)
