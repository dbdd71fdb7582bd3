"""Deep products of few rows and columns on GPUs: parts of the depth by workgroups of their own.

A product of 128x128 over a depth of 65536 has work for 64 workgroups of a chip of hundreds of
units. In parts it is two launches: sums over each part, in the type of the sums, and their total
with all that follows the product in its kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lower import gpu_choices, gpu_config, indices
from mgx_mlir.passes.lower.emit import PARALLEL, REDUCTION
from mgx_mlir.passes.lower.expr import Leaf
from mgx_mlir.passes.lower.scalar import ArithScalars, TypedScalar, computed, signless
from mgx_mlir.passes.lower.stored_rows import DOTS, rows_of


def sum_parts_ahead(e: Any, body: ir.Block) -> None:
    """Make the parts of a kernel's products, ahead of its region, for those that are split."""
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
        product = product_of_dot(op)
        choice = e.chosen[op.results[0]] = gpu_choices.choice_for(e.options, product, e.function)
        if choice.split > 1:
            out = TensorType.of(op.results[0])
            e.parts[op.results[0]] = _parts(e, x, rows, product, choice, computed(out.dtype))


def product_of_dot(op: ir.Operation) -> gpu_choices.Product:
    """What a dot of static dims with constant weights is."""
    a, b = (TensorType.of(v) for v in list(op.operands)[:2])
    return gpu_choices.Product(gpu_choices.DOT, a.dtype.name, (a.dims[0], b.dims[1], b.dims[0]))


def _parts(
    e: Any,
    x: Leaf,
    rows: ir.Value,
    product: gpu_choices.Product,
    choice: gpu_choices.Choice,
    acc: DType,
) -> ir.Value:
    """[parts, rows, columns], each the product over a part of the depth."""
    from mgx_mlir.passes.lower.linear import collapsed, multiply_accumulate

    m, n, k = product.dims
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
        gpu_config.give(e, found, lambda arch: gpu_config.product_info(arch, product, choice))
        return [found]

    kind = ir.RankedTensorType.get([s, m, n], signless(acc))
    return indices.alone(e, [kind], [[s, m, n]], build)[0]


def total(e: Any, parts: ir.Value, acc: DType) -> ir.Value:
    """The sum of parts, a thread to neighbouring columns."""
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
    gpu_config.give(e, found, lambda arch: gpu_config.window_info(arch, out, 1))
    return found


__all__ = ["product_of_dot", "sum_parts_ahead", "total"]
