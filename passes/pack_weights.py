"""pack_weights: matmuls read constant weights of few bits in packed form."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import CODES, HALVES, INPUTS, MIDDLE, BlockedDot
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.movement import Slice
from mgx_mlir.dialects.migraphx.pointwise_binary import Mul, Sub
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, UnpackInt4, pack
from mgx_mlir.dialects.migraphx.views import Contiguous, Reshape, Squeeze, Transpose, Unsqueeze
from mgx_mlir.passes.analysis.constants import is_constant
from mgx_mlir.passes.analysis.row_views import is_solvable, reshaped, rows_of
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.programs.repeats import Repeated
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

_VIEWS = (
    Multibroadcast, Broadcast, Transpose, Reshape, Slice, Unsqueeze, Squeeze, Contiguous,
)  # fmt: skip
_MOVES = (Reshape, Squeeze, Unsqueeze, Contiguous, Transpose)  # views of each element once
UNIT = 8  # divisor of a block's rows
GPU_UNIT = 16  # the same where matrix instructions multiply rows
_LEAST = 1 << 12  # weights; fewer stay in f32
_FEW_ROWS = 3  # most rows for which reading 16 bits is faster than f32


@dataclass(frozen=True)
class _Chain:
    """A matrix computed from codes, and the ops between the two."""

    codes: ir.Value
    bits: int  # bits of a code
    views: tuple[ir.Operation, ...] = ()  # views between matrix and codes, from the matrix down
    # constant scale, and the number of last `views` that do not apply to it
    scale: tuple[ir.Value, int] | None = None
    # constant zero point, and the number of last `views` that do not apply to it
    zero: tuple[ir.Value, int] | None = None


def _chain(v: ir.Value) -> _Chain | None:
    """Return the chain from codes to a value; None where there is none."""
    owner = v.owner
    if isinstance(owner, ir.Block):
        return None
    op, kind = owner.operation, TensorType.of(v).dtype
    if literals.is_literal(v):
        return _Chain(v, 8) if kind in CODES or kind is dtypes.UINT8 else None
    if is_a(op, UnpackInt4):
        return _Chain(v, 4) if is_constant(v) else None
    if is_a(op, _VIEWS):
        found = _chain(op.operands[0])
        return None if found is None else replace(found, views=(op, *found.views))
    if is_a(op, Convert):
        found = _chain(op.operands[0])
        exact = kind in INPUTS and found is not None and found.scale is None
        return found if exact else None
    if kind not in INPUTS:
        return None
    if is_a(op, Sub):
        found = _chain(op.operands[0])
        if found is None or found.scale or found.zero or not is_constant(op.operands[1]):
            return None
        return replace(found, zero=(op.operands[1], len(found.views)))
    if is_a(op, Mul):
        for side in (0, 1):
            found = _chain(op.operands[side])
            if found is not None and not found.scale and is_constant(op.operands[1 - side]):
                return replace(found, scale=(op.operands[1 - side], len(found.views)))
        return None
    if is_a(op, DequantizeLinear) and all(map(is_constant, list(op.operands)[1:])):
        found = _chain(op.operands[0])
        if found is None or found.scale or found.zero:
            return None
        scale, *zero = list(op.operands)[1:]
        made = replace(found, scale=(scale, len(found.views)))
        return replace(made, zero=(zero[0], len(found.views))) if zero else made
    return None


def _value(v: ir.Value) -> Repeated:
    """Return the value of a constant."""
    if literals.is_literal(v):
        return Repeated.of(literals.array_of(v))
    op = v.owner.operation
    first, *rest = list(op.operands)
    if not rest and is_a(op, _VIEWS):
        return _viewed(op, _value(first))
    return _evaluated(op, [_value(x).dense() for x in op.operands])


def _evaluated(op: ir.Operation, operands: list[np.ndarray]) -> Repeated:
    run = Interpreter(None, literals.WeightStore())  # type: ignore[arg-type]
    return Repeated.of(run.evaluate(op, operands)[0])


def _viewed(op: ir.Operation, x: Repeated) -> Repeated:
    """Apply a view of one operand to an array."""
    dims = [int(n) for n in TensorType.of(op.results[0]).dims]
    if is_a(op, (Reshape, Unsqueeze, Squeeze, Contiguous)):
        return x.reshaped(dims)
    if is_a(op, Transpose):
        return x.transposed(attributes_of(op)["permutation"])
    if is_a(op, Multibroadcast):
        return x.broadcast(dims, len(dims) - len(x.dims))
    if is_a(op, Broadcast):
        return x.broadcast(dims, attributes_of(op)["axis"])
    return _evaluated(op, [x.dense()])


def _read(chain: _Chain, part: tuple[ir.Value, int], shape: tuple[int, int]) -> Repeated:
    """Return the codes, or the scale of each code, in the matrix's layout."""
    value, inner = part
    found = _value(value)
    for op in reversed(chain.views[: len(chain.views) - inner]):
        found = _viewed(op, found)
    return found.reshaped(shape)


def _matrix(v: ir.Value) -> ir.Value:
    """Return the matrix that a value broadcasts over its leading dims, or the value."""
    while not isinstance(v.owner, ir.Block) and is_a(v.owner, Multibroadcast):
        below = v.owner.operands[0]
        if TensorType.of(below).dims[-2:] != TensorType.of(v).dims[-2:]:
            break
        v = below
    return v


def _halves(v: ir.Value) -> _Chain | None:
    """Return the chain of a matrix of f32 that is stored in 16 bits; None for another."""
    views: list[ir.Operation] = []
    while not isinstance(v.owner, ir.Block) and is_a(v.owner, (*_VIEWS, Convert)):
        dtype = TensorType.of(v).dtype
        if is_a(v.owner, Convert):
            # f32 holds each f16 and bf16, of a conversion between these one may be rounded
            if dtype is not dtypes.FLOAT:
                return None
        else:
            views.append(v.owner.operation)
        v = v.owner.operands[0]
    found = literals.is_literal(v) and TensorType.of(v).dtype in HALVES
    return _Chain(v, 16, tuple(views)) if found else None


@dataclass(frozen=True)
class _Numbers:
    """Scales or zero points: a row of them for each `size` rows of the matrix."""

    rows: np.ndarray
    size: int

    @staticmethod
    def of(chain: _Chain, part: tuple[ir.Value, int], shape: tuple[int, int]) -> _Numbers:
        """Return the numbers that the matrix has; each row differs from the one before."""
        rows, size = _read(chain, part, shape).distinct()
        changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
        same = math.gcd(len(rows), *changes.tolist())
        return _Numbers(rows[::same].astype(np.float32, copy=False), size * same)

    @staticmethod
    def same(number: float, shape: tuple[int, int]) -> _Numbers:
        """Return one number for all of the matrix."""
        return _Numbers(np.full((1, shape[1]), number, np.float32), shape[0])

    def by(self, block: int, depth: int) -> np.ndarray:
        """Return a row for each `block` rows, of which a row here is a multiple."""
        return self.rows[np.arange(0, depth, block) // self.size]


@pattern(Dot)
def find_blocked_weights(op: Dot, rw: Rewriter) -> Replacement:
    """dot(x, (unpack_int4(codes) - zeros) * scales) -> blocked_dot(x, codes, scales, zeros)

    Also for 8-bit integers and floats, and on CPUs for f16 and bf16 that are converted to f32.
    Scales and zero points are read through any views; the block size is found from their values.
    On GPUs an input that was widened is read as it was.
    """
    x, out = TensorType.of(op.a), TensorType.of(op.out)
    gpu = rw.options.gpu
    if x.dtype not in INPUTS or DYN in (x.dims[-1], out.dims[-1]):
        return no_match("{} of {}", x.dtype, x)
    if gpu and not is_solvable(x):
        return no_match("rows of {} are not stated as one dim", x)
    depth, columns = x.dims[-1], out.dims[-1]
    b = _matrix(op.b)
    if depth * columns < _LEAST or TensorType.of(b).elements != depth * columns:
        return no_match("b is not a matrix, or is small")
    if x.dims[:-1] != out.dims[:-1]:
        return no_match("rows repeat")
    chain = _chain(b) or _halves(b)
    if chain is None or (chain.scale is None and chain.bits == 8):
        return no_match("b is not made of codes")
    if chain.bits == 16:
        many = out.is_known and math.prod(out.dims[:-1]) > _FEW_ROWS
        if gpu or many or x.dtype is not dtypes.FLOAT:
            return no_match("16 bits are kept for few or dynamic rows of f32 on CPUs")
    if gpu and TensorType.of(chain.codes).dtype.is_float:
        return no_match("8-bit floats are widened by dedicated instructions")
    unit = GPU_UNIT if gpu else UNIT
    if depth % unit:
        return no_match("{} rows are no multiple of {}", depth, unit)
    found = _blocks(chain, (int(depth), int(columns)), unit)
    if found is None:
        return no_match("blocks are no multiple of {} rows", unit)
    block, codes, scales, zeros = found
    read = _narrow(op, rw) if gpu else op.a
    if gpu and x.rank > 2:
        read = reshaped(rw, read, (rows_of(x.dims[:-1]), depth))
    elif not gpu and x.dtype is not dtypes.FLOAT:
        read = rw.op("convert", op.a, target_type=dtypes.FLOAT)
    minima = None if gpu or chain.bits != 4 or zeros is None else _minima(scales, zeros)
    zeros = zeros if minima is None else minima
    weights = [rw.literal(v) for v in (codes, scales, zeros) if v is not None]
    form = {"minima": True} if minima is not None else {}
    made = rw.op("blocked_dot", read, *weights, block_size=block, bits=chain.bits, **form)
    if TensorType.of(made).rank != out.rank:
        made = reshaped(rw, made, out.dims)
    if TensorType.of(made).dtype is not x.dtype:
        return rw.op("convert", made, target_type=x.dtype)
    return made


def _narrow(op: Dot, rw: Rewriter) -> ir.Value:
    """Return the input in the type from which it was widened, where each use narrows the result
    to that type; else the input. Sums of blocked_dot are f32 for each type of its input.
    """
    views: list[ir.Operation] = []
    owner = op.a.owner
    while not isinstance(owner, ir.Block) and is_a(owner, _MOVES) and len(owner.operands) == 1:
        views.append(owner.operation)
        owner = owner.operands[0].owner
    if isinstance(owner, ir.Block) or not is_a(owner, Convert):
        return op.a
    below = owner.operands[0]
    kind = TensorType.of(below).dtype
    # a conversion from f32 or between 16-bit types rounds
    if kind not in HALVES or TensorType.of(op.a).dtype is not dtypes.FLOAT:
        return op.a
    narrowed = all(
        is_a(use.owner, Convert)
        and TensorType.of(use.owner.results[0]).dtype is kind
        and attributes_of(use.owner).get("overflow")
        for use in op.out.uses
    )
    if not narrowed:
        return op.a
    for view in reversed(views):
        below = rw.op(view.name.removeprefix("migraphx."), below, **attributes_of(view))
    return below


def _blocks(
    chain: _Chain, shape: tuple[int, int], unit: int
) -> tuple[int, np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Return block size, codes, scales and zero points of blocked_dot; None where there is no
    such form.
    """
    kind = TensorType.of(chain.codes).dtype
    parts = [
        _Numbers.same(n, shape) if part is None else _Numbers.of(chain, part, shape)
        for n, part in ((1, chain.scale), (0, chain.zero))
    ]
    block = math.gcd(*(p.size for p in parts))
    if block % unit:
        return None
    scales, zeros = (p.by(block, shape[0]) for p in parts)
    # codes pass through views as numbers of any type
    codes = _read(chain, (chain.codes, 0), shape).dense().astype(kind.np, copy=False)
    middle = 0
    if not kind.is_float:
        codes = codes.view(np.uint8)
        # a shift of codes by half of their range flips their highest bit
        if chain.bits == 4:
            middle, shift = MIDDLE, 0 if kind.is_unsigned else MIDDLE
            codes = pack(codes, 0) ^ (shift * 0x11)
        else:
            shift = -128 if kind.is_unsigned else 0
            codes = (codes ^ -shift).view(np.int8)
        zeros = zeros + shift
    codes = np.ascontiguousarray(codes)
    return block, codes, _smallest(scales), None if (zeros == middle).all() else _points(zeros)


def _smallest(scales: np.ndarray) -> np.ndarray:
    """Return scales in f16 where that holds them exactly."""
    with np.errstate(over="ignore"):
        half = scales.astype(np.float16)
    return half if (half == scales).all() else np.ascontiguousarray(scales)


def _points(zeros: np.ndarray) -> np.ndarray:
    """Return zero points as bytes if they are integers of that range."""
    small = np.clip(np.nan_to_num(zeros), -128, 127).astype(np.int8)
    return small if (small == zeros).all() else np.ascontiguousarray(zeros)


def _minima(scales: np.ndarray, zeros: np.ndarray) -> np.ndarray | None:
    """Return the numbers in f16 that codes 0 stand for, if zero points in f32 were made of such.

    Formats with a minimum for each block have it in f16, as their scales, and the zero point -m / s
    is rounded. None where another number is a zero point.
    """
    if scales.dtype != np.float16 or zeros.dtype != np.float32:
        return None
    wide = scales.astype(np.float32)
    with np.errstate(all="ignore"):
        found = (-(zeros * wide)).astype(np.float16)
        back = -found.astype(np.float32) / wide
    exact = np.isfinite(found) & ((back == zeros) | (wide == 0))
    return found if exact.all() else None


@pattern(Gather)
def find_shared_table(op: Gather, rw: Rewriter) -> Replacement:
    """gather(table, i) -> gather(transpose(w), i), w of a blocked_dot with the table's numbers

    For codes, scales and zero points of tied embeddings: the kernel reads rows out of the matmul's
    panels, and the table is not stored a second time. Numbers that the matmul holds in another
    type, codes less 128 or scales in f16, are converted behind the lookup. Exact.
    """
    t = TensorType.of(op.data)
    if rw.options.gpu:
        return no_match("kernels of GPUs hold codes in other layouts")
    if op.axis % max(t.rank, 1) or t.rank != 2 or not literals.is_literal(op.data):
        return no_match("no rows of a constant matrix are looked up")
    if t.elements < _LEAST:
        return no_match("the table is small")
    table = literals.seen_of(op.data)
    for view in op.operation.block.operations:
        if not is_a(view, BlockedDot):
            continue
        for held in list(view.operands)[1:]:
            if literals.is_literal(held) and _holds(literals.array_of(held), table):
                weights = rw.literal(literals.array_of(held))
                matrix = rw.op("transpose", weights, permutation=[1, 0])
                return _converted(rw, rw.op("gather", matrix, op.indices, axis=0), t.dtype)
    return no_match("no matmul has its numbers")


def _holds(weights: np.ndarray, table: np.ndarray) -> bool:
    """Return whether weights (K, N) of a matmul have the numbers of a table (N, K)."""
    if weights.shape[::-1] != table.shape or np.may_share_memory(weights, table):
        return False
    turned = weights.T
    if weights.dtype == np.int8 and table.dtype == np.uint8:
        table = (table ^ 128).view(np.int8)
    elif weights.dtype == np.float16 and table.dtype == np.float32:
        turned = turned.astype(np.float32)
    # -0 and 0 differ, and NaN is one number
    kind = f"u{table.dtype.itemsize}"
    return turned.dtype == table.dtype and bool((turned.view(kind) == table.view(kind)).all())


def _converted(rw: Rewriter, rows: ir.Value, dtype: dtypes.DType) -> ir.Value:
    """Return rows of weights as those of the table."""
    kind = TensorType.of(rows).dtype
    if kind is dtype:
        return rows
    if kind is dtypes.INT8:
        whole = rw.op("convert", rows, target_type=dtypes.INT32)
        rows = rw.add(whole, 128)
    return rw.op("convert", rows, target_type=dtype)


@dataclass(frozen=True)
class PackWeights(PatternPass):
    """Keep constant weights of 4, 8 and 16 bits packed, and widen them in matmuls.

    Weights dequantised before a dot would be f32: four to eight times the bytes, all read for one
    row. Codes that reach a dot through views, a zero point and a scale become operands of
    blocked_dot. Scales are kept in f16 where that is exact. On CPUs so are zero points of minima in
    f16, and a table of rows with a matmul's numbers, as embeddings are, shares its memory. On GPUs
    the rows of x are reshaped to a matrix.
    """

    name: ClassVar[str] = "pack_weights"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_blocked_weights, find_shared_table)
    gpu: bool = option(False, "also f16 and bf16 dots; integers only in blocks of 16")
