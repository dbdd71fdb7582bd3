"""The lowering of blocked_dot without vector kernels: the matrix, then the plain product."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import MIDDLE, BlockedDot
from mgx_mlir.passes.lower import index
from mgx_mlir.passes.lower.context import LoweringContext
from mgx_mlir.passes.lower.ops.linear import contract
from mgx_mlir.passes.lower.registry import lowers
from mgx_mlir.passes.lower.scalar import ArithScalars, TypedScalar, widen


@lowers(BlockedDot)
def blocked_dot(
    op: BlockedDot,
    ins: tuple[ir.Value, ir.Value, ir.Value, ir.Value | None],
    e: LoweringContext,
) -> ir.Value:
    """Widen the matrix, and multiply."""
    x, codes, scales, zeros = ins
    depth, columns = TensorType.of(op.input).dims[-1], TensorType.of(op.codes).dims[1]
    extents = [*e.extents(x)[:-1], columns]
    if 0 in (depth, *extents):
        return e.fill(extents, dtypes.FLOAT, 0)
    kinds = [TensorType.of(v).dtype for v in op.operation.operands]

    def number(source: ir.Value, dtype: dtypes.DType, at: list[ir.Value]) -> TypedScalar:
        b = ArithScalars(dtype, dtypes.FLOAT)
        return b.cast(widen(TypedScalar(index.read(source, at), dtype)), dtypes.FLOAT)

    def weight(where: list[ir.Value]) -> ir.Value:
        row, column = where
        own = [e.index(e.div(row, op.block_size)), column]
        if op.bits == 8:
            code = number(codes, kinds[1], [row, column])
        else:
            code = _half(e, codes, row, column)
        b = ArithScalars(dtypes.FLOAT, dtypes.FLOAT)
        middle = MIDDLE if op.bits == 4 else 0
        zero = b.const(middle) if zeros is None else number(zeros, kinds[3], own)
        return b.mul(b.sub(code, zero), number(scales, kinds[2], own)).value

    matrix = index.from_positions(e, [depth, columns], dtypes.FLOAT, weight)
    return contract(e, x, e.barrier(matrix, [depth, columns]), extents, dtypes.FLOAT)


def _half(e: LoweringContext, codes: ir.Value, row: ir.Value, column: ir.Value) -> TypedScalar:
    """Return a 4-bit code as f32."""
    byte = index.read(codes, [e.index(e.div(row, 2)), column])
    half = index.as_i64(e, e.rem(row, 2))
    b = ArithScalars(dtypes.UINT8, dtypes.UINT8)
    shift = b.mul(b.cast(TypedScalar(half, dtypes.INT64), dtypes.UINT8), 4)
    code = b.and_(b.shr(TypedScalar(byte, dtypes.UINT8), shift), 15)
    return ArithScalars(dtypes.UINT8, dtypes.FLOAT).cast(code, dtypes.FLOAT)
