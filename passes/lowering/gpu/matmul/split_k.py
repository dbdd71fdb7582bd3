"""Launches before a GPU matmul: partial sums of split-k, and padding of rows.

A deep matmul of few rows and columns has little work for a chip: one of 128x128 over a depth of
65536 has 64 workgroups, for hundreds of units. In parts it is two launches: sums over each part,
and their total with the epilogue of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, KernelPlan, LoweringContext
from mgx_mlir.passes.lowering.contraction import collapsed, multiply_accumulate, pad_tensor
from mgx_mlir.passes.lowering.expr import Expr, Leaf
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info, gemm_shape
from mgx_mlir.passes.lowering.gpu.matmul.biases import bias_of
from mgx_mlir.passes.lowering.gpu.matmul.stored_rows import DOTS, rows_of
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, signless


def plan(e: LoweringContext, kernel: ir.Operation, body: ir.Block) -> KernelPlan:
    """Make, before a kernel's region, the partial sums of its split matmuls, operands padded to
    the depth of the weights, and rows of initial sums.
    """
    padded: dict[ir.Value, ir.Value] = {}
    configs: dict[ir.Value, gemm_shape.GemmConfig] = {}
    sums: dict[ir.Value, ir.Value] = {}
    first: dict[ir.Value, ir.Value] = {}
    same: dict[ir.Value, ir.Value] = {}
    for view in body.operations:
        op = view.operation
        if op.name not in DOTS:
            continue
        if not all(isinstance(v.owner, ir.Block) for v in op.operands):
            continue  # computed in the kernel
        rows = rows_of(e, e.expr(op.operands[1]))
        x = e.expr(op.operands[0])
        if rows is None or not isinstance(x, Leaf) or not x.type.is_static:
            continue
        depth = ir.RankedTensorType(rows.type).shape[-1]
        if depth > x.type.dims[-1]:
            x = Leaf(x.type.with_dims((x.type.dims[0], depth)), deepened(e, x, depth))
            padded[op.results[0]] = x.value
        gemm = gemm_shape.shape_of_dot(op, depth)
        choice = configs[op.results[0]] = e.options.gemm_config(gemm, e.function)
        if choice.split > 1:
            out = TensorType.of(op.results[0])
            sums[op.results[0]] = _parts(e, x, rows, gemm, choice, computed(out.dtype))
        bias = bias_of(e, kernel, op, gemm, choice)
        if bias is not None:
            first[op.results[0]], same[bias.added] = bias.row, op.results[0]
    return KernelPlan(padded, configs, sums, first_sums=first, same=same)


def deepened(e: LoweringContext, x: Expr, depth: int) -> ir.Value:
    """Return a matrix with rows padded with zeros to `depth`, in a separate dispatch."""
    value = e.tensor(x)
    kind = ir.RankedTensorType(value.type)
    rows, own = kind.shape
    if own == depth:
        return value
    made = ir.RankedTensorType.get([rows, depth], kind.element_type)

    def build() -> list[ir.Value]:
        return [pad_tensor(e, value, [0, 0], [0, depth - own], [rows, depth], 0)]

    return index.alone(e, [made], [[rows, depth]], build)[0]


def _parts(
    e: LoweringContext,
    x: Leaf,
    rows: ir.Value,
    gemm: gemm_shape.GemmShape,
    choice: gemm_shape.GemmConfig,
    acc: DType,
) -> ir.Value:
    """Return [parts, rows, columns], each the matmul over a part of the depth."""
    m, n, k = gemm.dims
    s = choice.split
    a, b = collapsed(e, x.value, [m, s, k // s]), collapsed(e, rows, [n, s, k // s])
    d = [ir.AffineDimExpr.get(i) for i in range(4)]
    maps = [ir.AffineMap.get(4, 0, [d[i] for i in dims])
            for dims in ((1, 0, 3), (2, 0, 3), (0, 1, 2))]  # fmt: skip
    element = x.type.dtype

    def build() -> list[ir.Value]:
        found = multiply_accumulate(
            e, a, b, e.fill([s, m, n], acc, 0), maps, [PARALLEL] * 3 + [REDUCTION], element, acc
        )
        compilation_info.give_matmul(e, found, lambda: gemm, choice)
        return [found]

    kind = ir.RankedTensorType.get([s, m, n], signless(acc))
    return index.alone(e, [kind], [[s, m, n]], build)[0]


def total(e: LoweringContext, parts: ir.Value, acc: DType) -> ir.Value:
    """Return the sum of parts; a thread has adjacent columns."""
    dims: Sequence[int] = ir.RankedTensorType(parts.type).shape
    out = list(dims[1:])
    row, column, part = (ir.AffineDimExpr.get(i) for i in range(3))
    maps = [ir.AffineMap.get(3, 0, [part, row, column]), ir.AffineMap.get(3, 0, [row, column])]
    scalars = ArithScalars(acc, acc)

    def body(x: ir.Value, sum_: ir.Value) -> ir.Value:
        return scalars.add(TypedScalar(sum_, acc), TypedScalar(x, acc)).value

    found = e.generic([parts], [e.fill(out, acc, 0)], maps, [PARALLEL, PARALLEL, REDUCTION], body)[
        0
    ]
    compilation_info.give(e, found, lambda arch: compilation_info.window_info(arch, out, 1))
    return found


__all__ = ["deepened", "plan", "total"]
