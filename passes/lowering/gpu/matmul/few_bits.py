"""Matmuls by weights of few bits on GPUs: codes in memory, numbers in registers and the LDS.

Up to four rows: a 32-bit word has codes of distant rows of a block. Each becomes a number by a
mask, which leaves a subnormal f32, and a multiplication-addition. So rows are read in contiguous
pieces. More rows: a workgroup widens its tile of codes when copying it to the
LDS, from where matrix instructions read it as other weights. NVIDIA's weights of 16-bit rows are
widened in a kernel of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir, math, tensor
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import HALVES, MIDDLE, BlockedDot
from mgx_mlir.dialects.migraphx.quant import pack, unpack
from mgx_mlir.hardware.architectures import vendor_of
from mgx_mlir.hardware.chips import LAUNCH_US, amd_chip
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import (
    PARALLEL,
    PARAMETER_ELEMENTS,
    REDUCTION,
    LoweringContext,
)
from mgx_mlir.passes.lowering.contraction import collapsed, multiply_accumulate
from mgx_mlir.passes.lowering.expr import Expr, Leaf
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info, split_k
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import DOT, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.tiles import choose
from mgx_mlir.passes.lowering.scalar import constant, signless
from mgx_mlir.passes.pack_weights import GPU_UNIT

_WORD = 32  # bits of a word
_MANTISSA = 23  # bits of the mantissa of an f32
_SUBNORMAL = 149  # least positive f32: 2**-149
_UNIT = 2.0**-22  # codes are in this unit, so that the factor of a subnormal one is at most 2**127
_FEW = 4  # most rows that lanes sum up
_SPLITS = (1, 2, 4, 8, 16)  # counts of equal parts of the depth
_WIDEN = 5  # instructions of a lane for a code that it widens
_SIGNED = 128  # offset by which an 8-bit code is stored above its value
_EXACT = (dtypes.HALF, dtypes.INT8)  # types of scales and zero points that f16 holds


class Words(Leaf):
    """Codes [columns, blocks, words of a block], i32: code s * words + t in field s of word t."""


class Rows(Leaf):
    """Codes [columns, blocks, codes of a block], unchanged."""


class Turned(Leaf):
    """Scales or zero points [columns, blocks]."""


def stored_by_column(e: LoweringContext, arg: ir.Value, value: ir.Value) -> Expr | None:
    """Return codes, scales or zero points, a kernel's argument `arg`, as a matmul reads them.

    None where they are used in another way, or are not constant.
    """
    uses = list(arg.uses)
    owner = value.owner
    if len(uses) != 1 or isinstance(owner, ir.Block) or not literals.is_literal(value):
        return None
    op, operand = uses[0].owner, uses[0].operand_number
    view = op.opview
    if not isinstance(view, BlockedDot) or operand == 0 or not takes(view):
        return None
    array = literals.array_of(owner)
    if operand > 1:
        array = e.repacked(array, "turned", lambda: np.ascontiguousarray(array.T))
        return Turned(TensorType(dtypes.from_numpy(array.dtype), array.shape), _held(e, array))
    depth, count = TensorType.of(view.input).dims[-1], view.block_size
    blocks = depth // view.block_size
    words = _is_few(view)

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
    """Return whether a kernel of this module takes these quantised weights."""
    t, x = TensorType.of(op.codes), TensorType.of(op.input)
    if t.dtype.is_float or op.minima:
        return False
    return x.dims[-1] % op.block_size == 0 == op.block_size % GPU_UNIT


def _is_few(op: BlockedDot) -> bool:
    """Return whether rows are so few that lanes sum them faster than matrix instructions."""
    rows = TensorType.of(op.input).dims[:-1]
    return DYN not in rows and prod(rows) <= _FEW


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


def matmul(
    e: LoweringContext, op: BlockedDot, x: Expr, codes: Leaf, parts: Sequence[Expr]
) -> ir.Value:
    """Return the matmul in f32; `parts`: scales, and zero points where it has them."""
    if op.out in e.plan.split_k_sums:
        return split_k.total(e, e.plan.split_k_sums[op.out], dtypes.FLOAT)
    make = _few if isinstance(codes, Words) else _tiles
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

    def blocks_map(self, rank: int) -> ir.AffineMap:
        """Return the map from [columns, blocks.., codes] to `in_parts`."""
        n, *b = (ir.AffineDimExpr.get(i) for i in range(rank - 1))
        return ir.AffineMap.get(rank, 0, [n, *b] if self.turned else [*b, n])

    def in_parts(self, e: LoweringContext, blocks: Sequence[int]) -> ir.Value:
        """Return the tensor with its blocks as these dims."""
        first, last = ir.RankedTensorType(self.value.type).shape
        return collapsed(e, self.value, [first, *blocks] if self.turned else [*blocks, last])

    def number(self, x: ir.Value, kind: ir.Type) -> ir.Value:
        """Return an element in a type of floats that holds it."""
        if x.type == kind:
            return x
        if self.dtype.is_float:
            return arith.ExtFOp(kind, x).result
        return (arith.UIToFPOp if self.dtype.is_unsigned else arith.SIToFPOp)(kind, x).result


def _middle(op: BlockedDot) -> float:
    """Return the code of 0 where there are no zero points."""
    return MIDDLE if op.bits == 4 else 0


# ---- few rows ---------------------------------------------------------------------------------


def _few(
    e: LoweringContext, op: BlockedDot, x: Expr, codes: Leaf, parts: Sequence[_Part]
) -> ir.Value:
    columns, blocks, words = codes.type.dims
    fields = _WORD // int(op.bits)
    rows = list(x.type.dims[:-1])
    lead = len(rows)
    whole = collapsed(e, e.tensor(x), [*rows, blocks, fields, words])
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
    # LLVM makes one instruction of both for AMD; of NVIDIA's nothing is contracted
    fused = vendor_of(e.options.arch) == "nvidia"

    def add_term(a: ir.Value, b: ir.Value, total: ir.Value | None) -> ir.Value:
        if total is not None and fused:
            return math.FmaOp(a, b, total).result
        term = arith.MulFOp(a, b).result
        return term if total is None else arith.AddFOp(term, total).result

    def body(*args: ir.Value) -> ir.Value:
        row, own, total = args[:fields], args[fields + 1 : -1], args[-1]
        numbers = [p.number(v, ir.F32Type.get()) for p, v in zip(parts, own, strict=True)]
        # stored codes of 8 bits are above their values, and so are zero points, exactly
        zero = _number(-_UNIT * (stored if len(numbers) < 2 else stored - _middle(op)))
        if len(numbers) > 1:
            zero = add_term(numbers[1], _number(-_UNIT), zero)
        found: ir.Value | None = None
        for a, (code, at) in zip(row, _subnormal_codes(args[fields], op.bits), strict=True):
            value = add_term(code, _number(_UNIT * 2.0 ** (_SUBNORMAL - at)), zero)
            wide = a if element is dtypes.FLOAT else arith.ExtFOp(ir.F32Type.get(), a).result
            found = add_term(wide, value, found)
        assert found is not None
        # with a multiplication it would be a contraction, for which IREE gives a lane one element
        scaled = math.FmaOp(found, numbers[0], _number(0)).result
        return arith.AddFOp(total, scaled).result

    operands = [*pieces, codes.value, *[p.value for p in parts]]
    init = e.fill([*rows, columns], dtypes.FLOAT, 0)
    iterators = [*[PARALLEL] * (lead + 1), REDUCTION, REDUCTION]
    made = e.generic(operands, [init], maps, iterators, body)[0]
    compilation_info.give_form(
        e, made, compilation_info.FEW_BITS_WORDS, f"dot of {op.bits}-bit codes",
        lambda arch: compilation_info.words_info(arch, rows, codes.type.dims),
    )  # fmt: skip
    own = ir.AffineMap.get_identity(lead + 1)

    def scale(sum_in_units: ir.Value, _: ir.Value) -> ir.Value:
        return arith.MulFOp(sum_in_units, _number(1 / _UNIT)).result

    out = e.empty([*rows, columns], dtypes.FLOAT)
    return e.generic([made], [out], [own, own], [PARALLEL] * (lead + 1), scale)[0]


def _field(x: ir.Value, s: int) -> ir.Value:
    """Return the elements that are multiplied by field `s` of the words, [.., blocks, words]."""
    kind = ir.RankedTensorType(x.type)
    *lead, blocks, _, words = kind.shape
    made = ir.RankedTensorType.get([*lead, blocks, words], kind.element_type)
    rank = kind.rank
    offsets, sizes = [0] * rank, [*lead, blocks, 1, words]
    offsets[-2] = s
    return tensor.ExtractSliceOp(made, x, [], [], [], offsets, sizes, [1] * rank).result


def _subnormal_codes(word: ir.Value, bits: int) -> list[tuple[ir.Value, int]]:
    """Return the codes of a word in f32, each with its first bit `at`.

    Bits that keep their position in a word, and have no exponent, are the subnormal number
    code * 2**(at - 149). Fields beyond the mantissa are shifted into it.
    """

    def number(n: int) -> ir.Value:
        return constant(n, dtypes.INT32).value

    low = _MANTISSA // bits  # fields within the mantissa
    found: list[tuple[ir.Value, int]] = []
    source = word
    for s in range(_WORD // bits):
        at = s % low * bits
        if s and at == 0:
            source = arith.ShRUIOp(word, number(s * bits)).result
        own = arith.AndIOp(source, number(((1 << bits) - 1) << at)).result
        found.append((arith.BitcastOp(ir.F32Type.get(), own).result, at))
    return found


def _number(x: float) -> ir.Value:
    return constant(x, dtypes.FLOAT).value


# ---- more rows -----------------------------------------------------------------------------------


def _tiles(
    e: LoweringContext, op: BlockedDot, x: Expr, codes: Leaf, parts: Sequence[_Part], split: int = 1
) -> ir.Value:
    """Return the matmul, or, `split`, [parts of the depth, rows, columns]."""
    element = x.type.dtype
    columns, blocks, count = ir.RankedTensorType(codes.value.type).shape
    blocks //= split
    *rows, _ = e.expr_extents(x)
    matrix = _widened(e, op, codes.value, parts, element, split)
    ahead = [split] if split > 1 else []
    a = collapsed(e, e.tensor(x), [*rows, *ahead, blocks, count])
    rank = len(ahead) + len(rows) + 3
    d = [ir.AffineDimExpr.get(i) for i in range(rank)]
    part, own, (n, b, j) = d[: len(ahead)], d[len(ahead) : -3], d[-3:]
    maps = [ir.AffineMap.get(rank, 0, dims)
            for dims in ([*own, *part, b, j], [n, *part, b, j], [*part, *own, n])]  # fmt: skip

    init = e.fill([*ahead, *rows, columns], dtypes.FLOAT, 0)
    iterators = [*[PARALLEL] * (rank - 2), REDUCTION, REDUCTION]
    made = multiply_accumulate(e, a, matrix, init, maps, iterators, element, dtypes.FLOAT)
    *batch, last = e.static_dims([*ahead, *rows])
    shape = GemmShape(DOT, element.name, (last, columns, blocks * count), batch=tuple(batch))
    compilation_info.give_form(
        e, made, compilation_info.FEW_BITS_TILES, f"dot of {op.bits}-bit codes",
        lambda arch: compilation_info.blocks_info(arch, shape, count),
    )  # fmt: skip
    return made


def matrices(e: LoweringContext, body: ir.Block) -> dict[ir.Value, ir.Value]:
    """Return the weights of a kernel's matmuls of 16 bits, [columns, depth], widened before it.

    On NVIDIA, whose matrix instructions read no tile that is widened when it is copied: 512 rows by
    576 x 3072 took 1.4 ms on an H200 by lanes alone.
    """
    found: dict[ir.Value, ir.Value] = {}
    for op in body.operations:
        if not isinstance(op, BlockedDot) or vendor_of(e.options.arch) != "nvidia":
            continue
        x, codes, *parts = [e.expr(v) for v in op.operation.operands]
        element = x.type.dtype
        if not isinstance(codes, Rows) or element not in HALVES or not e.options.tiles:
            continue
        columns, blocks, count = ir.RankedTensorType(codes.value.type).shape
        dims = [columns, blocks * count]

        def build(
            op: BlockedDot = op, codes: Leaf = codes, parts: list[Expr] = parts,
            element: dtypes.DType = element, dims: list[int] = dims,
        ) -> list[ir.Value]:  # fmt: skip
            own = [_Part(e, p) for p in parts]
            return [collapsed(e, _widened(e, op, codes.value, own, element, 1), dims)]

        kind = ir.RankedTensorType.get(dims, signless(element))
        found[op.out] = index.alone(e, [kind], [dims], build)[0]
    return found


def sums_of_parts(e: LoweringContext, body: ir.Block) -> dict[ir.Value, ir.Value]:
    """Return the parts of the depth of a kernel's matmuls, for those computed before the kernel.

    Widening takes a wave longer than its matrix instructions, so few rows leave most units without
    work.
    """
    found: dict[ir.Value, ir.Value] = {}
    for op in body.operations:
        if not isinstance(op, BlockedDot):
            continue
        x, codes, *parts = [e.expr(v) for v in op.operation.operands]
        if not isinstance(codes, Rows) or not isinstance(x, Leaf) or x.type.rank != 2:
            continue
        columns, blocks, count = ir.RankedTensorType(codes.value.type).shape
        rows = x.type.dims[0]
        if rows == DYN or not e.options.tiles:
            continue
        shape = GemmShape(DOT, x.type.dtype.name, (rows, columns, blocks * count))
        split = _split(e.options.arch, shape, blocks)
        if split == 1:
            continue
        kind = ir.RankedTensorType.get([split, rows, columns], ir.F32Type.get())

        def build(
            op: BlockedDot = op, x: Expr = x, codes: Leaf = codes, parts: list[Expr] = parts,
            split: int = split,
        ) -> list[ir.Value]:  # fmt: skip
            return [_tiles(e, op, x, codes, [_Part(e, p) for p in parts], split)]

        found[op.out] = index.alone(e, [kind], [[split, rows, columns]], build)[0]
    return found


def _split(arch: str, gemm: GemmShape, blocks: int) -> int:
    """Return the fastest number of parts of the depth, including the launch that adds them up;
    1 for no split.
    """
    chip, mma = amd_chip(arch), gemm.intrinsic(arch)
    if chip is None or mma is None:
        return 1
    tile = choose(chip, mma, gemm.extents)
    rows, columns, depth = gemm.dims
    count = tile.workgroups(mma, replace(gemm.extents, lines=1))
    waves = prod(tile.subgroups)
    # instructions of one wave, over the whole depth
    own = (
        _WIDEN * columns * depth * -(-rows // (tile.rows * mma.rows)) / (count * waves * chip.lanes)
    )
    clocks = own * (4 if chip.lanes == 64 else 1)

    def us(parts: int) -> float:
        rounds = -(-count * waves * parts // (chip.units * chip.simds))
        moved = 8 * parts * rows * columns / (chip.bandwidth * 1e3)
        return rounds * clocks / parts / chip.ghz / 1e3 + (LAUNCH_US + moved if parts > 1 else 0)

    return min((s for s in _SPLITS if blocks % s == 0), key=us)


def _widened(
    e: LoweringContext,
    op: BlockedDot,
    codes: ir.Value,
    parts: Sequence[_Part],
    element: dtypes.DType,
    split: int,
) -> ir.Value:
    """Return the matrix [columns, blocks, codes of a block] in the type of the row; its blocks in
    `split` parts."""
    columns, blocks, count = ir.RankedTensorType(codes.type).shape
    ahead = [split, blocks // split] if split > 1 else [blocks]
    dims = [columns, *ahead, count]
    rank = len(dims)
    own = ir.AffineMap.get_identity(rank)
    if split > 1:
        codes = _in_parts(codes, dims)
    # a code is exact in f16, and its product with an f16 rounds once in either type
    narrow = element is dtypes.HALF and all(p.dtype in _EXACT for p in parts)
    computed = element if narrow else dtypes.FLOAT
    kind = signless(computed)

    def body(*args: ir.Value) -> ir.Value:
        code = args[0]
        numbers = [p.number(v, kind) for p, v in zip(parts, args[1:-1], strict=True)]
        if op.bits == 4:
            wide = arith.ExtUIOp(ir.IntegerType.get_signless(16), code).result
            value = arith.UIToFPOp(kind, wide).result
        else:
            value = arith.SIToFPOp(kind, code).result
        if len(numbers) > 1:
            value = arith.SubFOp(value, numbers[1]).result
        elif _middle(op):
            value = arith.SubFOp(value, constant(_middle(op), computed).value).result
        value = arith.MulFOp(value, numbers[0]).result
        if kind == signless(element):
            return value
        return arith.TruncFOp(signless(element), value).result

    maps = [own, *[p.blocks_map(rank) for p in parts], own]
    operands = [codes, *[p.in_parts(e, ahead) for p in parts]]
    return e.generic(operands, [e.empty(dims, element)], maps, [PARALLEL] * rank, body)[0]


def _in_parts(codes: ir.Value, dims: Sequence[int]) -> ir.Value:
    """Return codes [columns, blocks, count] with blocks as two dims; elements of 4 bits are no
    type of the dialect, which `collapsed` takes."""
    kind = ir.RankedTensorType.get(list(dims), ir.RankedTensorType(codes.type).element_type)
    groups = [[0], [1, 2], [3]]
    return tensor.ExpandShapeOp(kind, codes, groups, [], list(dims)).result


__all__ = [
    "Rows", "Turned", "Words", "matmul", "matrices", "stored_by_column", "sums_of_parts", "takes",
]  # fmt: skip
