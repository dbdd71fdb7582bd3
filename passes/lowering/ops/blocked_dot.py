"""The lowering of blocked_dot without vector kernels of a CPU.

On a GPU codes are widened inside of the matmul; else the matrix is made, then the plain matmul.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import MIDDLE, BlockedDot
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info, few_bits
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import DOT, GemmShape
from mgx_mlir.passes.lowering.ops.linear import contract, rounded
from mgx_mlir.passes.lowering.ops.quant import half_byte
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, widen


@lowers(BlockedDot, lazy=True)
def blocked_dot(op: BlockedDot, ins: Sequence[Expr | None], e: LoweringContext) -> ir.Value:
    """Widen the matrix, and multiply."""
    row, stored, *parts = [v for v in ins if v is not None]
    depth, columns = TensorType.of(op.input).dims[-1], TensorType.of(op.codes).dims[1]
    extents = [*e.expr_extents(row)[:-1], columns]
    out = TensorType.of(op.out).dtype
    if 0 in (depth, *extents):
        return e.fill(extents, out, 0)
    matrix = e.plan.matrices.get(op.out)
    if matrix is not None:
        kind = TensorType.of(op.input).dtype
        found = contract(
            e, e.tensor(row), matrix, extents, dtypes.FLOAT, by_row=True, element=kind
        )  # fmt: skip
        rows = e.static_dims(extents[:-1])
        shape = GemmShape(DOT, kind.name, (rows[-1], columns, depth), batch=tuple(rows[:-1]))
        compilation_info.give_matmul(e, found, lambda: shape)
        return rounded(e, found, dtypes.FLOAT, out)
    if isinstance(stored, few_bits.Words | few_bits.Rows):
        return rounded(e, few_bits.matmul(e, op, row, stored, parts), dtypes.FLOAT, out)
    x, codes, scales, *zeros = (e.tensor(v) for v in (row, stored, *parts))
    kinds = [TensorType.of(v).dtype for v in op.operation.operands]

    def number(source: ir.Value, dtype: dtypes.DType, at: list[ir.Value]) -> TypedScalar:
        b = ArithScalars(dtype, dtypes.FLOAT)
        return b.cast(widen(TypedScalar(index.read(source, at), dtype)), dtypes.FLOAT)

    def weight(where: list[ir.Value]) -> ir.Value:
        row, column = where
        own = [e.index(e.div(row, op.block_size)), column]
        if op.bits != 4:
            code = number(codes, kinds[1], [row, column])
        else:
            code = _half(e, codes, row, column)
        b = ArithScalars(dtypes.FLOAT, dtypes.FLOAT)
        middle = MIDDLE if op.bits == 4 else 0
        zero = number(zeros[0], kinds[3], own) if zeros else b.const(middle)
        scale = number(scales, kinds[2], own)
        if op.minima:
            return b.add(b.mul(code, scale), zero).value
        return b.mul(b.sub(code, zero), scale).value

    matrix = index.from_positions(e, [depth, columns], dtypes.FLOAT, weight)
    x = e.cast_tensor(x, kinds[0], dtypes.FLOAT)
    found = contract(e, x, e.barrier(matrix, [depth, columns]), extents, dtypes.FLOAT)
    return rounded(e, found, dtypes.FLOAT, out)


def _half(e: LoweringContext, codes: ir.Value, row: ir.Value, column: ir.Value) -> TypedScalar:
    """Return a 4-bit code as f32."""
    byte = index.read(codes, [e.index(e.div(row, 2)), column])
    b = ArithScalars(dtypes.UINT8, dtypes.FLOAT)
    return b.cast(half_byte(e, byte, row), dtypes.FLOAT)
