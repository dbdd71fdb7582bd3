"""Lowerings of quant_dot and quant_convolution: 8-bit operands widened, then the plain ops.

IREE fuses the widening into the matmul and multiplies the 8-bit values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.dtypes import INT8, DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.quant import QuantConvolution, QuantDot
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Expr
from mgx_mlir.passes.lowering.gpu.matmul.stored_rows import rows_of
from mgx_mlir.passes.lowering.ops.convolution import convolved
from mgx_mlir.passes.lowering.ops.linear import by_row, integer_matmul, matmul
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar


def _widened(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    scales: Sequence[tuple[ir.Value, DType]],
    acc: DType,
) -> ir.Value:
    """Return an operand, times its scale if it has one, in the type of the sums."""
    t = TensorType(acc, tuple(ir.RankedTensorType(x.type).shape))

    def body(b: ArithScalars, value: TypedScalar, *factors: TypedScalar) -> TypedScalar:
        found = b.cast(value, acc)
        for factor in factors:
            found = b.mul(found, b.cast(factor, acc))
        return found

    values, kinds = [x, *(v for v, _ in scales)], [dtype, *(d for _, d in scales)]
    if t.is_static or not dtype.is_float:
        return e.map_elements(values, kinds, t, body)
    # fused with a matmul of dynamic dims, the widening of an f8 type does not compile
    return index.alone(
        e, [e.mlir_type(t)], [e.extents(x)], lambda: [e.map_elements(values, kinds, t, body)]
    )[0]


def _operands(
    op: QuantConvolution | QuantDot,
    ins: tuple[ir.Value, ir.Value, list[ir.Value]],
    e: LoweringContext,
    acc: DType,
) -> list[ir.Value]:
    values, scales = ins[:2], ins[2]
    kinds = [TensorType.of(v).dtype for v in op.operation.operands]
    out: list[ir.Value] = []
    for i, value in enumerate(values):
        own = [(scales[i], kinds[2 + i])] if scales else []
        out.append(_widened(e, value, kinds[i], own, acc))
    return out


@lowers(QuantDot, lazy=True)
def quant_dot(op: QuantDot, ins: tuple[Expr, Expr, list[Expr]], e: LoweringContext) -> ir.Value:
    """Integers sum in i32, f8 values in f32."""
    out = TensorType.of(op.out)
    rows = rows_of(e, ins[1])
    if rows is not None and 0 not in e.expr_extents(ins[0]):
        return by_row(e, op.operation, ins[0], rows, out.dtype)
    a, b, scales = e.tensor(op.a), e.tensor(op.b), [e.tensor(v) for v in op.scales]
    extents = [*e.extents(a)[:-1], e.extents(b)[-1]]
    if 0 in (*e.extents(a), *e.extents(b)):
        return e.fill(extents, out.dtype, 0)
    if e.options.target == "gpu" and {TensorType.of(v).dtype for v in (op.a, op.b)} == {INT8}:
        return integer_matmul(e, a, b, extents)
    a, b = _operands(op, (a, b, scales), e, out.dtype)
    return matmul(e, a, b, extents, out.dtype)


@lowers(QuantConvolution, lazy=True)
def quant_convolution(
    op: QuantConvolution, ins: tuple[Expr, Expr, list[Expr]], e: LoweringContext
) -> ir.Value:
    """Convolve as quant_dot multiplies; padding is `pad_value`."""
    out = TensorType.of(op.out)
    rows = rows_of(e, ins[1])
    if rows is not None:
        return convolved(e, op, e.tensor(op.input), rows, out, out.dtype, by_row=True)
    tensors = (e.tensor(op.input), e.tensor(op.weights), [e.tensor(v) for v in op.scales])
    x, w = _operands(op, tensors, e, out.dtype)
    return convolved(e, op, x, w, out, out.dtype)
