"""Lowerings of dot and the convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, linalg
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.contraction import collapsed, multiply_accumulate
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, View
from mgx_mlir.passes.lowering.gpu.matmul import biases, compilation_info, gemm_shape, split_k
from mgx_mlir.passes.lowering.gpu.matmul.stored_rows import rows_of
from mgx_mlir.passes.lowering.iree.packed import made_ahead
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import computed


def accumulator(dtype: DType) -> DType:
    """Return the accumulator type: f32 for 16- and 8-bit floats, else the type itself."""
    return computed(dtype)


def store(e: LoweringContext, value: ir.Value, acc: DType, out: DType) -> ir.Value:
    """Return an accumulated tensor as the type it is stored in."""
    if acc is out:
        return value
    t = TensorType(out, tuple(ir.RankedTensorType(value.type).shape))
    return e.map_elements([value], [acc], t, lambda b, x: x)


def rounded(e: LoweringContext, value: ir.Value, acc: DType, out: DType) -> ir.Value:
    """`store`, but inside a kernel the sum stays as it is: the kernel rounds what it yields."""
    return value if e.in_kernel else store(e, value, acc, out)


# ---- dot -----------------------------------------------------------------------------------------


@lowers(Dot, lazy=True)
def dot(op: Dot, ins: Sequence[Expr], e: LoweringContext) -> ir.Value:
    """Build a matmul over rank 2, a batch matmul over rank 3, a contraction above.

    One matrix repeated over the leading dims is read in place.
    """
    out = TensorType.of(op.out)
    acc = accumulator(out.dtype)
    ea, eb = e.expr_extents(ins[0]), e.expr_extents(ins[1])
    extents = [*ea[:-1], eb[-1]]
    if 0 in (*ea, *eb):
        # IREE crashes on a matmul without elements
        return e.fill(extents, out.dtype, 0)
    rows = rows_of(e, ins[1])
    if rows is not None:
        return rounded(e, by_row(e, op.operation, ins[0], rows, acc), acc, out.dtype)
    a = e.tensor(ins[0])
    matrix = _repeated_matrix(e, ins[1])
    if matrix is not None:
        return rounded(e, contract(e, a, matrix, extents, acc), acc, out.dtype)
    b = e.tensor(ins[1])
    return rounded(e, matmul(e, a, b, extents, acc), acc, out.dtype)


def by_row(e: LoweringContext, op: ir.Operation, x: Expr, rows: ir.Value, acc: DType) -> ir.Value:
    """Return the matmul with weights that are stored by row, accumulated in `acc`."""
    if op.results[0] in e.plan.split_k_sums:
        return split_k.total(e, e.plan.split_k_sums[op.results[0]], acc)
    columns, depth = ir.RankedTensorType(rows.type).shape
    known = TensorType.of(op.operands[1]).dims[-2]
    if x.type.dims[-1] == DYN and known != DYN:  # the dot checks that they are equal
        t = x.type.with_dims((*x.type.dims[:-1], known))
        x = Leaf(t, e.refine(e.tensor(x), t))
    extents = [*e.expr_extents(x)[:-1], columns]
    a = e.plan.padded_inputs.get(op.results[0]) or split_k.deepened(e, x, depth)
    element = TensorType.of(op.operands[0]).dtype
    row = e.plan.first_sums.get(op.results[0])
    init = None if row is None else biases.first_sums(e, row, TensorType.of(op.results[0]).dims[0])
    choice = e.plan.gemm_configs.get(op.results[0])
    shape = gemm_shape.shape_of_dot(op, depth)
    found = contract(e, a, rows, extents, acc, by_row=True, element=element, init=init)
    compilation_info.give_matmul(e, found, lambda: shape, choice, residual=_has_residual(op))
    return found


def _has_residual(dot: ir.Operation) -> bool:
    """Return whether the kernel of a dot reads a tensor of the result's dims besides."""
    dims = TensorType.of(dot.results[0]).dims
    return any(TensorType.of(a).dims == dims for a in dot.block.arguments if a not in dot.operands)


def matmul(
    e: LoweringContext, a: ir.Value, b: ir.Value, extents: Sequence[Extent], acc: DType
) -> ir.Value:
    """Return the batched matmul, accumulated in `acc`."""
    if len(extents) in (2, 3) and not _is_odd(e, a, extents[-1]):
        product = linalg.matmul if len(extents) == 2 else linalg.batch_matmul
        operands = made_ahead(e, a), made_ahead(e, b)
        found = cast(ir.Value, product(*operands, outs=[e.fill(extents, acc, 0)]))
    else:
        # more batch dims are not collapsed to rank 3, as IREE cannot tile through a reshape between
        # a dot and its epilogue
        return contract(e, a, b, extents, acc)
    _give_computed(e, found, a)
    return found


def _is_odd(e: LoweringContext, a: ir.Value, columns: Extent) -> bool:
    """Return whether this LHS triggers hazard 44 (rows of 5 or 7 f16).

    It does where the columns have no tile: one column, or a dynamic number.
    """
    one = not isinstance(columns, int) or columns == 1
    return one and e.is_odd_row(a, dtypes.from_mlir(ir.RankedTensorType(a.type).element_type))


def integer_matmul(
    e: LoweringContext, a: ir.Value, b: ir.Value, extents: Sequence[Extent]
) -> ir.Value:
    """Make the batched matmul of i8 tensors in i32, for the matrix instructions of a GPU."""
    found = contract(e, a, b, extents, dtypes.INT32)
    _give_computed(e, found, a)
    return found


def _give_computed(e: LoweringContext, found: ir.Value, a: ir.Value) -> None:
    """Annotate the matmul of `a` by a computed operand."""
    element = dtypes.from_mlir(ir.RankedTensorType(a.type).element_type)

    def product() -> gemm_shape.GemmShape:
        *batch, m, n = ir.RankedTensorType(found.type).shape
        k = ir.RankedTensorType(a.type).shape[-1]
        return gemm_shape.GemmShape(
            gemm_shape.DOT, element.name, (m, n, k), gemm_shape.COLUMNS, tuple(batch)
        )

    if e.in_region:
        compilation_info.give_matmul(e, found, product)


def _repeated_matrix(e: LoweringContext, x: Expr) -> ir.Value | None:
    """Return the rank-2 tensor that a broadcast repeats over all its leading dims, else None."""
    if not isinstance(x, View) or x.type.rank < 3 or x.source.type.rank < 2:
        return None
    lead, tail = x.map[:-2], x.map[-2:]
    if any(i is not None for i in lead) or tail != (x.type.rank - 2, x.type.rank - 1):
        return None
    source = e.tensor(x.source)
    return source if not lead else collapsed(e, source, x.source.type.dims[-2:])


def contract(
    e: LoweringContext,
    a: ir.Value,
    b: ir.Value,
    extents: Sequence[Extent],
    acc: DType,
    by_row: bool = False,
    element: DType | None = None,
    init: ir.Value | None = None,
) -> ir.Value:
    """Build a contraction with any number of batch dims, static or dynamic; a `b` of rank 2 is
    shared by all.

    by_row: the last two axes of `b` are transposed. element: the type of both operands, if not that
    of their tensors. init: initial sums, instead of zeros.
    """
    a, b = made_ahead(e, a), made_ahead(e, b)
    rank = len(extents)
    shared = ir.RankedTensorType(b.type).rank == 2
    d = [ir.AffineDimExpr.get(i) for i in range(rank + 1)]
    lead, m, n, k = d[: rank - 2], d[rank - 2], d[rank - 1], d[rank]
    maps = [
        ir.AffineMap.get(rank + 1, 0, [*lead, m, k]),
        ir.AffineMap.get(rank + 1, 0, [*([] if shared else lead), *([n, k] if by_row else [k, n])]),
        ir.AffineMap.get(rank + 1, 0, [*lead, m, n]),
    ]
    element = element or dtypes.from_mlir(ir.RankedTensorType(a.type).element_type)
    init = init or e.fill(extents, acc, 0)
    iterators = [PARALLEL] * rank + [REDUCTION]
    if _is_odd(e, a, extents[-1]):
        read = e.reader(a, element)
        return multiply_accumulate(e, a, b, init, maps, iterators, element, acc, read)
    return multiply_accumulate(e, a, b, init, maps, iterators, element, acc)
