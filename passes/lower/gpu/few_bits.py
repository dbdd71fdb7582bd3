"""Products with weights of few bits on GPUs: memory holds codes, registers and the LDS numbers.

One row: 32 bits hold codes that are far apart in their block, so that each is a number after one
mask, one `or` and one subtraction (f32 whose last bits a code is put into), and the row is read in
whole pieces. More rows: a workgroup widens its tile of the codes on its way to the LDS, from where
matrix instructions take it as they do other weights.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir, math, tensor
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import MIDDLE, BlockedDot
from mgx_mlir.dialects.migraphx.quant import pack, unpack
from mgx_mlir.passes.lower.context import (
    PARALLEL,
    PARAMETER_ELEMENTS,
    REDUCTION,
    LoweringContext,
)
from mgx_mlir.passes.lower.expr import Expr, Leaf
from mgx_mlir.passes.lower.gpu import compilation_info, gemm_shape
from mgx_mlir.passes.lower.products import collapsed
from mgx_mlir.passes.lower.scalar import signless

UNIT = 16  # blocks are multiples of what matrix instructions take of the depth
_WORD = 32  # bits
_MANTISSA = 23  # bits of an f32
_SIGNED = 128  # what an 8-bit code is stored above its value


class Words(Leaf):
    """Codes [columns, blocks, words of a block], i32: code s * words + t in field s of word t."""


class Rows(Leaf):
    """Codes [columns, blocks, codes of a block], as they are."""


class Turned(Leaf):
    """Scales or zero points [columns, blocks]."""


def stored_by_column(e: LoweringContext, arg: ir.Value, value: ir.Value) -> Expr | None:
    """Return codes, scales or zero points, a kernel's argument `arg`, as a product reads them.

    None where they are used in another way, or are not constant.
    """
    uses = list(arg.uses)
    owner = value.owner
    if len(uses) != 1 or isinstance(owner, ir.Block) or not literals.is_literal(value):
        return None
    op, operand = uses[0].owner, uses[0].operand_number
    if not is_a(op, BlockedDot) or operand == 0:
        return None
    view = op.opview
    array = literals.array_of(owner)
    if operand > 1:
        array = e.repacked(array, "turned", lambda: np.ascontiguousarray(array.T))
        return Turned(TensorType(dtypes.from_numpy(array.dtype), array.shape), _held(e, array))
    if not takes(view):
        return None
    depth, count = TensorType.of(view.input).dims[-1], view.block_size
    blocks = depth // view.block_size
    words = _is_row(view)

    def make() -> np.ndarray:
        codes = (unpack(array, 0)[:depth] if view.bits == 4 else array).T
        own = codes.reshape(codes.shape[0], blocks, count)
        if words:
            return _words(own, view.bits)
        return pack(own.astype(np.uint8), 2) if view.bits == 4 else np.ascontiguousarray(own)

    made = e.repacked(array, ("columns", view.block_size, view.bits, words), make)
    t = TensorType(dtypes.from_numpy(made.dtype), made.shape)
    found = _held(e, made)
    if words:
        return Words(t, found)
    if view.bits == 4:
        found = _as_halves(found, (*made.shape[:2], count))
    return Rows(t, found)


def takes(op: BlockedDot) -> bool:
    """Say whether kernels here multiply by these codes."""
    t, x = TensorType.of(op.codes), TensorType.of(op.input)
    return not t.dtype.is_float and x.dims[-1] % op.block_size == 0 == op.block_size % UNIT


def _is_row(op: BlockedDot) -> bool:
    return prod(TensorType.of(op.input).dims[:-1]) == 1


def _held(e: LoweringContext, array: np.ndarray) -> ir.Value:
    return e.parameter(array) if array.size > PARAMETER_ELEMENTS else e.constant(array)


def _words(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return codes [columns, blocks, count] as Words."""
    fields = _WORD // bits
    stored = codes.astype(np.int64) + (_SIGNED if bits == 8 else 0)
    planes = stored.astype(np.uint32).reshape(*codes.shape[:2], fields, codes.shape[2] // fields)
    shifts = np.arange(fields, dtype=np.uint32)[:, None] * bits
    return np.bitwise_or.reduce(planes << shifts, axis=2).view(np.int32)


def _as_halves(value: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Return bytes as twice as many elements of 4 bits, the first in the low half."""
    kind = ir.RankedTensorType.get(list(dims), ir.IntegerType.get_signless(4))
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0])}
    return ir.Operation.create(
        "iree_tensor_ext.bitcast", results=[kind], operands=[value], attributes=segments
    ).result


def product(
    e: LoweringContext, op: BlockedDot, x: Expr, codes: Leaf, parts: Sequence[Expr]
) -> ir.Value:
    """Return the product in f32; `parts`: scales, and zero points where it has them."""
    make = _row if isinstance(codes, Words) else _tiles
    return make(e, op, x, codes, [_Part(e, p) for p in parts])


class _Part:
    """Scales or zero points: their tensor, and how a column's block is found in it."""

    def __init__(self, e: LoweringContext, x: Expr) -> None:
        self.dtype, self.value = x.type.dtype, e.tensor(x)
        self.turned = isinstance(x, Turned)

    def at(self, rank: int, column: int, block: int) -> ir.AffineMap:
        """Return the map from loops of this rank, of which two are its column and its block."""
        n, b = (ir.AffineDimExpr.get(i) for i in (column, block))
        return ir.AffineMap.get(rank, 0, [n, b] if self.turned else [b, n])

    def number(self, x: ir.Value) -> ir.Value:
        """Return an element in f32."""
        f32 = ir.F32Type.get()
        if self.dtype is dtypes.FLOAT:
            return x
        if self.dtype.is_float:
            return arith.ExtFOp(f32, x).result
        return (arith.UIToFPOp if self.dtype.is_unsigned else arith.SIToFPOp)(f32, x).result


def _middle(op: BlockedDot) -> float:
    """Return what codes without zero points stand for 0 by."""
    return MIDDLE if op.bits == 4 else 0


# ---- one row -------------------------------------------------------------------------------------


def _row(
    e: LoweringContext, op: BlockedDot, x: Expr, codes: Leaf, parts: Sequence[_Part]
) -> ir.Value:
    columns, blocks, words = codes.type.dims
    fields = _WORD // op.bits
    lead = len(x.type.dims) - 1
    whole = collapsed(e, e.tensor(x), [*[1] * lead, blocks, fields, words])
    pieces = [_field(whole, s) for s in range(fields)]
    rank = lead + 3
    d = [ir.AffineDimExpr.get(i) for i in range(rank)]
    n, b, t = d[lead:]
    maps = [
        *[ir.AffineMap.get(rank, 0, [*d[:lead], b, t])] * fields,
        ir.AffineMap.get(rank, 0, [n, b, t]),
        *[p.at(rank, lead, lead + 1) for p in parts],
        ir.AffineMap.get(rank, 0, [*d[:lead], n]),
    ]
    element = x.type.dtype
    stored = _middle(op) + (_SIGNED if op.bits == 8 else 0)

    def body(*args: ir.Value) -> ir.Value:
        row, word, own, total = args[:fields], args[fields], args[fields + 1 : -1], args[-1]
        numbers = [p.number(v) for p, v in zip(parts, own, strict=True)]
        zero = numbers[1] if len(numbers) > 1 else None
        # stored codes of 8 bits are above their values, and so are zero points, exactly
        middle = stored if zero is None else stored - _middle(op)
        found: ir.Value | None = None
        for a, code in zip(row, _numbers(word, op.bits, middle), strict=True):
            value = code if zero is None else arith.SubFOp(code, zero).result
            wide = a if element is dtypes.FLOAT else arith.ExtFOp(ir.F32Type.get(), a).result
            term = arith.MulFOp(wide, value).result
            found = term if found is None else arith.AddFOp(found, term).result
        assert found is not None
        # a product would make a contraction of it, which lanes with several elements do not get
        scaled = math.FmaOp(found, numbers[0], _f32(0.0)).result
        return arith.AddFOp(total, scaled).result

    operands = [*pieces, codes.value, *[p.value for p in parts]]
    init = e.fill([*[1] * lead, columns], dtypes.FLOAT, 0)
    iterators = [*[PARALLEL] * (lead + 1), REDUCTION, REDUCTION]
    made = e.generic(operands, [init], maps, iterators, body)[0]
    compilation_info.give(
        e, made, lambda arch: compilation_info.words_info(arch, lead, codes.type.dims)
    )
    return made


def _field(x: ir.Value, s: int) -> ir.Value:
    """Return what is multiplied by field `s` of the words, [.., blocks, words]."""
    kind = ir.RankedTensorType(x.type)
    *lead, blocks, _, words = kind.shape
    made = ir.RankedTensorType.get([*lead, blocks, words], kind.element_type)
    rank = kind.rank
    offsets, sizes = [0] * rank, [*lead, blocks, 1, words]
    offsets[-2] = s
    return tensor.ExtractSliceOp(made, x, [], [], [], offsets, sizes, [1] * rank).result


def _numbers(word: ir.Value, bits: int, middle: float) -> list[ir.Value]:
    """Return the codes of a word less `middle`, in f32.

    A code in the last bits of an f32 of the right size adds itself to it.
    """
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()

    def number(n: int) -> ir.Value:
        return arith.ConstantOp(i32, ir.IntegerAttr.get(i32, n)).result

    fields = _WORD // bits
    low = _MANTISSA // bits  # fields that are in the last bits
    found: list[ir.Value] = []
    source = word
    for s in range(fields):
        at = s % low * bits
        if s and at == 0:
            source = arith.ShRUIOp(word, number(s * bits)).result
        base = 2.0 ** (_MANTISSA - at)
        own = arith.AndIOp(source, number(((1 << bits) - 1) << at)).result
        made = arith.OrIOp(own, number(struct.unpack("<i", struct.pack("<f", base))[0])).result
        wide = arith.BitcastOp(f32, made).result
        found.append(arith.AddFOp(wide, _f32(-(base + middle))).result)
    return found


def _f32(x: float) -> ir.Value:
    kind = ir.F32Type.get()
    return arith.ConstantOp(kind, ir.FloatAttr.get(kind, x)).result


# ---- more rows -----------------------------------------------------------------------------------


def _tiles(
    e: LoweringContext, op: BlockedDot, x: Expr, codes: Leaf, parts: Sequence[_Part]
) -> ir.Value:
    element = x.type.dtype
    columns, blocks, count = ir.RankedTensorType(codes.value.type).shape
    *rows, _ = e.expr_extents(x)
    a = collapsed(e, e.tensor(x), [*rows, blocks, count])
    weights = _widened(e, op, codes.value, parts, element)
    lead = len(rows)
    rank = lead + 3
    d = [ir.AffineDimExpr.get(i) for i in range(rank)]
    n, b, j = d[lead:]
    maps = [ir.AffineMap.get(rank, 0, dims)
            for dims in ([*d[:lead], b, j], [n, b, j], [*d[:lead], n])]  # fmt: skip

    def body(p: ir.Value, q: ir.Value, total: ir.Value) -> ir.Value:
        wide = [v if element is dtypes.FLOAT else arith.ExtFOp(ir.F32Type.get(), v).result
                for v in (p, q)]  # fmt: skip
        return arith.AddFOp(total, arith.MulFOp(*wide).result).result

    init = e.fill([*rows, columns], dtypes.FLOAT, 0)
    iterators = [*[PARALLEL] * (lead + 1), REDUCTION, REDUCTION]
    made = e.generic([a, weights], [init], maps, iterators, body)[0]

    def info(arch: str) -> ir.Attribute | None:
        *batch, own = e.static_dims(rows)
        shape = gemm_shape.GemmShape(
            gemm_shape.DOT, element.name, (own, columns, blocks * count), batch=tuple(batch)
        )
        return compilation_info.blocks_info(arch, shape, count)

    compilation_info.put(e, made, info)
    return made


def _widened(
    e: LoweringContext,
    op: BlockedDot,
    codes: ir.Value,
    parts: Sequence[_Part],
    element: dtypes.DType,
) -> ir.Value:
    """Return the matrix [columns, blocks, codes of a block] in the type of the row."""
    dims = list(ir.RankedTensorType(codes.type).shape)
    d = [ir.AffineDimExpr.get(i) for i in range(3)]
    own = ir.AffineMap.get(3, 0, d)
    f32 = ir.F32Type.get()

    def body(*args: ir.Value) -> ir.Value:
        code = args[0]
        numbers = [p.number(v) for p, v in zip(parts, args[1:-1], strict=True)]
        if op.bits == 4:
            wide = arith.ExtUIOp(ir.IntegerType.get_signless(32), code).result
            value = arith.UIToFPOp(f32, wide).result
        else:
            value = arith.SIToFPOp(f32, code).result
        if len(numbers) > 1:
            value = arith.SubFOp(value, numbers[1]).result
        elif _middle(op):
            value = arith.SubFOp(value, _f32(_middle(op))).result
        value = arith.MulFOp(value, numbers[0]).result
        return value if element is dtypes.FLOAT else arith.TruncFOp(signless(element), value).result

    maps = [own, *[p.at(3, 0, 1) for p in parts], own]
    operands = [codes, *[p.value for p in parts]]
    return e.generic(operands, [e.empty(dims, element)], maps, [PARALLEL] * 3, body)[0]


__all__ = ["UNIT", "Rows", "Turned", "Words", "product", "stored_by_column", "takes"]
